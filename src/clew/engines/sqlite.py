"""Logs and blobs in one SQLite file, `sqlite:PATH`, for many threads and processes of one machine.

An append is one transaction: lines, ids, batch and summary are there together or not at all. The bytes of a log stand
once, in pieces, and are read as a file would be. What stands where is told in `sqlite_schema`, who may write when in
`sqlite_file`; docs/design/0007-sqlite.md says why.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta

from clew.engines import sqlite_blobs as blob_rows
from clew.engines import sqlite_logs as rows
from clew.engines import sqlite_removal as removal
from clew.engines import sqlite_search as words_index
from clew.engines.contract import (
    Appended,
    Aside,
    BlobKey,
    BlobStat,
    Capabilities,
    Engine,
    Entry,
    Found,
    LogKey,
    LogStat,
    Order,
    Problem,
    checked_entries,
)
from clew.engines.files import Durability
from clew.engines.filesystem import FileSystem, OsFileSystem, failures_of
from clew.engines.lines import lines_backward, lines_forward
from clew.engines.shared_log import alone_at
from clew.engines.sqlite_blobs import Beside
from clew.engines.sqlite_file import WAIT_SECONDS_MAX, SqliteFile
from clew.engines.sqlite_logs import INT64_MAX, LogBytes, LogRow, pieces_in
from clew.engines.sqlite_schema import packed, unpacked
from clew.errors import ClewError, Conflict, DamagedData, NotFound, StorageError, UsageError
from clew.records.line import LINE_BYTES_MAX, Line

CHUNK_BYTES = 1024 * 1024
SPOOL_BYTES = 8 * 1024 * 1024
"""What is copied is taken in before the database is locked: up to here in memory, then in a file without a name."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ORDERS: Mapping[Order, str] = {
    Order.NEWEST_FIRST: "ORDER BY modified_ns DESC, project, session, subpath",
    Order.OLDEST_FIRST: "ORDER BY modified_ns, project, session, subpath",
    Order.BY_KEY: "ORDER BY project, session, subpath",
}
_ADDRESSES = {"log": ("project", "session", "subpath"), "blob": ("project", "session", "kind", "name")}
_CLOSED = "the last line had no end and was closed"


class SqliteEngine(Engine):
    """The logs and blobs of one file, and of the folder `PATH-blobs` beside it, where large blobs are.

    Both come with the first write. The file is looked at through links, which must not change meanwhile. Times are
    those of `clock`; without one they only count, from 1970 on. A fork of the process may use it too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fs: FileSystem | None = None,
        clock: Callable[[], datetime] | None = None,
        durability: Durability = "fsync",
        line_bytes_max: int = LINE_BYTES_MAX,
        chunk_bytes: int = CHUNK_BYTES,
        wait_seconds: float = WAIT_SECONDS_MAX,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        text = os.fspath(path)
        if not text or "\0" in text:
            raise UsageError(f"{text!r} is no path of a file", hint="name one: sqlite:PATH")
        fs = fs or OsFileSystem(is_synced=durability != "none")
        self.url = f"sqlite:{text}"
        self.capabilities = Capabilities(is_durable=durability == "fsync", search=words_index.can_search())
        place = fs.real_path(os.path.abspath(text))
        self._fs = fs
        self._file = SqliteFile(place, fs, durability=durability, wait_seconds=wait_seconds, pause=pause)
        self._beside = Beside(fs, f"{place}-blobs", chunk_bytes)
        self._pieces = pieces_in(self._file)
        self._clock = clock
        self._durability = durability
        self._line_bytes_max = line_bytes_max
        self._chunk_bytes = chunk_bytes

    @property
    def problems(self) -> Sequence[Problem]:
        try:
            with self._file.reading() as db:
                return () if db is not None else (Problem(self._file.path, "there is no database yet"),)
        except ClewError as error:
            return (Problem(self._file.path, error.message),)

    # Writing.

    def append(
        self,
        key: LogKey,
        entries: Sequence[Entry],
        *,
        batch_id: str | None = None,
        expect: str | None = None,
        summary: bytes | None = None,
        keep_time: bool = False,
    ) -> Appended:
        _checked(key)
        checked_entries(entries)
        if not entries:
            stat = self.stat(key)
            return Appended("" if stat is None else stat.revision, 0)
        with self._file.writing() as db:
            log = rows.find(db, key)
            if log is not None and batch_id is not None and rows.knows_batch(db, log, batch_id):
                return Appended(log.revision, 0, len(entries))
            if expect is not None and expect != _revision(log):
                raise _conflict(key, expect, log)
            log, is_new = (rows.make(db, key), True) if log is None else (log, False)
            if log.learned < log.size and any(entry.dedupe_id is not None for entry in entries):
                rows.learn(db, log, self._line_bytes_max)
            fresh = rows.fresh_of(db, log, entries)
            notes = (_CLOSED,) if log.is_torn and fresh else ()
            if fresh:
                rows.add_lines(db, log, b"".join((b"\n" if notes else b"", b"\n".join(fresh), b"\n")))
                if is_new or not keep_time:
                    log.touch(self._now())
            if batch_id is not None:
                rows.note_batch(db, log, batch_id)
            if fresh or batch_id is not None:
                rows.save(db, log)
            if summary is not None:
                rows.save_summary(db, log, summary)
            return Appended(log.revision, len(fresh), len(entries) - len(fresh), notes)

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        """As the contract says, and a log that grows keeps all of the chunks or none."""
        _checked(key)
        with self._spooled(chunks) as (spool, size), self._file.writing() as db:
            log = rows.find(db, key)
            now = 0 if log is None else log.size
            if start != now:
                raise Conflict(
                    f"{self.where(key)} has {now} bytes, not {start}: it cannot be gone on with from there",
                    hint="ask for its size and go on from there",
                )
            if not size and (not make if log is None else modified_ns is None):
                return now
            log = log or rows.make(db, key)
            if modified_ns is not None:
                log.modified_ns = max(-INT64_MAX, min(modified_ns, INT64_MAX))
            else:
                log.touch(self._now())
            if size:
                rows.add_file(db, log, spool)
                rows.save_summary(db, log, None)
            rows.save(db, log)
            return log.size

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        _checked(key)
        with self._spooled(lines) as (spool, _), self._file.writing() as db:
            before = rows.find(db, key)
            if before is None:
                raise self._missing(key)
            if before.revision != expect:
                raise _conflict(key, expect, before)
            removal.hide(db, "id = ?", (before.id,))
            log = rows.make(db, key)
            rows.add_file(db, log, spool)
            log.modified_ns = before.modified_ns
            log.touch(self._now())
            rows.save(db, log)
        with suppress(StorageError):
            self._sweep()
        return log.revision

    @contextmanager
    def _spooled(self, chunks: Iterable[bytes]) -> Iterator[tuple[tempfile.SpooledTemporaryFile[bytes], int]]:
        """What a caller makes, taken in at its speed while nobody waits for it. It is gone when the process is."""
        folder = os.path.dirname(self._file.path)
        with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES, dir=folder) as spool:
            with failures_of(folder, "written"):
                for chunk in chunks:
                    spool.write(chunk)
                size = spool.tell()
                spool.seek(0)
            yield spool, size

    def delete(self, key: LogKey) -> bool:
        _checked(key)
        condition = rows.OF_LOG if key.subpath else rows.OF_SESSION
        names: tuple[bytes, ...] = rows.names_of(key) if key.subpath else rows.names_of(key)[:2]
        if not self._has_any("log", condition, names):
            return False
        with self._file.writing() as db:
            count = removal.hide(db, condition, names)
        with suppress(StorageError):  # What cannot be freed now is out of sight, and goes with the next removal.
            self._sweep()
        return bool(count)

    def _sweep(self) -> None:
        removal.sweep(self._file, self._line_bytes_max)

    def flush(self) -> None:
        if self._durability == "flush":
            self._file.sync()

    def close(self) -> None:
        """As the contract says; what is asked afterwards opens the file again."""
        self.flush()
        self._file.close()

    # Setting aside.

    def alone(self) -> AbstractContextManager[None]:
        # A file of its own: the database is written while it is held.
        return alone_at(self._fs, f"{self._file.path}-operations")

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        _checked(key)
        names, name = rows.names_of(key)[:2], packed(operation)
        if not any(self._has_any(table, rows.OF_SESSION, names) for table in ("log", "blob")):
            return Aside()
        with self._file.writing() as db:
            before = _kept(db, name)
            try:
                for table in ("log", "blob"):
                    db.execute(f"UPDATE {table} SET aside = ? WHERE {rows.OF_SESSION}", (name, *names))
            except sqlite3.IntegrityError as error:
                raise Conflict(
                    f"something of {self.where(key.main)} is kept under {operation!r} already",
                    hint="bring that back first, or use another operation",
                    candidates=[self.where(key.main)],
                ) from error
            after = _kept(db, name)
            return Aside(after.logs - before.logs, after.blobs - before.blobs, after.size_bytes - before.size_bytes)

    def bring_back(self, operation: str) -> Aside:
        name = packed(operation)
        if not self._has_kept(name):
            return Aside()
        with self._file.writing() as db:
            taken = self._taken(db, name)
            if taken:
                raise Conflict(
                    f"{taken[0]} is there again", hint="move or delete what stands there first", candidates=taken
                )
            kept = _kept(db, name)
            for table in ("log", "blob"):
                db.execute(f"UPDATE {table} SET aside = NULL WHERE aside = ?", (name,))
            return kept

    def _taken(self, db: sqlite3.Connection, operation: bytes) -> Sequence[str]:
        """What stands in the place of something that an operation keeps."""
        found = []
        for table, names in _ADDRESSES.items():
            same = " AND ".join(f"now.{name} = kept.{name}" for name in names)
            columns = ", ".join(f"kept.{name}" for name in names)
            found += [
                "/".join(unpacked(name) for name in each if name)
                for each in db.execute(
                    f"SELECT {columns} FROM {table} AS kept JOIN {table} AS now ON {same} AND now.aside IS NULL"
                    f" WHERE kept.aside = ? ORDER BY {columns}",
                    (operation,),
                )
            ]
        return found

    def free_aside(self, operation: str) -> Aside:
        name, kept = packed(operation), Aside()
        if self._has_kept(name):
            with self._file.writing() as db:
                kept = _kept(db, name)
                removal.hide(db, "aside = ?", (name,))
                db.execute("DELETE FROM blob WHERE aside = ?", (name,))
        if self._has_any("log", "1 = 1", ()) or self._has_any("content", "1 = 1", ()):
            # Also what an earlier call, or a crash, left.
            self._sweep()
            with self._file.writing() as db:
                blob_rows.free(db, self._beside, blob_rows.unreferred(db))
            self._beside.free_incoming(self._now())
            self._file.free_pages()
        return kept

    def _has_kept(self, operation: bytes) -> bool:
        return any(self._has_any(table, "aside = ?", (operation,)) for table in ("log", "blob"))

    def _has_any(self, table: str, condition: str, values: Sequence[object]) -> bool:
        """Whether there is anything to do at all: asking makes no file and waits for nobody."""
        with self._file.reading() as db:
            if db is None:
                return False
            return db.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1", values).fetchone() is not None

    # Reading.

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        if start < 0 or (end is not None and end < 0):
            raise UsageError(f"a log has no position {min(start, end or 0)}", hint="use the position of a line, or 0")
        source, size = self._bytes(key)
        if start > size or (start and b"".join(rows.chunks_of_log(source, start - 1, 1, 1)) != b"\n"):
            raise rows.replaced(self.where(key), f"has no line that begins at byte {start} any more")
        return lines_forward(
            source, start=start, end=size if end is None else min(end, size), size=size,
            line_bytes_max=self._line_bytes_max, chunk_bytes=self._chunk_bytes,
        )  # fmt: skip

    def read_back(self, key: LogKey) -> Iterator[Line]:
        source, size = self._bytes(key)
        return lines_backward(source, end=size, line_bytes_max=self._line_bytes_max, chunk_bytes=self._chunk_bytes)

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        if position < 0 or size < 0:
            raise UsageError(f"a log has no range {position}+{size}", hint="use the position and the size of a line")
        source, end = self._bytes(key)
        if position + size > end:
            raise rows.replaced(self.where(key), f"ends {position + size - end} bytes too early")
        return rows.chunks_of_log(source, position, size, self._chunk_bytes)

    def _bytes(self, key: LogKey) -> tuple[LogBytes, int]:
        """The bytes that the log has now, and how many. Raises `NotFound` when there is no such log."""
        _checked(key)
        with self._file.reading() as db:
            log = None if db is None else rows.find(db, key)
        if log is None:
            raise self._missing(key)

        def gone() -> Conflict | DamagedData:
            if self._has_any("log", "id = ?", (log.id,)):
                return DamagedData(f"bytes of {self.where(key)} are missing", hint="restore the file from a backup")
            return rows.replaced(self.where(key), "went away while it was read")

        return LogBytes(self._pieces, log.id, log.size, gone), log.size

    def stat(self, key: LogKey) -> LogStat | None:
        _checked(key)
        found = self._stats(rows.OF_LOG, rows.names_of(key))
        return found[0] if found else None

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        if limit is not None and limit < 0:
            raise UsageError(f"a limit of {limit} sessions cannot be", hint="use 0 or more, or none for all")
        names = () if project is None else (packed(project),)
        condition = "subpath = x''" + (" AND project = ?" if names else "")
        return iter(self._stats(condition, (*names, -1 if limit is None else limit), f"{_ORDERS[order]} LIMIT ?"))

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        _checked(key)
        return iter(self._stats("project = ? AND session = ? AND subpath > x''", rows.names_of(key)[:2], _BY_KEY))

    def list_subs(self, project: str) -> Mapping[str, Sequence[LogStat]]:
        found: dict[str, list[LogStat]] = {}
        for stat in self._stats("project = ? AND subpath > x''", (packed(project),), _BY_KEY):
            found.setdefault(stat.key.session, []).append(stat)
        return found

    def find_sessions(self, id_or_prefix: str) -> Sequence[LogStat]:
        first = packed(id_or_prefix.lower())
        # No byte of a name is 0xFF, so this is behind every name that begins so.
        found = self._stats(
            "lower_session >= ? AND lower_session < ?", (first, first + b"\xff"),
            _ORDERS[Order.NEWEST_FIRST],
        )  # fmt: skip
        return [stat for stat in found if stat.key.session == id_or_prefix] or found

    def find_row(self, key: LogKey, dedupe_id: str) -> int | None:
        """As the contract says: known of every row that was appended, and of copied ones once something was appended
        behind them.
        """
        _checked(key)
        with self._file.reading() as db:
            return None if db is None else rows.position_of(db, key, dedupe_id)

    def projects(self) -> Sequence[str]:
        with self._file.reading() as db:
            found = [] if db is None else db.execute("SELECT DISTINCT project FROM log WHERE aside IS NULL").fetchall()
        return [unpacked(name) for name in sorted(name for (name,) in found)]

    def search(self, words: str, *, project: str | None = None, limit: int | None = None) -> Iterator[Found]:
        """As the contract says, of the texts of records. Takes in first what was appended since the last search."""
        if not self.capabilities.search:
            return super().search(words)
        if limit is not None and limit < 0:
            raise UsageError(f"a limit of {limit} lines cannot be", hint="use 0 or more, or none for all")
        return words_index.search(self._file, words, project, limit, self._line_bytes_max)

    def _stats(self, where: str, values: Sequence[object], order: str = "") -> Sequence[LogStat]:
        with self._file.reading() as db:
            return [] if db is None else rows.stats(db, where, values, order)

    # Blobs.

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        content = self._beside.take_in(chunks)
        try:
            with self._file.writing() as db:
                time_ns = self._now() if modified_ns is None else modified_ns
                freed = blob_rows.refer(db, self._beside, key, content, mode, time_ns)
        except BaseException:
            self._beside.let_go(content)
            raise
        self._free(freed)
        return content.digest

    def open(self, key: BlobKey) -> Iterator[bytes]:
        with self._file.reading() as db:
            found = None if db is None else blob_rows.content_of(db, self._beside, key)
        if found is None:
            raise NotFound(f"there is no {key.kind} {key.name!r}", hint="list the blobs of its session")
        return self._beside.verified(key, *found)

    def blob_stat(self, key: BlobKey) -> BlobStat | None:
        with self._file.reading() as db:
            return None if db is None else blob_rows.blob_stat(db, key)

    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        with self._file.reading() as db:
            return [] if db is None else blob_rows.blob_stats(db, key)

    def delete_blob(self, key: BlobKey) -> bool:
        if self.blob_stat(key) is None:
            return False
        with self._file.writing() as db:
            freed = blob_rows.remove(db, key)
        self._free(freed)
        return bool(freed)

    def _free(self, contents: Sequence[int]) -> None:
        if contents:
            # What cannot be freed now is freed by `free_aside`.
            with suppress(StorageError), self._file.writing() as db:
                blob_rows.free(db, self._beside, contents)

    # What is shared by these.

    def _missing(self, key: LogKey) -> NotFound:
        return NotFound(f"there is no log {self.where(key)}", hint="list what there is with `clew ls --all`")

    def _now(self) -> int:
        return (self._clock() - _EPOCH) // _MICROSECOND * 1000 if self._clock is not None else 0


_BY_KEY = _ORDERS[Order.BY_KEY]


def _checked(key: LogKey) -> None:
    if not key.session:
        raise UsageError("a log needs the id of a session", hint="list the sessions with `clew ls --all`")


def _kept(db: sqlite3.Connection, operation: bytes) -> Aside:
    """What an operation keeps."""
    logs, size = db.execute("SELECT count(*), coalesce(sum(size), 0) FROM log WHERE aside = ?", (operation,)).fetchone()
    blobs = blob_rows.aside_blobs(db, operation)
    return Aside(int(logs), blobs.blobs, int(size) + blobs.size_bytes)


def _revision(log: LogRow | None) -> str:
    return "" if log is None else log.revision


def _conflict(key: LogKey, expect: str, log: LogRow | None) -> Conflict:
    return Conflict(
        f"{key.session} is at revision {_revision(log)!r}, not at {expect!r}", hint="read what is new and try again"
    )
