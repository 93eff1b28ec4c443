"""Hypothesis strategies: what a program that reads sessions should survive, from plain to hostile.

    json_values, json_lines, byte_soup, broken_lines        single lines
    records                                                 rows of every type, as dicts
    straight_, branched_, parallel_, compacted_sessions     whole logs as bytes, as the client writes them
    damaged_sessions                                        such logs after an accident
    sessions                                                any of these

Every line that `broken_lines` gives ends with a newline or is cut off; none is promised to be malformed, because two
broken halves may well make a whole. Logs shrink to few rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from clew.records.table import VIEWS
from clew.records.views import JsonObject, JsonValue
from clew.testing.corpus import SessionDraft, text, thinking, to_bytes, tool_use

_BOM = b"\xef\xbb\xbf"
_TURNS_MAX = 4
_NAMES = (
    "type", "uuid", "parentUuid", "sessionId", "timestamp", "isSidechain", "message", "content", "leafUuid", "explicit",
    "subtype", "compactMetadata", "attachment", "toolUseResult", "logicalParentUuid", "isMeta", "<line>",
)  # fmt: skip
# Words that mean something to a reader of sessions, beside any text.
_WORDS = (
    "user", "assistant", "system", "attachment", "progress", "compact_boundary", "tool_result", "", "\u2028", "\x00",
    "00000000-0000-0000-0000-000000000000", "2026-01-02T03:04:05.000Z", "<command-name>/x</command-name>", "\ufeff",
)  # fmt: skip
_TYPES = tuple(sorted(VIEWS))


def words() -> SearchStrategy[str]:
    """Text that may stand in a row: anything that UTF-8 can hold, and what the client gives a meaning."""
    return st.sampled_from(_WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def json_values() -> SearchStrategy[JsonValue]:
    """Any JSON value, with the keys of rows more often than others."""
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    scalars = st.none() | st.booleans() | numbers | words()
    return st.recursive(scalars, _containers, max_leaves=12)


def _containers(inner: SearchStrategy[JsonValue]) -> SearchStrategy[JsonValue]:
    keys = st.sampled_from(_NAMES) | st.text(max_size=8).filter(_is_sendable)
    return st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5)


def json_objects() -> SearchStrategy[JsonObject]:
    """Any JSON object, with the keys of rows more often than others."""
    return st.dictionaries(
        st.sampled_from(_NAMES) | st.text(max_size=8).filter(_is_sendable), json_values(), max_size=8
    )


@st.composite
def records(draw: DrawFn) -> JsonObject:
    """A row of any type, known or not, with fields that fit and fields that do not."""
    row: JsonObject = {"type": draw(st.sampled_from(_TYPES) | words())}
    if draw(st.booleans()):
        row["uuid"] = str(draw(st.uuids(version=4)))
        row["parentUuid"] = draw(st.none() | st.uuids(version=4).map(str))
        row["timestamp"] = draw(st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z"))
    row["sessionId"] = str(draw(st.uuids(version=4)))
    row.update(draw(json_objects()))
    return row


@st.composite
def json_lines(draw: DrawFn) -> bytes:
    """One value as a line, in one of the ways programs write JSON, with one of the ways lines end."""
    value = draw(json_values() | records())
    style = draw(st.sampled_from(_STYLES))
    front = draw(st.sampled_from((b"", b"", b"", b" ", _BOM)))
    return front + style(value) + draw(st.sampled_from((b"\n", b"\n", b"\n", b"\r\n", b" \n")))


def _compact(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _loose(value: JsonValue) -> bytes:
    return json.dumps(value).encode()


def _indented(value: JsonValue) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()


_STYLES: tuple[Callable[[JsonValue], bytes], ...] = (_compact, _compact, _loose, _indented)


def byte_soup() -> SearchStrategy[bytes]:
    """Bytes with the signs of JSON and of lines in them far more often than chance would have it."""
    signs = (b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\n", b"\r\n", b"\x00", b"\xff", _BOM, b"\xed\xa0\x80")
    pieces = (
        b'{"type":"user"', b'"uuid":"u1"', b'"type":', b'{"a":', b"null", b"NaN", b"1e999", b"-", b"9" * 40, b"\\ud800",
        b'{"type":"user","uuid":"u2","message":{"content":"x"}}',
    )  # fmt: skip
    return st.lists(st.sampled_from(signs + pieces) | st.binary(max_size=6), max_size=30).map(b"".join)


@st.composite
def broken_lines(draw: DrawFn) -> bytes:
    """A line, or what became of it: cut off, glued to another, filled with NULs, nested deeply, or no JSON at all."""
    kind = draw(st.sampled_from((*_ODD, "nested", "soup", "whole", "cut", "cut", "torn", "glued", "merged", "nuls")))
    if kind in _ODD:
        return _ODD[kind]
    if kind == "nested":
        depth = draw(st.integers(0, 1500))
        return b'{"type":"user","uuid":"deep","x":' + b"[" * depth + b"]" * depth + b"}\n"
    if kind == "soup":
        return draw(byte_soup()) + b"\n"
    line = draw(json_lines())
    if kind == "whole":
        return line
    if kind == "nuls":
        return b"\x00" * draw(st.integers(1, 20)) + line
    if kind == "merged":
        return line.rstrip(b"\r\n") + draw(json_lines())
    part = line[: draw(st.integers(0, len(line)))]
    return part + {"cut": b"", "torn": b"\n", "glued": draw(json_lines())}[kind]


_ODD = {
    "blank": b"\n",
    "blanks": b" \t\n",
    "nul": b"\x00" * 8 + b"\n",
    "surrogate": b'{"type":"user","uuid":"surrogate","x":"\\ud800"}\n',
    "huge": b'{"type":"user","uuid":"huge","x":%s}\n' % (b"9" * 400),
    "nan": b'{"type":"user","uuid":"nan","x":NaN}\n',
    "bytes": b'{"type":"user","uuid":"bytes","x":"\xff\xfe"}\n',
}


# ---- whole logs ----


@st.composite
def straight_sessions(draw: DrawFn) -> bytes:
    """Turns one after the other, with calls of tools, notes of the client and a head record or none."""
    return _straight(draw).to_bytes()


def _straight(draw: DrawFn) -> SessionDraft:
    draft = SessionDraft(seconds=draw(st.sampled_from((0.0, 0.2, 1.0, 7.0))))
    for _ in range(draw(st.integers(1, _TURNS_MAX))):
        _turn(draw, draft)
    _ends(draw, draft)
    return draft


def _turn(draw: DrawFn, draft: SessionDraft) -> None:
    draft.user(draw(words()) or "go on")
    if draw(st.booleans()):
        draft.attachment({"type": "date", "date": "2026-01-02"})
    answer = draft.next_message_id()
    for _ in range(draw(st.integers(0, 2))):
        call = draft.tool_use("Bash", {"command": draw(words())}, message_id=answer)
        if draw(st.integers(0, 4)):
            draft.tool_result(call, draw(words()), is_error=draw(st.booleans()))
        answer = draft.next_message_id()
    if draw(st.booleans()):
        draft.assistant(thinking(draw(words())), draw(words()), message_id=answer)
    elif draw(st.integers(0, 3)):
        draft.assistant(draw(words()), message_id=answer)


def _ends(draw: DrawFn, draft: SessionDraft) -> None:
    if draw(st.booleans()):
        draft.note("custom-title", customTitle=draw(words()))
    end = draw(st.integers(0, 5))
    if end <= 2:
        draft.head()
    elif end == 3 and draft.rows:
        uuid = draw(st.sampled_from(draft.rows)).get("uuid")
        draft.head(uuid if isinstance(uuid, str) else None, explicit=draw(st.none() | st.booleans()))
    elif end == 4:
        draft.head(str(draw(st.uuids(version=4))))


@st.composite
def branched_sessions(draw: DrawFn) -> bytes:
    """A session whose prompts were taken back, so that the log holds more than one branch."""
    draft = _straight(draw)
    for _ in range(draw(st.integers(1, 3))):
        uuids = [uuid for row in draft.rows if isinstance(uuid := row.get("uuid"), str)]
        draft.at = draw(st.sampled_from([None, *uuids]))
        _turn(draw, draft)
        _ends(draw, draft)
    return draft.to_bytes()


@st.composite
def parallel_sessions(draw: DrawFn) -> bytes:
    """An answer with several calls, whose results come in any order and fork the chain."""
    draft = SessionDraft()
    for _ in range(draw(st.integers(1, 3))):
        draft.user(draw(words()) or "go on")
        answer = draft.next_message_id()
        calls = [
            draft.tool_use("Bash", {"command": f"{at}"}, message_id=answer) for at in range(draw(st.integers(2, 4)))
        ]
        for call in draw(st.permutations(calls)):
            if draw(st.integers(0, 9)):
                draft.tool_result(call, draw(words()))
        draft.assistant(draw(words()) or "done")
    _ends(draw, draft)
    return draft.to_bytes()


@st.composite
def compacted_sessions(draw: DrawFn) -> bytes:
    """A session that was compacted, with rows kept or not, and went on."""
    draft = _straight(draw)
    for _ in range(draw(st.integers(1, 2))):
        uuids = [uuid for row in draft.rows if isinstance(uuid := row.get("uuid"), str)]
        kept = uuids[len(uuids) - draw(st.integers(0, min(3, len(uuids)))) :]
        draft.compaction(draw(words()) or "what was said", kept=kept)
        _turn(draw, draft)
    _ends(draw, draft)
    return draft.to_bytes()


@st.composite
def damaged_sessions(draw: DrawFn) -> bytes:
    """A log after accidents: lines cut, glued, doubled, lost or replaced, parents that are gone or in a circle."""
    data = draw(straight_sessions() | branched_sessions() | parallel_sessions() | compacted_sessions())
    lines = data.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        lines[at : at + 1] = _accident(draw, lines, at)
        if not lines:
            break
    whole = b"".join(lines)
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.integers(0, 5)) == 0 else whole


def _accident(draw: DrawFn, lines: list[bytes], at: int) -> list[bytes]:
    line = lines[at]
    kind = draw(st.sampled_from(("part", "other", "lost parent", *range(9))))
    if kind == "part":
        return [line[: draw(st.integers(0, len(line)))] + draw(st.sampled_from((b"", b"\n")))]
    if kind == "other":
        other = draw(st.sampled_from(lines) | broken_lines())
        return [line.rstrip(b"\n") + other] if draw(st.booleans()) else [other, line]
    replaced: tuple[list[bytes], ...] = (
        [],
        [line, line],
        [b"\x00" * 16 + line],
        [b"\n", line],
        [line.replace(b'"parentUuid":"', b'"parentUuid":"0', 1)],
        [line.replace(b'"uuid":"', b'"uuid":"0', 1)],
        [line.replace(b'"timestamp":"2', b'"timestamp":"?', 1)],
        [line.replace(b'"message":', b'"was":', 1)],
        [_own_parent(line)],
    )
    return replaced[4 if kind == "lost parent" else int(kind)]


def _own_parent(line: bytes) -> bytes:
    try:
        row = json.loads(line)
    except ValueError:
        return line
    if not isinstance(row, dict) or "uuid" not in row:
        return line
    return to_bytes([{**row, "parentUuid": row["uuid"]}])


def sessions() -> SearchStrategy[bytes]:
    """Any log: whole, branched, with parallel calls, compacted or damaged."""
    whole = straight_sessions() | branched_sessions() | parallel_sessions() | compacted_sessions()
    return whole | damaged_sessions()


def blocks() -> SearchStrategy[JsonObject]:
    """A content block of any kind, with a field or two that do not belong."""
    calls = st.builds(tool_use, words(), json_objects(), words())
    return st.builds(text, words()) | st.builds(thinking, words()) | calls | json_objects()


def _is_sendable(key: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in key)
