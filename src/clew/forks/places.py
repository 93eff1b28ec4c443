"""Where a point of a session stands: up to which row of which log, its own or an ancestor's, its conversation needs.

Nearly always that is the row of the point. Where the engine finds rows by their ids, the rows behind it say that it is
so, and the end of the log says where the conversation goes on, nothing else is read. What cannot be told so is told by
reading everything, and what is found then is tried: the fork has the conversation at the point, or there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from clew.engines.contract import Engine, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import Conflict, NotFound, UsageError
from clew.forks.kind import Parent
from clew.lineage import Ancestor, ForkPoint, ancestor_at, fork_point_of, head_at, inherited, must_be_there
from clew.records.codec import decode, decode_lines
from clew.records.line import Line
from clew.records.own import FORK_TYPE
from clew.records.record import Blank, Record, records_in
from clew.transcript.chain import chain_to
from clew.transcript.head import find_head
from clew.transcript.links import links_of
from clew.transcript.points import Point, parse_point
from clew.transcript.selectors.record import AtRecord
from clew.transcript.times import milliseconds
from clew.transcript.tree import CHAIN_TYPES, MESSAGE_TYPES, Tree

ROWS_MAX = 1_000
"""So many rows from the end the head is looked for; behind a longer turn the log is read."""
BYTES_MAX = 1024 * 1024
AHEAD_ROWS = 200
"""So many rows behind the point are looked at: a compaction keeps rows that stand shortly before it, and parallel calls
and their results stand together.
"""
AHEAD_BYTES = 256 * 1024

Lineage: TypeAlias = tuple[Ancestor, ...]
Find: TypeAlias = Callable[[LogKey, str], int | None]
"""Where a row with that id begins in a log; None where that is not known."""


def fork_point(parent: Parent, at: Point | str | None) -> ForkPoint:
    """Where a fork at this point, or at the head, leaves its parent. No later rows are inherited than it needs.

    Nothing is where the conversation is empty. Raises `NotFound` for a point that is not there.
    """
    engine, key = parent.engine, parent.key
    if engine.stat(key) is None:
        raise NotFound(
            f"nothing of {shown_path(parent.where)} is there to be forked", hint="list what is there: clew ls --all"
        )
    known = fork_point_of(engine, key)
    before = () if known is None else known.lineage
    point = parse_point(at) if isinstance(at, str) else at
    uuid = point.uuid if isinstance(point, AtRecord) else None
    if point is None and not parent.is_read:
        uuid = _quick_head(engine, key, before)
    found = None if uuid is None else _quickly(engine, key, before, uuid, engine.find_row)
    if found is None:
        parent.refresh()
        uuid, records = _conversation_at(parent, point)
        if uuid is None:
            return ForkPoint(key.session, None)
        found = _quickly(engine, key, before, uuid, _finder(parent)) or _tried(parent, before, uuid, records)
    return ForkPoint(key.session, found[-1].at, found)


def _conversation_at(parent: Parent, point: Point | None) -> tuple[str | None, list[Record]]:
    """The last row at the point that has an id, and all of the conversation."""
    head = parent.head
    if point is None and head.refused and parent.tree.records:
        raise NotFound(
            f"no conversation goes on in {parent.key.session}: {head.why}", hint="name the row to fork at, by its uuid"
        )
    records = parent.chain(point).records
    uuid = next((each.uuid for each in reversed(records) if each.uuid), None)
    if uuid is None and records:
        raise UsageError(
            f"no row of this conversation of {parent.key.session} has an id by which a fork could name it",
            hint=f"copy it instead: clew fork {parent.key.session} --kind copy",
        )
    return uuid, records


# By the ids of rows.


def _finder(parent: Parent) -> Find:
    """What the engine knows, and of the session's own log what was read."""

    def find(log: LogKey, uuid: str) -> int | None:
        known = parent.engine.find_row(log, uuid)
        if known is not None or log != parent.key or parent.inherits(uuid) or uuid not in parent.tree.records:
            return known
        return parent.tree.records[uuid].line.position

    return find


def _quickly(engine: Engine, key: LogKey, before: Lineage, uuid: str, find: Find) -> Lineage | None:
    """The lineage of a fork at that row, or None where the engine does not know its place, or other rows than those
    before it may be needed. The session's own log counts first.
    """
    for count in range(len(before), -1, -1):
        log = key if count == len(before) else LogKey(key.project, before[count].session)
        end = None if count == len(before) else before[count].end
        position = find(log, uuid)
        if position is None or (end is not None and position >= end):
            continue
        if end is not None:
            must_be_there(engine, key, before[count])
        row = _row_at(engine, log, position)
        if row is None or row.uuid != uuid or not _needs_no_later(engine, log, before[:count], row, end, find):
            return None
        return (*before[:count], ancestor_at(engine, log, uuid, row.line))
    return None


def _needs_no_later(engine: Engine, log: LogKey, before: Lineage, row: Record, end: int | None, find: Find) -> bool:
    """Whether the conversation at this row is what the rows up to it say. What stands behind `end` is of no matter."""
    uuid, line = row.uuid or "", row.line
    if row.type not in MESSAGE_TYPES or uuid not in Tree([row]).records:
        return False
    if row.is_sidechain or row.is_compact_summary or milliseconds(row.timestamp) is None:
        return False
    if row.parent_uuid:
        above = _record_of(engine, log, before, row.parent_uuid, find)
        if above is None or (above[0] == log and above[1].line.position >= line.position):
            return False
    later, size = {uuid}, 0
    for count, ahead in enumerate(engine.read(log, start=line.position, end=end)):
        size += ahead.size
        if count > AHEAD_ROWS or size > AHEAD_BYTES + line.size:
            break
        other = decode(ahead)
        if count == 0 or not isinstance(other, Record):
            continue
        if other.subtype == "compact_boundary" or other.uuid == uuid:
            return False
        if other.type in CHAIN_TYPES and not other.is_sidechain:
            # What hangs further up may belong beside the conversation, as a result or a part of an answer does.
            if other.parent_uuid not in later:
                return False
            later.add(other.uuid or "")
    return True


def _record_of(engine: Engine, log: LogKey, before: Lineage, uuid: str, find: Find) -> tuple[LogKey, Record] | None:
    """A row by its id, in this log or above, and which log it is in."""
    for each in (log, *(LogKey(log.project, ancestor.session) for ancestor in reversed(before))):
        position = find(each, uuid)
        row = None if position is None else _row_at(engine, each, position)
        if row is not None:
            return each, row
    return None


def _row_at(engine: Engine, key: LogKey, position: int) -> Record | None:
    """The record that begins there; None for anything else."""
    try:
        line = next(engine.read(key, start=position, end=position + 1), None)
    except (Conflict, NotFound):
        return None
    row = None if line is None else decode(line)
    return row if isinstance(row, Record) else None


# By reading.


def _tried(parent: Parent, before: Lineage, uuid: str, records: list[Record]) -> Lineage:
    """The same by reading: up to the last row of the conversation, or everything that there is, whichever agrees."""
    engine, key, ordinals = parent.engine, parent.key, parent.tree.ordinals
    wanted = [each.uuid for each in records]
    last = max((each for each in wanted if each), key=ordinals.__getitem__)
    places = [place for place in (_place_of(engine, key, before, last), _place_of(engine, key, before, None)) if place]
    for count, log, line in places:
        lineage = (*before[:count], ancestor_at(engine, log, uuid, line))
        if _chain_of(engine, key, ForkPoint(key.session, uuid, lineage)) == wanted:
            return lineage
    raise UsageError(
        f"a fork of {key.session} at {uuid!r:.60} would have another conversation than stands there: its rows are in"
        " odd order",
        hint=f"copy it instead: clew fork {key.session} --at {uuid!r:.60} --kind copy",
    )


def _place_of(engine: Engine, key: LogKey, before: Lineage, uuid: str | None) -> tuple[int, LogKey, Line] | None:
    """The last line that has the row of that id, else the last line at all; and how many ancestors stand above it."""
    logs = [*((LogKey(key.project, each.session), each.end) for each in before), (key, None)]
    for count, (log, end) in reversed(list(enumerate(logs))):
        found = None
        for record in records_in(decode_lines(engine.read(log, end=end))):
            if uuid is None or record.uuid == uuid:
                found = record.line
        if found is not None:
            return count, log, found
    return None


def _chain_of(engine: Engine, key: LogKey, point: ForkPoint) -> list[str | None]:
    """The conversation that a fork at this point has."""
    tree = Tree(inherited(engine, key, point))
    tree.add(head_at(point))
    links = links_of(tree)
    return [each.uuid for each in chain_to(tree, find_head(tree, links).uuid, links).records]


# The head, from the end of the log.


def _quick_head(engine: Engine, key: LogKey, before: Lineage) -> str | None:
    """The head of a log by its last rows, or None where these do not settle it.

    They do from the row on that the last head record names, if the conversation goes on below it, or ends there.
    """
    try:
        tree = Tree(reversed([*_last_rows(engine, key, before)]))
    except (NotFound, Conflict):
        return None
    pointer, last = tree.pointer, tree.last
    if tree.boundaries or tree.contentless or pointer is None or last is None or pointer.leaf not in tree.records:
        return None
    head = find_head(tree).uuid
    is_end = head == last or (head == pointer.leaf and pointer.explicit and pointer.ordinal > tree.ordinals[last])
    # Of a row that came twice the first place counts, and the second row.
    is_once = head is None or engine.find_row(key, head) in (None, tree.records[head].line.position)
    is_said = {tree.records[each].type for each in (pointer.leaf, last)} <= MESSAGE_TYPES
    return head if is_end and is_said and is_once and not tree.records[pointer.leaf].is_compact_summary else None


def _last_rows(engine: Engine, key: LogKey, before: Lineage) -> Iterator[Record]:
    """The rows of a log from the end back to the leaf of its last head record, newest first; none where it is not met.

    Behind the own rows of a fork comes the row at its point, as its head.
    """
    rows: list[Record] = []
    leaf: str | None = None
    size = 0
    for line in engine.read_back(key):
        row, size = decode(line), size + line.size
        if isinstance(row, Blank):
            continue
        if not isinstance(row, Record) or len(rows) >= ROWS_MAX or size > BYTES_MAX:
            return
        if row.type == FORK_TYPE and line.position == 0:
            rows += _beginning(engine, key, before)
            break
        rows.append(row)
        if leaf is None and row.type == "last-prompt":
            if row.leaf_uuid is None:
                return
            leaf = row.leaf_uuid if isinstance(row.leaf_uuid, str) and row.leaf_uuid else None
        if leaf is not None and row.uuid == leaf:
            break
    yield from rows


def _beginning(engine: Engine, key: LogKey, before: Lineage) -> Iterator[Record]:
    """What stands before the own rows of a fork, newest first."""
    if not before:
        return
    must_be_there(engine, key, before[-1])
    found = _record_of(engine, LogKey(key.project, before[-1].session), before[:-1], before[-1].at, engine.find_row)
    if found is not None:
        yield from head_at(ForkPoint("", before[-1].at))
        yield found[1]
