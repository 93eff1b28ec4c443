"""What is wrong with a log is found, named with its line, and nothing is found where nothing is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given

from clew.records.codec import decode_lines
from clew.records.record import Record
from clew.records.views import JsonObject
from clew.testing.corpus import SessionDraft, lines_of, text, to_bytes, tool_result
from clew.testing.strategies import sessions
from clew.transcript.health import DAMAGE, KINDS, ODDITY, REWOUND, Finding, examine


def findings(draft: SessionDraft | bytes) -> list[Finding]:
    data = draft if isinstance(draft, bytes) else draft.to_bytes()
    return examine(decode_lines(lines_of(data)))


def kinds(draft: SessionDraft | bytes) -> list[str]:
    return [finding.kind for finding in findings(draft)]


def only(draft: SessionDraft | bytes) -> Finding:
    found = findings(draft)
    assert len(found) == 1, found
    return found[0]


def uuid_of(draft: SessionDraft, place: int) -> str:
    return str(draft.rows[place]["uuid"])


@pytest.fixture
def two() -> SessionDraft:
    """Two turns, the second with a call, ten seconds between rows so that nothing is repaired."""
    draft = SessionDraft(seconds=10)
    draft.user("q1")
    draft.assistant("a1")
    draft.user("q2")
    call = draft.tool_use()
    draft.tool_result(call)
    draft.assistant("a2")
    draft.head()
    return draft


# ---- nothing is wrong ----


def test_a_sound_session_has_no_findings(two: SessionDraft) -> None:
    assert findings(two) == []


def test_parallel_calls_a_compaction_with_kept_rows_and_a_rewind_are_sound(two: SessionDraft) -> None:
    calls = [two.tool_use(message_id="parallel") for _ in range(3)]
    for call in reversed(calls):
        two.tool_result(call)
    two.assistant("a3")
    two.compaction(kept=[two.at or ""])
    two.queued_prompt("while you work")
    two.user("q4")
    two.assistant("a4")
    two.head(REWOUND, explicit=True)
    assert findings(two) == []


def test_every_kind_is_damage_or_oddity() -> None:
    assert set(KINDS.values()) == {DAMAGE, ODDITY}
    assert Finding("malformed", "").severity == DAMAGE
    assert Finding("open_call", "").severity == ODDITY


# ---- lines ----


def test_a_broken_line_is_named_with_its_place(two: SessionDraft) -> None:
    lines = two.to_bytes().splitlines(keepends=True)
    found = only(b"".join([*lines[:1], b'{"cut\n', *lines[1:]]))
    assert (found.kind, found.line, found.offset) == ("malformed", 2, len(lines[0]))


def test_what_can_be_saved_from_a_broken_line_is_counted(two: SessionDraft) -> None:
    lines = two.to_bytes().splitlines(keepends=True)
    glued = b"".join([lines[0].rstrip(b"\n"), *lines[1:]])
    found = next(finding for finding in findings(glued) if finding.kind == "malformed")
    assert "2 records on one line; 1 of 2 whole records in it are read" in found.message


def test_of_rows_without_a_uuid_the_last_is_kept(two: SessionDraft) -> None:
    for place in (3, 4):
        two.rows.insert(place, {"type": "system", "subtype": "informational", "parentUuid": uuid_of(two, 0)})
    found = [finding for finding in findings(two) if finding.kind == "no_uuid"]
    assert [(finding.line, finding.uuid) for finding in found] == [(4, None), (5, None)]
    assert "takes its place" in found[0].message
    assert "kept" in found[1].message
    assert kinds(two) == ["no_uuid", "no_uuid"]


def test_a_prompt_without_content_is_odd_and_named(two: SessionDraft) -> None:
    two.rows.insert(2, {"type": "user", "uuid": "empty", "message": {"role": "user", "content": None}})
    found = [finding for finding in findings(two) if finding.kind == "no_content"]
    assert [(finding.severity, finding.line, finding.uuid) for finding in found] == [(ODDITY, 3, "empty")]


def test_the_same_row_twice_is_odd_and_another_row_under_its_uuid_is_damage(two: SessionDraft) -> None:
    two.rows.append(dict(two.rows[1]))
    assert [finding.severity for finding in findings(two) if finding.kind == "duplicate_uuid"] == [ODDITY]
    two.rows[-1]["message"] = {"role": "assistant", "content": "another"}
    reused = next(finding for finding in findings(two) if finding.kind == "uuid_reused")
    assert (reused.severity, reused.line, reused.uuid) == (DAMAGE, 8, uuid_of(two, 1))
    assert "line 2" in reused.message


# ---- parents ----


def test_a_lost_parent_is_named_with_what_the_client_does() -> None:
    draft = SessionDraft(seconds=1)
    for _ in range(2):
        draft.user("q")
        draft.assistant("a")
    draft.head()
    draft.rows[2]["parentUuid"] = "gone"
    found = only(draft)
    assert (found.kind, found.line, found.uuid) == ("lost_parent", 3, uuid_of(draft, 2))
    assert f"the client hangs it on {uuid_of(draft, 1)}" in found.message


def test_a_parent_lost_for_too_long_begins_the_conversation(two: SessionDraft) -> None:
    two.rows[2]["parentUuid"] = "gone"
    assert "the conversation begins here" in only(two).message


def test_a_parent_lost_on_a_dead_branch_is_not_in_the_conversation(two: SessionDraft) -> None:
    two.user("dead", parentUuid="gone", timestamp="2020-01-01T00:00:00.000Z")
    two.head(uuid_of(two, 5), explicit=True)
    assert "it is not in the conversation" in only(two).message


def test_a_cycle_is_named_once_at_its_first_row(two: SessionDraft) -> None:
    two.rows[0]["parentUuid"] = uuid_of(two, 2)
    found = only(two)
    assert (found.kind, found.line) == ("parent_cycle", 1)
    assert found.message.startswith("3 rows (")
    assert "the client hangs" in found.message


def test_a_row_that_is_its_own_parent_is_a_cycle(two: SessionDraft) -> None:
    two.rows[5]["parentUuid"] = uuid_of(two, 5)
    assert "parent_cycle" in kinds(two)


def test_a_second_root_is_odd_unless_a_compaction_made_it(two: SessionDraft) -> None:
    two.at = None
    two.user("begin again")
    two.head()
    found = only(two)
    assert (found.kind, found.line) == ("second_root", 8)
    assert "line 1" in found.message


# ---- calls and answers ----


def test_a_call_without_a_result_and_a_result_without_a_call_are_named(two: SessionDraft) -> None:
    two.tool_use()
    two.user([tool_result("toolu_unknown", "x")])
    two.assistant("a3")
    two.head()
    assert kinds(two) == ["open_call", "orphan_result"]
    assert "toolu_unknown" in findings(two)[1].message


def test_one_message_id_in_two_turns_is_damage(two: SessionDraft) -> None:
    first = two.rows[1]["message"]
    last = two.rows[5]["message"]
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    last["id"] = first["id"]
    found = only(two)
    assert (found.kind, found.line, found.severity) == ("message_id_reused", 6, DAMAGE)
    assert "line 2" in found.message


# ---- compactions and heads ----


def test_a_note_of_kept_rows_that_are_not_there_is_damage(two: SessionDraft) -> None:
    two.compaction(kept=["gone", uuid_of(two, 5)])
    two.head()
    found = only(two)
    assert found.kind == "broken_compaction"
    assert "1 row (gone)" in found.message


def test_a_segment_without_a_way_from_its_tail_to_its_head_is_damage(two: SessionDraft) -> None:
    two.compaction(kept=[uuid_of(two, 4), uuid_of(two, 5)])
    note = two.rows[7]["compactMetadata"]
    assert isinstance(note, dict)
    del note["preservedMessages"]
    assert kinds(two) == []
    segment = note["preservedSegment"]
    assert isinstance(segment, dict)
    segment["tailUuid"] = uuid_of(two, 1)
    assert kinds(two) == ["broken_compaction"]


def test_an_anchor_that_is_not_there_is_damage(two: SessionDraft) -> None:
    two.compaction(kept=[uuid_of(two, 5)])
    note = two.rows[7]["compactMetadata"]
    assert isinstance(note, dict)
    kept = note["preservedMessages"]
    assert isinstance(kept, dict)
    kept["anchorUuid"] = "gone"
    assert "broken_compaction" in kinds(two)


def test_a_head_record_that_names_no_row_does_not_count(two: SessionDraft) -> None:
    two.head("gone")
    found = only(two)
    assert (found.kind, found.line) == ("unknown_head", 0)
    assert "gone, which is not in the log" in found.message


def test_a_newer_branch_beside_the_conversation_is_named(two: SessionDraft) -> None:
    two.at = uuid_of(two, 1)
    two.user("the other way")
    found = only(two)
    assert (found.kind, found.uuid) == ("newer_branch", uuid_of(two, 7))
    assert uuid_of(two, 5) in found.message


def test_a_head_without_a_readable_time_cannot_be_resumed(two: SessionDraft) -> None:
    for odd in (None, 1767323045000, "soon", ""):
        two.rows[5]["timestamp"] = odd
        found = only(two)
        assert (found.kind, found.severity) == ("not_resumable", DAMAGE)
        assert "no readable timestamp" in found.message


def test_a_log_in_which_nothing_is_said_is_odd() -> None:
    notes: list[JsonObject | bytes] = [{"type": "mode", "mode": "normal"}, {"type": "tag", "tag": "x"}]
    assert kinds(b"") == ["nothing_said"]
    assert kinds(to_bytes(notes)) == ["nothing_said"]


# ---- anything ----


@given(sessions())
def test_any_log_is_examined_and_findings_come_in_the_order_of_its_lines(data: bytes) -> None:
    found = findings(data)
    assert [finding.line for finding in found] == sorted(finding.line for finding in found)
    for finding in found:
        assert finding.severity in (DAMAGE, ODDITY)
        assert 0 <= finding.line <= data.count(b"\n") + 1
        assert finding.line == 0 or data[finding.offset :].startswith(data.split(b"\n")[finding.line - 1])


def test_many_faults_are_each_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each row asks for its turn. Without remembering, 2,000 rows above each other would be asked 2,000,000 times.
    draft = SessionDraft(seconds=10)
    draft.user("q")
    for _ in range(2000):
        draft.assistant(text("a"), message_id="one")
    asked: list[str | None] = []

    def is_prompt(record: Record) -> bool:
        asked.append(record.uuid)
        return record.type == "user"

    monkeypatch.setattr("clew.transcript.health.is_prompt", is_prompt)
    assert findings(draft) == []
    assert len(asked) <= 2001
