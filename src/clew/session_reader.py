"""Reading the log of a session, and reading on where it ended.

Another program may append meanwhile, or put another file in the place of the log. What was read is gone on from only
where the log is the same and still holds the bytes that were read last; else it is read again.

An attached fork begins with the rows of its ancestors. These never change, so they are read once, before its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from clew.engines.contract import Engine, LogStat
from clew.errors import Conflict
from clew.lineage import ForkPoint, fork_point_in, head_at, inherited
from clew.records.codec import REASON_OPEN, decode_lines
from clew.records.line import Line
from clew.records.own import NOTE_TYPE
from clew.records.record import Malformed, Record, Row
from clew.session_writer import SAID_AGAIN
from clew.transcript.digest import DigestFold
from clew.transcript.marks import UNMARKED, Marks
from clew.transcript.tree import CHAIN_TYPES, Tree

TAIL_BYTES = 4096
"""So many bytes before the old end must still be there for a log to be believed that it only grew."""
_NAMES = frozenset(SAID_AGAIN)


class Loaded(msgspec.Struct):
    """What is kept of a log that was read, and what has to hold for reading on where it ended."""

    stat: LogStat
    tree: Tree = msgspec.field(default_factory=Tree)
    fold: DigestFold | None = None
    """Only where somebody asked for the digest: it takes half as long as reading."""
    malformed: list[Malformed] = []
    last: Row | None = None
    """The last row, blank ones included: the log is read on behind it."""
    names: dict[str, Record] = {}
    """The last title, tag, note and head record of this very log, by type."""
    marks: Marks = UNMARKED
    """What all its notes say together."""
    inherited: set[str] = msgspec.field(default_factory=set)
    """The uuids of rows that stand in the logs of ancestors."""


def read(engine: Engine, stat: LogStat, fold: DigestFold | None = None) -> Loaded:
    """Everything that the log holds, and what it inherits. One that is not there yet, whose revision is "", holds
    nothing. Raises `DamagedData` where an ancestor is gone, or is not what it was.
    """
    loaded = Loaded(stat, fold=fold)
    if stat.revision:
        rows = decode_lines(engine.read(stat.key))
        first = next(rows, None)
        point = fork_point_in(engine, stat.key, first) if isinstance(first, Record) else None
        if point is not None:
            _inherit(loaded, engine, point)
        if first is not None:
            _take(loaded, chain([first], rows))
    return loaded


def _inherit(loaded: Loaded, engine: Engine, point: ForkPoint) -> None:
    """Adds the rows of the ancestors. Of what names a session, its title and the like, nothing is inherited."""
    key = loaded.stat.key
    fold = _ignore if loaded.fold is None else loaded.fold.add

    def taken() -> Iterator[Record]:
        for record in inherited(engine, key, point):
            if record.uuid:
                loaded.inherited.add(record.uuid)
            if record.type in CHAIN_TYPES:
                fold(record)
            yield record

    loaded.tree.add(taken())
    loaded.tree.add(head_at(point))


def grown(engine: Engine, known: Loaded, now: LogStat) -> Loaded | None:
    """What was known and what was appended since, or None when the log has to be read again."""
    last = known.last
    if last is None or not _is_same_file(known.stat, now) or now.size_bytes <= _end(last):
        return None
    if any(row.reason == REASON_OPEN for row in known.malformed) or not _still_ends_in(engine, now, last.line):
        # An open record at the end may be completed by lines that come later.
        return None
    is_settled = last.line.is_terminated
    try:
        lines = engine.read(now.key, start=_end(last) if is_settled else last.line.position)
        if not is_settled and not isinstance(last, Malformed):
            # Whole but for its newline, which the next writer puts there first.
            if next(lines, last.line).data not in (last.line.data + b"\n", last.line.data + b"\r\n"):
                return None
        elif not is_settled:
            if isinstance(last, Malformed) and last.loaded:
                return None
            known.malformed.pop()
        known.stat = now
        _take(known, decode_lines(_numbered(lines, last.line)))
    except Conflict:
        return None
    return known


def _still_ends_in(engine: Engine, now: LogStat, line: Line) -> bool:
    size = min(TAIL_BYTES, len(line.data))
    try:
        found = b"".join(engine.read_range(now.key, position=line.position + line.size - size, size=size))
    except Conflict:
        return False
    return found == line.data[len(line.data) - size :]


def _ignore(record: Record) -> None:
    """In place of a fold that nobody asked for."""


def _take(loaded: Loaded, rows: Iterator[Row]) -> None:
    """Adds rows to what is loaded, in one pass and without holding those that are no part of the tree."""
    fold = _ignore if loaded.fold is None else loaded.fold.add
    names = loaded.names

    def watched() -> Iterator[Record]:
        row = loaded.last
        for row in rows:
            if isinstance(row, Record):
                fold(row)
                if row.type in _NAMES:
                    names[row.type] = row
                    if row.type == NOTE_TYPE:
                        loaded.marks = loaded.marks.after(row.body())
                yield row
            elif isinstance(row, Malformed):
                loaded.malformed.append(row)
                for record in row.loaded:
                    fold(record)
                    yield record
        loaded.last = row

    loaded.tree.add(watched())


def _numbered(lines: Iterator[Line], last: Line) -> Iterator[Line]:
    """Lines read on from the middle of a log, with the numbers they have in the whole of it."""
    before = last.number + max(last.data.count(b"\n") - 1, 0)
    for line in lines:
        at = before + line.number - (0 if last.is_terminated else 1)
        yield Line(line.data, line.position, at, line.size)


def _end(row: Row) -> int:
    return row.line.position + row.line.size


def _is_same_file(known: LogStat, now: LogStat) -> bool:
    # The engine puts what stands for the file itself, and not for its content, before the first dash of a revision.
    return known.revision.partition("-")[0] == now.revision.partition("-")[0]
