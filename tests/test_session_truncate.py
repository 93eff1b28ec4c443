"""`truncate` moves the head of a session and takes nothing away, on every engine, whoever appends meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from clew import Conflict, NotFound, Session, Store, Turn, UsageError
from clew.engines.contract import Appended, Entry, LogKey
from clew.engines.wrap.base import Wrapper
from clew.operations.operation import State
from clew.session_writer import IS_LIVE
from contents import contents, set_live
from stores import ENGINES, store_on, ticking


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_on(ENGINES[request.param](tmp_path)) as store:
        yield store


@pytest.fixture
def session(store: Store, tmp_path: Path) -> Session:
    """Three turns: q1, a1, q2, a2, q3, a3."""
    session = store.create(tmp_path)
    for number in (1, 2, 3):
        turn(session, str(number))
    return session


def turn(session: Session, name: str) -> str:
    """A prompt and its answer, whose uuid is given."""
    written = session.append_many(
        [{"role": "user", "content": f"q{name}"}, {"role": "assistant", "content": f"a{name}"}]
    )
    return written.uuids[1] or ""


def said(session: Session) -> list[str]:
    return [str(block.get("text")) for message in session.messages() for block in message.content]


def fresh(store: Store, session: Session) -> Session:
    return store.session(session.id)


def heads(session: Session) -> list[dict[str, Any]]:
    return [row for line in session.lines() if (row := json.loads(line.data))["type"] == "last-prompt"]


def test_the_head_is_moved_and_everything_stays(store: Store, session: Session) -> None:
    before, end = contents(store.engine)[session.key], session.head.uuid
    done = session.truncate("turn:1")
    assert (done.session_id, done.dropped, done.first_dropped, done.is_live, done.notes) == (
        session.id,
        4,
        "q2",
        False,
        (),
    )
    assert done.head == session.head.uuid == fresh(store, session).head.uuid
    assert said(session) == said(fresh(store, session)) == ["q1", "a1"]
    after = contents(store.engine)[session.key]
    assert after[0].startswith(before[0])
    added = json.loads(after[0][len(before[0]) :])
    assert added == {
        "type": "last-prompt", "lastPrompt": "q1", "leafUuid": done.head, "explicit": True, "sessionId": session.id,
    }  # fmt: skip
    assert list(added) == ["type", "lastPrompt", "leafUuid", "explicit", "sessionId"]
    assert end in session.tree.leaves()
    assert [each.is_head for each in session.transcripts()] == [False]


def test_the_time_of_the_log_stays_as_that_of_other_rows_beside_the_conversation(
    store: Store, session: Session
) -> None:
    before = session.stat().modified_ns
    session.truncate(Turn(1))
    store.undo()
    assert session.stat().modified_ns == before


def test_the_conversation_goes_on_from_there(store: Store, session: Session) -> None:
    done = session.truncate(Turn(-2))
    session.append({"role": "user", "content": "another"})
    assert session.chain().records[-1].parent_uuid == done.head
    assert said(session) == said(fresh(store, session)) == ["q1", "a1", "q2", "a2", "another"]


def test_a_second_truncation_brings_the_rest_back(session: Session) -> None:
    end = session.head.uuid or ""
    session.truncate("turn:1")
    back = session.truncate(end)
    assert (back.dropped, back.head) == (0, end)
    assert said(session) == ["q1", "a1", "q2", "a2", "q3", "a3"]


def test_undo_brings_the_rest_back_and_the_last_prompt_of_lists(store: Store, session: Session) -> None:
    end = session.head.uuid
    done = session.truncate("turn:1")
    (info,) = store.sessions()
    assert (info.title, info.message_count) == ("q1", 2)
    undone = store.undo()
    assert (undone.id, undone.kind, undone.state) == (done.operation, "truncate", State.UNDONE)
    assert (undone.sessions, undone.files, undone.size_bytes) == (1, 0, 0)
    assert fresh(store, session).head.uuid == end
    (info,) = store.sessions()
    assert (info.title, info.message_count) == ("q3", 6)


def test_rows_of_subagents_behind_it_do_not_bring_the_rest_back(store: Store, tmp_path: Path) -> None:
    """What is said again near the end of a client's file must not loosen the head record that truncates."""
    session = store.create(tmp_path)
    prompt = session.append({"role": "user", "content": "q1"}).uuids[0] or ""
    session.append({"type": "attachment", "attachment": {"type": "date", "date": "2026-11-18"}})
    turn(session, "2")
    session.truncate(prompt)
    alone = said(session)
    assert "q2" not in alone
    for number in range(3):
        row = {"role": "user", "content": f"{number} {'x' * 40_000}"}
        session.append({"type": "user", "isSidechain": True, "message": row})
    assert said(fresh(store, session)) == alone
    session.append({"role": "assistant", "content": "a1"})
    assert said(fresh(store, session)) == [*alone, "a1"]


def test_where_the_conversation_ends_already_nothing_is_written(store: Store, session: Session) -> None:
    before = contents(store.engine)
    for at in ("turn:-1", session.head.uuid or ""):
        done = session.truncate(at)
        assert (done.dropped, done.operation, done.head) == (0, None, session.head.uuid)
    assert contents(store.engine) == before
    assert store.operations() == []


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store, session: Session) -> None:
    before = contents(store.engine)
    first = session.truncate("turn:1", dry_run=True)
    assert first.operation is None
    assert contents(store.engine) == before
    assert store.operations() == []
    done = session.truncate("turn:1")
    assert (done.head, done.dropped, done.first_dropped) == (
        first.head,
        first.dropped,
        first.first_dropped,
    )


@pytest.mark.parametrize("at", ["turn:9", "msg:nowhere", "12345678-9999", "time:1999-01-01"])
def test_a_point_that_is_not_there_changes_nothing(store: Store, session: Session, at: str) -> None:
    before = contents(store.engine)
    with pytest.raises(NotFound) as error:
        session.truncate(at)
    assert error.value.hint
    assert contents(store.engine) == before
    assert store.operations() == []


def test_every_kind_of_point_is_taken(store: Store, session: Session) -> None:
    row = session.chain().records[1]
    assert row.message is not None
    for at in (row.uuid, f"{row.uuid}"[:8], f"msg:{row.message.id}", f"time:{row.timestamp}", "turn:1"):
        assert session.truncate(at or "").dropped == 4
        assert said(fresh(store, session)) == ["q1", "a1"]
        store.undo()


def test_a_row_on_a_dead_branch_becomes_the_head_with_its_branch(store: Store, session: Session) -> None:
    old = session.head.uuid or ""
    session.append({"role": "user", "content": "elsewhere"}, parent=session.chain().records[1].uuid)
    done = session.truncate(old)
    assert (done.dropped, done.first_dropped) == (1, "elsewhere")
    assert said(fresh(store, session)) == ["q1", "a1", "q2", "a2", "q3", "a3"]


def test_the_log_of_a_subagent_has_no_head_to_move(store: Store, session: Session) -> None:
    session.append_subagent("a0123456789abcdef", [{"role": "user", "content": "count"}])
    (agent,) = fresh(store, session).agents()
    with pytest.raises(UsageError, match="subagent"):
        agent.truncate("turn:-1")


def test_a_closed_session_and_one_of_no_store_are_refused(session: Session) -> None:
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.truncate("turn:1")
    with pytest.raises(UsageError, match="reading only"):
        Session(session.engine, session.key).truncate("turn:1")


# Undo.


def test_undo_is_refused_when_the_conversation_went_on_and_says_what_to_do(store: Store, session: Session) -> None:
    end = session.head.uuid
    session.truncate("turn:1")
    turn(session, "new")
    before = contents(store.engine)
    with pytest.raises(Conflict, match="went on since") as error:
        store.undo()
    assert f"clew truncate {session.id} --at {end}" in error.value.hint
    assert f"clew fork {session.id} --at {end}" in error.value.hint
    assert contents(store.engine) == before
    assert store.operations()[0].state is State.DONE
    session.truncate(end or "")
    assert said(fresh(store, session))[-1] == "a3"


def test_undo_of_the_older_of_two_is_refused_until_the_newer_is_undone(store: Store, session: Session) -> None:
    end = session.head.uuid
    first = session.truncate("turn:2")
    session.truncate("turn:1")
    with pytest.raises(Conflict, match="once more"):
        store.undo(first.operation or "")
    store.undo()
    assert said(fresh(store, session)) == ["q1", "a1", "q2", "a2"]
    store.undo(first.operation or "")
    assert fresh(store, session).head.uuid == end


def test_undo_of_what_was_brought_back_by_hand_changes_nothing(store: Store, session: Session) -> None:
    end = session.head.uuid
    first = session.truncate("turn:1")
    session.truncate(end or "")
    turn(session, "new")
    before = contents(store.engine)
    store.undo(first.operation or "")
    assert contents(store.engine) == before


def test_metadata_appended_since_is_not_in_the_way(store: Store, session: Session) -> None:
    session.truncate("turn:1")
    session.append_many([{"type": "custom-title", "customTitle": "A title"}, {"type": "tag", "tag": "kept"}])
    store.undo()
    assert said(fresh(store, session))[-1] == "a3"
    (info,) = store.sessions()
    assert (info.title, info.tag) == ("A title", "kept")


def test_undo_waits_for_a_deleted_session_to_come_back(store: Store, session: Session) -> None:
    truncated = session.truncate("turn:1")
    store.delete(session.id)
    with pytest.raises(Conflict, match="not there any more"):
        store.undo(truncated.operation or "")
    store.undo()
    store.undo(truncated.operation or "")
    assert said(fresh(store, session))[-1] == "a3"


def test_undo_is_refused_where_the_log_was_written_anew(store: Store, session: Session) -> None:
    truncated = session.truncate("turn:1")
    lines = [line.data for line in session.lines()][1:]
    store.engine.replace(session.key, lines, expect=session.stat().revision)
    with pytest.raises(Conflict, match="written anew"):
        store.undo(truncated.operation or "")
    assert [line.data for line in fresh(store, session).lines()] == lines


def test_a_log_that_was_put_elsewhere_and_is_the_same_is_no_other_log(store: Store, session: Session) -> None:
    truncated = session.truncate("turn:1")
    store.engine.replace(session.key, [line.data for line in session.lines()], expect=session.stat().revision)
    store.undo(truncated.operation or "")
    assert said(fresh(store, session))[-1] == "a3"


def test_gc_frees_nothing_of_the_session(store: Store, session: Session) -> None:
    end = session.head.uuid
    truncated = session.truncate("turn:1")
    before = contents(store.engine)
    assert store.operation_log.free(days=0).freed_bytes == 0
    assert contents(store.engine) == before
    with pytest.raises(NotFound, match="nothing is lost"):
        store.undo(truncated.operation or "")
    session.truncate(end or "")
    assert said(session)[-1] == "a3"


def test_a_cleared_conversation_is_brought_back_and_cleared_again(store: Store, session: Session) -> None:
    end = session.head.uuid or ""
    session.append({"type": "last-prompt", "leafUuid": None, "explicit": True})
    assert said(session) == []
    session.truncate(end)
    assert said(session)[-1] == "a3"
    store.undo()
    assert said(fresh(store, session)) == []


# Others at the same time.


class Meanwhile(Wrapper):
    """Somebody appends a turn before each of the first head records of truncations gets through."""

    left = 0
    is_crashing = False
    """Whether the power goes when the head record was written."""

    def append(self, key: LogKey, entries: Any, *, expect: str | None = None, **named: Any) -> Appended:
        if self.left and b'"explicit":true' in entries[0].data:
            self.left -= 1
            self.intrude(key)
        done = self.inner.append(key, entries, expect=expect, **named)
        if self.is_crashing:
            raise KeyboardInterrupt
        return done

    def intrude(self, key: LogKey) -> None:
        there = Store(self.inner, clock=ticking(), new_id=lambda: str(uuid4()))
        turn(there.session(key.session), f"intruder {self.left}")


@pytest.fixture
def meanwhile(store: Store) -> tuple[Meanwhile, Store]:
    engine = Meanwhile(store.engine)
    return engine, store_on(engine)


def test_a_turn_counts_in_the_conversation_as_it_is_when_the_record_is_written(
    store: Store, session: Session, meanwhile: tuple[Meanwhile, Store]
) -> None:
    engine, there = meanwhile
    engine.left = 2
    done = there.session(session.id).truncate("turn:-2")
    assert said(fresh(store, session)) == [
        "q1", "a1", "q2", "a2", "q3", "a3", "qintruder 1", "aintruder 1",
    ]  # fmt: skip
    assert done.dropped == 2
    assert [(each.id, each.state) for each in store.operations()] == [(done.operation, State.DONE)]
    store.undo()
    assert said(fresh(store, session))[-1] == "aintruder 0"


def test_undo_does_not_cut_off_what_a_client_wrote_right_before_the_head_record(tmp_path: Path) -> None:
    """It takes no lock, so that its row may come between our look at the revision and our write."""

    class Slipping(Wrapper):
        def append(self, key: LogKey, entries: Any, *, expect: str | None = None, **named: Any) -> Appended:
            if b'"explicit":true' not in entries[0].data:
                return self.inner.append(key, entries, expect=expect, **named)
            row = {"type": "user", "uuid": "late", "parentUuid": end, "timestamp": "2099-01-01T00:00:00Z",
                   "message": {"role": "user", "content": "late"}}  # fmt: skip
            self.inner.append(key, [Entry(json.dumps(row, separators=(",", ":")).encode(), "late")])
            return self.inner.append(key, entries, **named)

    store = store_on(Slipping(ENGINES["files"](tmp_path)))
    session = store.create(tmp_path)
    for number in (1, 2):
        turn(session, str(number))
    end = session.head.uuid
    session.truncate("turn:1")
    with pytest.raises(Conflict, match="went on since"):
        store.undo()
    session.truncate("late")
    assert said(fresh(store, session)) == ["q1", "a1", "q2", "a2", "late"]


@pytest.mark.parametrize("way", ["finish", "undo"])
def test_a_crash_behind_a_plan_that_was_made_anew_is_finished_or_undone(
    store: Store, session: Session, meanwhile: tuple[Meanwhile, Store], way: str
) -> None:
    engine, there = meanwhile
    engine.left, engine.is_crashing = 1, True
    with pytest.raises(KeyboardInterrupt):
        there.session(session.id).truncate("turn:-2")
    (unfinished,) = store.operation_log.unfinished()
    if way == "finish":
        assert store.operation_log.finish(unfinished.id).state is State.DONE
        assert said(fresh(store, session))[-1] == "a3"
    store.undo(unfinished.id)
    assert said(fresh(store, session))[-1] == "aintruder 0"
    assert len([row for row in heads(fresh(store, session)) if row.get("explicit")]) == 2


def test_undo_that_meets_an_append_is_refused(
    store: Store, session: Session, meanwhile: tuple[Meanwhile, Store]
) -> None:
    engine, there = meanwhile
    session.truncate("turn:1")
    engine.left = 1
    with pytest.raises(Conflict, match="went on since"):
        there.undo()
    assert said(fresh(store, session)) == ["q1", "a1", "qintruder 0", "aintruder 0"]


def test_a_point_that_somebody_took_out_of_reach_meanwhile_leaves_no_unfinished_operation(
    store: Store, session: Session, meanwhile: tuple[Meanwhile, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, there = meanwhile
    engine.left = 1

    def intrude(self: Meanwhile, key: LogKey) -> None:
        row = {"type": "last-prompt", "leafUuid": None, "explicit": True, "sessionId": key.session}
        self.inner.append(key, [Entry(json.dumps(row, separators=(",", ":")).encode())])

    monkeypatch.setattr(Meanwhile, "intrude", intrude)
    with pytest.raises(NotFound):
        there.session(session.id).truncate("turn:1")
    assert said(fresh(store, session)) == []
    assert [each.state for each in store.operations()] == [State.UNDONE]


def test_a_conversation_that_was_cut_there_meanwhile_is_left_as_it_is(
    store: Store, session: Session, meanwhile: tuple[Meanwhile, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, there = meanwhile
    engine.left = 1
    leaf = session.chain("turn:1").records[-1].uuid

    def intrude(self: Meanwhile, key: LogKey) -> None:
        row = {"type": "last-prompt", "leafUuid": leaf, "explicit": True, "sessionId": key.session}
        self.inner.append(key, [Entry(json.dumps(row, separators=(",", ":")).encode())])

    monkeypatch.setattr(Meanwhile, "intrude", intrude)
    done = there.session(session.id).truncate("turn:1")
    assert (done.operation, done.dropped, done.head) == (None, 0, leaf)
    assert len([row for row in heads(fresh(store, session)) if row.get("explicit")]) == 1
    assert store.operation_log.unfinished() == []


def test_a_live_session_is_truncated_and_it_is_said_that_the_client_does_not_see_it(tmp_path: Path) -> None:
    store = store_on(ENGINES["files"](tmp_path))
    session = store.create(tmp_path)
    for number in (1, 2):
        turn(session, str(number))
    set_live(tmp_path / "config", session.id)
    done = session.truncate("turn:1")
    assert (done.is_live, done.notes, done.dropped) == (True, (IS_LIVE,), 2)
    assert said(fresh(store, session)) == ["q1", "a1"]
