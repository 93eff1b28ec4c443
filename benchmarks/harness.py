"""What every subject needs: a place, a corpus, rounds, and one table of what came out."""

from __future__ import annotations

import gc
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import msgspec

from benchmarks.corpus import write_many, write_one
from clew.engines.contract import LogStat
from clew.engines.files import FilesEngine

SESSION_ROWS = 18_000
"""Rows of the one large session, about 24 MB."""
CORPUS_BYTES = 500_000_000
"""Bytes of the corpus of many sessions."""
APPENDS = 200
"""How often something is appended in a round; a slow disk needs 5 ms for each."""
ROUNDS = 9


class Goal(msgspec.Struct, frozen=True):
    """The most that is good enough: of the value itself, or of its ratio to the baseline's."""

    most: float
    of_ratio: bool = False


class Unit(msgspec.Struct, frozen=True):
    """How a value is written: divided by `scale`, with so many digits."""

    name: str
    scale: float
    digits: int


MILLISECONDS = Unit("ms", 1e-3, 1)
"""For values in seconds."""
MEGABYTES = Unit("MB", 1e6, 1)
"""For values in bytes. One has 1,000,000 bytes."""


class Measured(msgspec.Struct, frozen=True):
    """One line of the table. Less is better in every unit; a value of each round, in any order."""

    what: str
    ours: Sequence[float]
    baseline: Sequence[float] = ()
    against: str = ""
    """What the baseline is."""
    goal: Goal | None = None
    unit: Unit = MILLISECONDS

    @property
    def ratio(self) -> float | None:
        """Of the best values: other work on the machine only ever adds to one."""
        return min(self.ours) / min(self.baseline) if self.baseline else None

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        value = self.ratio if self.goal.of_ratio else min(self.ours)
        return value is not None and value <= self.goal.most


class Bench:
    """What a subject is given. `place` is its own to write in and goes with the run.

    `corpus` is a config directory that was made elsewhere and stands in for both of ours.
    """

    def __init__(
        self,
        place: Path,
        *,
        corpus: Path | None = None,
        rounds: int = ROUNDS,
        session_rows: int = SESSION_ROWS,
        corpus_bytes: int = CORPUS_BYTES,
        appends: int = APPENDS,
    ) -> None:
        self.place = place
        self.appends = appends
        self.session_rows = session_rows
        self.corpus_bytes = corpus_bytes
        self._corpus = corpus
        self._rounds = rounds
        self._made: dict[str, Path] = {}

    def one_session(self) -> Path:
        """A config directory with one large session."""
        return self._corpus or self._cached("one", lambda config: write_one(config, rows=self.session_rows))

    def long_session(self) -> Path:
        """A config directory with one session of more than five times that size: 137 MB, 100,000 rows."""
        rows = self.session_rows * 100 // 18
        return self._corpus or self._cached("long", lambda config: write_one(config, rows=rows))

    def many_sessions(self) -> Path:
        """A config directory with many sessions, the largest a third of all bytes."""
        return self._corpus or self._cached("many", lambda config: write_many(config, size=self.corpus_bytes))

    def _cached(self, name: str, write: Callable[[Path], None]) -> Path:
        if name not in self._made:
            print(f"writing the corpus of {name} …", file=sys.stderr)
            config = self.place / "corpus" / name
            write(config)
            self._made[name] = config
        return self._made[name]

    def seconds(self, **works: Callable[[], object]) -> dict[str, list[float]]:
        """The seconds that each work took, in every round.

        A round does each of them once, so that whatever else happens on the machine meets all of them alike. One more
        comes first and is not counted: it fills the caches.
        """
        return self.values({name: partial(_seconds_of, work, perf_counter) for name, work in works.items()})

    def processor_seconds(self, **works: Callable[[], object]) -> dict[str, list[float]]:
        """The seconds that each work and its children had a processor, in the same rounds.

        For works that wait for nothing, whose files are in memory: on an idle machine this is the time they take, and
        on a busy one it is not the time of others.
        """
        return self.values({name: partial(_seconds_of, work, _processor_time) for name, work in works.items()})

    def seconds_of(self, work: Callable[[], object]) -> float:
        """The seconds that it takes once."""
        return _seconds_of(work, perf_counter)

    def values(self, works: Mapping[str, Callable[[], float]], *, at_most: int = sys.maxsize) -> dict[str, list[float]]:
        """What each work itself measured, in the same rounds, or in fewer of them where values hardly differ."""
        count = min(self._rounds, at_most)
        rounds = [{name: work() for name, work in works.items()} for _ in range(1 + count)]
        return {name: [values[name] for values in rounds[1:]] for name in works}


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def _seconds_of(work: Callable[[], object], clock: Callable[[], float]) -> float:
    gc.collect()
    start = clock()
    held = work()
    taken = clock() - start
    del held  # What it made is taken down after the clock was read, for ours and for the baseline alike.
    return taken


def run_child(*arguments: str) -> str:
    """What another Python prints. Its errors are this one's."""
    return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def largest_log(config: Path) -> LogStat:
    """The largest main log of a config directory."""
    return max(FilesEngine(config).list(), key=lambda stat: stat.size_bytes)


def table(lines: Iterable[Measured]) -> str:
    """Everything that was measured, as one table for people and for Markdown."""
    cells = [["what", "ours", "baseline", "ratio", "goal", "met"], *map(_cells, lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(6)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in cells
    )


def _cells(measured: Measured) -> list[str]:
    unit, goal, ratio = measured.unit, measured.goal, measured.ratio
    baseline = f"{_value(measured.baseline, unit)} {measured.against}" if measured.baseline else "-"
    if goal is None:
        most = "-"
    else:
        most = f"<= {goal.most:.2f}x" if goal.of_ratio else f"<= {goal.most / unit.scale:g} {unit.name}"
    met = {None: "-", True: "yes", False: "NO"}[measured.is_met]
    return [
        measured.what, _value(measured.ours, unit), baseline, "-" if ratio is None else f"{ratio:.2f}x", most, met,
    ]  # fmt: skip


def _value(values: Sequence[float], unit: Unit) -> str:
    """The best value, and the median in brackets."""
    best, median = min(values) / unit.scale, statistics.median(values) / unit.scale
    return f"{best:.{unit.digits}f} ({median:.{unit.digits}f}) {unit.name}"
