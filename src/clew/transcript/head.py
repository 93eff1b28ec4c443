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

from clew.transcript.beside import is_of_one_fork
from clew.transcript.links import Links, links_of
from clew.transcript.times import milliseconds
from clew.transcript.trailing import nearest_said, trailing
from clew.transcript.tree import MESSAGE_TYPES, Pointer, Tree


class Head(msgspec.Struct, frozen=True):
    """Where a conversation goes on. `uuid` None: it is empty, or the client finds none; `why` says it in words."""

    uuid: str | None
    why: str
    refused: bool = False
    """Whether the client answers that it finds no conversation in this log."""


def find_head(tree: Tree, links: Links | None = None) -> Head:
    """The head of the log, as the client decides it."""
    links = links_of(tree) if links is None else links
    last = _last_row(links)
    head = _pointed(links, last)
    if head is None:
        if last is None:
            return _refuse("no prompt or answer")
        is_free = tree.pointer is None and not links.has_kept
        head = Head(_latest_below(tree, links, last) if is_free else last, "the last row of the file")
    if head.uuid is None:
        return head
    said = nearest_said(links, head.uuid, {})
    if said is None:
        said = _newest_said(links)
        if said is None:
            is_said = any(record.type in MESSAGE_TYPES for record in tree.records.values())
            return _refuse("nothing said leads to the last row") if is_said else head
        head = Head(said, "the newest leaf: nothing is said above the last row")
    record = tree.records[said]
    if record.is_sidechain:
        return _refuse("the last row said belongs to a sidechain")
    if milliseconds(record.timestamp) is None:
        return _refuse(f"the last row said has no readable timestamp: {record.timestamp!r}")
    behind = trailing(links, said)
    return Head(behind[-1] if behind else said, head.why)


def _refuse(why: str) -> Head:
    return Head(None, why, refused=True)


def _last_row(links: Links) -> str | None:
    """The last row of the file, or what takes its place in a log whose compaction kept rows or took that row away."""
    last = links.tree.last
    if last is None:
        return None
    if last not in links:
        return _newest_said(links)
    ends = _said_last(links) if links.has_kept else set()
    return ends.pop() if len(ends) == 1 else last


def _pointed(links: Links, last: str | None) -> Head | None:
    """The head by the last head record, or None when there is none that counts."""
    tree = links.tree
    pointer = tree.pointer
    if pointer is None:
        return None
    is_later = tree.last is not None and tree.ordinals[tree.last] > pointer.ordinal
    if pointer.leaf is None:
        if last is not None and is_later:
            return Head(last, "the last row, after a clearing")
        return Head(None, "the conversation was cleared")
    if pointer.leaf not in links:
        return None
    if is_later or not pointer.explicit:
        if last is not None and _goes_on(links, pointer, last):
            return Head(last, "the last row, below the head record")
        if links.has_kept and pointer.leaf not in _said_last(links):
            return None
    return Head(pointer.leaf, "the head record")


def _goes_on(links: Links, pointer: Pointer, last: str) -> bool:
    """Whether the last row hangs below the leaf of a head record: by parents, or by the parallel calls of an answer.

    These fork the chain, and a plain head record on any part of the fork stands for all of it.
    """
    leaf = pointer.leaf
    if leaf is None or _hangs_under(links, last, leaf):
        return leaf is not None
    return not pointer.explicit and is_of_one_fork(links, leaf, last)


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
        for child in children.get(waiting.pop()):
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


def _said_last(links: Links) -> set[str]:
    """The prompts and answers with no other one below."""
    nearest: dict[str, str | None] = {}
    records = links.tree.records
    named: set[str] = set()
    for uuid, parent in links.parents.items():
        if parent is not None and parent != uuid and records[uuid].type in MESSAGE_TYPES:
            above = nearest_said(links, parent, nearest)
            if above is not None:
                named.add(above)
    return {uuid for uuid in links.parents if records[uuid].type in MESSAGE_TYPES and uuid not in named}


def _newest_said(links: Links) -> str | None:
    """The latest prompt or answer by time under which a leaf hangs. Sidechain rows do not count."""
    named = {parent for uuid, parent in links.parents.items() if parent != uuid}
    nearest: dict[str, str | None] = {}
    best, latest = None, -1.0
    for leaf in links.parents:
        said = None if leaf in named else nearest_said(links, leaf, nearest)
        if said is not None and not links.tree.records[said].is_sidechain:
            when = milliseconds(links.tree.records[said].timestamp) or 0.0
            if when > latest:
                best, latest = said, when
    return best
