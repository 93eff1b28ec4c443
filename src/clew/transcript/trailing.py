"""What stands behind the last prompt or answer of a chain: attachments and system rows that hang under it.

The client decides on a prompt or an answer first, and then takes everything of its own that hangs there, whatever the
head record or the last row of the file names: each row before those under it, rows under one row by time.
"""

from __future__ import annotations

from clew.transcript.links import Links
from clew.transcript.times import milliseconds
from clew.transcript.tree import MESSAGE_TYPES


def nearest_said(links: Links, uuid: str, known: dict[str, str | None]) -> str | None:
    """The nearest prompt or answer by parents alone, the row itself included.

    `known` holds what earlier calls found, so that all of them together take linear time.
    """
    way: list[str] = []
    at: str | None = uuid
    found: str | None = None
    while at is not None and at in links and at not in known:
        known[at] = None
        way.append(at)
        if links.tree.records[at].type in MESSAGE_TYPES:
            found = at
            break
        at = links.parents[at]
    if found is None and at is not None:
        found = known.get(at)
    known.update(dict.fromkeys(way, found))
    return found


def trailing(links: Links, said: str) -> list[str]:
    """The rows under a prompt or an answer with no other one between, in the order in which they are sent."""
    children = links.children()
    found: list[str] = []
    seen = {said}
    waiting = [said]
    while waiting:
        at = waiting.pop()
        if at != said:
            found.append(at)
        under = [row for row in children.get(at) if row not in seen and _trails(links, row)]
        seen.update(under)
        # The first by time is taken from the end of the list first.
        under.sort(key=lambda row: milliseconds(links.tree.records[row].timestamp) or 0.0)
        waiting.extend(reversed(under))
    return found


def _trails(links: Links, uuid: str) -> bool:
    return links.tree.records[uuid].type not in MESSAGE_TYPES
