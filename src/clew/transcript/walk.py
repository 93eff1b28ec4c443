"""From a row up to where its conversation starts.

A lost parent (unknown, or already passed: a cycle) is replaced by the newest row that is at most five seconds older,
wherever it stands in the file; with none, the conversation starts there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from clew.records.record import Record
from clew.transcript.links import Links
from clew.transcript.times import milliseconds

REPAIR_MS = 5_000
"""So much older may the row be that takes the place of a lost parent (measured: 5.000 s yes, 5.001 s no)."""


class Repair(msgspec.Struct, frozen=True):
    """A row whose parent was lost, and the row it was hung on; None: the conversation starts there."""

    uuid: str
    lost: str
    onto: str | None


def walk_up(links: Links, leaf: str, repairs: list[Repair]) -> Iterator[str]:
    """The uuids from `leaf` upwards, each once. What had to be repaired on the way is added to `repairs`."""
    records, parents = links.tree.records, links.parents
    seen: set[str] = set()
    elders: dict[bool, _Elders] = {}
    at: str | None = leaf
    while at is not None:
        yield at
        seen.add(at)
        record, parent = records[at], parents[at]
        if parent is not None and (parent in seen or parent not in parents):
            # A sidechain row is hung on a sidechain row only, any other on none of them.
            is_sidechain = bool(record.is_sidechain)
            if is_sidechain not in elders:
                elders[is_sidechain] = _Elders(links, is_sidechain=is_sidechain)
            lost, parent = parent, elders[is_sidechain].before(record, seen)
            repairs.append(Repair(at, lost, parent))
        at = parent


class _Elders:
    """Rows by time, to find the newest one before a moment. Rows already taken are skipped for good, so all searches
    are linear.
    """

    def __init__(self, links: Links, *, is_sidechain: bool) -> None:
        timed = []
        for place, uuid in enumerate(links.parents):
            record = links.tree.records[uuid]
            when = milliseconds(record.timestamp)
            if when is not None and bool(record.is_sidechain) == is_sidechain:
                # Of rows of the same millisecond the client takes the one that stands first.
                timed.append((when, -place, uuid))
        timed.sort()
        self._times = [when for when, _, _ in timed]
        self._uuids = [uuid for _, _, uuid in timed]
        self._lower = list(range(len(timed)))

    def before(self, record: Record, taken: set[str]) -> str | None:
        moment = milliseconds(record.timestamp)
        if moment is None:
            return None
        at = bisect_right(self._times, moment) - 1
        passed = []
        while at >= 0 and self._uuids[at] in taken:
            passed.append(at)
            at = self._lower[at] - 1 if self._lower[at] < at else at - 1
        for place in passed:
            self._lower[place] = at + 1
        return self._uuids[at] if at >= 0 and moment - self._times[at] <= REPAIR_MS else None
