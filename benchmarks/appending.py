"""Durable appends to Claude Code's own files, against a loop of plain writes and flushes of the same rows.

What a disk needs for a flush differs by a factor of ten from one moment to the next, so ours and the baseline take
turns, and the ratio is what counts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

import clew
from benchmarks.harness import Bench, Goal, Measured
from clew.engines.contract import Engine, Entry, LogKey
from clew.engines.files import FilesEngine
from clew.records.compact import compact
from clew.testing.corpus import user

THREADS = 8
TEXT = "The cookie is set on another domain, so the browser drops it. " * 10
"""A row has 0.9 KB with it, which is what rows of real sessions have in the middle."""
GOAL = Goal(1 / 0.8, of_ratio=True)
"""80 % of the speed of the baseline."""

T = TypeVar("T")
sync = getattr(os, "fdatasync", os.fsync)


def measure(bench: Bench) -> Iterator[Measured]:
    """One thread, threads that share a log, and batches."""
    appending = Appending(bench.place / "appending", FilesEngine(bench.place / "appending" / "config"))
    yield from appending.measured(bench, "append", singles=bench.appends, batches=bench.appends)
    yield talking(bench, appending)


def talking(bench: Bench, appending: Appending) -> Measured:
    """Messages by threads that share one session, envelopes and head records included."""
    store = clew.open(bench.place / "appending" / "config")
    works = [range(bench.appends // THREADS)] * THREADS

    def ours() -> None:
        session = store.create(bench.place)

        def work(numbers: range) -> None:
            for number in numbers:
                session.append({"role": "assistant" if number % 2 else "user", "content": TEXT})

        _at_once(work, works)

    rows = [appending.rows(bench.appends)]
    taken = bench.seconds(ours=ours, raw=lambda: appending.raw(rows))
    what = f"{bench.appends} messages, Session.append, {THREADS} threads on one session"
    return Measured(what, taken["ours"], taken["raw"], "write + fsync, 1 thread", GOAL)


class Appending:
    """Appends to an engine, and the same rows to a plain file. Every run has a new log."""

    def __init__(self, place: Path, engine: Engine) -> None:
        self._place = place
        self._engine = engine
        self._numbers = count()
        place.mkdir(exist_ok=True)

    def measured(self, bench: Bench, what: str, *, singles: int, batches: int) -> Iterator[Measured]:
        """`singles` rows one by one, by one thread and by eight; `batches` times 100 rows in one append."""
        alone, shared = [self.rows(singles)], [self.rows(singles // THREADS) for _ in range(THREADS)]
        taken = bench.seconds(
            ours=lambda: self.ours(alone),
            raw=lambda: self.raw(alone),
            ours_shared=lambda: self.ours(shared),
            raw_shared=lambda: self.raw(shared),
        )
        told = f"{singles} rows, {what} + fsync each"
        yield Measured(f"{told}, 1 thread", taken["ours"], taken["raw"], "write + fsync", GOAL)
        threads = f"{told}, {THREADS} threads on one log"
        yield Measured(threads, taken["ours_shared"], taken["raw"], "write + fsync, 1 thread", GOAL)
        yield Measured(threads, taken["ours_shared"], taken["raw_shared"], f"the same with {THREADS} threads")
        many = [self.rows(batches, 100)]
        taken = bench.seconds(ours=lambda: self.ours(many), raw=lambda: self.raw(many))
        yield Measured(f"{batches} batches of 100 rows, {what} + fsync each", taken["ours"], taken["raw"],
                       "write + fsync", GOAL)  # fmt: skip

    def ours(self, works: Sequence[Sequence[Sequence[Entry]]]) -> None:
        """Each work by a thread of its own, all to one log."""
        key = LogKey("p", f"{next(self._numbers):08x}-0000-4000-8000-000000000000")

        def work(batches: Sequence[Sequence[Entry]]) -> None:
            for batch in batches:
                self._engine.append(key, batch)

        _at_once(work, works)

    def raw(self, works: Sequence[Sequence[Sequence[Entry]]]) -> None:
        """The same by write and fsync."""
        path = self._place / f"raw{next(self._numbers)}.jsonl"

        def work(batches: Sequence[Sequence[Entry]]) -> None:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            for batch in batches:
                os.write(handle, b"".join([entry.data + b"\n" for entry in batch]))
                sync(handle)
            os.close(handle)

        _at_once(work, works)

    def rows(self, times: int, size: int = 1) -> list[list[Entry]]:
        """So many batches of so many rows."""
        return [[self._row() for _ in range(size)] for _ in range(times)]

    def _row(self) -> Entry:
        uuid = f"{next(self._numbers):08x}-0000-4000-8000-0000000000aa"
        return Entry(compact(user(TEXT, uuid=uuid, parent=None)), uuid)


def _at_once(work: Callable[[T], None], works: Sequence[T]) -> None:
    if len(works) == 1:
        work(works[0])
        return
    threads = [threading.Thread(target=work, args=(each,)) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
