"""The tree of a log: which record hangs on which.

Built in one pass over the records, in file order, and never rebuilt for a few more: `add` goes on where it was. It
keeps what deciding on the head needs and decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy

import msgspec

from clew.records.record import Record
from clew.records.slim import SlimHead
from clew.transcript.message import blocks_of

CHAIN_TYPES = frozenset({"user", "assistant", "attachment", "system"})
"""Rows of these types make up conversations. `progress` rows of older clients are only walked through."""
MESSAGE_TYPES = frozenset({"user", "assistant"})
"""Rows of these types are prompts and answers. One without a content that could be sent is only walked through, too."""


class Pointer(msgspec.Struct, frozen=True, gc=False):
    """A head record: the client's note of where the conversation goes on. `leaf` None is an empty conversation."""

    leaf: str | None
    explicit: bool
    ordinal: int
    """Its place among all records of the log."""


class Children:
    """The rows under each row, in file order. Most have one, which stands for itself: with a list for each, a long log
    would take a tenth more.
    """

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._under: dict[str, str | list[str]] = {}
        under = self._under
        for uuid, parent in parents.items():
            if parent is not None:
                first = under.setdefault(parent, uuid)
                if first is uuid:
                    continue
                if isinstance(first, str):
                    under[parent] = [first, uuid]
                else:
                    first.append(uuid)

    def __contains__(self, uuid: object) -> bool:
        return uuid in self._under

    def get(self, uuid: str) -> Sequence[str]:
        """The rows under this one; none where nobody names it."""
        found = self._under.get(uuid)
        return () if found is None else (found,) if isinstance(found, str) else found

    def several(self) -> Iterator[tuple[str, list[str]]]:
        """The rows that have more than one, with those."""
        return ((uuid, rows) for uuid, rows in self._under.items() if isinstance(rows, list))


class Tree:
    """Records by uuid with their parents, as the client's loader would hold them.

    A uuid that comes twice keeps the place of its first row and the content of its last. `parents` are resolved
    through progress rows that stand before the row, and through prompts and answers without content wherever these
    stand; a parent that is unknown stays named, so that a repair can be told from a root.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: dict[str, Record] = {}
        self.parents: dict[str, str | None] = {}
        self.ordinals: dict[str, int] = {}
        self.duplicates: list[str] = []
        self.unplaced: list[Record] = []
        """Rows of a conversation without a uuid: nothing can hang on them."""
        self.contentless: list[Record] = []
        """Prompts and answers without a content that could be sent: no rows of the tree."""
        self.pointer: Pointer | None = None
        self.last: str | None = None
        """The last row of a conversation in file order that is no sidechain row."""
        self.boundaries: list[str] = []
        self.siblings: dict[str, list[str]] = {}
        """Assistant rows by their message id, in file order."""
        self._passed: dict[str, str | None] = {}
        """What is walked through, with what it hangs on."""
        self._late: dict[str, str | None] = {}
        """Of these the ones that rows hang on which stand before them."""
        self._children: Children | None = None
        self._count = 0
        self.add(records)

    def add(self, records: Iterable[Record]) -> None:
        """Takes the next records of the log."""
        chain_types, passed, known = CHAIN_TYPES, self._passed, self.records
        self._children = None
        ordinal = self._count
        for record in records:
            ordinal += 1
            kind = record.type
            if kind in chain_types:
                if kind in MESSAGE_TYPES and not _has_content(record):
                    self._pass_over(record)
                    continue
                uuid = record.uuid
                if not uuid:
                    # The client keeps such rows under one key, so that the last one is left.
                    uuid = ""
                    self.unplaced.append(record)
                parent = record.parent_uuid or None
                if parent in passed:
                    parent = passed[parent]
                elif parent in known:
                    # The same text once: of a long log that is a tenth of what is held.
                    parent = record.parent_uuid = known[parent].uuid
                if uuid in self.records:
                    self.duplicates.append(uuid)
                self.records[uuid] = record
                self.parents[uuid] = parent
                self.ordinals[uuid] = ordinal
                if not record.is_sidechain:
                    self.last = uuid
                if kind == "assistant":
                    if record.message is not None and record.message.id:
                        message = record.message.id
                        if message in self.siblings:
                            self.siblings[message].append(uuid)
                        else:
                            self.siblings[message] = [uuid]
                elif record.subtype == "compact_boundary" and kind == "system":
                    self.boundaries.append(uuid)
                    # A compaction starts over: head records before it no longer count.
                    self.pointer = None
            elif kind == "progress" and record.uuid:
                above = record.parent_uuid or None
                passed[record.uuid] = passed.get(above, above) if above else None
            elif kind == "last-prompt":
                self._point(record, ordinal)
        self._count = ordinal
        if self._late:
            self._pass_late()

    def _pass_over(self, record: Record) -> None:
        """Takes a prompt or an answer without content: a row of that uuid which was there before stays."""
        self.contentless.append(record)
        if record.uuid and record.uuid not in self.records:
            above = record.parent_uuid or None
            self._passed[record.uuid] = self._late[record.uuid] = self._passed.get(above, above) if above else None

    def _pass_late(self) -> None:
        """Lets rows that stand before a contentless parent hang on what that one hangs on."""
        for uuid, parent in self.parents.items():
            seen: dict[str, None] = {}
            while parent in self._late and parent not in seen:
                seen[parent] = None
                parent = self._late[parent]
            if seen:
                self.parents[uuid] = parent
                # The next row that comes by goes one step, so that all of them together take linear time.
                self._late.update(dict.fromkeys(seen, parent))
        self._late.clear()

    def _point(self, record: Record, ordinal: int) -> None:
        leaf, explicit = record.leaf_uuid, record.explicit is True
        if isinstance(leaf, str) and leaf:
            known = self.pointer
            if known and known.explicit and known.leaf == leaf and not explicit:
                return
            self.pointer = Pointer(leaf, explicit, ordinal)
        elif leaf is None and explicit:
            self.pointer = Pointer(None, True, ordinal)

    def with_head(self, leaf: str | None) -> Tree:
        """The same rows as if an explicit head record stood behind them. They are shared: add to neither any more."""
        moved = copy(self)
        moved.pointer = Pointer(leaf, True, self._count + 1)
        return moved

    @property
    def children(self) -> Children:
        """Rows by the row they hang on; roots and rows of unknown parents are under no key of a record."""
        if self._children is None:
            self._children = Children(self.parents)
        return self._children

    def below(self, uuid: str) -> list[str]:
        """Every row that hangs under `uuid`, itself left out, nearest first."""
        children = self.children
        found: list[str] = []
        seen = {uuid}
        level = [uuid]
        while level:
            level = [child for parent in level for child in children.get(parent) if child not in seen]
            level = list(dict.fromkeys(level))
            seen.update(level)
            found.extend(level)
        return found

    def leaves(self) -> list[str]:
        """The rows that nobody names as parent, in file order. A row without a uuid is none."""
        named = set(self.parents.values())
        return [uuid for uuid in self.records if uuid and uuid not in named]

    def forks(self) -> dict[str, list[str]]:
        """The rows that more than one row hangs on, with those."""
        return {uuid: rows for uuid, rows in self.children.several() if uuid in self.records}


class _Typed(msgspec.Struct, gc=False):
    type: str | None = None


_decode_types = msgspec.json.Decoder(str | list[_Typed]).decode


def _has_content(record: Record) -> bool:
    """Whether a prompt or an answer has a content that could be sent. Most rows are told by their first bytes."""
    message = record.message
    if message is None:
        return False
    if isinstance(message, SlimHead):
        return message.ids is not None
    start = bytes(message.content) if len(message.content) < 4096 else bytes(memoryview(message.content)[:10])
    if start.startswith((b'[{"type":"', b'"')):
        return True
    try:
        blocks = _decode_types(message.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return blocks_of(record.content()) is not None
    return isinstance(blocks, str) or not blocks or any(block.type is not None for block in blocks)
