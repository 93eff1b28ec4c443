"""The rows of a log once more, in another order and with other values, without holding more than a window of it.

Rows that stand together in the log and in the fork are taken together, where one look tells that all of them change in
the same way; every other row is spliced by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter

from clew.engines.contract import Engine, LogKey
from clew.errors import Conflict
from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Record
from clew.records.splice import Change, quoted, spliced
from clew.transcript.fork import ForkPlan
from clew.transcript.ids import ID_FIELDS, IdMap, id_changes, names_more

WINDOW_BYTES = 1024 * 1024
"""So much of the log is held at once, or one row where that is longer."""
AHEAD_BYTES = 256 * 1024
"""So much is read of a log for rows that are asked for one by one."""


class Rewriter:
    """What is different in a row of the fork."""

    def __init__(self, parent: LogKey, session: str, *, new_id: IdMap | None, rewrite_paths: bool) -> None:
        self.old = parent.session
        self._session = quoted(session)
        self._origin = quoted(parent.session)
        self._old_field, self._new_field = b'"sessionId":' + self._origin, b'"sessionId":' + self._session
        self._new_id = new_id
        self._paths: tuple[tuple[bytes, bytes], ...] = ()
        if rewrite_paths:
            # A path ends in the folder of the project, the session and what is in there. No name needs an escape.
            project = f"{parent.project}/" if parent.project else ""
            old, new = f"/{project}{parent.session}/", f"/{project}{session}/"
            below = ("tool-results/", "subagents/")
            self._paths = tuple(((old + each).encode(), (new + each).encode()) for each in below)

    def row(self, raw: bytes, record: Record, parent: Change | None = None) -> bytes:
        """One row, with its newline."""
        changes = [] if record.session_id is None else [Change("sessionId", record.session_id, self._session)]
        if self._new_id is not None:
            whole = record
            if record.subtype == "compact_boundary" or record.is_compact_summary:
                fresh = decode(Line(raw, 0, 1, len(raw)))
                whole = fresh if isinstance(fresh, Record) else record
            if record.uuid:
                origin = b'{"sessionId":%s,"messageUuid":%s}' % (self._origin, quoted(record.uuid))
                changes.append(Change("forkedFrom", None, origin))
            changes += id_changes(whole, self._new_id)
            if parent is not None:
                changes = [change for change in changes if change.name != "parentUuid"]
        if parent is not None:
            changes.append(parent)
        return self.text(raw if raw.endswith(b"\n") else raw + b"\n", changes)

    def text(self, raw: bytes, changes: Sequence[Change]) -> bytes:
        for old, new in self._paths:
            if old in raw:
                raw = raw.replace(old, new)
        return spliced(raw, changes)

    def moved(self, record: Record, parent: str | None) -> Change:
        """The row on another parent."""
        new = self._new_id(parent) if parent and self._new_id is not None else parent
        return Change("parentUuid", record.parent_uuid, quoted(new))

    def together(self, run: bytes, rows: Sequence[Record]) -> bytes | None:
        """Rows of the session that stand one behind the other and keep their parents, or None where a look at all of
        them cannot tell.
        """
        if self._paths:
            return None
        old = self.old.encode("utf-8", "surrogateescape")
        if run.count(old) != len(rows) or run.count(self._old_field) != len(rows) or not run.endswith(b"\n"):
            return None
        if self._new_id is None:
            return run.replace(self._old_field, self._new_field)
        if b'"forkedFrom"' in run or any(map(names_more, rows)):
            return None
        renamed = bytearray(run)
        ends = list(accumulate(record.line.size for record in rows))
        for place, start in enumerate(_STARTS):
            ids = [_IDS[place](record) for record in rows]
            if any(ids) and not _put(renamed, start, ids, ends, self._new_id):
                return None
        return self._with_origins(bytes(renamed.replace(self._old_field, self._new_field)), rows, ends)

    def _with_origins(self, run: bytes, rows: Sequence[Record], ends: Sequence[int]) -> bytes | None:
        """Each row says last which one it was. `ends` are those before the session got its new id."""
        longer, begin = len(self._new_field) - len(self._old_field), 0
        pieces: list[bytes] = []
        origin = b',"forkedFrom":{"sessionId":%s,"messageUuid":"' % self._origin
        for place, record in enumerate(rows):
            end = ends[place] + (place + 1) * longer
            if run[end - 2 : end] != b"}\n" or not record.uuid:
                return None
            pieces += (run[begin : end - 2], origin, record.uuid.encode(), b'"}}\n')
            begin = end
        return b"".join(pieces)


_IDS: tuple[Callable[[Record], str | None], ...] = tuple(map(attrgetter, ID_FIELDS.values()))
_STARTS = tuple(b'"%s":"' % name.encode() for name in ID_FIELDS)


def _put(run: bytearray, start: bytes, ids: Sequence[str | None], ends: Sequence[int], new_id: IdMap) -> bool:
    """Puts new ids where the old ones stand; `start` is what stands before them. False, with some of them put, unless
    the field is there once in each row that has it and in no other, with an id that is as long as the new one.
    """
    at = row_begin = 0
    for old, end in zip(ids, ends, strict=True):
        if old:
            at = run.find(start, at) + len(start)
            new = new_id(old).encode()
            stop = at + len(new)
            if not row_begin + len(start) < at < end or run[at - len(start) - 1] == _BACKSLASH:
                return False
            if run[at : stop + 1] != b'%s"' % old.encode("utf-8", "backslashreplace"):
                return False
            run[at:stop] = new
            at = stop
        row_begin = end
    return run.find(start, at) < 0


_BACKSLASH = 0x5C


def rows_of(engine: Engine, key: LogKey, plan: ForkPlan, rewriter: Rewriter, *, name: str) -> Iterator[bytes]:
    """The rows of the plan, in chunks. `name` is that of the log when the plan was made: raises `Conflict` when another
    one stands in its place by the end.
    """
    for first, last in _windows(plan.rows):
        start = plan.rows[first].line.position
        end = max(record.line.position + record.line.size for record in plan.rows[first : last + 1])
        held = plan.rows[first].line.data
        # A row that was found inside a broken line, or kept its bytes, is not read again.
        data = held or b"".join(engine.read_range(key, position=start, size=end - start))
        yield from _rewritten(data, start, plan, first, last, rewriter)
    if name_of(engine, key) != name:
        raise Conflict(f"{engine.where(key)} was replaced by another program meanwhile", hint="fork it again")


class Ahead:
    """The bytes of single rows of one log. Behind each the next ones are read, too, since most are asked for in order:
    a file opened for each row takes longer than all of it read.
    """

    def __init__(self, engine: Engine, key: LogKey) -> None:
        self._engine = engine
        self._key = key
        self._start = 0
        self._held = b""

    def row(self, line: Line) -> bytes:
        if line.data:
            return line.data
        begin = line.position - self._start
        if begin < 0 or begin + line.size > len(self._held):
            stat = self._engine.stat(self._key)
            left = max(stat.size_bytes - line.position, 0) if stat is not None else 0
            size = max(line.size, min(AHEAD_BYTES, left))
            self._held = b"".join(self._engine.read_range(self._key, position=line.position, size=size))
            self._start, begin = line.position, 0
        return self._held[begin : begin + line.size]


def _windows(rows: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """First and last row of each stretch that is read at once: as far as they stand near each other in the log."""
    first = 0
    while first < len(rows):
        last, start = first, rows[first].line.position
        if not rows[first].line.data:
            while last + 1 < len(rows):
                line = rows[last + 1].line
                if line.data or line.position < start or line.position + line.size - start > WINDOW_BYTES:
                    break
                last += 1
        yield first, last
        first = last + 1


def _rewritten(data: bytes, start: int, plan: ForkPlan, first: int, last: int, rewriter: Rewriter) -> Iterator[bytes]:
    """The rows of one window, those that stand together and change alike at once."""
    rows, parents, old = plan.rows, plan.parents, rewriter.old
    place = first
    while place <= last:
        run = place
        begin = rows[run].line.position - start
        end = begin + rows[run].line.size
        is_plain = place not in parents and rows[place].session_id == old
        while is_plain and run < last and run + 1 not in parents:
            record = rows[run + 1]
            if record.line.position - start != end or record.session_id != old:
                break
            run += 1
            end += record.line.size
        alike = rewriter.together(data[begin:end], rows[place : run + 1]) if is_plain else None
        if alike is not None:
            yield alike
        else:
            yield b"".join(_one_by_one(data, start, plan, place, run, rewriter))
        place = run + 1


def _one_by_one(data: bytes, start: int, plan: ForkPlan, first: int, last: int, rewriter: Rewriter) -> Iterator[bytes]:
    for place in range(first, last + 1):
        record = plan.rows[place]
        begin = record.line.position - start
        moved = rewriter.moved(record, plan.parents[place]) if place in plan.parents else None
        yield rewriter.row(data[begin : begin + record.line.size], record, moved)


def name_of(engine: Engine, key: LogKey) -> str:
    """What tells this log from another one that stands in its place later."""
    stat = engine.stat(key)
    return "" if stat is None else stat.revision.partition("-")[0]


def log_rewritten(engine: Engine, key: LogKey, rewriter: Rewriter) -> Iterator[bytes]:
    """A whole log, the records in it changed; a line that is no record goes along as it is."""
    for line in engine.read(key):
        if not line.is_held:
            yield from engine.read_range(key, position=line.position, size=line.size)
            continue
        row = decode(line)
        yield rewriter.row(row.raw, row) if isinstance(row, Record) else line.data
