"""A crash, a failure or a lost answer at any step of a change to Claude's files.

Afterwards there is the old state or the new one, or of an append a beginning of whole lines, and doing the same again
ends in the new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from clew.engines.contract import BlobKey, Engine, LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.engines.whole import TEMPORARY_SUFFIX
from clew.errors import ClewError
from clew.layouts.claude import JOURNAL_SUFFIX, LOG_SUFFIX
from clew.testing.conformance_base import (
    MAIN,
    PROJECT,
    S2,
    SUB1,
    SUB2,
    blob,
    bytes_of,
    everything_of,
    note,
    row,
    rows,
)
from clew.testing.faults import Crash, Fault, FaultKind, FaultyFileSystem, Step, drawn, killed_at, replayable, steps_of

State = Mapping[LogKey | BlobKey, bytes]
OTHER_SESSION = LogKey(PROJECT, S2)
LONG_AGO_NS = 1_700_000_000_000_000_000
STEPS_MAX = 500
SEEDS = 3_000
SEEDS_AT_ONCE = 250


@dataclass(frozen=True)
class Work:
    """Something that is done to a store. `act` can be done again, whatever became of it before."""

    prepare: Callable[[Engine], object]
    act: Callable[[Engine], object]
    is_append: bool = False
    """Whether a crash may leave a beginning of what it adds, in whole lines."""
    is_move: bool = False
    """Whether a crash may leave some of the files moved and others not."""


BATCH = [row(10), note(1), row(11, "é" * 300), note(1), row(12)]


def _filled(engine: Engine) -> None:
    engine.append(MAIN, rows(1, 2, 3), batch_id="before")
    engine.append(SUB1, rows(4))
    engine.append(SUB2, rows(5))
    engine.append(OTHER_SESSION, rows(6))
    engine.put(blob(), [b"content"])
    engine.put(BlobKey(PROJECT, MAIN.session, "backup", "0123456789abcdef@v1"), [b"backup"])


def _nothing(_: Engine) -> None:
    """An empty store."""


def _set_aside(engine: Engine) -> None:
    _filled(engine)
    engine.set_aside(MAIN, "op")


def _extended(key: LogKey) -> Callable[[Engine], object]:
    """Goes on with a copy where it ended before."""
    whole = bytes_of(rows(1, 2, 3)) + bytes_of(rows(*range(20, 30)))

    def act(engine: Engine) -> None:
        stat = engine.stat(key)
        size = 0 if stat is None else stat.size_bytes
        rest = whole[size:]
        engine.extend(
            key, [rest[at : at + 100] for at in range(0, len(rest), 100)], start=size, modified_ns=LONG_AGO_NS
        )

    return act


def _replaced(engine: Engine) -> None:
    stat = engine.stat(MAIN)
    assert stat is not None
    engine.replace(MAIN, [bytes_of(rows(1)), bytes_of(rows(3))], expect=stat.revision)


WORKS: Mapping[str, Work] = {
    "append": Work(_filled, lambda engine: engine.append(MAIN, BATCH, batch_id="b"), is_append=True),
    "append to a new log": Work(_nothing, lambda engine: engine.append(MAIN, BATCH, batch_id="b"), is_append=True),
    "append to a sublog": Work(_filled, lambda engine: engine.append(SUB1, BATCH, batch_id="b"), is_append=True),
    "append to a new sublog": Work(
        lambda engine: engine.append(MAIN, rows(1)),
        lambda engine: engine.append(SUB2, BATCH, batch_id="b"),
        is_append=True,
    ),
    "append rows with ids alone": Work(_filled, lambda engine: engine.append(MAIN, rows(3, 40, 41)), is_append=True),
    "extend": Work(_filled, _extended(MAIN), is_append=True),
    "extend a new log": Work(_nothing, _extended(MAIN)),
    "replace": Work(_filled, _replaced),
    "delete": Work(_filled, lambda engine: engine.delete(MAIN), is_move=True),
    "put": Work(_filled, lambda engine: engine.put(blob("two"), [b"new" * 99, b"er"])),
    "put over another": Work(_filled, lambda engine: engine.put(blob(), [b"new" * 99, b"er"])),
    "delete a blob": Work(_filled, lambda engine: engine.delete_blob(blob())),
    "set aside": Work(_filled, lambda engine: engine.set_aside(MAIN, "op"), is_move=True),
    "bring back": Work(_set_aside, lambda engine: engine.bring_back("op"), is_move=True),
}
each_work = pytest.mark.parametrize("name", WORKS)


class Ground:
    """Directories in which the same work is done again and again."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._numbers = count()

    def engine(self, root: Path, fs: FileSystem | None = None) -> FilesEngine:
        """All that would wait for the disk is counted as a step, and does not wait."""
        return FilesEngine(root, fs=fs or OsFileSystem(is_synced=False), pause=lambda _: None)

    def prepared(self, work: Work) -> Path:
        root = self._place / f"{next(self._numbers)}"
        root.mkdir()
        work.prepare(self.engine(root))
        return root

    def steps(self, work: Work) -> list[Step]:
        root = self.prepared(work)
        return steps_of(lambda fs: work.act(self.engine(root, fs)))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def state_of(engine: Engine) -> State:
    return everything_of(engine, MAIN) | everything_of(engine, OTHER_SESSION)


def _old_and_new(ground: Ground, work: Work) -> tuple[State, State]:
    root = ground.prepared(work)
    old = state_of(ground.engine(root))
    work.act(ground.engine(root))
    return old, state_of(ground.engine(root))


def _aged(root: Path) -> None:
    """A last line without an end is being written by nobody any more."""
    for path in root.rglob("*.jsonl"):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def _check_between(work: Work, old: State, now: State, new: State, *, is_torn: bool) -> None:
    """What a crash may leave."""
    if work.is_append:
        for key in {*old, *now, *new}:
            before, there, after = old.get(key, b""), now.get(key, b""), new.get(key, b"")
            if before == after:
                assert there == before
                continue
            assert there.startswith(before), "what was there before is not there"
            assert after.startswith(there) or is_torn
            added = there[len(before) :]
            assert is_torn or work.act is not WORKS["append"].act or added == b"" or added.endswith(b"\n")
    elif work.is_move:
        assert all(now.get(key) in (old.get(key), new.get(key)) for key in {*old, *now, *new})
    else:
        assert now in (old, new)


def _check_end(old: State, now: State, new: State, *, has_doubles: bool) -> None:
    """Doing it again ends in the new state. What a torn write left stays as one malformed line."""
    assert now.keys() == new.keys()
    for key, content in now.items():
        if content == new[key]:
            continue
        assert isinstance(key, LogKey)
        before = old.get(key, b"")
        assert content.startswith(before)
        wanted = new[key][len(before) :].splitlines(keepends=True)
        lines = content[len(before) :].splitlines(keepends=True)
        # A row that was torn off right before its newline is whole; the next append gives it one.
        lines = [line if line + b"\n" not in wanted else line + b"\n" for line in lines]
        whole = [line for line in lines if line in wanted]
        left = [line for line in lines if line not in wanted]
        assert whole == wanted or (has_doubles and set(whole) == set(wanted))
        assert len(left) <= 1, "only one line can have been torn"
        assert all(any(each.startswith(line.rstrip(b"\n")) for each in wanted) for line in left)


def _go(ground: Ground, work: Work, fault: Fault, states: tuple[State, State]) -> None:
    old, new = states
    root = ground.prepared(work)
    fs = FaultyFileSystem(fault)
    engine = ground.engine(root, fs)
    error: BaseException | None = None
    try:
        work.act(engine)
    except (ClewError, Crash) as raised:
        error = raised
    is_cut = fault.kind in ("short", "torn", "fail", "lost")
    assert not fs.is_hit or error is not None or fault.kind not in ("crash", "torn")
    # After a crash, and after half of the failures, another start of the program goes on.
    if fault.kind in ("crash", "torn") or fault.step % 2:
        engine = ground.engine(root)
    now = state_of(ground.engine(root))
    if error is None:
        _check_end(old, now, new, has_doubles=False)
    else:
        _check_between(work, old, now, new, is_torn=is_cut)
    _aged(root)
    # The disk works again.
    fs.fault = None
    work.act(engine)
    # A flush that failed says nothing of what reached the disk, so the rows are written again on purpose.
    has_doubles = fs.is_hit and fs.steps[fault.step].method in ("sync", "sync_dir")
    _check_end(old, state_of(ground.engine(root)), new, has_doubles=has_doubles)
    _check_rubbish(root)
    shutil.rmtree(root)


def _check_rubbish(root: Path) -> None:
    """Nothing but what has a name is left. A new log may keep its other name until it is written whole again."""
    left = [path for path in root.rglob("*") if TEMPORARY_SUFFIX in path.name]
    assert [path for path in left if path.stat().st_nlink == 1] == []


@each_work
@pytest.mark.parametrize("kind", ["crash", "fail"])
def test_at_every_step(ground: Ground, name: str, kind: FaultKind) -> None:
    work = WORKS[name]
    states = _old_and_new(ground, work)
    steps = ground.steps(work)
    assert len(steps) > 2
    for step in range(len(steps) + 1):
        fault = Fault(kind, step)
        with replayable(fault):
            _go(ground, work, fault, states)


@each_work
@pytest.mark.parametrize("kind", ["torn", "short"])
def test_in_the_middle_of_every_write(ground: Ground, name: str, kind: FaultKind) -> None:
    work = WORKS[name]
    states = _old_and_new(ground, work)
    steps = ground.steps(work)
    for step in [at for at, step in enumerate(steps) if step.method == "write"]:
        for taken in (0, 400, 1000):
            fault = Fault(kind, step, taken=taken)
            with replayable(fault):
                _go(ground, work, fault, states)


@each_work
def test_an_answer_that_is_lost(ground: Ground, name: str) -> None:
    work = WORKS[name]
    states = _old_and_new(ground, work)
    for step in range(len(ground.steps(work))):
        fault = Fault("lost", step)
        with replayable(fault):
            _go(ground, work, fault, states)


@each_work
def test_what_is_acknowledged_was_flushed_before(ground: Ground, name: str) -> None:
    """Bytes before the name that shows them, and names before the answer. A journal may lag behind its log."""
    steps = ground.steps(WORKS[name])
    dirty: set[str] = set()
    unnamed: set[str] = set()
    for step in steps:
        if step.method == "write" and not step.what.endswith(JOURNAL_SUFFIX):
            dirty.add(step.what)
        elif step.method == "sync":
            dirty.discard(step.what)
        elif step.method in ("rename", "link"):
            source, target = step.what.split(" ")
            assert source not in dirty, f"{target} got its name before its bytes were flushed"
            unnamed |= {os.path.dirname(source), os.path.dirname(target)}
        elif step.method == "unlink" and step.what.endswith(LOG_SUFFIX):
            unnamed.add(os.path.dirname(step.what))
        elif step.method == "sync_dir":
            unnamed.discard(step.what)
    assert (dirty, unnamed) == (set(), set())


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
def test_thousands_of_faults_by_seed(ground: Ground, first: int) -> None:
    known = {name: (_old_and_new(ground, work), len(ground.steps(work))) for name, work in WORKS.items()}
    for seed in range(first, first + SEEDS_AT_ONCE):
        name = [*WORKS][seed % len(WORKS)]
        states, steps = known[name]
        fault = drawn(seed, steps)
        with replayable(fault, seed=seed):
            _go(ground, WORKS[name], fault, states)


@pytest.mark.slow
@each_work
def test_processes_that_are_killed_at_every_step(ground: Ground, name: str) -> None:
    work = WORKS[name]
    old, new = _old_and_new(ground, work)
    for step in range(STEPS_MAX):
        root = ground.prepared(work)
        is_killed = killed_at(step, lambda fs, root=root: work.act(ground.engine(root, fs)))  # type: ignore[misc]
        _check_between(work, old, state_of(ground.engine(root)), new, is_torn=False)
        _aged(root)
        with replayable(Fault("kill", step)):
            work.act(ground.engine(root))
            _check_end(old, state_of(ground.engine(root)), new, has_doubles=False)
            _check_rubbish(root)
        if not is_killed:
            return
    pytest.fail(f"the work did not end within {STEPS_MAX} steps")
