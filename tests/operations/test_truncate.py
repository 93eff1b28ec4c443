"""A truncation and its undo: a crash, a failure or a lost answer at any step leaves the old head or the new one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clew import Conflict, DamagedData, Store, Truncated
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.errors import ClewError, NotFound
from clew.operations.operation import State
from clew.operations.truncate import Plan
from clew.testing.faults import Crash, Fault, FaultKind, FaultyFileSystem, replayable
from contents import add_session
from session_files import PROJECT, assistant, in_bytes, session_id, two_turns, user
from stores import ENGINES, START, numbered, store_on

ONE = session_id(1)
OLD, NEW = "1a4", "1a2"
FAULTS: tuple[FaultKind, ...] = ("crash", "torn", "fail", "lost")
Act = Callable[[Store], object]


def nothing(store: Store) -> None:
    assert store.operations() == []


def truncate(store: Store) -> Truncated:
    return store.session(ONE).truncate("turn:1")


def undo(store: Store) -> object:
    return store.undo()


ACTS: dict[str, tuple[Act, Act]] = {"truncate": (nothing, truncate), "undo": (truncate, undo)}
"""What was there before, and what is done then."""


def store_at(place: Path, fs: FileSystem | None = None) -> Store:
    """As another process would open it, a day later."""
    ids = numbered()
    return Store(
        FilesEngine(place, fs=fs, durability="none"),
        clock=lambda: START + timedelta(days=1),
        new_id=lambda: ids().replace("-4000-", "-4001-"),
    )


def made(place: Path, before: Act) -> bytes:
    """A session of two turns in a new config directory. Gives the bytes of its log."""
    place.mkdir()
    engine = FilesEngine(place, durability="none")
    key = add_session(engine, 1)
    before(store_on(engine))
    return Path(engine.where(key)).read_bytes()


def log_of(store: Store) -> bytes:
    return Path(store.session(ONE).where).read_bytes()


def head(store: Store) -> str | None:
    return store.session(ONE).head.uuid


def finished(store: Store) -> None:
    """Whatever is unfinished is finished: the head is where the operation says.

    Half a head record that a crash left is a log that changed: then the way out is to undo what was not done.
    """
    for operation in store.operation_log.unfinished():
        is_there = head(store) == NEW
        try:
            store.operation_log.finish(operation.id)
        except Conflict:
            if is_there:
                raise
            store.undo(operation.id)
    states = [each.state for each in store.operations()]
    assert head(store) == (NEW if states == [State.DONE] else OLD), states


def undone(store: Store) -> None:
    """Whatever can be undone is undone: the head is where it was at first."""
    with suppress(NotFound):
        while True:
            store.undo()
    assert head(store) == OLD


@pytest.mark.parametrize(
    "kind", ["crash", *(pytest.param(kind, marks=pytest.mark.slow) for kind in FAULTS if kind != "crash")]
)
@pytest.mark.parametrize("name", ACTS)
def test_after_a_fault_at_any_step_it_is_finished_or_undone_as_asked(
    tmp_path: Path, name: str, kind: FaultKind
) -> None:
    before, act = ACTS[name]
    bytes_before = made(tmp_path / "made", before)
    shutil.copytree(tmp_path / "made", tmp_path / "dry")
    counting = FaultyFileSystem(inner=OsFileSystem(is_synced=False))
    act(store_at(tmp_path / "dry", counting))
    assert len(counting.steps) > 5
    for step in range(len(counting.steps)):
        for ending in (finished, undone):
            here = shutil.copytree(tmp_path / "made", tmp_path / "run")
            fs = FaultyFileSystem(Fault(kind, step), OsFileSystem(is_synced=False))
            with replayable(Fault(kind, step)):
                with suppress(ClewError, Crash):
                    act(store_at(here, fs))
                assert fs.is_hit
                store = store_at(here)
                assert head(store) in (OLD, NEW)
                ending(store)
                assert store.operation_log.unfinished() == []
                assert store.operation_log.problems == []
                assert log_of(store).startswith(bytes_before.rstrip(b"\n"))
            shutil.rmtree(here)


def begun(store: Store) -> str:
    """A truncation that was recorded, and nothing more. Gives its id."""
    recorded = store.operation_log.find(truncate(store).operation or "")
    path = Path(store.session(ONE).where)
    path.write_bytes(path.read_bytes()[: recorded.plan_as(Plan).size_bytes])
    store.operation_log._put(msgspec.structs.replace(recorded, state=State.BEGUN))
    return recorded.id


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made(tmp_path / "config", nothing)
    return store_at(tmp_path / "config")


def append(store: Store, *rows: dict[str, object]) -> None:
    with Path(store.session(ONE).where).open("ab") as file:
        file.write(in_bytes(*rows))


def test_one_that_was_only_recorded_is_undone_without_a_row(store: Store) -> None:
    before = log_of(store)
    assert store.undo(begun(store)).state is State.UNDONE
    assert log_of(store) == before


def test_one_that_was_only_recorded_is_undone_also_when_the_conversation_went_on(store: Store) -> None:
    name = begun(store)
    append(store, user("1u5", "more", OLD, 5), assistant("1a6", "yes", "1u5", 6))
    before = log_of(store)
    with pytest.raises(Conflict) as error:
        store.operation_log.finish(name)
    assert f"clew undo {name}" in error.value.hint
    assert store.undo(name).state is State.UNDONE
    assert log_of(store) == before


def crashed_before_it_was_noted(store: Store) -> str:
    """A truncation whose record stands in the log, and of which nobody noted that it is done. Gives its id."""
    recorded = store.operation_log.find(truncate(store).operation or "")
    store.operation_log._put(msgspec.structs.replace(recorded, state=State.BEGUN))
    return recorded.id


@pytest.mark.parametrize("engine", ENGINES)
def test_one_that_was_only_recorded_is_finished_where_another_moved_the_head_there_and_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    store = store_on(ENGINES[engine](tmp_path))
    add_session(store.engine, 1)

    def crash(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(store.engine, "append", crash)
        with pytest.raises(SystemExit):
            truncate(store)
    (operation,) = store.operation_log.unfinished()
    truncate(store)
    store.session(ONE).append_many([{"role": "user", "content": "more"}, {"role": "assistant", "content": "yes"}])
    lines = list(store.session(ONE).lines())
    with pytest.raises(Conflict, match="went on since"):
        store.undo(operation.id)
    assert store.operation_log.finish(operation.id).state is State.DONE
    assert store.operation_log.unfinished() == []
    assert list(store.session(ONE).lines()) == lines


@pytest.mark.parametrize("is_moved", [True, False])
def test_one_whose_session_was_deleted_meanwhile_is_finished(store: Store, *, is_moved: bool) -> None:
    name = crashed_before_it_was_noted(store) if is_moved else begun(store)
    deleted = store.delete(ONE)
    assert store.operation_log.finish(name).state is State.DONE
    store.undo(deleted.id)
    assert store.undo(name).state is State.UNDONE
    assert head(store) == OLD


def test_undo_of_a_log_with_a_torn_end_finds_the_record_all_the_same(tmp_path: Path) -> None:
    engine = FilesEngine(tmp_path / "config", durability="none")
    (tmp_path / "config").mkdir()
    raw = in_bytes(*two_turns("1"))
    folder = tmp_path / "config" / "projects" / PROJECT
    folder.mkdir(parents=True)
    (folder / f"{ONE}.jsonl").write_bytes(raw[:-1])
    store = store_on(engine)
    store.session(ONE).truncate("turn:1")
    assert head(store) == NEW
    store.undo()
    assert head(store) == OLD
    assert log_of(store).startswith(raw)


def test_a_plan_that_cannot_be_read_is_damaged_and_changes_nothing(store: Store) -> None:
    truncate(store)
    (operation,) = store.operations()
    before = log_of(store)
    store.operation_log._put(msgspec.structs.replace(operation, plan={"leaf": 5}))
    with pytest.raises(DamagedData, match="plan"):
        store.undo()
    assert log_of(store) == before
    assert store.operation_log.title(store.operations()[0]) == ""
