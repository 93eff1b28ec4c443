"""A crash, a failure or a lost answer at any step of delete, undo, finish and gc: afterwards nothing is lost, and the
operation is finished or undone as asked. The same with processes that are killed, and with several at once.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

import clew
from clew import Store
from clew.copying import copy
from clew.engines.contract import LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.errors import ClewError, NotFound
from clew.layouts.claude import OWN_FOLDER
from clew.operations.operation import State
from clew.testing.faults import Crash, Fault, FaultKind, FaultyFileSystem, killed_at, replayable
from contents import Contents, add_session, contents, fill
from session_files import PROJECT, in_bytes, session_id, user
from stores import START, numbered, store_on

BOTH = (session_id(1), session_id(2))
KINDS: tuple[FaultKind, ...] = ("crash", "torn", "fail", "lost")

Act = Callable[[Store], object]


def free_all(store: Store) -> object:
    return store.operation_log.free(days=0)


def delete_both(store: Store) -> object:
    return store.delete(*BOTH)


def undo_newest(store: Store) -> object:
    return store.undo()


def finish_newest(store: Store) -> object:
    return store.operation_log.finish(store.operations()[0].id)


def begun(store: Store) -> None:
    """A delete that a crash ended after the first of two sessions."""
    operation = msgspec.structs.replace(store.delete(*BOTH), state=State.BEGUN)
    store.engine.bring_back(operation.id)
    store.operation_log._put(operation)
    store.engine.set_aside(store.session(BOTH[0]).key, operation.id)


def nothing(store: Store) -> None:
    assert store.operations() == []


ACTS: dict[str, tuple[Act, Act]] = {
    "delete": (nothing, delete_both),
    "finish": (begun, finish_newest),
    "undo": (delete_both, undo_newest),
    "undo of what is unfinished": (begun, undo_newest),
}
"""What was there before, and what is done then."""


class Place:
    """A config directory with three sessions, made once and copied for each run."""

    def __init__(self, folder: Path, before: Act) -> None:
        self.made = folder / "made"
        self.made.mkdir()
        engine = FilesEngine(self.made, durability="none")
        fill(engine, 1)
        for number in (2, 3):
            add_session(engine, number)
        self.whole = contents(engine)
        before(store_on(engine))
        self.folder = folder
        self.runs = 0

    def copied(self) -> Path:
        self.runs += 1
        place = self.folder / f"run{self.runs}"
        shutil.copytree(self.made, place)
        return place

    def steps(self, act: Act) -> int:
        """How many steps it has when nothing fails."""
        fs = FaultyFileSystem(inner=OsFileSystem(is_synced=False))
        act(store_at(self.copied(), fs))
        return len(fs.steps)

    def done(self, place: Path, act: Act, fault: Fault) -> bool:
        """Does it with a fault. False when it came to an end before the fault."""
        fs = FaultyFileSystem(fault, OsFileSystem(is_synced=False))
        with suppress(ClewError, Crash):
            act(store_at(place, fs))
        return fs.is_hit


def store_at(place: Path, fs: FileSystem | None = None) -> Store:
    """As another process would open it, a day later: its ids are others than those of the store before."""
    ids = numbered()
    return Store(
        FilesEngine(place, fs=fs, durability="none"),
        clock=lambda: START + timedelta(days=1),
        new_id=lambda: ids().replace("-4000-", "-4001-"),
    )


def sessions_of(found: Contents) -> set[str]:
    return {key.session for key in found}


@pytest.mark.parametrize("name", ACTS)
def test_after_a_crash_at_any_step_it_can_be_finished_or_undone(tmp_path: Path, name: str) -> None:
    before, act = ACTS[name]
    place = Place(tmp_path, before)
    steps = place.steps(act)
    assert steps > 5
    for step in range(steps):
        run(place, act, Fault("crash", step), (finished, undone)[step % 2])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ACTS)
def test_after_a_fault_at_any_step_it_can_be_finished_and_it_can_be_undone(
    tmp_path: Path, name: str, kind: FaultKind
) -> None:
    before, act = ACTS[name]
    place = Place(tmp_path, before)
    for step in range(place.steps(act)):
        for ending in (finished, undone):
            run(place, act, Fault(kind, step), ending)


def run(place: Place, act: Act, fault: Fault, ending: Callable[[Store, Contents], None]) -> None:
    here = place.copied()
    with replayable(fault):
        assert place.done(here, act, fault)
        ending(store_at(here), place.whole)
    shutil.rmtree(here)


def finished(store: Store, whole: Contents) -> None:
    """Whatever is unfinished is finished: both sessions are there whole, or both are gone and come back whole."""
    for operation in store.operation_log.unfinished():
        store.operation_log.finish(operation.id)
    assert store.operation_log.unfinished() == []
    assert store.operation_log.problems == []
    found = contents(store.engine)
    assert found == whole or sessions_of(found) == {session_id(3)}
    undone(store, whole)


def undone(store: Store, whole: Contents) -> None:
    """Whatever can be undone is undone: everything is as it was."""
    with suppress(NotFound):
        while True:
            store.undo()
    assert contents(store.engine) == whole
    assert store.operation_log.unfinished() == []


@pytest.mark.parametrize(
    "kind", ["crash", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "crash")]
)
def test_after_a_fault_at_any_step_of_gc_another_frees_the_rest_and_nothing_comes_back_in_part(
    tmp_path: Path, kind: FaultKind
) -> None:
    place = Place(tmp_path, delete_both)
    steps = place.steps(free_all)
    assert steps > 10
    for step in range(steps):
        fault = Fault(kind, step)
        here = place.copied()
        assert place.done(here, free_all, fault)
        store = store_at(here)
        with replayable(fault):
            if store.operations()[0].state is State.DONE:
                again = store_at(shutil.copytree(here, tmp_path / "again"))
                again.undo()
                assert contents(again.engine) == place.whole
                shutil.rmtree(tmp_path / "again")
            else:
                with pytest.raises(NotFound):
                    store.undo(store.operations()[0].id)
            free_all(store)
            assert store.operations()[0].state is State.FREED
            assert not (here / "clew" / "trash" / store.operations()[0].id).exists()
            assert sessions_of(contents(store.engine)) == {session_id(3)}
        shutil.rmtree(here)


# Real processes, really killed.

SEEDS = 600


def copy_all(store: Store, source: Path) -> object:
    return copy(FilesEngine(source, durability="none"), store.engine)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ACTS, "gc", "copy"])
def test_after_kill_9_at_any_moment_nothing_is_lost(tmp_path: Path, name: str) -> None:
    before, act = {**ACTS, "gc": (delete_both, free_all), "copy": (nothing, undo_newest)}[name]
    place = Place(tmp_path, before)
    if name == "copy":
        act = partial(copy_all, source=place.made)
        place.made = place.folder / "empty"
        place.made.mkdir()
    steps, killed = place.steps(act), 0
    for seed in range(SEEDS // 6):
        dice = random.Random(f"{name} {seed}")
        here, step = place.copied(), dice.randrange(steps)
        with replayable(Fault("kill", step), seed=seed):
            killed += killed_at(step, lambda _, here=here, step=step: act(store_at(here, killing(step))))  # type: ignore[misc]
            store = store_at(here)
            if name == "copy":
                act(store)
                assert contents(store.engine) == place.whole
            elif name == "gc":
                free_all(store)
                assert sessions_of(contents(store.engine)) == {session_id(3)}
            else:
                dice.choice((finished, undone))(store, place.whole)
        shutil.rmtree(here)
    assert killed > SEEDS // 12


def killing(step: int) -> FaultyFileSystem:
    return FaultyFileSystem(Fault("kill", step), OsFileSystem(is_synced=False))


DELETES_AND_UNDOES = """
import random, sys
import clew
from clew import ClewError

store = clew.open(sys.argv[1])
dice = random.Random(sys.argv[2])
sessions = sys.argv[3:]
for _ in range(40):
    try:
        if dice.random() < 0.5:
            store.delete(dice.choice(sessions))
        else:
            store.undo()
        print("done")
    except ClewError as error:
        print(type(error).__name__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["claude", "sqlite"])
def test_processes_that_delete_and_undo_the_same_sessions_lose_nothing(tmp_path: Path, kind: str, seed: int) -> None:
    store = clew.open(f"{kind}:{tmp_path / 'store'}")
    for number in (1, 2, 3):
        fill(store.engine, number)
    whole = contents(store.engine)
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", DELETES_AND_UNDOES, store.engine.url, f"{seed} {number}", *BOTH],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    printed = [child.communicate(timeout=300)[0] for child in children]
    assert [child.returncode for child in children] == [0] * 4
    words = Counter("".join(printed).split())
    assert words["done"] > 10
    assert set(words) <= {"done", "NotFound", "UsageError", "Conflict"}
    assert store.operation_log.unfinished() == []
    assert store.operation_log.problems == []
    # Each session is in the list, or in the trash of one operation, and never in both or in neither.
    kept = Counter(each.plan["sessions"][0]["session"] for each in store.operations() if each.state is State.DONE)  # type: ignore[index, call-overload]
    there = Counter(stat.key.session for stat in store.logs())
    assert kept + there == Counter([*BOTH, session_id(3)])
    undone(store, whole)


COPIES = """
import sys
from pathlib import Path
from clew.copying import copy
from clew.engines.files import FilesEngine

source, target = (FilesEngine(Path(name), durability="none") for name in sys.argv[1:])
assert copy(source, target).left_out == ()
"""


@pytest.mark.slow
def test_processes_that_make_the_same_copy_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    source = FilesEngine(tmp_path / "source", durability="none")
    for number in range(1, 40):
        fill(source, number)
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    for _ in range(3):
        command = [sys.executable, "-c", COPIES, str(tmp_path / "source"), str(tmp_path / "target")]
        children = [subprocess.Popen(command, env=environment) for _ in range(3)]
        assert [child.wait(timeout=120) for child in children] == [0] * 3
        assert contents(FilesEngine(tmp_path / "target")) == contents(source)
        for number in range(1, 40, 3):
            row = in_bytes(user(f"new{number}", "x"))
            size = source.stat(LogKey(PROJECT, session_id(number)))
            assert size is not None
            source.extend(size.key, [row], start=size.size_bytes)


class Far(OsFileSystem):
    """The trash is on another disk, and the power goes once a move there is to take away what it copied."""

    is_crashing = True

    def rename(self, source: str, target: str) -> None:
        if (f"/{OWN_FOLDER}/trash/" in source) != (f"/{OWN_FOLDER}/trash/" in target):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        if self.is_crashing and path.endswith(".jsonl"):
            raise KeyboardInterrupt
        super().unlink(path)


@pytest.mark.parametrize("way", ["finish", "undo"])
@pytest.mark.parametrize("begins", ["delete", "undo"])
def test_a_move_to_another_disk_that_a_crash_cut_off_is_finished_or_undone(
    tmp_path: Path, begins: str, way: str
) -> None:
    fs = Far(is_synced=False)
    (tmp_path / "config").mkdir()
    engine = FilesEngine(tmp_path / "config", fs=fs, durability="none")
    key = fill(engine, 1)
    store, before = store_on(engine), contents(engine)
    fs.is_crashing = begins == "delete"
    with suppress(KeyboardInterrupt):
        store.delete(key.session)
    fs.is_crashing = True
    if begins == "undo":
        with pytest.raises(KeyboardInterrupt):
            store.undo()
    fs.is_crashing = False
    (unfinished,) = store.operation_log.unfinished()
    if way == "finish":
        store.operation_log.finish(unfinished.id)
    else:
        store.undo(unfinished.id)
    assert store.operation_log.unfinished() == []
    if (begins, way) == ("delete", "finish"):
        assert contents(engine) == {}
        store.undo()
    assert contents(engine) == before
