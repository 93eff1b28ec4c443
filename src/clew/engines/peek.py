"""Answers to the few questions about rows that decide where a log belongs, from as few bytes as will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Record, records_in

HEAD_BYTES_MAX = 1024 * 1024
"""So far into a log a row that names a directory or a session is looked for. The first row is read whatever its size.
"""
TAIL_BYTES_MAX = 64 * 1024
"""So far from the end a row about a moved directory is looked for; the client writes such rows again to keep them
there.
"""


def first_session_id(lines: Iterable[Line]) -> str | None:
    """The session that the first row with a `sessionId` names."""
    for record in _records(lines, b'"sessionId"', HEAD_BYTES_MAX):
        if record.session_id:
            return record.session_id
    return None


def first_cwd(lines: Iterable[Line]) -> str | None:
    """The directory that the session began in."""
    return _first_text(lines, "cwd", HEAD_BYTES_MAX)


def newest_relocated_cwd(newest_first: Iterable[Line]) -> str | None:
    """The directory that the session was moved to last."""
    return _first_text(newest_first, "relocatedCwd", TAIL_BYTES_MAX)


def _first_text(lines: Iterable[Line], name: str, budget: int) -> str | None:
    for record in _records(lines, b'"%s"' % name.encode(), budget):
        value = record.body().get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _records(lines: Iterable[Line], needle: bytes, budget: int) -> Iterator[Record]:
    """The records of lines that hold the needle, until more bytes than the budget were read."""
    used = 0
    for line in lines:
        if needle in line.data:
            yield from records_in(iter([decode(line)]))
        used += line.size
        if used > budget:
            return
