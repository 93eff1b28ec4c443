"""The rows of a SQLite file that a log is made of: where it stands, its bytes as a file, and going on with them."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

import msgspec

from clew.engines.contract import BATCHES_KEPT, TICK_NS, Entry, LogKey, LogStat
from clew.engines.lines import lines_forward
from clew.engines.sqlite_file import SqliteFile
from clew.engines.sqlite_schema import LOG_BYTES_MAX, LOGS_MAX, first_id, packed, packed_uuid, unpacked
from clew.errors import ClewError, Conflict, DamagedData, StorageError
from clew.records.identity import uuid_of_line

PIECE_BYTES = 64 * 1024
"""More than this of what is appended at once is kept in several pieces."""
ROWS_AT_ONCE = 64
BATCHES_REMEMBERED = 20 * BATCHES_KEPT
"""Among eight processes, one that said its batch again was overtaken by more than a hundred appends of the others."""
INT64_MAX = 2**63 - 1

OF_SESSION = "project = ? AND session = ? AND aside IS NULL"
OF_LOG = "project = ? AND session = ? AND subpath = ? AND aside IS NULL"

_COLUMNS = "id, size, tail, learned, modified_ns, batches"
_FIND = f"SELECT {_COLUMNS} FROM log WHERE {OF_LOG}"
_MAKE = (
    "INSERT INTO log (project, session, subpath, lower_session, size, tail, learned, modified_ns, batches)"
    " VALUES (?, ?, ?, ?, 0, 0, 0, 0, 0)"
)
_POSITION = "SELECT position FROM dedupe WHERE log = ? AND uuid = ?"
STAT = "SELECT project, session, subpath, id, size, modified_ns, summary FROM log"
StatRow = tuple[bytes, bytes, bytes, int, int, int, bytes | None]


class LogRow(msgspec.Struct):
    """Where a log stands. Whoever changes it holds the transaction, and `save`s it."""

    id: int
    size: int
    tail: int
    learned: int
    modified_ns: int
    batches: int

    @property
    def revision(self) -> str:
        return revision_of(self.id, self.size)

    @property
    def is_torn(self) -> bool:
        """Whether the last line lacks its newline."""
        return self.tail < self.size

    def touch(self, now_ns: int) -> None:
        self.modified_ns = min(max(now_ns, self.modified_ns + TICK_NS), INT64_MAX)


def revision_of(log: int, size: int) -> str:
    """A log only grows, and what replaces one is a new log: so the size tells one state from another."""
    return f"{log:x}-{size:x}"


def names_of(key: LogKey) -> tuple[bytes, bytes, bytes]:
    return packed(key.project), packed(key.session), packed(key.subpath)


def find(db: sqlite3.Connection, key: LogKey) -> LogRow | None:
    row = db.execute(_FIND, names_of(key)).fetchone()
    return None if row is None else LogRow(*row)


def make(db: sqlite3.Connection, key: LogKey) -> LogRow:
    """A new log of no bytes under a key that is free."""
    new = db.execute(_MAKE, (*names_of(key), None if key.subpath else packed(key.session.lower()))).lastrowid
    if new is None or new >= LOGS_MAX:
        raise StorageError("the database has had as many logs as it can count", hint="copy its sessions to a new one")
    return LogRow(new, 0, 0, 0, 0, 0)


def save(db: sqlite3.Connection, log: LogRow) -> None:
    """Notes where the log stands now. The summary stays as it is."""
    db.execute(
        "UPDATE log SET size = ?, tail = ?, learned = ?, modified_ns = ?, batches = ? WHERE id = ?",
        (log.size, log.tail, log.learned, log.modified_ns, log.batches, log.id),
    )


def save_summary(db: sqlite3.Connection, log: LogRow, summary: bytes | None) -> None:
    db.execute("UPDATE log SET summary = ? WHERE id = ?", (summary, log.id))


def add_lines(db: sqlite3.Connection, log: LogRow, data: bytes) -> None:
    """Puts whole lines at the end, whose ids are known; a last line that they end is looked at later."""
    is_learned = log.learned >= log.size
    for at in range(0, len(data), PIECE_BYTES):
        _add(db, log, data[at : at + PIECE_BYTES] if len(data) > PIECE_BYTES else data)
    log.tail = log.size
    if is_learned:
        log.learned = log.size


def add_file(db: sqlite3.Connection, log: LogRow, file: IO[bytes]) -> None:
    """Puts all bytes of an open file at the end. Their ids are learned when somebody asks for them."""
    while data := file.read(PIECE_BYTES):
        newline = data.rfind(b"\n") + 1
        if newline:
            log.tail = log.size + newline
        _add(db, log, data)


def _add(db: sqlite3.Connection, log: LogRow, data: bytes) -> None:
    if log.size + len(data) > LOG_BYTES_MAX:
        raise StorageError(
            f"a log of sqlite: cannot have more than {LOG_BYTES_MAX >> 30} GiB", hint="use another store for it"
        )
    db.execute("INSERT INTO piece VALUES (?, ?)", (first_id(log.id, log.size), data))
    log.size += len(data)


def learn(db: sqlite3.Connection, log: LogRow, line_bytes_max: int) -> None:
    """Finds the ids of lines that came as bytes, of the last one too where it lacks its newline."""
    if log.learned >= log.size:
        return
    for line in lines_forward(
        LogBytes(pieces_of(db), log.id, log.size), start=log.learned, end=log.size, size=log.size,
        line_bytes_max=line_bytes_max, chunk_bytes=PIECE_BYTES,
    ):  # fmt: skip
        uuid = uuid_of_line(line.data) if line.is_held else None
        if uuid is not None:
            know(db, log, uuid, line.position)
    # What is not ended may go on, and be another line then.
    log.learned = log.tail


def fresh_of(db: sqlite3.Connection, log: LogRow, entries: Sequence[Entry]) -> list[bytes]:
    """The lines that are to be written. Their ids, and where they are going to stand, are known from then on."""
    fresh: list[bytes] = []
    position = log.size + log.is_torn
    for entry in entries:
        if entry.dedupe_id is None or know(db, log, entry.dedupe_id, position):
            fresh.append(entry.data)
            position += len(entry.data) + 1
    return fresh


def know(db: sqlite3.Connection, log: LogRow, uuid: str, position: int) -> bool:
    """Whether the id is new. It is known from then on, and that its line begins there."""
    added = db.execute("INSERT OR IGNORE INTO dedupe VALUES (?, ?, ?)", (log.id, packed_uuid(uuid), position))
    return added.rowcount == 1


def position_of(db: sqlite3.Connection, key: LogKey, uuid: str) -> int | None:
    """Where the first line with that id begins; None where that is not known."""
    log = find(db, key)
    found = None if log is None else db.execute(_POSITION, (log.id, packed_uuid(uuid))).fetchone()
    return None if found is None else found[0]


def knows_batch(db: sqlite3.Connection, log: LogRow, name: str) -> bool:
    found = db.execute("SELECT 1 FROM batch WHERE log = ? AND name = ?", (log.id, packed(name)))
    return found.fetchone() is not None


def note_batch(db: sqlite3.Connection, log: LogRow, name: str) -> None:
    """Remembers a batch, and forgets old ones, many at a time."""
    log.batches += 1
    db.execute("INSERT INTO batch VALUES (?, ?, ?)", (log.id, packed(name), log.batches))
    if log.batches % BATCHES_REMEMBERED == 0:
        db.execute("DELETE FROM batch WHERE log = ? AND number <= ?", (log.id, log.batches - BATCHES_REMEMBERED))


def stats(db: sqlite3.Connection, where: str, values: Sequence[object] = (), order: str = "") -> list[LogStat]:
    """What is known of the logs in sight that a condition selects."""
    # Only the conditions and orders that stand in this package come here; names are parameters.
    rows: Iterable[StatRow] = db.execute(f"{STAT} WHERE aside IS NULL AND {where} {order}", values)
    return [stat_of(row) for row in rows]


def stat_of(row: StatRow) -> LogStat:
    project, session, subpath, log, size, modified_ns, summary = row
    return LogStat(key_of(project, session, subpath), revision_of(log, size), size, modified_ns, summary)


def key_of(project: bytes, session: bytes, subpath: bytes) -> LogKey:
    return LogKey(unpacked(project), unpacked(session), unpacked(subpath))


PieceRow = tuple[int, bytes]
PiecesFrom = Callable[[int, int, int], Sequence[PieceRow]]
"""So many pieces from the one that holds `start` on, none of which begins at or behind `stop`; both are ids."""


def pieces_in(file: SqliteFile) -> PiecesFrom:
    """Looks in a query of its own each time, so that nothing is held between two looks."""

    def found(start: int, stop: int, count: int) -> Sequence[PieceRow]:
        with file.reading() as db:
            return [] if db is None else _rows(db, start, stop, count)

    return found


def pieces_of(db: sqlite3.Connection) -> PiecesFrom:
    """Looks through a connection that somebody holds, and sees what its transaction did."""
    return lambda start, stop, count: _rows(db, start, stop, count)


def _rows(db: sqlite3.Connection, start: int, stop: int, count: int) -> Sequence[PieceRow]:
    return db.execute(
        "SELECT id, data FROM piece WHERE id >= (SELECT max(id) FROM piece WHERE id <= ?) AND id < ?"
        " ORDER BY id LIMIT ?",
        (start, stop, count),
    ).fetchall()


class LogBytes(io.RawIOBase):
    """The first `size` bytes of a log, as a file for reading.

    Pieces never change, and the number of a log is never used again: so what is read in many looks is one state, or
    `gone` says what happened to it.
    """

    def __init__(self, pieces: PiecesFrom, log: int, size: int, gone: Callable[[], ClewError] | None = None) -> None:
        self._pieces = pieces
        self._first = first_id(log)
        self._size = size
        self._gone = gone
        self._at = 0
        self._held: list[PieceRow] = []  # The next one last.
        self._count = 1

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only from the beginning")
        if offset != self._at:
            self._at, self._held, self._count = offset, [], 1
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        view = memoryview(buffer)
        count, wanted = 0, min(len(view), self._size - self._at)
        while count < wanted:
            begin, data = self._next()
            offset = self._at - begin
            piece = data[offset : offset + wanted - count] if offset or len(data) > wanted - count else data
            view[count : count + len(piece)] = piece
            count += len(piece)
            self._at += len(piece)
            if offset + len(piece) == len(data):
                self._held.pop()
        return count

    def _next(self) -> tuple[int, bytes]:
        """The piece that holds the next byte, and where it begins."""
        if not self._held:
            self._held = [*reversed(self._pieces(self._first + self._at, self._first + self._size, self._count))]
            # One line is in one or two pieces; whoever reads on wants many.
            self._count = min(self._count * 4, ROWS_AT_ONCE)
        if self._held:
            begin, data = self._held[-1][0] - self._first, self._held[-1][1]
            if 0 <= begin <= self._at < begin + len(data):
                return begin, data
        raise DamagedData(f"byte {self._at} of a log is missing") if self._gone is None else self._gone()


def chunks_of_log(source: LogBytes, position: int, size: int, chunk_bytes: int) -> Iterator[bytes]:
    source.seek(position)
    while size > 0 and (chunk := source.read(min(size, chunk_bytes))):
        yield chunk
        size -= len(chunk)


def replaced(where: str, what: str) -> Conflict:
    """For whoever holds a position that the log no longer has."""
    return Conflict(f"{where} {what}: it was replaced or deleted", hint="read it again from the beginning")
