"""A crash, a failure or a lost answer at any step of delete, undo, finish and gc: afterwards nothing is lost, and the
operation is finished or undone as asked.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from clew.testing.faults import Crash, Fault, FaultyFileSystem, replayable, steps_of

from clew import Store
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem
from clew.errors import ClewError, NotFound
from clew.operations.operation import State
from contents import Contents, contents, fill
from session_files import session_id
from stores import numbered, store_on

BOTH = (session_id(1), session_id(2))
KINDS = ("crash", "torn", "fail", "lost")

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
        for number in (1, 2, 3):
            fill(engine, number)
        self.whole = contents(engine)
        before(store_on(engine))
        self.folder = folder
        self.runs = 0

    def copied(self) -> Path:
        self.runs += 1
        place = self.folder / f"run{self.runs}"
        shutil.copytree(self.made, place)
        return place

    def done(self, place: Path, act: Act, fault: Fault) -> bool:
        """Does it with a fault. False when it came to an end before the fault."""
        fs = FaultyFileSystem(fault)
        with suppress(ClewError, Crash):
            act(store_at(place, fs))
        return fs.is_hit


def store_at(place: Path, fs: FileSystem | None = None) -> Store:
    """As another process would open it: its ids are others than those of the store before."""
    engine = FilesEngine(place, fs=fs, durability="fsync" if fs is not None else "none")
    ids = numbered()
    return Store(engine, clock=store_on(engine).now, new_id=lambda: ids().replace("-4000-", "-4001-"))


def sessions_of(found: Contents) -> set[str]:
    return {key.session for key in found}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ACTS)
def test_after_a_fault_at_any_step_it_can_be_finished_and_it_can_be_undone(
    tmp_path: Path, name: str, kind: str
) -> None:
    before, act = ACTS[name]
    place = Place(tmp_path, before)
    steps = len(steps_of(lambda fs: act(store_at(place.copied(), fs))))
    assert steps > 10
    for step in range(steps):
        fault = Fault(kind, step)  # type: ignore[arg-type]
        for ending in (finished, undone):
            here = place.copied()
            assert place.done(here, act, fault)
            with replayable(fault):
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


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_fault_at_any_step_of_gc_another_frees_the_rest_and_nothing_comes_back_in_part(
    tmp_path: Path, kind: str
) -> None:
    place = Place(tmp_path, delete_both)
    steps = len(steps_of(lambda fs: free_all(store_at(place.copied(), fs))))
    assert steps > 10
    for step in range(steps):
        fault = Fault(kind, step)  # type: ignore[arg-type]
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
