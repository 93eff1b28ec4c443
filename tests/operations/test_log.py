"""The log of operations: what is deleted comes back whole, and nothing is freed but what is old."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clew import Ambiguous, Busy, Conflict, NotFound, StorageError, Store, UsageError
from clew.engines.contract import Aside, BlobKey, Engine, LogKey
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.operations.log import TRASH_DAYS, Operations
from clew.operations.operation import Operation, State, encoded
from contents import add_session, contents, fill, set_live
from session_files import PROJECT, session_id
from stores import ENGINES, numbered, store_on

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    made = ENGINES[request.param](tmp_path)
    fill(made, 1)
    fill(made, 2)
    return made


@pytest.fixture
def store(engine: Engine) -> Store:
    return store_on(engine)


def at_day(store: Store, days: float) -> Operations:
    """The log of operations as it is so many days later."""
    moment = (NOON + timedelta(days=days)).isoformat()
    return Operations(store.engine, now=lambda: moment, new_id=numbered())


def ids(store: Store) -> list[str]:
    return [stat.key.session for stat in store.logs()]


def test_what_was_deleted_is_not_seen_by_anybody(store: Store) -> None:
    operation = store.delete(session_id(1))
    assert (operation.kind, operation.state, operation.sessions) == ("delete", State.DONE, 1)
    assert (operation.files, operation.size_bytes > 0) == (10, True)
    assert ids(store) == [session_id(2)]
    left = contents(store.engine)
    assert left
    assert {key.session for key in left} == {session_id(2)}
    with pytest.raises(NotFound):
        store.session(session_id(1))


def test_undo_brings_everything_back_with_its_times(store: Store) -> None:
    before = contents(store.engine)
    deleted = store.delete(session_id(1))
    undone = store.undo()
    assert (undone.id, undone.state) == (deleted.id, State.UNDONE)
    assert contents(store.engine) == before
    assert store.session(session_id(1)).messages()


def test_several_sessions_go_and_come_as_one_operation(store: Store) -> None:
    before = contents(store.engine)
    operation = store.delete(session_id(1), store.session(session_id(2)), session_id(1)[:10])
    assert (operation.sessions, ids(store)) == (2, [])
    store.undo(operation.id)
    assert contents(store.engine) == before


def test_one_that_is_not_found_keeps_the_others_where_they_are(store: Store) -> None:
    with pytest.raises(NotFound):
        store.delete(session_id(1), session_id(9))
    assert len(ids(store)) == 2
    assert store.operations() == []


def test_the_newest_is_undone_first_and_each_only_once(store: Store) -> None:
    store.delete(session_id(1))
    store.delete(session_id(2))
    store.undo()
    assert ids(store) == [session_id(2)]
    store.undo()
    assert set(ids(store)) == {session_id(1), session_id(2)}
    with pytest.raises(NotFound, match="nothing to undo"):
        store.undo()
    with pytest.raises(UsageError, match="undone already"):
        store.undo(store.operations()[0].id)


def test_operations_are_newest_first_also_when_the_clock_stands_still(engine: Engine) -> None:
    store = Store(engine, clock=lambda: NOON)
    first, second = store.delete(session_id(1)), store.delete(session_id(2))
    assert [each.id for each in store.operations()] == [second.id, first.id]
    assert store.undo().id == second.id


def test_an_operation_is_named_by_the_beginning_of_its_id(store: Store) -> None:
    first = store.delete(session_id(1))
    store.delete(session_id(2))
    assert store.undo(first.id[:8]).id == first.id
    with pytest.raises(Ambiguous) as caught:
        store.undo("0000000")
    assert len(caught.value.candidates) == 2
    for name in ("nope", "../../x", "\0", "x" * 300):
        with pytest.raises(NotFound):
            store.undo(name)


def test_where_nothing_was_done_looking_makes_nothing(tmp_path: Path) -> None:
    store = store_on(FilesEngine(tmp_path / "none"))
    assert store.operations() == []
    for look in (store.undo, lambda: store.operation_log.finish("x")):
        with pytest.raises(NotFound):
            look()
    assert store.operation_log.free().freed_bytes == 0
    assert not (tmp_path / "none").exists()


def test_what_stands_in_the_way_is_not_overwritten(store: Store) -> None:
    before = contents(store.engine)
    deleted = store.delete(session_id(1))
    add_session(store.engine, 1)
    between = contents(store.engine)
    with pytest.raises(Conflict):
        store.undo()
    assert contents(store.engine) == between
    assert store.operations()[0].state is State.DONE
    # The new one is deleted too, as an operation of its own; then the old one can come back.
    store.delete(session_id(1))
    store.undo(deleted.id)
    assert contents(store.engine) == before


def test_a_session_of_a_running_client_is_refused_unless_that_is_wanted(tmp_path: Path) -> None:
    root = tmp_path / "config"
    root.mkdir()
    engine = FilesEngine(root, durability="none")
    fill(engine, 1)
    fill(engine, 2)
    set_live(root, session_id(1))
    store = store_on(engine)
    with pytest.raises(Busy, match="running client") as caught:
        store.delete(session_id(2), session_id(1))
    assert "--force" in caught.value.hint
    assert len(ids(store)) == 2
    assert store.operations() == []
    store.delete(session_id(1), even_live=True)
    assert ids(store) == [session_id(2)]


def test_a_subagent_goes_only_with_its_session(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    key, store = fill(engine, 1), store_on(engine)
    for subpath in ("subagents/agent-a1", "agent-b1"):
        with pytest.raises(UsageError, match="subagent"):
            store.delete(engine.where(LogKey(key.project, key.session, subpath)))


def test_a_session_of_another_store_is_refused(tmp_path: Path) -> None:
    store = store_on(ENGINES["files"](tmp_path))
    loose = tmp_path / f"{session_id(1)}.jsonl"
    loose.write_bytes(b"{}\n")
    with pytest.raises(UsageError, match="not in this store"):
        store.delete(loose)
    with pytest.raises(UsageError, match="no session was named"):
        store.delete()
    assert loose.exists()


def test_only_what_is_old_is_freed(store: Store) -> None:
    first = store.delete(session_id(1))
    dry = at_day(store, TRASH_DAYS + 1).free(is_dry=True)
    assert (dry.freed_bytes, dry.kept_bytes, dry.operations) == (first.size_bytes, 0, [first.id])
    early = at_day(store, TRASH_DAYS - 1).free()
    assert (early.freed_bytes, early.kept_bytes) == (0, first.size_bytes)
    assert store.operations()[0].state is State.DONE
    late = at_day(store, TRASH_DAYS + 1).free()
    assert (late.freed_bytes, late.kept_bytes) == (first.size_bytes, 0)
    freed = store.operations()[0]
    assert (freed.state, freed.sessions) == (State.FREED, 1)
    assert b"first question" not in encoded(freed)
    with pytest.raises(NotFound, match="for good"):
        store.undo(first.id)
    with pytest.raises(NotFound, match="nothing to undo"):
        store.undo()
    assert at_day(store, 1000).free().freed_bytes == 0


def test_what_was_undone_or_is_unfinished_is_not_freed(store: Store) -> None:
    begun = unfinished(store, State.BEGUN)
    store.delete(session_id(2))
    store.undo()
    before = contents(store.engine)
    freed = at_day(store, 1000).free()
    assert (freed.freed_bytes, freed.operations) == (0, [])
    assert contents(store.engine) == before
    assert {each.id for each in store.operation_log.unfinished()} == {begun.id}


def test_a_time_that_cannot_be_read_is_never_old(store: Store) -> None:
    operation = store.delete(session_id(1))
    for text in ("", "soon", "2020-01-01", "9999-01-01T00:00:00Z"):
        put(store, replaced(operation, changed_at=text))
        assert at_day(store, 1000).free().freed_bytes == 0


def replaced(operation: Operation, **fields: object) -> Operation:
    import msgspec

    return msgspec.structs.replace(operation, **fields)


def put(store: Store, operation: Operation) -> None:
    store.engine.put(BlobKey("", "", "operation", operation.id), [encoded(operation)])


def unfinished(store: Store, state: State) -> Operation:
    """A delete of the first session that a crash ended in that state: just before its step."""
    operation = replaced(store.delete(session_id(1)), state=state)
    if state is State.BEGUN:
        store.engine.bring_back(operation.id)
    put(store, operation)
    return operation


@pytest.mark.parametrize(
    ("state", "end", "is_there"),
    [
        (State.BEGUN, State.DONE, False),
        (State.UNDOING, State.UNDONE, True),
        (State.FREEING, State.FREED, False),
    ],
)
def test_an_unfinished_operation_is_found_and_finished(store: Store, state: State, end: State, is_there: bool) -> None:
    operation = unfinished(store, state)
    assert [each.id for each in store.operation_log.unfinished()] == [operation.id]
    finished = store.operation_log.finish(operation.id)
    assert finished.state is end
    assert (session_id(1) in ids(store)) is is_there
    assert store.operation_log.unfinished() == []
    assert store.operation_log.finish(operation.id) == finished


@pytest.mark.parametrize("state", [State.BEGUN, State.UNDOING])
def test_an_unfinished_operation_can_be_undone(store: Store, state: State) -> None:
    before = contents(store.engine)
    unfinished(store, state)
    assert store.undo().state is State.UNDONE
    assert contents(store.engine) == before


def test_what_began_to_be_freed_cannot_be_undone_and_is_freed_whatever_its_age(store: Store) -> None:
    operation = unfinished(store, State.FREEING)
    with pytest.raises(NotFound):
        store.undo(operation.id)
    assert store.operation_log.free().freed_bytes == operation.size_bytes
    assert store.operations()[0].state is State.FREED


def test_an_undo_of_what_is_lost_says_so_and_is_over(store: Store) -> None:
    operation = store.delete(session_id(1))
    store.engine.free_aside(operation.id)
    with pytest.raises(NotFound, match="nothing is kept"):
        store.undo()
    assert store.operations()[0].state is State.FREED


class Failing(MemoryEngine):
    """Refuses to take the session of this id, and to bring back what it took if it is told to."""

    refused = ""
    is_stuck = False

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        if key.session == self.refused:
            raise StorageError("the disk is full")
        return super().set_aside(key, operation)

    def bring_back(self, operation: str) -> Aside:
        if self.is_stuck:
            raise StorageError("the disk is full")
        return super().bring_back(operation)


def test_a_delete_that_fails_in_the_middle_is_undone_at_once() -> None:
    engine = Failing()
    fill(engine, 1)
    fill(engine, 2)
    store, before = store_on(engine), contents(engine)
    engine.refused = session_id(2)
    with pytest.raises(StorageError, match="the disk is full"):
        store.delete(session_id(1), session_id(2))
    assert contents(engine) == before
    assert store.operations()[0].state is State.UNDONE


def test_where_that_fails_too_the_operation_is_unfinished_and_the_error_says_what_to_type() -> None:
    engine = Failing()
    fill(engine, 1)
    fill(engine, 2)
    store, before = store_on(engine), contents(engine)
    engine.refused, engine.is_stuck = session_id(2), True
    with pytest.raises(StorageError) as caught:
        store.delete(session_id(1), session_id(2))
    found = store.operation_log.unfinished()
    assert [each.state for each in found] == [State.UNDOING]
    assert f"clew undo {found[0].id}" in caught.value.hint
    engine.refused, engine.is_stuck = "", False
    store.undo()
    assert contents(engine) == before


GARBAGE = [b"", b"\x00\xff", b"[]", b"{}", b'"x"', b'{"operation":5}', b"{" * 100_000]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_a_record_that_cannot_be_read_is_a_problem_and_hides_no_other(store: Store, data: bytes) -> None:
    good = store.delete(session_id(1))
    store.engine.put(BlobKey("", "", "operation", "bad"), [data])
    assert [each.id for each in store.operations()] == [good.id]
    assert [problem.path for problem in store.problems if problem.path == "bad"] == ["bad"]
    assert store.undo().id == good.id
    store.delete(session_id(2))
    assert at_day(store, 1000).free().operations


HOSTILE: list[Callable[[Operation], Operation]] = [
    lambda operation: replaced(operation, id="other"),
    lambda operation: replaced(operation, id="../../x"),
    lambda operation: replaced(operation, kind="../../x"),
    lambda operation: replaced(operation, kind="os:system"),
]


@pytest.mark.parametrize("changed", HOSTILE)
def test_a_record_of_another_id_or_kind_does_nothing(store: Store, changed: Callable[[Operation], Operation]) -> None:
    operation = store.delete(session_id(1))
    before = contents(store.engine)
    store.engine.put(BlobKey("", "", "operation", operation.id), [encoded(changed(operation))])
    assert store.operations() == []
    for act in (store.undo, store.operation_log.finish):
        with pytest.raises(Exception, match="operation"):
            act(operation.id)
    assert at_day(store, 1000).free().freed_bytes == 0
    assert contents(store.engine) == before


@pytest.mark.parametrize("name", ["..", "../../etc", "a/b", "", "\0", "x" * 300, "\x1b[2J"])
def test_names_in_a_hostile_plan_lead_nowhere(tmp_path: Path, name: str) -> None:
    engine = ENGINES["files"](tmp_path)
    fill(engine, 1)
    store = store_on(engine)
    operation = unfinished(store, State.BEGUN)
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(b"precious")
    session = {"project": name, "session": name, "title": name, "revision": "", "files": 1, "bytes": 1}
    put(store, replaced(operation, plan={"sessions": [session]}))
    before = contents(engine)
    with contextlib.suppress(UsageError):
        store.operation_log.finish(operation.id)
    assert contents(engine) == before
    assert outside.read_bytes() == b"precious"
    put(store, replaced(operation, plan={"sessions": "all"}))
    with pytest.raises(Exception, match="plan of the operation"):
        store.operation_log.finish(operation.id)


def test_links_in_the_place_of_records_and_trash_are_not_followed(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    fill(engine, 1)
    store = store_on(engine)
    operation = store.delete(session_id(1))
    config, precious = tmp_path / "config", tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"precious")
    record = config / "clew" / "store" / "operation" / operation.id
    (tmp_path / "elsewhere").write_bytes(record.read_bytes())
    (record.parent / "linked").symlink_to(tmp_path / "elsewhere")
    assert [each.id for each in store.operations()] == [operation.id]
    trash = config / "clew" / "trash" / operation.id
    (trash / "projects" / PROJECT / "link").symlink_to(precious)
    trash.rename(tmp_path / "kept")
    trash.symlink_to(precious)
    for act in (lambda: store.undo(), lambda: at_day(store, 1000).free()):
        with contextlib.suppress(StorageError, NotFound):
            act()
        assert (precious / "file").read_bytes() == b"precious"
    assert (tmp_path / "kept" / "projects").is_dir()


def test_one_operation_that_cannot_be_freed_keeps_no_other(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    fill(engine, 1)
    store = store_on(engine)
    good = store.delete(session_id(1))
    put(store, replaced(good, id="a/b"))
    linked = tmp_path / "config" / "clew" / "trash" / "linked"
    linked.symlink_to(tmp_path)
    put(store, replaced(good, id="linked"))
    freed = at_day(store, 1000).free()
    assert (freed.operations, [problem.path for problem in freed.failed]) == ([good.id], ["linked"])
    assert freed.freed_bytes == good.size_bytes
    assert linked.is_symlink()


def test_threads_that_undo_the_same_operation_bring_it_back_once(store: Store) -> None:
    before = contents(store.engine)
    operation = store.delete(session_id(1))
    came: list[str] = []
    together = threading.Barrier(4)

    def undo() -> None:
        mine = store_on(store.engine)
        together.wait(30)
        try:
            came.append(mine.undo(operation.id).state.value)
        except UsageError as error:
            came.append(type(error).__name__)

    threads = [threading.Thread(target=undo) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(came) == ["UsageError"] * 3 + ["undone"]
    assert contents(store.engine) == before


def test_a_link_inside_the_trash_keeps_an_undo_from_giving_up_what_it_hides(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    fill(engine, 1)
    store = store_on(engine)
    before = contents(engine)
    operation = store.delete(session_id(1))
    hidden = tmp_path / "config" / "clew" / "trash" / operation.id / "projects"
    hidden.rename(tmp_path / "kept")
    hidden.symlink_to(tmp_path / "kept")
    with pytest.raises(StorageError, match="is a link"):
        store.undo()
    hidden.unlink()
    (tmp_path / "kept").rename(hidden)
    assert store.undo().state is State.UNDONE
    assert contents(engine) == before


def test_nothing_is_taken_away_where_its_record_would_not_be_found_again(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    fill(engine, 1)
    store = store_on(engine)
    before = contents(engine)
    records = tmp_path / "config" / "clew" / "store"
    records.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (records / "operation").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="cannot be found where it was put"):
        store.delete(session_id(1))
    assert contents(engine) == before


def test_what_an_undo_did_not_bring_back_stays_in_the_trash(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    fill(engine, 1)
    store = store_on(engine)
    operation = store.delete(session_id(1))
    note = tmp_path / "config" / "clew" / "trash" / operation.id / "note.txt"
    note.write_text("of a person")
    (note.parent / f".{'0' * 32}.clew.tmp").write_text("of a crash")
    store.undo()
    assert [path.name for path in note.parent.iterdir()] == ["note.txt"]
