"""A crash, a failure or a lost answer at any step of delete, undo, finish and gc: afterwards nothing is lost, and the
operation is finished or undone as asked.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clew import Store
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.errors import ClewError, NotFound
from clew.operations.operation import State
from clew.testing.faults import Crash, Fault, FaultKind, FaultyFileSystem, replayable
from contents import Contents, add_session, contents, fill
from session_files import session_id
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
