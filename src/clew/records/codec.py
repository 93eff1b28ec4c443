"""Lines to rows and back, byte for byte.

A line goes through `msgspec` first. What that refuses - a lone surrogate, NaN, a byte-order mark, bad UTF-8, a field of
an unexpected type - goes through `json` of the standard library, and what that refuses is taken apart by a scanner: cut
off, several values on one line, a run of NULs. No line is ever dropped.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec

from clew.errors import DamagedData
from clew.records.json_text import End, Scanner, loads, scan, scan_shallow, top_level
from clew.records.line import LINE_BYTES_MAX, Line
from clew.records.record import BOM, Blank, Malformed, MessageHead, Record, Row

JOIN_LINES_MAX = 10_000
"""A record written over several lines may have so many; beyond it the lines stand alone."""
JOIN_WASTE_MAX = 20_000
"""So many lines of a log may be scanned in vain for such records; then no more are looked for, and time stays linear.
"""
JOIN_WASTE_BYTES_MAX = LINE_BYTES_MAX
"""And so many bytes."""
RECOVERY_TRIES_MAX = 64
"""At so many places of a broken line a whole record is looked for."""
RECOVERY_BYTES_MAX = 64 * 1024 * 1024
"""So many bytes of a broken line are scanned for whole records, all tries together."""
RECOVERY_PASSES_MAX = 8
"""And so many times its own size, so that many short lines cost no more than a long one."""

_decode_fast: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode
_JSON_SPACE = b" \t\r\n"
_RECORD_START = re.compile(
    rb'\{[ \t]*"(?:type|uuid|parentUuid|sessionId|isSidechain|logicalParentUuid|messageId)"[ \t]*:'
)
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Record) if field.name != "line"}
_IDS = frozenset({"uuid", "parentUuid", "leafUuid"})
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(line: Line) -> Row:
    """What one line is. Never raises; `encode` gives the same bytes again."""
    record = _try_fast(line.data)
    if record is None or record.type is None:
        return _decode_odd(line)
    record.line = line
    return record


def _try_fast(data: bytes) -> Record | None:
    try:
        return _decode_fast(data)
    except _REFUSED:
        return None


def decode_lines(lines: Iterable[Line], *, by: Callable[[bytes], Record] = _decode_fast) -> Iterator[Row]:
    """Decodes a stream of lines, in order, without holding more than one record. `by` decodes a row that is as the
    client writes one, where somebody wants less of it than everything that places it.

    The real client reads a JSON object that was written over several lines, so these are joined into one record whose
    line is all of them. The bytes of all rows, one after the other, are the bytes of all lines.
    """
    wasted_lines = wasted_bytes = 0
    waiting: deque[Line] = deque()
    source = iter(lines)
    fast, record = by, None
    while True:
        if waiting:
            line = waiting.popleft()
        else:
            try:
                line = next(source)
            except StopIteration:
                return
        # The same as `decode`, written out: a call for every line costs a tenth of the whole.
        try:
            record = fast(line.data)
        except _REFUSED:
            record = None
        if record is not None and record.type is not None:
            record.line = line
            yield record
            continue
        row = _decode_odd(line)
        may_join = wasted_lines < JOIN_WASTE_MAX and wasted_bytes < JOIN_WASTE_BYTES_MAX
        if may_join and isinstance(row, Malformed) and row.reason == REASON_OPEN:
            joined = _join(line, waiting, source)
            if isinstance(joined, _InVain):
                wasted_lines += joined.lines
                wasted_bytes += joined.size
            else:
                row = joined
        yield row


def encode(row: Row) -> bytes:
    """The bytes of the row as they were read.

    Raises `DamagedData` for a line over the limit, which must be copied as a range of its log.
    """
    if not row.line.is_held:
        raise DamagedData(
            f"line {row.line.number} has {row.line.size} bytes and is not held in memory",
            hint="copy it with read_range(position, size)",
        )
    return row.line.data


REASON_OPEN = "torn: the record ends before it is complete"
REASON_UNTERMINATED = "torn, or still being written: the last line has no newline and is not complete"


def _decode_odd(line: Line) -> Row:
    if not line.is_held:
        return Malformed(line, f"too long to be held in memory: {line.size} bytes, kept as a range")
    data = line.data
    text = data.removeprefix(BOM)
    if not text.strip(_JSON_SPACE):
        return Blank(line)
    try:
        value = loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _take_apart(line, text)
    if not isinstance(value, dict):
        return Malformed(line, f"not an object: a JSON {_kind(value)}")
    return _tolerant(value, line) if value else Malformed(line, "not a record: an object without any field")


def _tolerant(value: dict[str, object], line: Line) -> Record:
    """A record from an object whose fields may be of any type: what does not fit keeps its default."""
    record = Record(line=line)
    for name, field in _FIELDS.items():
        inner = value.get(name)
        if inner is None and name != "leafUuid":
            continue
        if name == "message" and isinstance(inner, dict):
            message_id, role = inner.get("id"), inner.get("role")
            record.message = MessageHead(
                message_id if isinstance(message_id, str) else None, role if isinstance(role, str) else None
            )
            continue
        if name not in value:
            continue
        try:
            setattr(record, field.name, msgspec.convert(inner, field.type))
        except (msgspec.ValidationError, RecursionError, UnicodeEncodeError):  # The last for a lone surrogate.
            if name in _IDS and inner not in (0, ""):
                # The client compares ids whatever their type is: 5 and 5 are the same row.
                setattr(record, field.name, _id_text(inner))
    return record


def _take_apart(line: Line, text: bytes) -> Row:
    """For text that is not exactly one JSON value."""
    bare = text.lstrip(_JSON_SPACE)
    if bare.startswith(b"\x00"):
        return _after_nuls(line, bare)
    end, at = scan(bare)
    if end is End.WHOLE:
        first = _one(bare[:at], line)
        rest = bare[at:].strip(_JSON_SPACE)
        if not rest:
            if first is None:
                return Malformed(line, f"not an object: a JSON {'array' if bare.startswith(b'[') else 'value'}")
            first.line = line
            return first
        others = _whole_records(rest, line)
        found = (first, *others) if first is not None else others
        if first is None:
            return Malformed(line, "not an object, and more text after it", recoverable=found)
        what = f"{len(found)} records on one line" if others else "more text after the record"
        return Malformed(line, what, loaded=(first,), recoverable=found)
    recoverable = _whole_records(bare[1:], line)
    if end is End.WRONG:
        return Malformed(line, "not JSON", recoverable=recoverable)
    if not line.is_terminated:
        return Malformed(line, REASON_UNTERMINATED, recoverable=recoverable)
    reason = REASON_OPEN if end is End.OPEN and bare.startswith(b"{") else "torn: the record is cut off inside a value"
    return Malformed(line, reason, recoverable=recoverable)


def _after_nuls(line: Line, bare: bytes) -> Malformed:
    rest = bare.lstrip(b"\x00")
    count = len(bare) - len(rest)
    if not rest.strip(_JSON_SPACE + b"\x00"):
        return Malformed(line, f"{count} NUL bytes and nothing else")
    end, at = scan(rest)
    is_alone = end is End.WHOLE and not rest[at:].strip(_JSON_SPACE + b"\x00")
    whole = _one(rest[:at], line) if is_alone else None
    if whole is not None:
        return Malformed(line, f"{count} NUL bytes before the record", loaded=(whole,), recoverable=(whole,))
    return Malformed(line, f"{count} NUL bytes before a broken record", recoverable=_whole_records(rest, line))


def _one(text: bytes, line: Line) -> Record | None:
    """The record in `text`, which must be one whole JSON value, or None. Its raw bytes are that text alone."""
    place = Line(text, line.position, line.number, len(text))
    try:
        record = _decode_fast(text)
    except _REFUSED:
        return _one_odd(text, place)
    record.line = place
    return record


def _one_odd(text: bytes, place: Line) -> Record | None:
    try:
        value: object = loads(text.decode("utf-8", "replace"))
    except RecursionError:
        value = _deep(text)
    except ValueError:
        return None
    return _tolerant(value, place) if isinstance(value, dict) else None


def _id_text(value: object) -> str | None:
    try:
        return json.dumps(value)
    except RecursionError:
        return None


def _deep(text: bytes) -> dict[str, object] | None:
    """The placing fields of an object that nests deeper than Python's parsers go (about 1,000 levels)."""
    if not text.startswith(b"{"):
        return None
    value: dict[str, object] = {}
    for name, raw in top_level(text).items():
        if name in _FIELDS:
            try:
                value[name] = loads(raw.decode("utf-8", "replace"))
            except RecursionError:
                if name != "message":
                    continue
                inner = top_level(raw)
                texts = {key: inner[key] for key in ("id", "role") if inner.get(key, b"").startswith(b'"')}
                value[name] = {key: loads(text.decode("utf-8", "replace")) for key, text in texts.items()}
    return value


def _whole_records(text: bytes, line: Line) -> tuple[Record, ...]:
    """Whole records that stand somewhere in a broken text, in order. One that nests very deeply is not found."""
    found: list[Record] = []
    decoded = text.decode("latin-1")
    at = scanned = 0
    for _ in range(RECOVERY_TRIES_MAX):
        match = _RECORD_START.search(text, at)
        if match is None or scanned > min(RECOVERY_BYTES_MAX, RECOVERY_PASSES_MAX * len(text)):
            break
        at = match.start()
        end, stop = scan_shallow(text, decoded, at)
        scanned += stop - at
        record = _one(text[at:stop], line) if end is End.WHOLE else None
        if record is not None and _is_row(record):
            found.append(record)
            at = stop
        else:
            at += 1
    return tuple(found)


def _is_row(record: Record) -> bool:
    """Whether this object is a row of a log, and no block of a message inside one."""
    placed = record.uuid or record.session_id or record.leaf_uuid
    return record.type is not None and bool(placed or record.type.startswith("file-history-"))


class _InVain(msgspec.Struct):
    """What was read for a record over several lines that is none."""

    lines: int
    size: int


def _join(line: Line, waiting: deque[Line], source: Iterator[Line]) -> Row | _InVain:
    """Goes on with an open record over the lines that follow, which may not complete it.

    Lines read from `source` in vain are left in `waiting`, in order.
    """
    scanner = Scanner()
    scanner.feed(line.data.removeprefix(BOM))
    pieces, size = [line.data], line.size
    seen: list[Line] = []
    while len(seen) < JOIN_LINES_MAX and size <= LINE_BYTES_MAX:
        following = waiting.popleft() if waiting else next(source, None)
        if following is None:
            break
        seen.append(following)
        size += following.size
        end = scanner.feed(following.data) if following.is_held else End.WRONG
        if end is End.OPEN:
            pieces.append(following.data)
            continue
        if end is not End.WHOLE:
            break
        pieces.append(following.data)
        data = b"".join(pieces)
        return _decode_odd(Line(data, line.position, line.number, len(data)))
    waiting.extendleft(reversed(seen))
    return _InVain(len(seen) + 1, size)


def _kind(value: object) -> str:
    names: dict[type, str] = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
