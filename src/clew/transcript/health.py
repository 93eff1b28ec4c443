"""What is wrong with a log and its tree, and what the client makes of it.

`KINDS` is the list of everything that is looked for. *Damage*: something is lost, or the client reads it otherwise than
it was meant. *Oddity*: the client copes, and so do we, but it may tell why a conversation looks as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from clew.records.record import Malformed, Record, Row
from clew.records.system import CompactMetadata, System
from clew.transcript.beside import call_ids, result_ids
from clew.transcript.chain import Chain, chain_to
from clew.transcript.head import Head, find_head
from clew.transcript.links import Links, links_of
from clew.transcript.prompts import is_prompt
from clew.transcript.times import milliseconds
from clew.transcript.tree import CHAIN_TYPES, MESSAGE_TYPES, Tree

DAMAGE, ODDITY = "damage", "oddity"

KINDS: dict[str, str] = {
    "malformed": DAMAGE,  # A line that is no record.
    "no_uuid": DAMAGE,  # A row of the conversation without an id: of all these the client keeps the last.
    "no_content": ODDITY,  # A prompt or an answer that holds neither a text nor blocks: it is only walked through.
    "uuid_reused": DAMAGE,  # Two different rows under one uuid: the content of the first is never seen.
    "duplicate_uuid": ODDITY,  # The same row twice.
    "lost_parent": DAMAGE,  # A row hangs on one that is not in the log.
    "parent_cycle": DAMAGE,  # Rows that hang on each other.
    "second_root": ODDITY,  # A conversation begins anew without a compaction, as after a rewind to the first prompt.
    "open_call": ODDITY,  # A tool was called and nothing in the log is its result.
    "orphan_result": ODDITY,  # A result of a call that is not in the log.
    "message_id_reused": DAMAGE,  # One message id in two turns: the client joins both into one answer.
    "unknown_head": ODDITY,  # The head record names a row that is not there, so it does not count.
    "newer_branch": ODDITY,  # The conversation does not go on from its newest row.
    "broken_compaction": DAMAGE,  # What a compaction says it kept is not there, or not as it says.
    "not_resumable": DAMAGE,  # The client answers that it finds no conversation.
    "nothing_said": ODDITY,  # No prompt and no answer is in the log.
}
"""Everything that is looked for, and how bad it is."""

REWOUND = "00000000-0000-0000-0000-000000000000"
"""The interactive client names this row in its head record after a rewind; it is never there, and that is no fault."""
NAMES_MAX = 5
"""So many ids a message names; the others are counted."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong. `line` counts from 1, and is 0 where the whole log is meant; `offset` goes with it."""

    kind: str
    message: str
    uuid: str | None = None
    line: int = 0
    offset: int = 0

    @property
    def severity(self) -> str:
        """`damage` or `oddity`."""
        return KINDS[self.kind]


class _Log(msgspec.Struct):
    """What the checks look at, made once."""

    rows: list[Record]
    """Rows of the conversation in file order, every writing of a uuid."""
    tree: Tree
    links: Links
    head: Head
    chain: Chain


def examine(rows: Iterable[Row]) -> list[Finding]:
    """Everything that is wrong, by line. Takes linear time, and memory for the rows of the conversation."""
    findings: list[Finding] = []
    tree = Tree()
    spoken: list[Record] = []
    for row in rows:
        if isinstance(row, Malformed):
            findings.append(_malformed(row))
        records = (row,) if isinstance(row, Record) else row.loaded if isinstance(row, Malformed) else ()
        tree.add(records)
        spoken.extend(record for record in records if record.type in CHAIN_TYPES)
    links = links_of(tree)
    head = find_head(tree, links)
    log = _Log(spoken, tree, links, head, chain_to(tree, head.uuid, links))
    for check in _CHECKS:
        findings.extend(check(log))
    # Stable: findings of one line keep the order of the checks.
    return sorted(findings, key=lambda finding: (finding.line, finding.offset))


def _malformed(row: Malformed) -> Finding:
    counts = len(row.loaded), len(row.recoverable)
    says = "" if counts == (0, 0) else f"; {counts[0]} of {max(counts)} whole records in it are read"
    return Finding("malformed", row.reason + says, None, row.line.number, row.line.position)


def _find(kind: str, record: Record, message: str) -> Finding:
    return Finding(kind, message, record.uuid, record.line.number, record.line.position)


# ---- uuids and parents ----


def _unplaced(log: _Log) -> Iterator[Finding]:
    for record in log.tree.unplaced:
        says = (
            "it is the last of these, and kept" if record is log.tree.records.get("") else "a later one takes its place"
        )
        yield _find("no_uuid", record, f"a row of type {record.type} has no uuid: {says}")


def _contentless(log: _Log) -> Iterator[Finding]:
    for record in log.tree.contentless:
        says = "rows under it hang on the row above it" if record.uuid else "nothing hangs on it"
        yield _find("no_content", record, f"a row of type {record.type} has no content that could be sent: {says}")


def _duplicates(log: _Log) -> Iterator[Finding]:
    # Rows without a uuid share the empty one; those are told as such.
    twice = set(log.tree.duplicates) - {""}
    first: dict[str, Record] = {}
    for record in log.rows if twice else ():
        uuid = record.uuid or ""
        if uuid not in twice:
            continue
        if uuid not in first:
            first[uuid] = record
        elif first[uuid].raw.strip() == record.raw.strip():
            yield _find("duplicate_uuid", record, f"the same row as in line {first[uuid].line.number}")
        else:
            where = first[uuid].line.number
            yield _find("uuid_reused", record, f"not the row of line {where}, but it has its uuid and takes its place")


def _lost_parents(log: _Log) -> Iterator[Finding]:
    onto = {repair.uuid: repair.onto for repair in log.chain.repairs}
    on_chain = {record.uuid for record in log.chain.records}
    for uuid, parent in log.tree.parents.items():
        parent = log.links.parents.get(uuid, parent)
        if parent is None or parent in log.tree.records:
            continue
        if uuid in onto:
            place = onto[uuid]
            says = f"the client hangs it on {place}" if place else "the conversation begins here"
        else:
            says = "the conversation begins here" if uuid in on_chain else "it is not in the conversation"
        yield _find("lost_parent", log.tree.records[uuid], f"its parent {parent} is not in the log: {says}")


def _cycles(log: _Log) -> Iterator[Finding]:
    """Each cycle once, at the row of it that stands first."""
    parents, places = log.tree.parents, log.tree.ordinals
    onto = {repair.uuid: repair.onto for repair in log.chain.repairs}
    done: set[str] = set()
    for uuid in parents:
        walk: dict[str, None] = {}
        at: str | None = uuid
        while at is not None and at in parents and at not in done and at not in walk:
            walk[at] = None
            at = parents[at]
        done.update(walk)
        if at is None or at not in walk:
            continue
        names = list(walk)
        cycle = sorted(names[names.index(at) :], key=places.__getitem__)
        cut = next((name for name in cycle if name in onto), None)
        says = f"; the client hangs {cut} on {onto[cut] or 'nothing'}" if cut else ""
        yield _find("parent_cycle", log.tree.records[cycle[0]], f"{_named(cycle, 'row')} in a cycle of parents{says}")


def _second_roots(log: _Log) -> Iterator[Finding]:
    first: Record | None = None
    for uuid, parent in log.tree.parents.items():
        record = log.tree.records[uuid]
        if parent is not None or record.is_sidechain or record.subtype == "compact_boundary":
            continue
        if first is None:
            first = record
            continue
        yield _find("second_root", record, f"a conversation begins here, and another one in line {first.line.number}")


# ---- calls and answers ----


def _calls(log: _Log) -> Iterator[Finding]:
    calls: dict[str, Record] = {}
    results: dict[str, Record] = {}
    for record in log.tree.records.values():
        if record.type == "assistant":
            calls.update((call, record) for call in call_ids(record))
        elif record.type == "user":
            results.update((call, record) for call in result_ids(record))
    for call, record in calls.items():
        if call not in results:
            yield _find("open_call", record, f"no result of the call {call} is in the log")
    for call, record in results.items():
        if call not in calls:
            yield _find("orphan_result", record, f"a result of {call}, a call that is not in the log")


def _message_ids(log: _Log) -> Iterator[Finding]:
    tree = log.tree
    turns: dict[str, str | None] = {}
    for message_id, rows in tree.siblings.items():
        if len(rows) == 1:
            continue
        first = _turn_of(tree, rows[0], turns)
        for uuid in rows[1:]:
            if _turn_of(tree, uuid, turns) != first:
                where = tree.records[rows[0]].line.number
                says = f"its message id {message_id} is of another turn, in line {where}: both are read as one answer"
                yield _find("message_id_reused", tree.records[uuid], says)
                break


def _turn_of(tree: Tree, uuid: str, known: dict[str, str | None]) -> str | None:
    """The prompt that a row stands under; asked once for each row."""
    walk: dict[str, None] = {}
    at: str | None = uuid
    while at is not None and at in tree.parents and at not in known and at not in walk:
        walk[at] = None
        if tree.records[at].type in ("user", "attachment") and is_prompt(tree.records[at]):
            known[at] = at
            break
        at = tree.parents[at]
    turn = known.get(at) if at is not None else None
    for row in walk:
        known.setdefault(row, turn)
    return known.get(uuid)


# ---- compactions and the head ----


def _compaction(log: _Log) -> Iterator[Finding]:
    """Only the last boundary's note is used; what it says must hold."""
    tree = log.tree
    boundary = tree.records.get(tree.boundaries[-1]) if tree.boundaries else None
    view = boundary.view() if boundary else None
    note = view.compact_metadata if isinstance(view, System) else None
    if boundary is None or note is None:
        return
    wrong = _wrong_with(tree, note)
    if wrong:
        yield _find("broken_compaction", boundary, f"the note of kept rows does not hold: {wrong}")


def _wrong_with(tree: Tree, note: CompactMetadata) -> str:
    messages, segment = note.preserved_messages, note.preserved_segment
    if messages is not None:
        lost = [uuid for uuid in messages.uuids if uuid not in tree.records]
        if lost:
            return f"{_named(lost, 'row')} not in the log, so none of its rows stays in the conversation"
        return _wrong_anchor(tree, messages.anchor_uuid) if messages.uuids else ""
    if segment is None:
        return ""
    at, seen = segment.tail_uuid, set[str]()
    while at is not None and at in tree.records and at not in seen:
        if at == segment.head_uuid:
            return _wrong_anchor(tree, segment.anchor_uuid)
        seen.add(at)
        at = tree.parents[at]
    return f"no way leads from its tail {segment.tail_uuid} up to its head {segment.head_uuid}"


def _wrong_anchor(tree: Tree, anchor: str | None) -> str:
    return "" if anchor in tree.records else f"the row to hang them on, {anchor}, is not in the log"


def _head(log: _Log) -> Iterator[Finding]:
    pointer = log.tree.pointer
    if pointer is not None and pointer.leaf not in (None, REWOUND) and pointer.leaf not in log.links:
        is_gone = pointer.leaf in log.tree.records
        says = "was taken out by a compaction" if is_gone else "is not in the log"
        yield Finding("unknown_head", f"the last head record names {pointer.leaf}, which {says}: it does not count")
    if log.head.refused:
        is_said = any(record.type in MESSAGE_TYPES for record in log.tree.records.values())
        kind = "not_resumable" if is_said else "nothing_said"
        yield Finding(kind, f"the client finds no conversation: {log.head.why}")


def _newer_branch(log: _Log) -> Iterator[Finding]:
    if log.head.uuid is None:
        return
    on_chain = {record.uuid for record in log.chain.records}
    latest = max((_time(record) for record in log.chain.records), default=0.0)
    newest: Record | None = None
    for uuid in log.links.parents:
        record = log.tree.records[uuid]
        if record.type in MESSAGE_TYPES and uuid not in on_chain and not record.is_sidechain and _time(record) > latest:
            newest, latest = record, _time(record)
    if newest is not None:
        says = f"said at {newest.timestamp} on another branch, after everything in the conversation, which goes on from"
        yield _find("newer_branch", newest, f"{says} {log.head.uuid}: {log.head.why}")


def _time(record: Record) -> float:
    return milliseconds(record.timestamp) or 0.0


def _named(uuids: list[str], what: str) -> str:
    """Some of the ids, and how many they are."""
    shown = ", ".join(uuids[:NAMES_MAX]) + (", …" if len(uuids) > NAMES_MAX else "")
    return f"{len(uuids)} {what}{'s' if len(uuids) > 1 else ''} ({shown})"


_CHECKS: tuple[Callable[[_Log], Iterator[Finding]], ...] = (
    _unplaced, _contentless, _duplicates, _lost_parents, _cycles, _second_roots, _calls, _message_ids, _compaction,
    _head, _newer_branch,
)  # fmt: skip
