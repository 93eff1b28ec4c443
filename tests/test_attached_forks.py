"""Forks that hold only their own rows: what they inherit, and that they never lose it in silence."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import clew
from clew import ClewError, Conflict, DamagedData, NotFound, Session, StorageError, Store, UsageError
from clew.adapters.claude_agent_sdk import ClaudeSessionStore
from clew.engines.contract import BlobKey, Entry, LogKey
from clew.engines.memory import MemoryEngine
from clew.engines.sqlite import SqliteEngine
from clew.engines.wrap.faulty import Fault, Faulty, When
from clew.forks.kind import Wanted
from clew.forks.materialised import copied
from clew.forks.table import FORK_KINDS
from clew.lineage import ANCESTORS_MAX, LOOK_BYTES, children_of
from clew.testing.forks import forked, in_processes
from stores import ENGINES, store_on, ticking

ENGINES_WITH_FORKS = ("memory", "sqlite")


@pytest.fixture(params=ENGINES_WITH_FORKS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_on(ENGINES[request.param](tmp_path)) as store:
        yield store


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def texts(session: Session, up_to: str | None = None) -> list[str]:
    return [str(block.get("text")) for message in session.messages(up_to) for block in message.content]


def spoken_in(store: Store, turns: int = 2) -> tuple[Session, list[str]]:
    """A session with so many prompts and answers, and the uuids of these."""
    session = store.create("/home/a/project")
    uuids: list[str] = []
    for turn in range(1, turns + 1):
        done = session.append_many([user(f"q{turn}"), assistant(f"a{turn}")])
        uuids += [uuid for uuid in done.uuids if uuid]
    return session, uuids


def again(store: Store, session: Session) -> Session:
    """The same session as somebody else sees it, who has read nothing."""
    return Store(store.engine, clock=ticking()).session(session.id)


def rows(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line.data) for line in session.lines()]


# What is inherited.


def test_a_fork_at_the_head_begins_with_the_conversation_and_has_one_row(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(kind="attached")
    assert texts(child) == texts(again(store, child)) == ["q1", "a1", "q2", "a2"]
    assert [row["type"] for row in rows(child)] == ["clew-fork"]
    assert child.head.uuid == uuids[-1]
    assert child.project == parent.project


@pytest.mark.parametrize("is_read", [True, False])
def test_a_fork_at_a_row_begins_with_the_log_up_to_it(store: Store, is_read: bool) -> None:
    parent, uuids = spoken_in(store)
    for at, uuid in enumerate(uuids, start=1):
        source = parent if is_read else again(store, parent)
        child = source.fork(uuid, kind="attached")
        assert texts(child) == ["q1", "a1", "q2", "a2"][:at] == texts(parent, up_to=uuid)
        assert [record.uuid for record in child.records() if record.uuid] == uuids[:at]
    assert is_read or not source.is_read


@pytest.mark.parametrize("point", ["turn:1", "turn:-2"])
def test_a_fork_takes_every_point(store: Store, point: str) -> None:
    parent, _ = spoken_in(store)
    assert texts(parent.fork(point, kind="attached")) == ["q1", "a1"] == texts(parent, up_to=point)


def test_what_the_parent_gets_later_is_not_inherited(store: Store) -> None:
    parent, _ = spoken_in(store, 1)
    child = parent.fork(kind="attached")
    parent.append_many([user("later"), assistant("much later")])
    assert texts(again(store, child)) == ["q1", "a1"]


def test_parent_and_child_go_on_each_for_itself(store: Store) -> None:
    parent, _ = spoken_in(store, 1)
    child = parent.fork(kind="attached")
    assert texts(child) == ["q1", "a1"]
    done = child.append_many([user("mine"), assistant("my answer")])
    assert done.written == 3
    parent.append_many([user("yours")])
    assert texts(child) == texts(again(store, child)) == ["q1", "a1", "mine", "my answer"]
    assert texts(parent) == ["q1", "a1", "yours"]
    assert {row["sessionId"] for row in rows(child)} == {child.id}
    assert rows(child)[1]["cwd"] == "/home/a/project"


def test_a_fork_of_a_fork_knows_its_whole_lineage(store: Store) -> None:
    parent, _ = spoken_in(store, 1)
    child = parent.fork(kind="attached")
    child.append_many([user("q2"), assistant("a2")])
    grandchild = again(store, child).fork(kind="attached")
    grandchild.append(user("q3"))
    point = grandchild.fork_point
    assert point is not None
    assert [each.session for each in point.lineage] == [parent.id, child.id]
    assert texts(again(store, grandchild)) == ["q1", "a1", "q2", "a2", "q3"]


@pytest.mark.parametrize("is_read", [True, False])
def test_a_fork_at_an_inherited_row_stands_on_the_log_that_has_it(store: Store, is_read: bool) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(kind="attached")
    child.append(user("q3"))
    source = child if is_read else again(store, child)
    grandchild = source.fork(uuids[1], kind="attached")
    point = grandchild.fork_point
    assert point is not None
    assert point.parent == child.id
    assert [each.session for each in point.lineage] == [parent.id]
    assert texts(grandchild) == ["q1", "a1"]


def test_a_fork_on_a_branch_that_was_left_takes_that_branch(store: Store) -> None:
    parent, uuids = spoken_in(store)
    parent.append_many([user("other"), assistant("other answer")], parent=uuids[1])
    child = parent.fork(uuids[3], kind="attached")
    assert texts(child) == ["q1", "a1", "q2", "a2"]
    assert texts(parent.fork(kind="attached")) == ["q1", "a1", "other", "other answer"]
    child.append(user("q3"))
    assert texts(again(store, child)) == ["q1", "a1", "q2", "a2", "q3"]


def test_a_branch_in_the_child_may_begin_at_an_inherited_row(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(kind="attached")
    child.append_many([user("other"), assistant("other answer")], parent=uuids[1])
    assert texts(child) == texts(again(store, child)) == ["q1", "a1", "other", "other answer"]
    assert {each.leaf for each in child.transcripts()} == {uuids[3], child.head.uuid}


def test_a_head_record_of_the_child_may_name_an_inherited_row(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(kind="attached")
    child.append_many([user("q3"), assistant("a3")])
    child.append({"type": "last-prompt", "leafUuid": uuids[1], "explicit": True})
    assert texts(again(store, child)) == ["q1", "a1"]
    grandchild = again(store, child).fork(kind="attached")
    assert texts(again(store, grandchild)) == ["q1", "a1"]
    again(store, child).append(user("other"))
    assert texts(again(store, child)) == ["q1", "a1", "other"]


def test_a_fork_of_an_empty_conversation_inherits_nothing_now_or_later(store: Store) -> None:
    parent = store.create("/home/a/project", title="Nothing yet")
    child = parent.fork(kind="attached")
    parent.append_many([user("later"), assistant("answer")])
    assert texts(again(store, child)) == []
    child.append(user("mine"))
    assert texts(again(store, child)) == ["mine"]
    assert child.fork_point is not None
    assert child.fork_point.lineage == ()


def test_a_list_shows_a_fork_with_its_own_title_else_the_first_prompt(store: Store) -> None:
    parent, _ = spoken_in(store)
    parent.append_many([{"type": "custom-title", "customTitle": "The parent"}])
    child = parent.fork(kind="attached")
    named = parent.fork(kind="attached", title="The child")
    told = {info.id: info for info in store.sessions()}
    assert (told[child.id].title, told[child.id].first_prompt, told[child.id].message_count) == ("q1", "q1", 4)
    assert (told[named.id].title, told[named.id].cwd) == ("The child", "/home/a/project")
    assert {told[child.id].parent_id, told[named.id].parent_id} == {parent.id}
    assert told[child.id].size_bytes < told[parent.id].size_bytes


def test_a_row_that_is_inherited_is_not_written_again(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(kind="attached")
    known = next(record for record in parent.records() if record.uuid == uuids[1])
    body = {**known.body(), "sessionId": child.id}
    done = child.append_many([body, user("q3")])
    assert (done.duplicates, done.written) == (1, 2)
    assert [row["type"] for row in rows(child)] == ["clew-fork", "user", "last-prompt"]
    assert child.append(body).duplicates == 1
    assert texts(again(store, child)) == ["q1", "a1", "q2", "a2", "q3"]


def test_a_fork_is_read_on_and_followed_by_its_own_rows(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    other = again(store, child)
    assert texts(other) == ["q1", "a1", "q2", "a2"]
    stop = Event()
    new = child.watch(stop)
    child.append(user("q3"))
    assert next(record.type for record in new if record.type == "user") == "user"
    stop.set()
    assert other.refresh()
    assert texts(other) == ["q1", "a1", "q2", "a2", "q3"]


def test_fifty_levels_are_read_and_forked(store: Store) -> None:
    session, _ = spoken_in(store, 1)
    wanted = ["q1", "a1"]
    for level in range(50):
        session = session.fork(kind="attached")
        session.append_many([user(f"q{level}"), assistant(f"a{level}")])
        wanted += [f"q{level}", f"a{level}"]
    assert texts(again(store, session)) == wanted
    assert session.fork_point is not None
    assert len(session.fork_point.lineage) == 50


def test_rows_of_which_no_engine_knows_the_place_are_found_by_reading(store: Store) -> None:
    parent, uuids = spoken_in(store)
    other = LogKey(parent.project, "0000000a-0000-4000-8000-00000000000b")
    store.engine.extend(other, [b"".join(line.data for line in parent.lines())], start=0)
    session = store.session(other.session)
    for at, uuid in enumerate(uuids, start=1):
        assert texts(session.fork(uuid, kind="attached")) == ["q1", "a1", "q2", "a2"][:at]


def test_a_detached_fork_says_where_it_comes_from_and_starts_empty(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork("turn:1", kind="detached")
    (row,) = rows(child)
    assert (row["kind"], row["parentSessionId"], row["at"]) == ("detached", parent.id, uuids[1])
    assert (texts(child), child.fork_point) == ([], None)
    store.delete(parent)
    child.append(user("mine"))
    assert texts(again(store, child)) == ["mine"]


# What is refused.


@pytest.mark.parametrize("kind", ["attached", "detached"])
def test_files_of_the_client_have_copies_only(tmp_path: Path, kind: str) -> None:
    store = store_on(ENGINES["files"](tmp_path))
    parent, _ = spoken_in(store)
    with pytest.raises(UsageError, match="without") as caught:
        parent.fork(kind=kind)
    assert "--kind copy" in caught.value.hint
    assert len(list(store.sessions())) == 1


@pytest.mark.parametrize("kind", ["attached", "detached"])
def test_a_parent_that_is_not_there_has_no_forks(store: Store, kind: str) -> None:
    parent = store.create("/home/a/project")
    with pytest.raises(NotFound, match=parent.id):
        parent.fork(kind=kind)
    assert list(store.sessions()) == []


def test_an_unknown_kind_is_refused_by_name(store: Store) -> None:
    parent, _ = spoken_in(store)
    with pytest.raises(UsageError, match="'glued'") as caught:
        parent.fork(kind="glued")
    assert "attached" in caught.value.hint


class _Registered:
    """A kind of fork as another package registers it."""

    def __init__(self, found: object) -> None:
        self.value, self.dist, self._found = "package:Kind", None, found

    def load(self) -> object:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def test_another_package_adds_kinds_of_forks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice:
        def make(self, parent: Session, wanted: Wanted) -> clew.Forked:
            return clew.Forked(parent.key, parent.key, "twice", wanted.title, 2)

    there = {"twice": _Registered(Twice), "lost": _Registered(ImportError("gone")), "none": _Registered(7)}
    monkeypatch.setattr("clew.forks.kind.entry_points_of", lambda _: there)
    parent, _ = spoken_in(store)
    assert parent.fork(kind="twice", title="a title").forked == clew.Forked(
        parent.key, parent.key, "twice", "a title", 2
    )
    for name in ("lost", "none"):
        with pytest.raises(UsageError, match="the kind of fork package:Kind") as caught:
            parent.fork(kind=name)
        assert "uninstall" in caught.value.hint
    with pytest.raises(UsageError, match="there is no kind of fork") as caught:
        parent.fork(kind="other")
    assert "twice" in caught.value.hint


def test_an_unknown_point_makes_no_fork(store: Store) -> None:
    parent, _ = spoken_in(store)
    for point in ("0000abcd-0000-4000-8000-000000000000", "turn:9", "msg:none"):
        with pytest.raises(NotFound):
            again(store, parent).fork(point, kind="attached")
    assert len(list(store.sessions())) == 1


@pytest.mark.parametrize("kind", ["attached", "detached"])
def test_an_id_that_is_taken_is_refused(store: Store, kind: str) -> None:
    parent, _ = spoken_in(store)
    with pytest.raises(Conflict, match=parent.id):
        parent.fork(kind=kind, id=parent.id)
    assert texts(again(store, parent)) == ["q1", "a1", "q2", "a2"]


def test_nobody_but_clew_writes_where_a_session_comes_from(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    with pytest.raises(UsageError, match="only clew itself"):
        parent.append(rows(child)[0])
    key: Any = {"project_key": parent.project, "session_id": parent.id}
    with pytest.raises(UsageError, match="only clew itself"):
        asyncio.run(store.claude().append(key, [{"type": "clew-fork", "uuid": "u1"}]))


# Ancestors that are gone, or are not what they were.


def test_a_missing_ancestor_is_named_and_never_an_empty_beginning(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    child.append(user("mine"))
    store.engine.delete(parent.key)
    lost = again(store, child)
    for ask in (lost.messages, lambda: list(lost.records()), lambda: lost.fork(kind="attached"), lambda: lost.digest):
        with pytest.raises(DamagedData, match=parent.id):
            ask()
    with pytest.raises(DamagedData):
        lost.append(user("more"))
    assert [info.id for info in store_on(store.engine).sessions()] == []
    store.delete(child.id)
    assert store.engine.stat(child.key) is None


def test_an_ancestor_that_was_replaced_is_named(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    lines = [line.data for line in parent.lines()]
    store.engine.replace(parent.key, lines[1:], expect=parent.stat().revision)
    with pytest.raises(DamagedData, match=f"{parent.id}.*replaced"):
        again(store, child).messages()
    store.engine.replace(parent.key, lines, expect=parent.stat().revision)
    assert texts(again(store, child)) == ["q1", "a1", "q2", "a2"]


def damaged_rows() -> dict[str, Callable[[dict[str, Any]], object]]:
    def entry(row: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = row["lineage"][-1]
        return found

    return {
        "its own ancestor": lambda row: entry(row).update(session=row["sessionId"]),
        "an ancestor twice": lambda row: row["lineage"].append(entry(row)),
        "another project": lambda row: row.update(parentProject="-elsewhere"),
        "no parent": lambda row: row.pop("parentSessionId"),
        "no lineage": lambda row: row.pop("lineage"),
        "an empty lineage": lambda row: row.update(lineage=[]),
        "a lineage that is a text": lambda row: row.update(lineage="x"),
        "too deep": lambda row: row.update(
            lineage=[{**entry(row), "session": str(number)} for number in range(ANCESTORS_MAX + 1)]
        ),
        "a place before the beginning": lambda row: entry(row).update(position=-1),
        "a place behind the end": lambda row: entry(row).update(position=10**12),
        "a place that is no number": lambda row: entry(row).update(position="0"),
        "a size that nothing has": lambda row: entry(row).update(size=10**18),
        "another point": lambda row: row.update(at="u1"),
        "a point that stands nowhere": lambda row: (row.update(at="u1"), entry(row).update(at="u1")),
        "another digest": lambda row: entry(row).update(digest=""),
        "another kind": lambda row: row.update(kind="detached"),
        "a kind that is no text": lambda row: row.update(kind=[1]),
        "a path for a session": lambda row: entry(row).update(session="../../etc/passwd"),
        "no session": lambda row: entry(row).update(session=""),
    }


@pytest.mark.parametrize("what", damaged_rows())
def test_a_first_row_that_says_what_cannot_be_is_damaged(store: Store, what: str) -> None:
    parent, _ = spoken_in(store)
    row = rows(parent.fork(kind="attached"))[0]
    row["sessionId"] = "0000000a-0000-4000-8000-00000000000b"
    damaged_rows()[what](row)
    key = LogKey(parent.project, row["sessionId"])
    store.engine.append(key, [Entry(json.dumps(row, separators=(",", ":")).encode())])
    for ask in (lambda s: s.messages(), lambda s: s.head, lambda s: s.fork(kind="attached"), lambda s: s.info()):
        with pytest.raises(DamagedData, match=key.session) as caught:
            ask(store.session(key.session))  # type: ignore[no-untyped-call]
        assert caught.value.hint
    assert len(list(store.sessions())) == 2
    assert any(key.session in problem.path for problem in store.problems)


@pytest.mark.parametrize(
    "written",
    [
        lambda row: b" " * LOOK_BYTES + row,
        lambda row: row.replace(b'"clew-fork"', rb'"clew\u002dfork"'),
        lambda row: b'{"pad":"' + b"x" * LOOK_BYTES + b'",' + row[1:],
    ],
    ids=["behind blanks", "with an escape", "behind another field"],
)
def test_a_first_row_that_is_no_fork_to_those_who_delete_is_none_to_readers(
    store: Store, written: Callable[[bytes], bytes]
) -> None:
    parent, _ = spoken_in(store)
    row = next(parent.fork(kind="attached").lines()).data.rstrip(b"\n")
    key = LogKey(parent.project, "0000000a-0000-4000-8000-00000000000b")
    store.engine.append(key, [Entry(written(row))])
    session = store.session(key.session)
    assert (session.fork_point, session.messages(), len(list(session.records()))) == (None, [], 1)


def test_on_files_of_the_client_nothing_is_inherited_whatever_a_row_says(tmp_path: Path) -> None:
    made, _ = spoken_in(store_on(ENGINES["memory"](tmp_path)))
    row = next(made.fork(kind="attached").lines()).data.rstrip(b"\n")
    store = store_on(ENGINES["files"](tmp_path))
    parent = store.session_on(store.engine, made.key)
    store.engine.append(parent.key, [Entry(line.data.rstrip(b"\n")) for line in made.lines()])
    store.engine.append(LogKey(made.project, "0000000a-0000-4000-8000-00000000000b"), [Entry(row)])
    session = store.session("0000000a-0000-4000-8000-00000000000b")
    assert (len(parent.messages()), session.fork_point, session.messages()) == (4, None, [])


def test_two_forks_that_name_each_other_end(store: Store) -> None:
    parent, _ = spoken_in(store)
    row = rows(parent.fork(kind="attached"))[0]
    names = ["0000000a-0000-4000-8000-00000000000b", "0000000a-0000-4000-8000-00000000000c"]
    for own, other in (names, reversed(names)):
        row["sessionId"], row["lineage"][0]["session"] = own, other
        store.engine.append(LogKey(parent.project, own), [Entry(json.dumps(row).encode())])
    for name in names:
        with pytest.raises(DamagedData):
            store.session(name).messages()


# Deleting.


def test_a_session_that_others_go_on_from_is_not_deleted(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    grandchild = child.fork("turn:1", kind="attached")
    for delete in (
        lambda: store.delete(parent),
        lambda: asyncio.run(store.claude().delete({"project_key": parent.project, "session_id": parent.id})),
        lambda: asyncio.run(
            ClaudeSessionStore(store.engine).delete({"project_key": parent.project, "session_id": parent.id})
        ),
    ):
        with pytest.raises(Conflict, match=parent.id) as caught:
            delete()
        assert sorted(caught.value.candidates) == sorted([child.id, grandchild.id])
    assert texts(again(store, grandchild)) == ["q1", "a1"]


def test_children_are_deleted_before_or_together_with_their_parent(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    other = parent.fork(kind="attached")
    store.delete(child)
    operation = store.delete(parent, other)
    assert list(store.sessions()) == []
    store.undo(operation.id)
    assert texts(again(store, other)) == ["q1", "a1", "q2", "a2"]


def test_a_child_that_comes_back_before_its_parent_says_so(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    first, second = store.delete(child), store.delete(parent)
    store.undo(first.id)
    with pytest.raises(DamagedData) as caught:
        again(store, child).messages()
    assert "clew undo" in caught.value.hint
    store.undo(second.id)
    assert texts(again(store, child)) == ["q1", "a1", "q2", "a2"]


def test_a_parent_that_is_deleted_while_it_is_forked_makes_no_fork(store: Store) -> None:
    parent, _ = spoken_in(store)
    held = again(store, parent)
    assert held.messages()
    store.delete(parent)
    with pytest.raises((DamagedData, NotFound)):
        held.fork(kind="attached")
    assert list(store.sessions()) == []


def test_children_may_get_their_beginning_before_their_parent_goes(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(uuids[1], kind="attached", title="The child")
    child.append_many([user("mine"), assistant("answer")])
    deep = child.fork(kind="attached")
    deep.append(user("deep"))
    parent.append({"type": "custom-title", "customTitle": "The parent"})
    other, _ = spoken_in(store, 1)
    loose = other.fork(kind="attached")
    before = {each.id: texts(each) for each in (child, deep, loose)}
    own = [line.data for line in child.lines()][1:]
    operation = store.delete(parent, materialises=True)
    for each in (child, deep, loose):
        assert texts(again(store, each)) == before[each.id]
    assert [again(store, each).fork_point for each in (child, deep)] == [None, None]
    assert again(store, loose).fork_point is not None
    assert [line.data for line in again(store, child).lines()][-len(own) :] == own
    assert {row.get("sessionId", deep.id) for row in rows(deep)} == {deep.id}
    assert again(store, child).digest.title == "The child"
    store.undo(operation.id)
    assert texts(again(store, parent)) == ["q1", "a1", "q2", "a2"]
    again(store, deep).append(user("on"))
    assert texts(again(store, deep))[-1] == "on"


def test_a_copy_of_a_fork_needs_no_other_session(store: Store) -> None:
    parent, uuids = spoken_in(store)
    parent.append({"type": "custom-title", "customTitle": "The parent"})
    child = parent.fork(kind="attached", title="The child")
    child.append_many([user("q3"), assistant("a3")])
    names = [f"0000000{letter}-0000-4000-8000-00000000000f" for letter in "abc"]
    points = (None, uuids[1], child.chain().records[4].uuid)
    for name, at, title in zip(names, points, (None, "Mine", None), strict=True):
        wanted = Wanted(name, at, "2026-11-20T00:00:00.000Z", lambda: "", title=title)
        made = copied(child, wanted)
        assert made.records == len(list(store.session(name).lines()))
    store.delete(child, parent)
    assert [texts(store.session(name)) for name in names] == [
        ["q1", "a1", "q2", "a2", "q3", "a3"], ["q1", "a1"], ["q1", "a1", "q2", "a2", "q3"],
    ]  # fmt: skip
    assert [store.session(name).digest.title for name in names] == ["The child", "Mine", "The child"]
    assert {row["sessionId"] for name in names for row in rows(store.session(name))} == {*names}


@pytest.mark.skipif("copy" not in FORK_KINDS, reason="there is no such kind")
def test_the_kind_copy_of_a_fork_has_what_it_inherits(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    child.append_many([user("q3"), assistant("a3")])
    copy = child.fork(kind="copy")
    store.delete(child, parent)
    assert texts(again(store, copy)) == ["q1", "a1", "q2", "a2", "q3", "a3"]


def test_what_a_fork_cannot_be_given_is_not_taken_away(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    child.append_many([user("q3"), assistant("a3")])
    deep = child.fork(kind="attached")
    lines = [line.data for line in child.lines()]
    store.engine.replace(child.key, lines[:2], expect=child.stat().revision)
    with pytest.raises(DamagedData, match=child.id):
        store.delete(parent, materialises=True)
    assert {info.id for info in store.sessions()} >= {parent.id, child.id}
    del deep


# Copies, and agents.


def test_a_copy_of_the_store_has_the_ancestors_and_the_forks(store: Store, tmp_path: Path) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached", id="00000000-0000-4000-8000-000000000000")
    child.append(user("mine"))
    target = store_on(SqliteEngine(tmp_path / "target.db", durability="none"))
    done = store.copy_to(target)
    assert (done.sessions, done.left_out) == (2, ())
    assert texts(target.session(child.id)) == ["q1", "a1", "q2", "a2", "mine"]
    assert store.copy_to(target).skipped == 2


def test_a_fork_is_not_copied_where_it_would_have_no_beginning(store: Store, tmp_path: Path) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    files = store_on(ENGINES["files"](tmp_path))
    (left,) = store.copy_to(files).left_out
    assert (left.session, "--kind copy" in left.reason) == (child.id, True)
    assert [info.id for info in files.sessions()] == [parent.id]
    other = store_on(MemoryEngine())
    other.engine.append(parent.key, [Entry(b'{"type":"mode","mode":"another log of that name"}')])
    left_out = {each.session: each.reason for each in store.copy_to(other).left_out}
    assert parent.id in left_out[child.id]
    assert other.engine.stat(child.key) is None


def test_an_agent_is_given_what_a_fork_inherits(store: Store) -> None:
    parent, uuids = spoken_in(store)
    child = parent.fork(uuids[1], kind="attached")
    child.append(user("mine"))
    key: Any = {"project_key": child.project, "session_id": child.id}
    loaded: Any = asyncio.run(store.claude().load(key))
    assert {row["sessionId"] for row in loaded} == {child.id}
    other = LogKey("-copied", child.id)
    store.engine.extend(other, [b"".join(json.dumps(row).encode() + b"\n" for row in loaded)], start=0)
    assert texts(Session(store.engine, other)) == ["q1", "a1", "mine"]
    store.engine.delete(parent.key)
    with pytest.raises(DamagedData, match=parent.id):
        asyncio.run(store.claude().load(key))


def test_what_a_fork_that_came_back_alone_goes_on_from_is_not_freed(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    first, second = store.delete(child), store.delete(parent)
    store.undo(first.id)
    for is_dry in (True, False):
        freed = store.operation_log.free(days=0, is_dry=is_dry)
        assert (freed.freed_bytes, freed.kept_bytes, freed.operations) == (0, second.size_bytes, [])
        assert [child.id in problem.reason for problem in freed.failed] == [True]
    store.undo(second.id)
    assert texts(again(store, child)) == ["q1", "a1", "q2", "a2"]
    store.delete(parent, child)
    assert store.operation_log.free(days=0).failed == []


def test_a_copy_of_a_fork_has_subagents_and_blobs_of_it_and_of_its_ancestors(store: Store) -> None:
    parent, _ = spoken_in(store)
    child = parent.fork(kind="attached")
    for session, name in ((parent, "a1"), (child, "a2")):
        session.append_subagent(name, [user("look")], meta={"agentType": name})
        for kind, blob in (("tool result", f"tool-results/{name}.txt"), ("custom title", "custom-title.json")):
            store.engine.put(BlobKey(parent.project, session.id, kind, blob), [name.encode()])
    copy = child.fork()
    assert copy.forked is not None
    assert (copy.forked.agents, copy.forked.blobs) == (2, 5)
    assert [agent.id for agent in copy.agents()] == ["agent-a1", "agent-a2"]
    assert {record.session_id for agent in copy.agents() for record in agent.records()} == {copy.id}
    held = {blob.key.name: b"".join(store.engine.open(blob.key)) for blob in copy.blobs() if blob.key.kind != "meta"}
    assert held == {"tool-results/a1.txt": b"a1", "tool-results/a2.txt": b"a2", "custom-title.json": b"a2"}
    named = child.fork(title="another")
    assert [blob.key.name for blob in named.blobs() if blob.key.kind == "custom title"] == []
    assert copy.messages() == child.messages() == named.messages()


# Several processes, and crashes.


def test_processes_that_fork_and_append_at_once_lose_nothing(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    store = store_on(SqliteEngine(place, durability="none"))
    session, uuids = spoken_in(store)
    store.close()

    def work(number: int) -> None:
        with clew.open(f"sqlite:{place}") as mine:
            for turn in range(8):
                child = mine.session(session.id).fork(
                    uuids[turn % 2 * 2 + 1], kind="attached", title=f"{number}-{turn}"
                )
                child.append(user(f"{number}-{turn}"))
                mine.session(session.id).append_many([user(f"more {number}"), assistant("answer")])

    in_processes([partial(work, number) for number in range(2)])
    with store_on(SqliteEngine(place)) as after:
        assert len(texts(after.session(session.id))) == 4 + 2 * 2 * 8
        children = [key.session for key in children_of(after.engine, [session.key])]
        assert len(children) == 16
        for child in children:
            found = after.session(child)
            turn = int((found.digest.title or "").partition("-")[2])
            assert texts(found) == [*["q1", "a1", "q2", "a2"][: turn % 2 * 2 + 2], found.digest.title]


@pytest.mark.parametrize("when", ["before", "after", "during"])
def test_a_fork_whose_making_fails_at_any_call_is_whole_or_not_there(when: When) -> None:
    for number in range(1, 100):
        inner = MemoryEngine()
        parent, uuids = spoken_in(store_on(inner))
        counted = itertools.count(1)
        faulty = Faulty(inner, lambda _, __: Fault("", 0, when) if next(counted) == number else None)  # noqa: B023
        with contextlib.suppress(StorageError):
            Store(faulty, clock=ticking()).session(parent.id).fork(uuids[1], kind="attached", title="whole")
        store = store_on(inner)
        for key in children_of(inner, [parent.key]):
            assert (texts(store.session(key.session)), store.session(key.session).digest.title) == (
                ["q1", "a1"], "whole",
            )  # fmt: skip
        if not faulty.faults:
            return
    raise AssertionError("a fork is made of fewer calls than that")


@pytest.mark.parametrize("when", ["before", "after", "during"])
def test_forks_are_whole_whatever_call_of_a_delete_fails_that_gives_them_their_beginning(when: When) -> None:
    for number in itertools.count(1):
        inner = MemoryEngine()
        parent, uuids = spoken_in(store_on(inner))
        child = parent.fork(uuids[1], kind="attached")
        child.append_many([user("mine"), assistant("answer")])
        deep = child.fork(kind="attached")
        counted = itertools.count(1)
        faulty = Faulty(inner, lambda _, __: Fault("", 0, when) if next(counted) == number else None)  # noqa: B023
        with contextlib.suppress(ClewError):
            Store(faulty, clock=ticking()).delete(parent.id, materialises=True)
        store = Store(inner, clock=ticking())
        for _ in range(2):
            assert texts(store.session(child.id)) == texts(store.session(deep.id)) == ["q1", "a1", "mine", "answer"]
            for operation in store.operation_log.unfinished():
                store.operation_log.finish(operation.id)
        if not faulty.faults:
            return
        assert number < 500


@pytest.mark.slow
def test_a_fork_whose_making_is_killed_is_whole_or_not_there(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with clew.open(f"sqlite:{place}") as store:
        session, uuids = spoken_in(store)

    def work(told: int) -> None:
        with clew.open(f"sqlite:{place}") as store:
            found = store.session(session.id)
            for number in range(100_000):
                found.fork(uuids[number % 4], kind="attached", title="whole")
                os.write(told, b".")

    made = 0
    for number in range(30):
        reading, writing = os.pipe()
        child = forked(partial(work, writing))
        os.close(writing)
        made += len(os.read(reading, 1)) + len(os.read(reading, number))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        with clew.open(f"sqlite:{place}") as store:
            children = [key.session for key in children_of(store.engine, [session.key])]
            assert len(children) >= made
            assert len(children) + 1 == len(list(store.engine.list()))
            for name in children[-20:]:
                found = store.session(name)
                assert (found.digest.title, texts(found)[:1]) == ("whole", ["q1"])
