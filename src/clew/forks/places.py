"""Where a point of a session stands: in which log, its own or that of an ancestor, and at which byte of it.

Where the engine finds rows by their ids, and the end of the log says where the conversation goes on, nothing else of
the log is read. What cannot be told so is told by reading it.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.engines.contract import Engine, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import Conflict, DamagedData, NotFound
from clew.forks.kind import Parent
from clew.lineage import Ancestor, ForkPoint, ancestor_at, fork_point_of, must_be_there
from clew.records.codec import decode, decode_lines
from clew.records.line import Line
from clew.records.own import FORK_TYPE
from clew.records.record import Blank, Record, records_in
from clew.transcript.head import find_head
from clew.transcript.points import AtRecord, Point, parse_point
from clew.transcript.tree import MESSAGE_TYPES, Tree

ROWS_MAX = 1_000
"""So many rows from the end the head is looked for; behind a longer turn the log is read."""
BYTES_MAX = 1024 * 1024


def fork_point(parent: Parent, at: Point | str | None) -> ForkPoint:
    """Where a fork at this point leaves its parent, or at its head. What comes after the row is not inherited.

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
        uuid = quick_head(engine, key, before)
    found = None if uuid is None else _found(engine, key, before, uuid)
    if found is None:
        parent.refresh()
        uuid = _uuid_at(parent, point)
        if uuid is None:
            return ForkPoint(key.session, None)
        found = _found(engine, key, before, uuid) or _searched(engine, key, before, uuid)
    return ForkPoint(key.session, found[-1].at, found)


def _uuid_at(parent: Parent, point: Point | None) -> str | None:
    head = parent.head
    if point is None and head.refused and parent.tree.records:
        raise NotFound(
            f"no conversation goes on in {parent.key.session}: {head.why}", hint="name the row to fork at, by its uuid"
        )
    return head.uuid if point is None else next((each.uuid for each in reversed(parent.chain(point).records)), None)


def _found(engine: Engine, key: LogKey, before: tuple[Ancestor, ...], uuid: str) -> tuple[Ancestor, ...] | None:
    """The lineage of a fork at the row with that id, where the engine knows its place; its own log counts first."""
    for count in range(len(before), -1, -1):
        log = key if count == len(before) else LogKey(key.project, before[count].session)
        end = None if count == len(before) else before[count].end
        position = engine.find_row(log, uuid)
        if position is None or (end is not None and position >= end):
            continue
        if end is not None:
            must_be_there(engine, key, before[count])
        line = _line_at(engine, log, position)
        record = None if line is None else decode(line)
        if line is not None and isinstance(record, Record) and uuid in Tree([record]).records:
            return (*before[:count], ancestor_at(engine, log, uuid, line))
    return None


def _searched(engine: Engine, key: LogKey, before: tuple[Ancestor, ...], uuid: str) -> tuple[Ancestor, ...]:
    """The same by reading."""
    logs = [*((LogKey(key.project, each.session), each.end) for each in before), (key, None)]
    for count, (log, end) in reversed(list(enumerate(logs))):
        for record in records_in(decode_lines(engine.read(log, end=end))):
            if record.uuid == uuid:
                return (*before[:count], ancestor_at(engine, log, uuid, record.line))
    raise DamagedData(f"the row {uuid!a:.60} went away while {key.session} was forked", hint="fork it again")


def _line_at(engine: Engine, key: LogKey, position: int) -> Line | None:
    try:
        return next(engine.read(key, start=position, end=position + 1), None)
    except (Conflict, NotFound):
        return None


# The head, from the end of the log.


def quick_head(engine: Engine, key: LogKey, before: tuple[Ancestor, ...]) -> str | None:
    """The head of a log by its last rows, or None where these do not settle it.

    They do from the row on that the last head record names, if the conversation goes on below it, or ends there.
    """
    try:
        rows = [*_last_rows(engine, key, before)]
    except (NotFound, Conflict):
        return None
    tree = Tree(reversed(rows))
    pointer = tree.pointer
    if tree.boundaries or pointer is None or pointer.leaf not in tree.records or tree.last is None:
        return None
    head = find_head(tree)
    is_settled = head.uuid in (tree.last, pointer.leaf) and (tree.last in (head.uuid, pointer.leaf) or pointer.explicit)
    if head.uuid is None or not is_settled or tree.records[head.uuid].type not in MESSAGE_TYPES:
        return None
    return head.uuid


def _last_rows(engine: Engine, key: LogKey, before: tuple[Ancestor, ...]) -> Iterator[Record]:
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


def _beginning(engine: Engine, key: LogKey, before: tuple[Ancestor, ...]) -> Iterator[Record]:
    """What stands before the own rows of a fork, newest first."""
    if not before:
        return
    last = before[-1]
    must_be_there(engine, key, last)
    yield Record(type="last-prompt", leaf_uuid=last.at, explicit=True)
    line = _line_at(engine, LogKey(key.project, last.session), last.position)
    row = None if line is None else decode(line)
    if isinstance(row, Record):
        yield row
