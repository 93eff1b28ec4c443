"""The chain: the records from the root to a row, as the client puts them in order.

    walk up        by parents, to the root or to a compaction boundary (clew.transcript.walk)
    put back       what parallel tool calls left beside the chain

Parallel calls fork the chain, because each result hangs on the row of its own call and the next row on the result that came
last. The other rows of the same answer and their results are put back by file order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from clew.records.record import Record
from clew.transcript.links import Links, links_of
from clew.transcript.tree import Tree
from clew.transcript.walk import Repair, walk_up


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
    repairs: list[Repair] = []
    walked = list(walk_up(links, leaf, repairs))
    walked.reverse()
    whole, put_back = _put_back(links, walked)
    return Chain([tree.records[uuid] for uuid in whole], repairs, put_back)


def _put_back(links: Links, walked: list[str]) -> tuple[list[str], frozenset[str]]:
    """Adds the rows beside the chain that belong to its answers: other rows of one message id, and results of its calls."""
    tree = links.tree
    start = tree.ordinals[walked[0]] if walked[0] in tree.boundaries else 0
    places = _Places(tree, walked)
    after: dict[str, list[str]] = {}
    placed: set[str] = set()
    for group in _groups(tree, walked):
        for uuid in group.beside:
            if uuid not in placed and uuid in links and tree.ordinals[uuid] > start:
                placed.add(uuid)
                after.setdefault(places.place(uuid, group.on_chain), []).append(uuid)
    if not placed:
        return walked, frozenset()
    whole = []
    for uuid in walked:
        whole.append(uuid)
        whole.extend(after.get(uuid, ()))
    return whole, frozenset(placed)


class _Places:
    """Where a row beside the chain goes, by its place in the file.

    Between two rows of its answer it goes where it stands in the file; else behind the last of them, or behind the first when
    it was written before all of them.
    """

    def __init__(self, tree: Tree, walked: list[str]) -> None:
        self._ordinals = tree.ordinals
        self._walked = walked
        self._chain = [tree.ordinals[uuid] for uuid in walked]
        self._is_in_order = all(one < two for one, two in pairwise(self._chain))

    def place(self, uuid: str, answer: list[str]) -> str:
        ordinal = self._ordinals[uuid]
        before = bisect_right(answer, ordinal, key=self._ordinals.__getitem__)
        if 0 < before < len(answer) and self._is_in_order:
            return self._walked[bisect_right(self._chain, ordinal) - 1]
        return answer[max(before - 1, 0)]


class _Group(msgspec.Struct):
    """One answer of the model: its rows and the results of its calls, on the chain and beside it."""

    on_chain: list[str]
    beside: list[str]
    """Both in file order."""


def _groups(tree: Tree, walked: list[str]) -> Iterator[_Group]:
    """The answers of the chain that have something beside it."""
    on_chain = set(walked)
    strays = _Strays(tree, walked, on_chain)
    done: set[str] = set()
    for uuid in walked:
        record = tree.records[uuid]
        if record.type != "assistant" or uuid in done:
            continue
        message_id = record.message.id if record.message else None
        rows = tree.siblings.get(message_id, ()) if message_id else (uuid,)
        members = {row: None for row in rows if tree.records[row].type == "assistant"}
        done.update(members)
        if not strays.may_answer(members) and not _has_something_beside(tree, members, on_chain):
            continue
        calls = {call for row in members for call in call_ids(tree.records[row])}
        if calls:
            _add_results(tree, members)
            strays.answer(calls, members)
            _add_followers(tree, members)
        beside = [member for member in members if member not in on_chain]
        if beside:
            answer = sorted((m for m in members if m in on_chain), key=tree.ordinals.__getitem__)
            yield _Group(answer, sorted(beside, key=tree.ordinals.__getitem__))


def _has_something_beside(tree: Tree, rows: dict[str, None], on_chain: set[str]) -> bool:
    """Whether any row that could belong to the answer stands beside the chain; most answers have none, and are done."""
    children, records = tree.children, tree.records
    waiting = list(rows)
    while waiting:
        uuid = waiting.pop()
        if uuid not in on_chain:
            return True
        is_call = uuid in rows
        for child in children.get(uuid, ()):
            if (is_call and records[child].type == "user" and child not in rows) or _is_of_the_client(records[child]):
                waiting.append(child)
    return False


def _add_results(tree: Tree, members: dict[str, None]) -> None:
    """Adds the results that hang on the rows of an answer."""
    for row in list(members):
        for child in tree.children.get(row, ()):
            if _is_result(tree.records[child]):
                members[child] = None


def _add_followers(tree: Tree, members: dict[str, None]) -> None:
    """Adds what the client itself wrote under an answer and its results."""
    waiting = list(members)
    while waiting:
        for child in tree.children.get(waiting.pop(), ()):
            if child not in members and _is_of_the_client(tree.records[child]):
                members[child] = None
                waiting.append(child)


def _is_of_the_client(record: Record) -> bool:
    """Whether the client wrote this row by itself: no prompt, no answer, and no compaction."""
    if record.is_sidechain:
        return False
    if record.type == "user":
        return record.is_meta is True
    return record.type == "attachment" or (record.type == "system" and record.subtype != "compact_boundary")


class _Strays:
    """Results beside the chain that hang on nothing of their answer: they count where a call would be open without them."""

    def __init__(self, tree: Tree, walked: list[str], on_chain: set[str]) -> None:
        self._records = tree.records
        self._by_call: dict[str, list[str]] = {}
        self._rows: set[str] = set()
        self._answered: set[str] = set()
        for uuid, record in tree.records.items():
            if uuid not in on_chain and record.type == "user":
                for call in result_ids(record):
                    self._by_call.setdefault(call, []).append(uuid)
        for uuid in walked if self._by_call else ():
            record = tree.records[uuid]
            if record.type == "assistant":
                if any(call in self._by_call for call in call_ids(record)):
                    self._rows.add(uuid)
            elif record.type == "user":
                self._answered.update(call for call in result_ids(record) if call in self._by_call)

    def may_answer(self, rows: dict[str, None]) -> bool:
        """Whether a call in one of these rows of the chain has a result beside it."""
        return not self._rows.isdisjoint(rows)

    def answer(self, calls: set[str], members: dict[str, None]) -> None:
        """Adds the strays that answer calls of an answer which neither the chain nor the rows found so far answer."""
        wanted = {call for call in calls if call in self._by_call and call not in self._answered}
        if wanted:
            wanted -= {call for member in members for call in result_ids(self._records[member])}
        for call in wanted:
            members.update(dict.fromkeys(self._by_call[call]))


def _is_result(record: Record) -> bool:
    return record.type == "user" and bool(result_ids(record))


def call_ids(record: Record) -> list[str]:
    """The ids of the tool calls in an assistant row."""
    return _ids(record, b'"tool_use"', "tool_use", "id")


def result_ids(record: Record) -> list[str]:
    """The ids of the calls that a user row answers."""
    return _ids(record, b'"tool_result"', "tool_result", "tool_use_id")


class _Ids(msgspec.Struct, gc=False):
    type: str | None = None
    id: str | None = None
    tool_use_id: str | None = None


_decode_ids = msgspec.json.Decoder(str | list[_Ids]).decode


def _ids(record: Record, mark: bytes, kind: str, field: str) -> list[str]:
    # Most rows hold no call; a look at the bytes saves decoding them. Every writer seen spells the name without escapes.
    if mark not in record.raw or record.message is None:
        return []
    try:
        blocks = _decode_ids(record.message.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _odd_ids(record, kind, field)
    if isinstance(blocks, str):
        return []
    return [value for block in blocks if block.type == kind and (value := getattr(block, field)) is not None]


def _odd_ids(record: Record, kind: str, field: str) -> list[str]:
    content = record.content()
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [value for block in blocks if block.get("type") == kind and isinstance(value := block.get(field), str)]
