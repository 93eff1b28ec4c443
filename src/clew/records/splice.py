"""Other values in a row without encoding it anew: every byte but those of the values stays as it is.

Rows hold what no encoder gives back: lone surrogates, integers of any length, escapes nobody needed. So a copy that
must name another session puts the new value where the old one stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from clew.records.compact import compact
from clew.records.json_text import spans
from clew.records.views import JsonValue


class Change(NamedTuple):
    """A field of the row itself, not of an object in it. `old` is its text as it was decoded, None for anything else;
    `new` is what stands there afterwards, as JSON. A field that the row lacks comes last.
    """

    name: str
    old: str | None
    new: bytes


@lru_cache(maxsize=64)
def _start_of(name: str) -> bytes:
    """What stands before the value of a field."""
    return b'"%s":' % name.encode()


def quoted(text: str | None) -> bytes:
    """A text, or null, as JSON."""
    try:
        return _encode(text)
    except UnicodeEncodeError:  # A lone surrogate, which is written with an escape.
        return compact({"": text})[4:-1]


_encode: Callable[[str | None], bytes] = msgspec.json.Encoder().encode


def value_of(value: JsonValue) -> bytes:
    """Any value as JSON."""
    return compact({"": value})[4:-1]


def spliced(raw: bytes, changes: Iterable[Change]) -> bytes:
    """The row with these values. What is no whole JSON object stays as it is.

    A field is found by its text, if that stands only once in the row: within a string its quotes would be escaped.
    """
    edits: list[tuple[int, int, bytes]] = []
    left: list[Change] = []
    added: list[bytes] = []
    find = raw.find
    for change in changes:
        name, old, new = change
        start = _start_of(name)
        if old is None:
            if find(start[:-1]) < 0 and raw.endswith(b"}\n"):
                added.append(b",%s%s" % (start, new))
            else:
                left.append(change)
            continue
        field = b'%s"%s"' % (start, old.encode("utf-8", "surrogatepass"))
        at = find(field)
        # An old value that would be written with escapes is not found so, and is looked for by its place.
        if at > 0 and raw[at - 1] != 0x5C and find(field, at + 1) < 0:
            edits.append((at + len(start), at + len(field), new))
        else:
            left.append(change)
    edits.sort()
    pieces: list[bytes] = []
    at = 0
    for begin, end, new in edits:
        pieces += (raw[at:begin], new)
        at = end
    pieces.append(raw[at:])
    if added:
        pieces[-1] = pieces[-1][:-2]
        pieces += (*added, b"}\n")
    raw = b"".join(pieces)
    return _by_place(raw, left) if left else raw


def _by_place(raw: bytes, changes: list[Change]) -> bytes:
    start = raw.find(b"{")
    end = raw.rfind(b"}")
    if start < 0 or end < start:
        return raw
    text = raw[start : end + 1]
    wanted = {change.name: change.new for change in changes}
    pieces: list[bytes] = []
    at = 0
    found: set[str] = set()
    for name, value_start, value_end in spans(text):
        if name in wanted:
            found.add(name)
            pieces += [text[at:value_start], wanted[name]]
            at = value_end
    added = b"".join(b',"%s":%s' % (name.encode(), new) for name, new in wanted.items() if name not in found)
    pieces += [text[at:-1], added, b"}"]
    return b"".join((raw[:start], *pieces, raw[end + 1 :]))
