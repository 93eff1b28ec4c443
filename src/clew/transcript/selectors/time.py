"""`time:ISO`: the last record that is not later; without an offset the time is UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from clew.errors import NotFound, UsageError
from clew.records.record import Record
from clew.transcript.points import Point
from clew.transcript.times import milliseconds


class AtTime(Point, frozen=True):
    """The last record that is not later than these milliseconds since 1970."""

    ms: float

    @classmethod
    def parse(cls, value: str, text: str) -> Self:
        moment = milliseconds(value)
        if moment is None:
            raise UsageError(f"{text!r} names no time that can be read", hint="write time:2026-01-31T12:00:00Z")
        return cls(moment)

    def place(self, chain: Sequence[Record]) -> int:
        times = [milliseconds(record.timestamp) for record in chain]
        # Rows that a compaction kept are older than its boundary; before that moment there was another conversation.
        start = times[0] if times and _is_boundary(chain[0]) else None
        if start is not None and self.ms < start:
            raise NotFound(
                f"the conversation was compacted at {chain[0].timestamp}, which is later",
                hint="`clew tree SESSION` shows the records before that; name one by its uuid",
            )
        earlier = (at for at in range(len(chain) - 1, -1, -1) if (when := times[at]) is not None and when <= self.ms)
        place = next(earlier, None)
        if place is None:
            first = next(
                (record.timestamp for record, when in zip(chain, times, strict=True) if when is not None), None
            )
            raise NotFound(
                f"this conversation begins later, at {first}" if first else "no record of this conversation has a time",
                hint=f"time:{first} is its first record" if first else "name a record by its uuid, or a turn",
            )
        while place + 1 < len(chain) and times[place + 1] is None:
            place += 1  # A row without a time belongs to the one before it.
        return place


def _is_boundary(record: Record) -> bool:
    return record.type == "system" and record.subtype == "compact_boundary"
