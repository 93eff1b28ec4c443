"""Lines to rows and back, byte for byte.

A line goes through `msgspec` first. What that refuses - a lone surrogate, NaN, a byte-order mark, bad UTF-8, a field of an
unexpected type - goes through `json` of the standard library, and what that refuses is taken apart by a scanner: cut off,
several values on one line, a run of NULs. No line is ever dropped.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from clew.errors import DamagedData
from clew.records.json_text import End, Scanner, scan, top_level
from clew.records.line import LINE_BYTES_MAX, Line
from clew.records.record import BOM, Blank, Malformed, MessageHead, Record, Row

JOIN_LINES_MAX = 10_000
"""A record written over several lines may have so many; beyond it the lines stand alone."""
JOIN_WASTE_MAX = 20_000
"""So many lines may be scanned in vain for such records in one log; then no more are looked for, so that time stays linear."""
RECOVERY_TRIES_MAX = 64
"""At so many places of a broken line a whole record is looked for."""
RECOVERY_BYTES_MAX = 64 * 1024 * 1024
"""So many bytes of a broken line are scanned for whole records, all tries together."""

_decode_fast = msgspec.json.Decoder(Record).decode
_JSON_SPACE = b" \t\r\n"
_RECORD_START = re.compile(rb'\{[ \t]*"(?:type|uuid|parentUuid|sessionId|isSidechain|logicalParentUuid|messageId)"[ \t]*:')
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Record) if field.name != "line"}
_IDS = frozenset({"uuid", "parentUuid", "leafUuid"})
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(line: Line) -> Row:
    """What one line is. Never raises; `encode` gives the same bytes again."""
    try:
        record = _decode_fast(line.data)
    except _REFUSED:
        return _decode_odd(line)
    record.line = line
    return record


def decode_lines(lines: Iterable[Line]) -> Iterator[Row]:
    """Decodes a stream of lines, in order, without holding more than one record.

    The real client reads a JSON object that was written over several lines, so these are joined into one record whose
    line is all of them. The bytes of all rows, one after the other, are the bytes of all lines.
    """
    waste = 0
    waiting: deque[Line] = deque()
    source = iter(lines)
    fast = _decode_fast
    while True:
        if waiting:
            line = waiting.popleft()
        else:
            try:
                line = next(source)
            except StopIteration:
                return
        try:
            record = fast(line.data)
        except _REFUSED:
            row = _decode_odd(line)
            if isinstance(row, Malformed) and row.reason == REASON_OPEN and waste < JOIN_WASTE_MAX:
                joined = _join(line, waiting, source)
                if joined is None:
                    waste += len(waiting) + 1
                else:
                    row = joined
            yield row
        else:
            record.line = line
            yield record


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
        return Malformed(line, f"longer than {LINE_BYTES_MAX // 2**20} MiB: {line.size} bytes, kept as a range")
    data = line.data
    text = data.removeprefix(BOM)
    if not text.strip(_JSON_SPACE):
        return Blank(line)
    try:
        value = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _take_apart(line, text)
    if not isinstance(value, dict):
        return Malformed(line, f"not an object: a JSON {_kind(value)}")
    return _tolerant(value, line)


def _tolerant(value: dict[str, object], line: Line) -> Record:
    """A record from an object whose fields may be of any type: what does not fit keeps its default."""
    record = Record(line=line)
    for name, field in _FIELDS.items():
        if name not in value:
            continue
        try:
            setattr(record, field.name, msgspec.convert(value[name], field.type))
        except (msgspec.ValidationError, RecursionError):
            inner = value[name]
            if name == "message" and isinstance(inner, dict):
                record.message = MessageHead(*(v if isinstance(v := inner.get(k), str) else None for k in ("id", "role")))
            elif name in _IDS and inner not in (0, ""):
                # The client compares ids whatever their type is: 5 and 5 are the same row.
                setattr(record, field.name, json.dumps(inner))
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
            return first if first is not None else Malformed(line, "not an object: a JSON array")
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
    whole = _one(rest.rstrip(b"\x00"), line) if rest.startswith(b"{") else None
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
        value: object = json.loads(text.decode("utf-8", "replace"))
    except RecursionError:
        value = _deep(text)
    except ValueError:
        return None
    return _tolerant(value, place) if isinstance(value, dict) else None


def _deep(text: bytes) -> dict[str, object] | None:
    """The placing fields of an object that nests deeper than Python's parsers go (about 1,000 levels)."""
    if scan(text)[0] is not End.WHOLE or not text.lstrip(_JSON_SPACE).startswith(b"{"):
        return None
    value: dict[str, object] = {}
    for name, raw in top_level(text).items():
        if name in _FIELDS:
            try:
                value[name] = json.loads(raw.decode("utf-8", "replace"))
            except RecursionError:
                value[name] = {k: json.loads(v) for k, v in top_level(raw).items() if k in ("id", "role") and v[:1] == b'"'}
    return value


def _whole_records(text: bytes, line: Line) -> tuple[Record, ...]:
    """Whole records that stand somewhere in a broken text, in order."""
    found: list[Record] = []
    at = scanned = 0
    for _ in range(RECOVERY_TRIES_MAX):
        match = _RECORD_START.search(text, at)
        if match is None or scanned > RECOVERY_BYTES_MAX:
            break
        at = match.start()
        end, stop = scan(text, at)
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


def _join(line: Line, waiting: deque[Line], source: Iterator[Line]) -> Row | None:
    """Goes on with an open record over the lines that follow. Returns None when they do not complete it.

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
    return None


def _kind(value: object) -> str:
    names: dict[type, str] = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
