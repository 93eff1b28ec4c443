"""New ids: every place of a row that names a row, and none other."""

from __future__ import annotations

import json
from uuid import UUID

from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Record
from clew.records.splice import spliced
from clew.transcript.ids import id_changes, ids_from


def remapped(row: dict[str, object]) -> dict[str, object]:
    raw = json.dumps(row, separators=(",", ":")).encode() + b"\n"
    record = decode(Line(raw, 0, 1, len(raw)))
    assert isinstance(record, Record)
    changed: dict[str, object] = json.loads(spliced(raw, id_changes(record, lambda old: f"<{old}>")))
    return changed


def test_ids_follow_from_a_name_and_the_old_id() -> None:
    one, other = ids_from("one"), ids_from("other")
    assert one("a") == ids_from("one")("a") != other("a") != one("b")
    assert UUID(one("a")).version == 5
    assert UUID(one("a")).variant == UUID(other("b")).variant == UUID("00000000-0000-4000-8000-000000000000").variant
    assert one("\ud800") != one("\ud801")


def test_a_row_of_a_conversation() -> None:
    row: dict[str, object] = {
        "parentUuid": "p", "logicalParentUuid": "l", "type": "user", "uuid": "u", "sourceToolAssistantUUID": "s",
        "message": {"id": "m", "content": [{"uuid": "u", "tool_use_id": "t"}]}, "toolUseResult": {"uuid": "u"},
        "promptId": "u", "requestId": "u", "unknownUuid": "u",
    }  # fmt: skip
    wanted = {"parentUuid": "<p>", "logicalParentUuid": "<l>", "uuid": "<u>", "sourceToolAssistantUUID": "<s>"}
    assert remapped(row) == {**row, **wanted}


def test_a_root_stays_a_root() -> None:
    row: dict[str, object] = {"parentUuid": None, "type": "user", "uuid": "u"}
    assert remapped(row) == {**row, "uuid": "<u>"}


def test_states_of_files_head_records_and_summaries() -> None:
    snapshot: dict[str, object] = {
        "type": "file-history-snapshot", "messageId": "m",
        "snapshot": {"messageId": "m", "trackedFileBackups": {"m": {"backupFileName": "m"}}, "timestamp": "t"},
    }  # fmt: skip
    assert remapped(snapshot) == {**snapshot, "messageId": "<m>", "snapshot": {
        "messageId": "<m>", "trackedFileBackups": {"m": {"backupFileName": "m"}}, "timestamp": "t",
    }}  # fmt: skip
    delta: dict[str, object] = {"type": "file-history-delta", "messageId": "m", "snapshotMessageId": "s", "backup": {}}
    assert remapped(delta) == {**delta, "messageId": "<m>", "snapshotMessageId": "<s>"}
    assert remapped({"type": "last-prompt", "leafUuid": "l"})["leafUuid"] == "<l>"
    assert remapped({"type": "last-prompt", "leafUuid": None})["leafUuid"] is None
    assert remapped({"type": "summary", "leafUuid": "l", "summary": "l"}) == {
        "type": "summary", "leafUuid": "<l>", "summary": "l",
    }  # fmt: skip


def test_the_note_of_a_compaction() -> None:
    note: dict[str, object] = {
        "trigger": "auto", "preservedSegment": {"headUuid": "h", "anchorUuid": "a", "tailUuid": "t", "x": "h"},
        "preservedMessages": {"anchorUuid": "a", "uuids": ["h", "t"], "allUuids": ["h"]}, "unknown": ["h"],
    }  # fmt: skip
    row: dict[str, object] = {"type": "system", "subtype": "compact_boundary", "uuid": "u", "compactMetadata": note}
    assert remapped(row)["compactMetadata"] == {
        "trigger": "auto", "preservedSegment": {"headUuid": "<h>", "anchorUuid": "<a>", "tailUuid": "<t>", "x": "h"},
        "preservedMessages": {"anchorUuid": "<a>", "uuids": ["<h>", "<t>"], "allUuids": ["<h>"]}, "unknown": ["h"],
    }  # fmt: skip
    summary: dict[str, object] = {
        "type": "user", "uuid": "u", "isCompactSummary": True, "summarizedTurnPromptUuids": ["a", "b"],
    }  # fmt: skip
    assert remapped(summary)["summarizedTurnPromptUuids"] == ["<a>", "<b>"]
