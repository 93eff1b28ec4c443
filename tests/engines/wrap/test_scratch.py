"""Nothing is written down: the disk stays as it was, and what was changed is read as if it were there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from clew import Store
from clew.engines.contract import BlobKey, Engine, Entry, LogKey, Order
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.scratch import Scratch
from clew.errors import Conflict, NotFound, UsageError
from stores import numbered, ticking

PROJECT = "-home-a"
ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
MAIN, OTHER = LogKey(PROJECT, ONE), LogKey(PROJECT, TWO)
SUB = LogKey(PROJECT, ONE, "subagents/agent-a1")
BLOB = BlobKey(PROJECT, ONE, "checkpoint", "one")
ROW = Entry(b'{"type":"user","uuid":"u-1"}', "u-1")


@pytest.fixture
def inner(tmp_path: Path) -> FilesEngine:
    place = tmp_path / "config"
    place.mkdir()
    engine = FilesEngine(place, durability="none")
    engine.append(MAIN, [ROW, Entry(b'{"n":2}')])
    engine.append(SUB, [Entry(b'{"sub":1}')])
    engine.append(OTHER, [Entry(b'{"other":1}')])
    engine.put(BLOB, [b"content"])
    return engine


def tree_of(place: Path) -> dict[str, object]:
    """Everything below a directory: names, contents, and when it was changed."""
    return {
        str(path.relative_to(place)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "", path.stat().st_mtime_ns,
            path.stat().st_ino,
        )
        for path in place.rglob("*")
    }  # fmt: skip


def data_of(engine: Engine, key: LogKey) -> list[bytes]:
    return [line.data for line in engine.read(key)]


def revision_of(engine: Engine, key: LogKey) -> str:
    stat = engine.stat(key)
    return "" if stat is None else stat.revision


def deleted(engine: Engine) -> None:
    with engine.alone():
        engine.set_aside(MAIN, "operation")


CHANGES: list[Callable[[Engine], object]] = [
    lambda engine: engine.append(MAIN, [Entry(b"{}")], batch_id="b"),
    lambda engine: engine.append(LogKey("-home-new", ONE), [Entry(b"{}")]),
    lambda engine: engine.extend(SUB, [b"{}\n"], start=10),
    lambda engine: engine.replace(MAIN, [b"{}\n"], expect=revision_of(engine, MAIN)),
    lambda engine: engine.delete(MAIN),
    lambda engine: engine.set_aside(MAIN, "operation"),
    lambda engine: (engine.set_aside(MAIN, "operation"), engine.bring_back("operation")),
    lambda engine: (engine.set_aside(MAIN, "operation"), engine.free_aside("operation")),
    lambda engine: engine.put(BLOB, [b"other"]),
    lambda engine: engine.put(BlobKey(PROJECT, "", "checkpoint", "store-wide"), [b"other"]),
    lambda engine: engine.delete_blob(BLOB),
    lambda engine: engine.flush(),
    deleted,
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_touches_the_disk(inner: FilesEngine, change: Callable[[Engine], object]) -> None:
    before = tree_of(inner.root)
    engine = Scratch(inner)
    change(engine)
    engine.close()
    assert tree_of(inner.root) == before


def test_a_log_that_is_appended_to_holds_what_is_inside_and_what_is_new(inner: FilesEngine) -> None:
    engine = Scratch(inner)
    done = engine.append(MAIN, [ROW, Entry(b'{"n":3}')])
    assert (done.written, done.duplicates) == (1, 1), "rows that are inside are known"
    assert data_of(engine, MAIN) == [ROW.data + b"\n", b'{"n":2}\n', b'{"n":3}\n']
    assert [line.data for line in engine.read_back(MAIN)] == data_of(engine, MAIN)[::-1]
    assert data_of(inner, MAIN) == data_of(engine, MAIN)[:2]
    assert data_of(engine, SUB) == [b'{"sub":1}\n']
    assert b"".join(engine.open(BLOB)) == b"content"


def test_a_log_that_was_looked_at_before_its_first_change_is_still_that_log(inner: FilesEngine) -> None:
    engine = Scratch(inner)
    seen = engine.stat(MAIN)
    assert seen is not None
    assert engine.append(MAIN, [], expect="whatever").revision == seen.revision
    engine.extend(MAIN, [], start=seen.size_bytes)
    assert engine.stat(MAIN) == seen, "a copy that nothing was added to is unchanged"
    first = engine.append(MAIN, [Entry(b"1")], expect=seen.revision)
    assert first.revision.partition("-")[0] == seen.revision.partition("-")[0]
    assert data_of(engine, MAIN)[-1] == b"1\n"
    assert [line.data for line in engine.read(MAIN, start=seen.size_bytes)] == [b"1\n"]
    with pytest.raises(Conflict, match="is at revision"):
        engine.append(MAIN, [Entry(b"2")], expect=seen.revision)
    engine.append(MAIN, [Entry(b"2")], expect=first.revision)


def test_a_log_of_no_bytes_is_copied_too(inner: FilesEngine) -> None:
    empty = LogKey(PROJECT, "dddddddd-0000-4000-8000-000000000004")
    inner.extend(empty, [], start=0, make=True)
    engine = Scratch(inner)
    seen = engine.stat(empty)
    engine.extend(empty, [], start=0)
    assert (engine.stat(empty), seen is not None) == (seen, True)
    engine.append(empty, [Entry(b"1")], expect=revision_of(inner, empty))


def test_a_log_that_is_made_anew_is_another_one(inner: FilesEngine) -> None:
    memory = MemoryEngine()
    memory.append(MAIN, [ROW])
    for engine in (Scratch(inner), Scratch(memory)):
        before = revision_of(engine, MAIN)
        assert engine.delete(MAIN)
        engine.append(MAIN, [ROW], expect="")
        assert revision_of(engine, MAIN).partition("-")[0] != before.partition("-")[0]
        with pytest.raises(Conflict):
            engine.append(MAIN, [ROW], expect=before)


def test_what_is_deleted_hides_what_is_inside(inner: FilesEngine) -> None:
    engine = Scratch(inner)
    assert engine.delete(MAIN) is True
    assert engine.delete(MAIN) is False
    assert (engine.stat(MAIN), engine.stat(SUB), [*engine.list_sub(MAIN)]) == (None, None, [])
    with pytest.raises(NotFound):
        engine.read(MAIN)
    assert [stat.key for stat in engine.list()] == [OTHER]
    assert engine.find_sessions(ONE) == []
    assert b"".join(engine.open(BLOB)) == b"content", "blobs stay"
    assert engine.delete_blob(BLOB) is True
    assert engine.delete_blob(BLOB) is False
    assert engine.blobs(MAIN) == []


def test_what_is_set_aside_comes_back_as_it_was(inner: FilesEngine) -> None:
    engine = Scratch(inner)
    before = [engine.stat(MAIN), engine.stat(SUB)]
    told = engine.set_aside(MAIN, "operation")
    assert (told.logs, told.blobs) == (2, 1)
    assert (engine.stat(MAIN), engine.blob_stat(BLOB), [*engine.list_sub(MAIN)]) == (None, None, [])
    assert engine.set_aside(MAIN, "again").logs == 0
    assert engine.bring_back("operation") == told
    assert [engine.stat(MAIN), engine.stat(SUB)] == before
    assert b"".join(engine.open(BLOB)) == b"content"


def test_lists_hold_both_in_one_order(inner: FilesEngine) -> None:
    engine = Scratch(inner, clock=ticking())
    new, elsewhere = LogKey(PROJECT, "cccccccc-0000-4000-8000-000000000003"), LogKey("-home-new", ONE)
    engine.append(new, [Entry(b"{}")])
    engine.append(elsewhere, [Entry(b"{}")])
    engine.append(LogKey(PROJECT, TWO, "subagents/agent-b"), [Entry(b"{}")])
    engine.append(LogKey(PROJECT, ONE, "subagents/agent-0"), [Entry(b"{}")])
    assert [stat.key for stat in engine.list(order=Order.BY_KEY)] == [MAIN, OTHER, new, elsewhere]
    for order in Order:
        listed = [*engine.list(order=order)]
        assert [stat.key for stat in engine.list(order=order, limit=2)] == [stat.key for stat in listed[:2]]
    assert engine.projects() == [PROJECT, "-home-new"]
    assert [stat.key.subpath for stat in engine.list_sub(MAIN)] == ["subagents/agent-0", "subagents/agent-a1"]
    subs = engine.list_subs(PROJECT)
    assert {session: [stat.key.subpath for stat in found] for session, found in subs.items()} == {
        ONE: ["subagents/agent-0", "subagents/agent-a1"], TWO: ["subagents/agent-b"],
    }  # fmt: skip
    assert {stat.key for stat in engine.find_sessions("aaaa")} == {MAIN, elsewhere}


def test_what_is_no_name_inside_is_none_here(inner: FilesEngine) -> None:
    engine = Scratch(inner)
    for key in (LogKey("..", ONE), LogKey(PROJECT, "../../x")):
        with pytest.raises(UsageError):
            engine.append(key, [Entry(b"{}")])
    with pytest.raises(UsageError):
        engine.put(BlobKey(PROJECT, ONE, "checkpoint", "../x"), [b"{}"])


def test_it_says_of_itself_that_nothing_lasts(inner: FilesEngine) -> None:
    mine, its = Scratch(inner).capabilities, inner.capabilities
    assert (mine.is_durable, mine.is_shared, mine.cas, mine.is_clients) == (False, False, "atomic", its.is_clients)


def test_a_session_lives_in_a_store_that_writes_nothing(inner: FilesEngine) -> None:
    before = tree_of(inner.root)
    store = Store(Scratch(inner, clock=ticking()), clock=ticking(), new_id=numbered())
    session = store.create("/home/a", id="cccccccc-0000-4000-8000-000000000003", title="A trial")
    session.append({"role": "user", "content": "Is anybody there?"})
    session.append({"role": "assistant", "content": "Not for long."})
    again = store.session("cccc")
    assert [message.role for message in again.messages()] == ["user", "assistant"]
    assert [info.title for info in store.sessions() if info.id == session.id] == ["A trial"]
    store.close()
    assert tree_of(inner.root) == before
