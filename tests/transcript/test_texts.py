"""Everything a person could remember of a record is among its texts, once, and nothing that only machines read."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.records.codec import decode, decode_lines
from clew.records.record import Record, records_in
from clew.records.table import VIEWS
from clew.records.views import JsonObject, JsonValue
from clew.testing.corpus import (
    assistant,
    attachment,
    boundary,
    lines_of,
    queued_prompt,
    text,
    thinking,
    to_bytes,
    tool_result,
    tool_use,
    user,
)
from clew.testing.strategies import broken_lines, json_objects
from clew.transcript.texts import REQUEST_LOG_TYPES, Text, leaves, texts

KINDS = {
    "prompt",
    "answer",
    "thinking",
    "tool_input",
    "tool_result",
    "summary",
    "title",
    "attachment",
    "system",
    "other",
}
DATA = base64.b64encode(b"picture" * 50).decode()


def of(row: JsonObject) -> list[tuple[str, str]]:
    found = decode(next(lines_of(to_bytes([row]))))
    assert isinstance(found, Record)
    return [(each.kind, each.text) for each in texts(found)]


def said(content: str | list[JsonObject], **fields: JsonValue) -> JsonObject:
    return user(content, uuid="u", parent=None, **fields)


def answered(*blocks: JsonObject) -> JsonObject:
    return assistant(list(blocks), uuid="a", parent="u", message_id="m")


def test_a_prompt_is_a_prompt_as_a_string_or_in_blocks() -> None:
    assert of(said("find me")) == [("prompt", "find me")]
    assert of(said([text("find"), text("me")])) == [("prompt", "find"), ("prompt", "me")]


def test_an_answer_and_a_thought_are_told_apart_and_signatures_are_no_text() -> None:
    assert of(answered(thinking("hm"), text("yes"))) == [("thinking", "hm"), ("answer", "yes")]
    assert of(answered({"type": "redacted_thinking", "data": DATA})) == []


def test_every_string_of_a_tool_input_is_text() -> None:
    arguments: JsonObject = {
        "path": "a.py",
        "edits": [{"old": "x", "new": {"type": "deep", "n": 5}}],
        "all": True,
        "": "e",
    }
    found = of(answered(tool_use("Edit", arguments, "toolu_1")))
    assert found == [("tool_input", words) for words in ("Edit", "a.py", "x", "deep", "e")]


def test_results_are_text_in_nested_blocks_too() -> None:
    nested = tool_result("toolu_1", [text("one"), {"type": "x", "content": [text("two")]}])
    assert of(said([nested])) == [("tool_result", "one"), ("tool_result", "two")]
    assert of(said([tool_result("toolu_1", "plain")])) == [("tool_result", "plain")]


def test_what_the_tool_gave_is_text_where_it_says_more_than_what_was_sent() -> None:
    sent = [tool_result("toolu_1", "1→first\n2→second")]
    found = of(said(sent, toolUseResult={"file": {"content": "first\nsecond"}, "status": "second", "stderr": "oops"}))
    assert found == [("tool_result", "1→first\n2→second"), ("tool_result", "first\nsecond"), ("tool_result", "oops")]


def test_no_string_comes_twice_from_one_record() -> None:
    assert of(said([text("same"), text("same")])) == [("prompt", "same")]
    note = attachment({"type": "model", "text": "same"}, uuid="a", parent="u", rendered=[{"content": "same"}])
    assert of(note) == [("attachment", "same")]


def test_pictures_and_files_are_no_text_but_what_stands_beside_them_is() -> None:
    picture: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
    given_back: JsonObject = {"type": "image", "file": {"base64": DATA, "path": "a.png"}}
    found = of(said([picture, tool_result("t", [picture, text("seen")]), text("why")], toolUseResult=given_back))
    assert DATA not in str(found)
    assert {("prompt", "why"), ("tool_result", "seen"), ("tool_result", "a.png")} <= set(found)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"type": "custom-title", "customTitle": "t", "sessionId": "s"}, [("title", "t")]),
        ({"type": "ai-title", "aiTitle": "t"}, [("title", "t")]),
        ({"type": "tag", "tag": "t"}, [("title", "t")]),
        ({"type": "last-prompt", "lastPrompt": "t", "leafUuid": "u"}, [("title", "t")]),
        ({"type": "summary", "summary": "t", "leafUuid": "u"}, [("summary", "t")]),
        ({"type": "queue-operation", "operation": "enqueue", "content": "t"}, [("other", "t")]),
        ({"type": "file-history-delta", "trackingPath": "t", "backup": {"backupFileName": "x@v1"}}, [("other", "t")]),
        ({"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {"t": {}}}}, [("other", "t")]),
        ({"type": "mode", "mode": "normal"}, []),
        ({"type": "from-the-future", "a": {"b": ["t", {"c": "u"}]}, "uuid": "x"}, [("other", "t"), ("other", "u")]),
        ({"a": "t"}, [("other", "t")]),
        (said("t", isCompactSummary=True), [("summary", "t")]),
        (said("t", isMeta=True), [("system", "t")]),
        (said("<local-command-stdout>t</…>"), [("system", "<local-command-stdout>t</…>")]),
        (boundary(uuid="b", logical_parent="u"), [("system", "Conversation compacted")]),
        (queued_prompt("t", uuid="q", parent="u"), [("prompt", "t")]),
        (attachment({"type": "skill_listing", "content": "t", "names": ["u"]}, uuid="a", parent="u"),
         [("attachment", "t"), ("attachment", "u")]),
    ],
)  # fmt: skip
def test_each_type_has_its_kind(row: JsonObject, found: list[tuple[str, str]]) -> None:
    assert of(row) == found


@pytest.mark.parametrize("kind", sorted(REQUEST_LOG_TYPES))
def test_the_replay_log_is_no_text(kind: str) -> None:
    assert of({"type": kind, "message": {"role": "user", "content": "again"}, "shape": {"system": ["x"]}}) == []


@given(json_objects(), st.sampled_from(sorted(set(VIEWS) - REQUEST_LOG_TYPES)), st.text(max_size=20))
def test_a_string_under_an_unknown_key_of_any_type_is_found(fields: JsonObject, kind: str, tail: str) -> None:
    needle = "needle " + tail.encode("utf-8", "replace").decode()
    switches = {"mode", "permission-mode", "tools-used", "cost-state", "atis-latch"}
    files = {"file-history-snapshot", "file-history-delta"}
    found = of({**fields, "type": kind, "newField": [{"x": needle}]})
    assert (needle in [words for _, words in found]) == (kind not in switches | files)


@given(json_objects())
def test_leaves_are_all_strings_of_a_value(fields: JsonObject) -> None:
    def strings(value: JsonValue) -> list[str]:
        if isinstance(value, dict):
            data = "data" if value.get("type") == "base64" else "base64"
            return [leaf for name, inner in value.items() if name != data for leaf in strings(inner)]
        if isinstance(value, list):
            return [leaf for inner in value for leaf in strings(inner)]
        return [value] if isinstance(value, str) and value else []

    assert list(leaves(fields)) == strings(fields)


@given(st.lists(broken_lines(), max_size=4).map(b"".join))
def test_the_texts_of_any_line_can_be_encoded(data: bytes) -> None:
    for record in records_in(decode_lines(lines_of(data))):
        for found in texts(record):
            assert isinstance(found, Text)
            assert found.kind in KINDS
            assert found.text.strip()
            assert found.text.encode()


def test_depth_costs_no_recursion() -> None:
    value: JsonValue = "deep"
    for _ in range(50_000):
        value = [value]
    assert list(leaves(value)) == ["deep"]


def test_a_lone_surrogate_is_shown_as_what_it_is() -> None:
    row = json.dumps(said("a \ud800 b")).encode()
    found = decode(next(lines_of(row)))
    assert isinstance(found, Record)
    assert [each.text for each in texts(found)] == ["a \ufffd b"]
