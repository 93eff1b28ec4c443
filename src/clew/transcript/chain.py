"""The chain: the records from the root to a row, as the client puts them in order.

    walk up        parents; a compaction boundary ends it; a lost parent is repaired
    put back       what parallel tool calls left beside the chain

**A lost parent** (unknown, or in a cycle) is replaced by the newest row that is at most five seconds older, wherever it
stands; with none, the conversation starts there. **Parallel calls** fork the chain, because each result hangs on the row of its own call
and the next row on the result that came last; the other rows of the same answer and their results are put back by file order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from clew.records.record import Record
from clew.transcript.links import Links, links_of
from clew.transcript.times import milliseconds
from clew.transcript.tree import Tree

REPAIR_MS = 5_000
"""So much older may the row be that takes the place of a lost parent (measured: 5.000 s yes, 5.001 s no)."""


class Repair(msgspec.Struct, frozen=True):
    """A row whose parent was lost, and the row it was hung on; None: the conversation starts there."""

    uuid: str
    lost: str
    onto: str | None


class Chain(msgspec.Struct, frozen=True):
    """Records from the root to the leaf, with what was repaired and which rows were put back from beside the chain."""

    records: list[Record]
    repairs: list[Repair]
    put_back: frozenset[str]


def chain_to(tree: Tree, leaf: str | None, links: Links | None = None) -> Chain:
    """The chain that ends at `leaf`; empty for None and for a row that is not in the log or was compacted away."""
    links = links_of(tree) if links is None else links
    if leaf is None or leaf not in links:
        return Chain([], [], frozenset())
    walked, repairs = _walk(links, leaf)
    whole, put_back = _put_back(links, walked)
    return Chain([tree.records[uuid] for uuid in whole], repairs, put_back)


def _walk(links: Links, leaf: str) -> tuple[list[str], list[Repair]]:
    """Uuids from the root to the leaf."""
    records, parents = links.tree.records, links.parents
    walked: list[str] = []
    seen: set[str] = set()
    repairs: list[Repair] = []
    elder: _Elders | None = None
    at: str | None = leaf
    while at is not None:
        walked.append(at)
        seen.add(at)
        record = records[at]
        if record.subtype == "compact_boundary" and record.type == "system":
            break
        parent = parents[at]
        if parent is not None and (parent in seen or parent not in parents):
            if elder is None:
                elder = _Elders(links)
            lost, parent = parent, elder.before(record, seen)
            repairs.append(Repair(at, lost, parent))
        at = parent
    walked.reverse()
    return walked, repairs


class _Elders:
    """Rows by time, to find the newest one before a moment. Rows already taken are skipped for good, so all searches are linear."""

    def __init__(self, links: Links) -> None:
        timed = []
        for place, uuid in enumerate(links.parents):
            record = links.tree.records[uuid]
            when = milliseconds(record.timestamp)
            if when is not None and not record.is_sidechain:
                # Of rows of the same millisecond the client takes the one that stands first.
                timed.append((when, -place, uuid))
        timed.sort()
        self._parents = links.parents
        self._below: set[str] = set()
        self._times = [when for when, _, _ in timed]
        self._uuids = [uuid for _, _, uuid in timed]
        self._lower = list(range(len(timed)))

    def before(self, record: Record, taken: set[str]) -> str | None:
        moment = milliseconds(record.timestamp)
        if moment is None:
            return None
        at = bisect_right(self._times, moment) - 1
        passed = []
        while at >= 0 and (self._uuids[at] in taken or self._leads_to(self._uuids[at], taken)):
            passed.append(at)
            at = self._lower[at] - 1 if self._lower[at] < at else at - 1
        for place in passed:
            self._lower[place] = at + 1
        return self._uuids[at] if at >= 0 and moment - self._times[at] <= REPAIR_MS else None


    def _leads_to(self, uuid: str, taken: set[str]) -> bool:
        """Whether the row hangs under one that is taken: hanging that one on it would make a ring.

        The rows on such a way are remembered; the rows on another way are about to be walked by the chain itself.
        """
        way: list[str] = []
        at: str | None = uuid
        seen: set[str] = set()
        while at is not None and at in self._parents and at not in seen:
            if at in taken or at in self._below:
                self._below.update(way)
                return True
            seen.add(at)
            way.append(at)
            at = self._parents[at]
        return False


def _put_back(links: Links, walked: list[str]) -> tuple[list[str], frozenset[str]]:
    """Adds the rows beside the chain that belong to its answers: other rows of one message id, and results of its calls."""
    tree, on_chain = links.tree, set(walked)
    after: dict[str, list[str]] = {}
    placed: set[str] = set()
    for group in _groups(tree, walked):
        beside = [uuid for uuid in group.beside if uuid not in placed and uuid in links and uuid not in on_chain]
        placed.update(beside)
        _place(tree, group.on_chain, beside, after)
    if not placed:
        return walked, frozenset()
    whole = []
    for uuid in walked:
        whole.append(uuid)
        whole.extend(after.get(uuid, ()))
    return whole, frozenset(placed)


class _Group(msgspec.Struct):
    """One answer of the model: its rows and the results of its calls, on the chain and beside it."""

    on_chain: list[str]
    beside: list[str]


def _groups(tree: Tree, walked: list[str]) -> Iterator[_Group]:
    """The answers of the chain that have something beside it."""
    records, children = tree.records, tree.children
    on_chain = set(walked)
    by_source, by_call = _results(tree, on_chain, walked)
    done: set[str] = set()
    for uuid in walked:
        record = records[uuid]
        if record.type != "assistant" or uuid in done:
            continue
        message_id = record.message.id if record.message else None
        rows = dict.fromkeys(tree.siblings.get(message_id, ()) if message_id else (uuid,))
        rows = {row: None for row in rows if records[row].type == "assistant"}
        done.update(rows)
        results = dict.fromkeys(
            result
            for row in rows
            for result in (*children.get(row, ()), *by_source.get(row, ()), *by_call.get(row, ()))
            if _is_result(records[result])
        )
        members = [*rows, *results]
        beside = [member for member in members if member not in on_chain]
        if beside:
            yield _Group([m for m in members if m in on_chain], sorted(beside, key=tree.ordinals.__getitem__))


def _place(tree: Tree, on_chain: Iterable[str], beside: list[str], after: dict[str, list[str]]) -> None:
    """Each row beside the chain goes after the last row of its answer that stands before it in the file, else after the first."""
    anchors = sorted(on_chain, key=tree.ordinals.__getitem__)
    places = [tree.ordinals[anchor] for anchor in anchors]
    for uuid in beside:
        at = bisect_right(places, tree.ordinals[uuid]) - 1
        after.setdefault(anchors[max(at, 0)], []).append(uuid)


def _results(tree: Tree, on_chain: set[str], walked: list[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Result rows beside the chain by the assistant row they name as their source, and by the open call they answer."""
    by_source: dict[str, list[str]] = {}
    loose: list[str] = []
    for uuid, record in tree.records.items():
        if record.type == "user" and uuid not in on_chain:
            loose.append(uuid)
            if record.source_tool_assistant_uuid:
                by_source.setdefault(record.source_tool_assistant_uuid, []).append(uuid)
    return by_source, _answers_to_open_calls(tree, loose, walked) if loose else {}


def _answers_to_open_calls(tree: Tree, loose: list[str], walked: list[str]) -> dict[str, list[str]]:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    for uuid in walked:
        record = tree.records[uuid]
        if record.type == "assistant":
            for row in tree.siblings.get(record.message.id or "", (uuid,)) if record.message else (uuid,):
                calls.update((call, uuid) for call in call_ids(tree.records[row]))
        elif record.type == "user":
            answered.update(result_ids(record))
    open_calls = {call: uuid for call, uuid in calls.items() if call not in answered}
    found: dict[str, list[str]] = {}
    if open_calls:
        for uuid in loose:
            for call in result_ids(tree.records[uuid]):
                if call in open_calls:
                    found.setdefault(open_calls[call], []).append(uuid)
    return found


def _is_result(record: Record) -> bool:
    return record.type == "user" and b'"tool_result"' in record.raw and bool(result_ids(record))


def call_ids(record: Record) -> list[str]:
    """The ids of the tool calls in an assistant row."""
    return _ids(record, b'"tool_use"', "tool_use", "id")


def result_ids(record: Record) -> list[str]:
    """The ids of the calls that a user row answers."""
    return _ids(record, b'"tool_result"', "tool_result", "tool_use_id")


def _ids(record: Record, mark: bytes, kind: str, field: str) -> list[str]:
    # Most rows hold no call; a look at the bytes saves decoding them. Every writer seen spells the name without escapes.
    if mark not in record.raw:
        return []
    content = record.content()
    found = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            value = block.get(field)
            if isinstance(value, str):
                found.append(value)
    return found
