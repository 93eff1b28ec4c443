"""A record, and what a line can be besides one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import msgspec

from clew.records.json_text import items, loads, top_level
from clew.records.line import Line
from clew.records.views import JsonValue, View, view_of

DEEP_LEVELS_MAX = 5
"""So many levels of a row that nests too deeply for the parser are taken apart one by one: the row, its message, the
content, a block, the input of a call. What is too deep below that reads as U+FFFD.
"""
DEEP_BYTES_MAX = 1024 * 1024
"""Of a longer row only the first level: each costs up to 0.3 s for a megabyte made for that."""
BOM = b"\xef\xbb\xbf"
_NO_LINE = Line(b"", 0, 0, 0)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class MessageHead(msgspec.Struct, gc=False):
    """The fields of an API message that decide where a row belongs, and its content as it stands in the line."""

    id: str | None = None
    role: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")
    """Empty where the line had to be read by the tolerant parser; `Record.content()` knows."""


_decode_any: Callable[[msgspec.Raw], JsonValue] = msgspec.json.Decoder().decode


class Record(msgspec.Struct, gc=False, rename="camel"):
    """One JSON object of a log: its bytes, and the fields that place it, decoded once.

    The bytes in `line` are the truth. The body is decoded only when `body()`, `content()` or `view()` ask for it. A
    field that is absent, null or of another type than here has its default and stays what it is in the bytes.
    """

    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    subtype: str | None = None
    leaf_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    """Of a head record. Absent and null differ: an explicit null is an empty conversation."""
    explicit: bool | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(default=None, name="sourceToolAssistantUUID")
    message: MessageHead | None = None
    # Never in the JSON: set after decoding, whatever a hostile line called its keys.
    line: Line = msgspec.field(default=_NO_LINE, name="<line>")

    @property
    def raw(self) -> bytes:
        """The bytes as they stand in the log, terminator included."""
        return self.line.data

    def body(self) -> dict[str, JsonValue]:
        """The whole object. Bytes that are no UTF-8 read as U+FFFD, and so does what nests deeper than Python can
        hold; what is around that is there.
        """
        return body_of(self.raw)

    def content(self) -> JsonValue:
        """`message.content` without decoding the rest of the row, in strings that can be sent: no lone surrogates."""
        head = self.message
        if head is None:
            return None
        if len(head.content):
            try:
                return _decode_any(head.content)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass
        message = self.body().get("message")
        return sendable(message.get("content")) if isinstance(message, dict) else None

    def view(self) -> View:
        """The row as the typed view of its type; an unknown type as `Unknown`."""
        return view_of(self.raw, self.type, self.body)


class Malformed(msgspec.Struct, frozen=True):
    """A line that is no record. It is kept, counted and reported; copying it gives the same bytes.

    `loaded` are records in it that belong to the conversation: the first of several on one line, as the real client
    reads it, and one that stands whole behind a run of NULs. `recoverable` are all that could be saved from it.
    """

    line: Line
    reason: str
    loaded: tuple[Record, ...] = ()
    recoverable: tuple[Record, ...] = ()

    @property
    def raw(self) -> bytes:
        """The bytes as they stand in the log; empty for a line over the limit, which is a range."""
        return self.line.data


class Blank(msgspec.Struct, frozen=True):
    """A line of white space: no record and no damage, but kept."""

    line: Line

    @property
    def raw(self) -> bytes:
        return self.line.data


Row = Record | Malformed | Blank


def records_in(rows: Iterator[Row]) -> Iterator[Record]:
    """The records that belong to the conversation, in order, those inside malformed lines included."""
    for row in rows:
        if isinstance(row, Record):
            yield row
        elif isinstance(row, Malformed):
            yield from row.loaded


def body_of(raw: bytes) -> dict[str, JsonValue]:
    """Decodes the object in `raw` however odd it is written. Returns an empty dict when there is none."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _odd_json(raw)
    return cast(dict[str, JsonValue], value) if isinstance(value, dict) else {}


def _odd_json(raw: bytes) -> object:
    try:
        return _peeled(raw.removeprefix(BOM), DEEP_LEVELS_MAX if len(raw) <= DEEP_BYTES_MAX else 1)
    except ValueError:
        return None


def _peeled(value: bytes, levels: int) -> object:
    """The value, of which only what nests too deeply is missing: the parser gives up on all that is around it too."""
    try:
        return loads(value.decode("utf-8", "replace"))
    except RecursionError:
        if levels == 0:
            return "\ufffd"
    fields = top_level(value)
    if fields:
        return {name: _peeled(inner, levels - 1) for name, inner in fields.items()}
    return [_peeled(inner, levels - 1) for inner in items(value)]


def sendable(value: JsonValue) -> JsonValue:
    """The value with every lone surrogate as U+FFFD, as the client sends it. It may nest as deeply as it likes."""
    made: list[JsonValue] = [None]
    todo: list[tuple[Callable[[JsonValue], None], JsonValue]] = [(partial(made.__setitem__, 0), value)]
    while todo:
        put, each = todo.pop()
        if isinstance(each, str):
            put(sendable_text(each))
        elif isinstance(each, list):
            row: list[JsonValue] = [None] * len(each)
            todo.extend((partial(row.__setitem__, at), item) for at, item in enumerate(each))
            put(row)
        elif isinstance(each, dict):
            # Reversed, so that of two names that become one the last counts.
            fields: dict[str, JsonValue] = {sendable_text(name): None for name in each}
            named = [(partial(fields.__setitem__, sendable_text(name)), item) for name, item in each.items()]
            todo.extend(reversed(named))
            put(fields)
        else:
            put(each)
    return made[0]


def sendable_text(text: str) -> str:
    """The text with every lone surrogate as U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)
