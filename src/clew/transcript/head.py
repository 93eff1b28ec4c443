"""The head: the record the real client goes on from.

The rules were measured on the client, file by file (`docs/format.md` lists the cases):

1. The last head record decides. The last row of the file is the head if it hangs below the leaf that the record names,
   else that leaf is. An explicit head record is exact: the last row counts only if it was written after the record. A
   leaf nobody knows counts as no head record; an explicit null is an empty conversation.
2. Otherwise it is the last row of the file; without any head record, a row below that with a later timestamp (rows out
   of order). Head records before a compaction boundary do not count.
3. When no prompt or answer stands above that row, it is the leaf with the latest timestamp.

A conversation whose last prompt or answer has no readable time, or is a sidechain row, the client does not find at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.records.record import Record
from clew.transcript.links import Links, links_of
from clew.transcript.times import milliseconds
from clew.transcript.tree import MESSAGE_TYPES, Tree
from clew.transcript.walk import walk_up


class Head(msgspec.Struct, frozen=True):
    """Where a conversation goes on. `uuid` None: it is empty, or the client finds none; `why` says it in words."""

    uuid: str | None
    why: str
    refused: bool = False
    """Whether the client answers that it finds no conversation in this log."""


def find_head(tree: Tree, links: Links | None = None) -> Head:
    """The head of the log, as the client decides it."""
    links = links_of(tree) if links is None else links
    head = _pointed(tree, links)
    if head is None:
        if links.last is None or links.last not in links:
            return _refuse("no prompt or answer")
        last = links.last if tree.pointer else _latest_below(tree, links, links.last)
        head = Head(last, "the last row of the file")
    if head.uuid is None:
        return head
    spoken = _said_above(links, head.uuid)
    if spoken is None:
        newest = _newest_leaf(links)
        if newest is None:
            spoken_types = any(record.type in MESSAGE_TYPES for record in tree.records.values())
            return _refuse("nothing said leads to the last row") if spoken_types else head
        leaf, spoken = newest
        head = Head(leaf, "the newest leaf: nothing is said above the last row")
    record = tree.records[spoken]
    if record.is_sidechain:
        return _refuse("the last row said belongs to a sidechain")
    if milliseconds(record.timestamp) is None:
        return _refuse(f"the last row said has no readable timestamp: {record.timestamp!r}")
    return head


def _refuse(why: str) -> Head:
    return Head(None, why, refused=True)


def _pointed(tree: Tree, links: Links) -> Head | None:
    """The head by the last head record, or None when there is none that counts."""
    pointer = tree.pointer
    if pointer is None:
        return None
    last = links.last if links.last in links else None
    is_later = tree.last is not None and tree.ordinals[tree.last] > pointer.ordinal
    if pointer.leaf is None:
        if last is not None and is_later:
            return Head(last, "the last row, after a clearing")
        return Head(None, "the conversation was cleared")
    if pointer.leaf not in links:
        return None
    if last is not None and (is_later or not pointer.explicit) and _hangs_under(links, last, pointer.leaf):
        return Head(last, "the last row, below the head record")
    return Head(pointer.leaf, "the head record")


def _hangs_under(links: Links, uuid: str, above: str) -> bool:
    at = links.parents[uuid]
    seen: set[str] = set()
    while at is not None and at in links and at not in seen:
        if at == above:
            return True
        seen.add(at)
        at = links.parents[at]
    return False


def _below(links: Links, uuid: str) -> Iterator[str]:
    """Every row that hangs under `uuid`, itself left out."""
    children = links.children()
    waiting, seen = [uuid], {uuid}
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def _latest_below(tree: Tree, links: Links, last: str) -> str:
    """`last`, or the row below it that was written before it and has the latest timestamp, not earlier than its own."""
    found = set(_below(links, last))
    if not found:
        return last
    best, latest = last, milliseconds(tree.records[last].timestamp) or 0.0
    for uuid in sorted(found, key=tree.ordinals.__getitem__):
        when = milliseconds(tree.records[uuid].timestamp) or 0.0
        if when >= latest and not tree.records[uuid].is_sidechain:
            best, latest = uuid, when
    return best


def _said_above(links: Links, uuid: str) -> str | None:
    """The nearest prompt or answer from `uuid` upwards."""
    return next((at for at in walk_up(links, uuid, []) if _is_said(links.tree.records[at])), None)


def _is_said(record: Record) -> bool:
    return record.type in MESSAGE_TYPES and record.message is not None


def _newest_leaf(links: Links) -> tuple[str, str] | None:
    """The leaf under the latest prompt or answer, and that prompt or answer. Sidechain rows do not count."""
    named = {parent for uuid, parent in links.parents.items() if parent != uuid}
    nearest: dict[str, str | None] = {}
    best, latest = None, -1.0
    for leaf in links.parents:
        said = None if leaf in named else _nearest_said(links, leaf, nearest)
        if said is not None and not links.tree.records[said].is_sidechain:
            when = milliseconds(links.tree.records[said].timestamp) or 0.0
            if when > latest:
                best, latest = (leaf, said), when
    return best


def _nearest_said(links: Links, uuid: str, known: dict[str, str | None]) -> str | None:
    """The nearest prompt or answer by parents alone; `known` holds what earlier calls found, so that all are linear."""
    way: list[str] = []
    at: str | None = uuid
    found: str | None = None
    while at is not None and at in links and at not in known:
        known[at] = None
        way.append(at)
        if _is_said(links.tree.records[at]):
            found = at
            break
        at = links.parents[at]
    if found is None and at is not None:
        found = known.get(at)
    known.update(dict.fromkeys(way, found))
    return found
