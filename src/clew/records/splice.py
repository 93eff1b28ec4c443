"""Other values in a row without encoding it anew: every byte but those of the values stays as it is.

Rows hold what no encoder gives back: lone surrogates, integers of any length, escapes nobody needed. So a copy that
must name another session puts the new value where the old one stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

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


def quoted(text: str | None) -> bytes:
    """A text, or null, as JSON."""
    return b"null" if text is None else compact({"": text})[4:-1]


def value_of(value: JsonValue) -> bytes:
    """Any value as JSON."""
    return compact({"": value})[4:-1]


def spliced(raw: bytes, changes: Iterable[Change]) -> bytes:
    """The row with these values. What is no whole JSON object stays as it is.

    A field is found by its text, if that stands only once in the row: within a string its quotes would be escaped.
    """
    left: list[Change] = []
    for change in changes:
        old = None if change.old is None else b'"%s":%s' % (change.name.encode(), quoted(change.old))
        if old is not None and raw.count(old) == 1 and b"\\" + old not in raw:
            raw = raw.replace(old, b'"%s":%s' % (change.name.encode(), change.new))
        elif old is None and raw.endswith(b"}\n") and b'"%s"' % change.name.encode() not in raw and b"\\u00" not in raw:
            raw = b'%s,"%s":%s}\n' % (raw[:-2], change.name.encode(), change.new)
        else:
            left.append(change)
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
