"""Which rows are written once: the id by which a row that comes again is known.

The client writes rows of a conversation once per uuid and main log; titles, tags and all other rows stand as often as
they were said. Measured on 2.1.327 and true of `progress` rows of older clients too.
"""

from __future__ import annotations

from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Malformed, Record

WRITTEN_ONCE = frozenset({"user", "assistant", "attachment", "system", "progress"})


def dedupe_id(record: Record) -> str | None:
    """The uuid of a row that is written once; None for every other."""
    return record.uuid or None if record.type in WRITTEN_ONCE else None


def uuid_of_line(data: bytes) -> str | None:
    """The uuid of a line that stands in a log, whatever its type, for engines that learn what is there; broken lines
    have none.

    Of several records on one line the client reads the first, so that is the one that is there.
    """
    if b'"uuid"' not in data:
        return None
    row = decode(Line(data, 0, 1, len(data)))
    if isinstance(row, Malformed):
        return (row.loaded[0].uuid or None) if row.loaded else None
    return (row.uuid or None) if isinstance(row, Record) else None
