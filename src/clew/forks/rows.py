"""The rows of a log once more, in another order and with other values, without holding more than a window of it.

Rows that stand together in the log and in the fork are taken together, where one look tells that all of them change in
the same way; every other row is spliced by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.engines.contract import Engine, LogKey
from clew.errors import Conflict
from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import BOM, Record
from clew.records.splice import Change, quoted, spliced
from clew.transcript.fork import ForkPlan
from clew.transcript.ids import IdMap, id_changes

WINDOW_BYTES = 2 * 1024 * 1024
"""So much of the log is held at once, or one row where that is longer."""


class Rewriter:
    """What is different in a row of the fork."""

    def __init__(self, parent: LogKey, session: str, *, new_id: IdMap | None, rewrite_paths: bool) -> None:
        self.old = parent.session
        self._session = quoted(session)
        self._origin = quoted(parent.session)
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
        # The first row of the log may stand behind a mark, and is not the first one here: the client would lose it.
        raw = raw.removeprefix(BOM)
        for old, new in self._paths:
            if old in raw:
                raw = raw.replace(old, new)
        return spliced(raw, changes)

    def moved(self, record: Record, parent: str | None) -> Change:
        """The row on another parent."""
        new = self._new_id(parent) if parent and self._new_id is not None else parent
        return Change("parentUuid", record.parent_uuid, quoted(new))

    def together(self, run: bytes, count: int) -> bytes | None:
        """Rows of the session that only change their session, or None where a look at all of them cannot tell."""
        if self._new_id is not None or self._paths:
            return None
        old = self.old.encode("utf-8", "surrogateescape")
        field = b'"sessionId":"%s"' % old
        if run.count(old) != count or run.count(field) != count or not run.endswith(b"\n") or run.startswith(BOM):
            return None
        return run.replace(field, b'"sessionId":' + self._session)


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


def read_line(engine: Engine, key: LogKey, line: Line) -> bytes:
    """The bytes of one row."""
    return line.data or b"".join(engine.read_range(key, position=line.position, size=line.size))


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
        alike = rewriter.together(data[begin:end], run + 1 - place) if is_plain else None
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
