"""What parallel tool calls leave beside the chain, put back where the client puts it.

Parallel calls fork the chain, because each result hangs on the row of its own call and the next row on the result
that came last. To an answer belong the other rows of its message id; where it has calls also their results, what the
client itself wrote under these (attachments, meta and system rows), and results anywhere in the file for a call that
would stay open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from clew.records.record import Record
from clew.records.slim import CallIds, SlimHead
from clew.transcript.links import Links
from clew.transcript.tree import Tree


def with_rows_beside(links: Links, walked: list[str]) -> tuple[list[str], frozenset[str]]:
    """The chain with the rows beside it that belong to its answers, and which rows those are."""
    tree = links.tree
    groups = [*_groups(tree, walked)]
    if not groups:
        return walked, frozenset()
    places = _Places(tree, walked)
    after: dict[str, list[str]] = {}
    placed: set[str] = set()
    for group in groups:
        for uuid in group.beside:
            if uuid not in placed and uuid in links:
                placed.add(uuid)
                after.setdefault(places.place(uuid, group.on_chain), []).append(uuid)
    if not placed:
        return walked, frozenset()
    whole = []
    for uuid in walked:
        whole.append(uuid)
        if uuid in after:
            whole.extend(after[uuid])
    return whole, frozenset(placed)


def is_of_one_fork(links: Links, uuid: str, last: str) -> bool:
    """Whether parallel calls alone keep the last row from hanging below a row.

    That row is a row of an answer with several calls, a result of one, or what the client wrote under a result. The
    last row hangs under a call of the answer further up, or under another call or result of it.
    """
    records = links.tree.records
    at: str | None = uuid
    seen: set[str] = set()
    while at is not None and at in links and at not in seen and _is_of_the_client(records[at]):
        seen.add(at)
        at = links.parents[at]
    results: list[str] = []
    if at is not None and at in links and _is_result(records[at]):
        results = result_ids(records[at])
        at = links.parents[at]
    elif seen:
        return False
    if at is None or at not in links or records[at].type != "assistant" or _has_no_id(records[at]):
        return False
    rows = [row for row in _rows_of_answer(links.tree, at) if row in links]
    calling = {row: call_ids(records[row]) for row in rows}
    if len({call for calls in calling.values() for call in calls}) < 2:
        return False
    top, above = at, links.parents[at]
    while above is not None and calling.get(above) and above not in seen:
        seen.add(above)
        top, above = above, links.parents[above]
    branch = _child_above(links, last, top)
    if branch is None or top != at:
        return branch is not None
    return branch in calling or any(call in calling[at] and call not in results for call in result_ids(records[branch]))


def _child_above(links: Links, uuid: str, above: str) -> str | None:
    """The row right under `above` on the way up from `uuid`; None where the way does not lead there."""
    at = uuid
    seen: set[str] = set()
    while at in links and at not in seen:
        seen.add(at)
        parent = links.parents[at]
        if parent is None or parent == above:
            return at if parent else None
        at = parent
    return None


class _Places:
    """Where a row beside the chain goes, by its place in the file.

    Between two rows of its answer it goes where it stands in the file; else behind the last of them, or behind the
    first when it was written before all of them.
    """

    def __init__(self, tree: Tree, walked: list[str]) -> None:
        self._ordinals = tree.ordinals
        self._walked = walked
        self._chain = [tree.ordinals[uuid] for uuid in walked]
        self._is_in_order = all(one < two for one, two in pairwise(self._chain))
        self._places = {} if self._is_in_order else {uuid: place for place, uuid in enumerate(walked)}

    def place(self, uuid: str, answer: list[str]) -> str:
        ordinal = self._ordinals[uuid]
        before = bisect_right(answer, ordinal, key=self._ordinals.__getitem__)
        if 0 < before < len(answer) and self._is_in_order:
            return self._walked[bisect_right(self._chain, ordinal) - 1]
        if before == len(answer) and not self._is_in_order:
            return max(answer, key=self._places.__getitem__)
        return answer[max(before - 1, 0)]


class _Group(msgspec.Struct):
    """One answer of the model: its rows and the results of its calls, on the chain and beside it."""

    on_chain: list[str]
    beside: list[str]
    """Both in file order."""


def _groups(tree: Tree, walked: list[str]) -> Iterator[_Group]:
    """The answers of the chain that have something beside it."""
    on_chain = set(walked)
    found = _Beside(tree, walked, on_chain)
    done: set[str] = set()
    for uuid in found.answers:
        if uuid in done:
            continue
        members = dict.fromkeys(_rows_of_answer(tree, uuid))
        done.update(members)
        if _has_no_id(tree.records[uuid]):
            continue
        calls = {call for row in members for call in found.calls_of(row)}
        if calls:
            found.add_results(members)
            found.add_strays(calls, members)
            _add_followers(tree, members, on_chain)
        beside = [member for member in members if member not in on_chain]
        if beside:
            answer = sorted((m for m in members if m in on_chain), key=tree.ordinals.__getitem__)
            yield _Group(answer, sorted(beside, key=tree.ordinals.__getitem__))


def _rows_of_answer(tree: Tree, uuid: str) -> list[str]:
    """The rows that share the message id of an assistant row, itself included, in file order."""
    message = tree.records[uuid].message
    rows = tree.siblings.get(message.id, ()) if message and message.id else ()
    return [row for row in rows if tree.records[row].type == "assistant"] or [uuid]


def _has_no_id(record: Record) -> bool:
    """Whether nothing can be found to belong to this answer: an empty id is one, none is not."""
    return record.message is None or record.message.id is None


class _Beside:
    """What stands beside a chain, and the answers on the chain that it could belong to: most have nothing, and cost
    nothing.
    """

    def __init__(self, tree: Tree, walked: list[str], on_chain: set[str]) -> None:
        self._tree = tree
        self._records = tree.records
        self._calls: dict[str, Sequence[str]] = {}
        self._results: dict[str, Sequence[str]] = {}
        """By row: a third of the questions is asked again, and each answer decodes the content of the row."""
        self._strays: dict[str, list[str]] = {}
        self._looked_up: set[str] = set()
        self._above: dict[str, str | None] = {}
        beside = [uuid for uuid in tree.records if uuid not in on_chain]
        touched = {answer for uuid in beside for answer in self._answers_near(tree, uuid, on_chain)}
        if self._strays:
            touched.update(self._answers_with_open_calls(walked))
        self.answers = [uuid for uuid in walked if uuid in touched]

    def _answers_near(self, tree: Tree, uuid: str, on_chain: set[str]) -> Iterator[str]:
        """Answers of the chain whose message id a row beside it shares, or that it hangs under with rows of the
        client between.

        A result that hangs on another row than that of its call is remembered as a stray.
        """
        record, parent = self._records[uuid], tree.parents[uuid]
        if record.type == "assistant":
            yield from self._rows_on_chain(tree, uuid, on_chain)
            return
        if record.type == "user":
            results = self.results_of(uuid)
            if results:
                own = self.calls_of(parent) if parent in self._records else ()
                for call in results:
                    if call not in own:
                        self._strays.setdefault(call, []).append(uuid)
            elif not record.is_meta:
                return
        if parent is not None and parent in self._records:
            if parent not in on_chain:
                # A row under a row beside the chain comes with that one; only a row of the same answer leads back.
                if self._records[parent].type == "assistant":
                    yield from self._rows_on_chain(tree, parent, on_chain)
                return
            answer = self._answer_above(tree, parent, on_chain)
            if answer is not None:
                yield answer

    def _answer_above(self, tree: Tree, uuid: str, on_chain: set[str]) -> str | None:
        """The answer of the chain that a row of the chain hangs under, with rows of the client and results between."""
        way: list[str] = []
        at: str | None = uuid
        while at is not None and at in on_chain and at not in self._above:
            self._above[at] = None
            way.append(at)
            record = self._records[at]
            if record.type == "assistant":
                self._above[at] = at
                break
            at = tree.parents[at] if _may_follow(record) else None
        found = self._above.get(at) if at is not None else None
        self._above.update(dict.fromkeys(way, found))
        return found

    def _rows_on_chain(self, tree: Tree, uuid: str, on_chain: set[str]) -> Iterator[str]:
        """The rows of an answer that are on the chain; given once, however many of its rows stand beside it."""
        if uuid not in self._looked_up:
            rows = _rows_of_answer(tree, uuid)
            self._looked_up.update(rows)
            yield from (row for row in rows if row in on_chain)

    def _answers_with_open_calls(self, walked: list[str]) -> Iterator[str]:
        answered: set[str] = set()
        for uuid in walked:
            if self._records[uuid].type == "user":
                answered.update(self.results_of(uuid))
        for call in answered:
            self._strays.pop(call, None)
        for uuid in walked:
            record = self._records[uuid]
            if record.type == "assistant" and any(call in self._strays for call in self.calls_of(uuid)):
                yield uuid

    def calls_of(self, uuid: str) -> Sequence[str]:
        """The ids of the tool calls in a row."""
        calls = self._calls.get(uuid)
        if calls is None:
            calls = self._calls[uuid] = tuple(call_ids(self._records[uuid]))
        return calls

    def results_of(self, uuid: str) -> Sequence[str]:
        """The ids of the calls that a row answers."""
        results = self._results.get(uuid)
        if results is None:
            results = self._results[uuid] = tuple(result_ids(self._records[uuid]))
        return results

    def add_results(self, members: dict[str, None]) -> None:
        """Adds the results that hang on the rows of an answer."""
        for row in list(members):
            for child in self._tree.children.get(row):
                if self._records[child].type == "user" and self.results_of(child):
                    members[child] = None

    def add_strays(self, calls: set[str], members: dict[str, None]) -> None:
        """Adds the strays that answer calls of an answer which neither the chain nor the rows found so far answer."""
        wanted = {call for call in calls if call in self._strays}
        if wanted:
            wanted -= {call for member in members for call in self.results_of(member)}
        for call in wanted:
            members.update(dict.fromkeys(self._strays[call]))


def _may_follow(record: Record) -> bool:
    """Whether rows under this one may belong to the answer above it: a result, or a row of the client."""
    return _is_of_the_client(record) or _is_result(record)


def _add_followers(tree: Tree, members: dict[str, None], on_chain: set[str]) -> None:
    """Adds what the client itself wrote under an answer and its results.

    What stands beside the chain is left out where the conversation once went on below it: it belongs to what was said
    there.
    """
    waiting = list(members)
    while waiting:
        for child in tree.children.get(waiting.pop()):
            if child in members or not _is_of_the_client(tree.records[child]):
                continue
            if child in on_chain:
                members[child] = None
                waiting.append(child)
            else:
                members.update(dict.fromkeys(_followers(tree, child, members)))


def _followers(tree: Tree, first: str, members: dict[str, None]) -> list[str]:
    """A row of the client and those under it; none where another row that is no member hangs under one of them."""
    found, seen, waiting = [], {first}, [first]
    while waiting:
        at = waiting.pop()
        found.append(at)
        for child in tree.children.get(at):
            if child in members or child in seen:
                continue
            if not _is_of_the_client(tree.records[child]):
                return []
            seen.add(child)
            waiting.append(child)
    return found


def _is_of_the_client(record: Record) -> bool:
    """Whether the client wrote this row by itself: no prompt, no answer, and no compaction."""
    if record.is_sidechain:
        return False
    if record.type == "user":
        return record.is_meta is True
    return record.type == "attachment" or (record.type == "system" and record.subtype != "compact_boundary")


def _is_result(record: Record) -> bool:
    return record.type == "user" and bool(result_ids(record))


_decode_ids = msgspec.json.Decoder(str | tuple[CallIds, ...]).decode


def call_ids(record: Record) -> list[str]:
    """The ids of the tool calls in an assistant row."""
    blocks = _blocks(record)
    if blocks is None:
        return _odd_ids(record, "tool_use", "id")
    return [block.id for block in blocks if block.type == "tool_use" and block.id is not None]


def result_ids(record: Record) -> list[str]:
    """The ids of the calls that a user row answers."""
    blocks = _blocks(record)
    if blocks is None:
        return _odd_ids(record, "tool_result", "tool_use_id")
    return [block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id is not None]


def _blocks(record: Record) -> Sequence[CallIds] | None:
    """The blocks of a row by their ids alone, or None when they are written in an odd way."""
    head = record.message
    if head is None:
        return ()
    if isinstance(head, SlimHead):
        ids = head.ids
    else:
        try:
            ids = _decode_ids(head.content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    return () if ids is None or isinstance(ids, str) else ids


def _odd_ids(record: Record, kind: str, field: str) -> list[str]:
    content = record.content()
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [value for block in blocks if block.get("type") == kind and isinstance(value := block.get(field), str)]
