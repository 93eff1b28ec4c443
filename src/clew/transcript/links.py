"""Who hangs on whom once the compactions of a log are applied.

A compaction appends a boundary, a summary, and the note which older rows stay in the conversation. As long as no such
note is in the log nothing changes: the boundary is a new root. With one, the client does this when it loads
(measured):

    before   1 <- 2 <- 3 <- 4      5 boundary <- 6 summary <- 7        note of 5: keep 3..4, anchor 6
    after    5 <- 6 <- 3 <- 4 <- 7                                     1 and 2 are gone; rows under them hang on 4

Only the last boundary's note is used, on the parents as they were written. A note that does not hold (a row is
missing, the head is no ancestor of the tail) changes nothing. If an earlier boundary has a note and the last one has
none, everything before the last one is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from clew.records.record import Record
from clew.records.system import CompactMetadata, System
from clew.transcript.tree import Children, Tree


class Links(msgspec.Struct, frozen=True):
    """The parents to walk by. Rows that a compaction took out of the conversation are not in it."""

    tree: Tree
    parents: Mapping[str, str | None]
    has_kept: bool = False
    """Whether older rows were kept by the note of a compaction, and hang elsewhere than they were written."""

    def __contains__(self, uuid: object) -> bool:
        return uuid in self.parents

    def children(self) -> Children:
        """Rows by the row they hang on, in file order."""
        if self.parents is self.tree.parents:
            return self.tree.children
        return Children(self.parents)


def links_of(tree: Tree) -> Links:
    """Applies the compactions of the log. Without a note of kept rows these are the parents of the tree itself."""
    notes = {uuid: _note(tree.records[uuid]) for uuid in tree.boundaries if uuid in tree.records}
    if not any(_has_note(note) for note in notes.values()):
        return Links(tree, tree.parents)
    last = next(reversed(notes))
    note = notes[last]
    kept: list[str] = []
    anchor: str | None = None
    changed: dict[str, str | None] = {}
    if note is not None and _has_note(note):
        found = _kept(tree, note)
        if found is None:
            return Links(tree, tree.parents)
        kept, anchor = found
        changed = _moved(tree, kept, anchor)
    return Links(tree, _pruned(tree, last, kept, changed), has_kept=bool(kept))


def _note(record: Record) -> CompactMetadata | None:
    view = record.view()
    return view.compact_metadata if isinstance(view, System) else None


def _has_note(note: CompactMetadata | None) -> bool:
    return note is not None and (note.preserved_messages is not None or note.preserved_segment is not None)


def _kept(tree: Tree, note: CompactMetadata) -> tuple[list[str], str | None] | None:
    """The rows that stay and the row they follow, or None when the note does not hold."""
    messages, segment = note.preserved_messages, note.preserved_segment
    if messages is not None:
        uuids = list(messages.uuids)
        holds = messages.anchor_uuid is not None and all(uuid in tree.records for uuid in uuids)
        return (uuids, messages.anchor_uuid) if holds else None
    if segment is None or segment.tail_uuid is None:
        return None
    uuids = []
    seen: set[str] = set()
    at: str | None = segment.tail_uuid
    while at is not None and at in tree.records and at not in seen:
        seen.add(at)
        uuids.append(at)
        if at == segment.head_uuid:
            return uuids[::-1], segment.anchor_uuid
        at = tree.parents[at]
    return None


def _moved(tree: Tree, kept: list[str], anchor: str | None) -> dict[str, str | None]:
    """New parents: each kept row hangs on the one before, the first on the anchor, and what hung on the anchor on the
    last.
    """
    if not kept:
        return {}
    moved: dict[str, str | None] = {child: kept[-1] for child in tree.children.get(anchor or "") if child not in kept}
    above = anchor
    for uuid in kept:
        moved[uuid] = above
        above = uuid
    return moved


def _pruned(tree: Tree, boundary: str, kept: list[str], changed: dict[str, str | None]) -> dict[str, str | None]:
    """All parents but those of rows before the boundary that were not kept; what hung on these hangs on the last kept
    row.
    """
    stays = set(kept)
    gone: set[str] = set()
    for uuid in tree.records:
        if uuid == boundary:
            break
        if uuid not in stays:
            gone.add(uuid)
    parents: dict[str, str | None] = {}
    for uuid, parent in tree.parents.items():
        if uuid in gone:
            continue
        parent = changed.get(uuid, parent)
        parents[uuid] = kept[-1] if kept and parent in gone and uuid not in stays else parent
    return parents
