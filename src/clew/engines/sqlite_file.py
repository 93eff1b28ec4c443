"""One SQLite file for many threads and processes: who may write now, who reads, and what failures mean.

One connection writes, under a lock for the threads and SQLite's own for the processes; reading takes one of a few
others for as long as a query takes. None is held while a caller has a line in hand, and none goes through a fork.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat as modes
import sys
import threading
import time
import urllib.parse
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeAlias
from uuid import uuid4

from clew.engines.files import Durability
from clew.engines.filesystem import FileSystem, failures_of, shown_path, what_it_is
from clew.engines.sqlite_schema import is_current, migrate
from clew.engines.whole import give_name
from clew.errors import Busy, ClewError, DamagedData, NotFound, StorageError, UsageError

WAIT_SECONDS_MAX = 30.0
"""So long anybody waits for others that write; then it is `Busy`."""
PAUSE_SECONDS = 0.001
"""After this a lock is asked for again at first; then ever later, up to the next number."""
PAUSE_SECONDS_MAX = 0.01
CHECKPOINT_PAGES = 4_000
"""So long (16 MB) the write-ahead log grows before it is carried over; SQLite's own 1,000 pages are 300 appends."""
WAL_BYTES_KEPT = 64 * 1024 * 1024
"""A longer write-ahead log, as a large copy leaves it, is cut to this when it is begun anew."""
CACHE_KIB = 8 * 1024
PAGES_AT_ONCE = 4_000
IDLE_MAX = 8
"""So many connections for reading are kept open."""

_SYNCHRONOUS: Mapping[Durability, str] = {"fsync": "FULL", "flush": "NORMAL", "none": "OFF"}
_WAL_SUFFIX = "-wal"

FileId: TypeAlias = tuple[int, int]
"""Device and inode."""


class _Connection(sqlite3.Connection):
    is_frozen = False
    """Opened as a file that nobody changes: somebody may, so it serves one query only."""


class _Connections:
    """The open connections to one file, of one process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held by the thread that writes."""
        self.guard = threading.Lock()
        self.writer: sqlite3.Connection | None = None
        self.writes: FileId | None = None
        """Which file that is open on."""
        self.idle: list[_Connection] = []
        self.reads: FileId | None = None
        self._process = os.getpid()

    def __del__(self) -> None:
        # An engine that nobody closed lets go of its files with the last reference to it, but not of those of a parent.
        if os.getpid() == self._process:
            self.close()

    def take(self, file: FileId) -> _Connection | None:
        """An idle connection to that very file."""
        with self.guard:
            gone, self.idle = ([], self.idle) if self.reads == file else (self.idle, [])
            self.reads = file
            found = self.idle.pop() if self.idle else None
        for each in gone:
            each.close()
        return found

    def give(self, db: _Connection, file: FileId) -> None:
        with self.guard:
            if self.reads == file and not db.is_frozen and len(self.idle) < IDLE_MAX:
                self.idle.append(db)
                return
        db.close()

    def close_writer(self) -> None:
        if self.writer is not None:
            db, self.writer = self.writer, None
            with suppress(sqlite3.Error):
                db.close()

    def close(self) -> None:
        with self.guard:
            idle, self.idle = self.idle, []
        for each in idle:
            each.close()
        self.close_writer()


_OPEN: weakref.WeakSet[SqliteFile] = weakref.WeakSet()
_INHERITED: list[_Connections] = []
"""Connections that a fork copied. They belong to the parent, and closing them here could take its locks away."""


class SqliteFile:
    """A database of ours at a path, made with the first write."""

    def __init__(
        self,
        path: str,
        fs: FileSystem,
        *,
        durability: Durability = "fsync",
        wait_seconds: float = WAIT_SECONDS_MAX,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path = path
        self.shown = shown_path(path)
        self._fs = fs
        self._durability = durability
        self._wait_seconds = wait_seconds
        self._pause = pause
        self._here = _Connections()
        _OPEN.add(self)

    # Writing.

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes beside. It is committed at the end, or undone when something raises.

        Raises `Busy` when others write for too long.
        """
        here = self._here
        if not here.lock.acquire(timeout=self._wait_seconds):
            raise self._busy()
        try:
            with self._failures("written"):
                db = self._writer(here)
                self._begin(db)
                try:
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    self._undo(here, db)
                    raise
        finally:
            here.lock.release()

    def free_pages(self) -> None:
        """Gives back to the disk what was freed, a part at a time, so that others get to write in between."""
        here = self._here
        with here.lock, self._failures("shrunk"):
            db = self._writer(here)
            before, left = None, _free_pages(db)
            while left and left != before:
                # As a script, since each row of the answer, which has no columns, is one page.
                self._retried(lambda: db.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))
                before, left = left, _free_pages(db)

    def _writer(self, here: _Connections) -> sqlite3.Connection:
        file = self._identity()
        if here.writer is not None and here.writes == file:
            return here.writer
        # Another file stands under the name: what is open is no longer what the name means.
        here.close_writer()
        if file is None:
            self._make()
        db = self._connect()
        try:
            self._prepare(db)
            # From here on only the beginning of a transaction can find others there, and that waits in its own way.
            db.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            db.close()
            raise
        here.writer, here.writes = db, self._identity()
        return db

    def _begin(self, db: sqlite3.Connection) -> None:
        """Takes the write lock. SQLite's own way of waiting leaves up to 0.1 s between two looks."""
        self._retried(lambda: db.execute("BEGIN IMMEDIATE"))

    def _retried(self, do: Callable[[], object]) -> None:
        waited, seconds = 0.0, PAUSE_SECONDS
        while True:
            try:
                do()
                return
            except sqlite3.OperationalError as error:
                if _kind(error) not in _OTHERS or waited >= self._wait_seconds:
                    raise
            self._pause(seconds)
            waited, seconds = waited + seconds, min(seconds * 1.5, PAUSE_SECONDS_MAX)

    def _undo(self, here: _Connections, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            here.close_writer()

    def _prepare(self, db: sqlite3.Connection) -> None:
        if is_current(db, self.shown):
            return
        # Only a file that has no table yet takes this; so deleted bytes can be given back to the disk.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._retried(lambda: db.execute("PRAGMA journal_mode = WAL"))
        self._begin(db)
        try:
            # Another process may have done it meanwhile.
            if not is_current(db, self.shown):
                migrate(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _make(self) -> None:
        """An empty file of mode 0600; SQLite gives the mode to the files it puts beside it.

        It is closed before it has its name: closing a file takes away the locks that this process holds on it.
        """
        folder = os.path.dirname(self.path)
        temporary = f"{self.path}.{uuid4().hex}.tmp"
        with failures_of(self.path, "made"):
            self._fs.create(temporary).close()
            with suppress(FileExistsError):
                give_name(self._fs, temporary, self.path)
            self._fs.sync_dir(folder)

    # Reading.

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection for queries, each of which sees one state; None where there is no database yet."""
        here, file = self._here, self._identity()
        with self._failures("read"):
            db = None if file is None else here.take(file) or self._reader()
            try:
                yield db
            except BaseException:
                # A query may still be open on it.
                if db is not None:
                    db.close()
                raise
        if db is not None and file is not None:
            here.give(db, file)

    def _reader(self) -> _Connection | None:
        try:
            return self._checked(self._connect())
        except sqlite3.OperationalError as error:
            if _kind(error) not in _REFUSED or self._exists(self.path + _WAL_SUFFIX):
                raise
        # Nobody may write here, and nobody left anything beside it: a copy on a disk that can only be read.
        frozen = self._connect("&immutable=1")
        frozen.is_frozen = True
        return self._checked(frozen)

    def _checked(self, db: _Connection) -> _Connection | None:
        try:
            if is_current(db, self.shown):
                return db
            if db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
                with self.writing():
                    return db
        except BaseException:
            db.close()
            raise
        db.close()
        return None

    # The file.

    def _identity(self) -> FileId | None:
        """Which file the path means now; None where there is none. Raises for what can be no database."""
        try:
            stat = self._fs.stat(self.path)
        except FileNotFoundError:
            self._must_have_folder()
            return None
        except OSError as error:
            with failures_of(self.path, "opened"):
                raise error
        what = what_it_is(stat.st_mode)
        if what is not None:
            raise StorageError(
                f"{self.shown} is {what}, not a file", hint="name a file: sqlite:PATH; it is made where there is none"
            )
        return stat.st_dev, stat.st_ino

    def _must_have_folder(self) -> None:
        folder = os.path.dirname(self.path)
        try:
            is_folder = modes.S_ISDIR(self._fs.stat(folder).st_mode)
        except OSError:
            is_folder = False
        if not is_folder:
            shown = shown_path(folder)
            raise NotFound(f"there is no directory {shown}", hint=f"make it first: mkdir -p {shlex.quote(shown)}")

    def _exists(self, path: str) -> bool:
        try:
            self._fs.stat(path)
        except OSError:
            return False
        return True

    def _connect(self, options: str = "") -> _Connection:
        uri = f"file:{urllib.parse.quote(os.fsencode(self.path))}?mode=rw{options}"
        db = sqlite3.connect(
            uri, uri=True, timeout=self._wait_seconds, isolation_level=None, check_same_thread=False,
            factory=_Connection,
        )  # fmt: skip
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            if sys.platform == "darwin" and self._durability != "none":
                # There fsync leaves the bytes in the cache of the drive.
                db.execute("PRAGMA fullfsync = ON")
        except BaseException:
            db.close()
            raise
        return db

    def sync(self) -> None:
        """Returns when every transaction that was committed before is on the disk."""
        path = self.path + _WAL_SUFFIX
        try:
            # Nobody holds locks on this file, so it may be opened and closed; where it is gone, all of it is in the
            # database, and SQLite saw to that being on the disk.
            with failures_of(path, "flushed"), self._fs.open_append(path, make=False) as file:
                self._fs.sync(file)
        except NotFound:
            return

    def close(self) -> None:
        """Lets go of all connections. They are opened again when they are needed."""
        here = self._here
        with here.lock, self._failures("closed"):
            here.close()

    def leave_to_parent(self) -> None:
        """In a child that a fork made: begins anew, without touching what was open."""
        _INHERITED.append(self._here)
        self._here = _Connections()

    # Failures.

    def _busy(self) -> Busy:
        return Busy(
            f"{self.shown} is being written by others for more than {self._wait_seconds:g} s", hint="try again later"
        )

    @contextmanager
    def _failures(self, done: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.ProgrammingError):
                raise
            raise self._translated(error, done) from error
        except UnicodeDecodeError as error:
            # What SQLite says of a damaged file may quote it.
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> DamagedData:
        quoted = shlex.quote(self.shown)
        hint = f'copy what can be read to another store, or look: sqlite3 {quoted} "PRAGMA integrity_check"'
        return DamagedData(f"{self.shown} is damaged: {reason}", hint=hint)

    def _translated(self, error: sqlite3.DatabaseError, done: str) -> ClewError:
        kind, reason, quoted = _kind(error), str(error), shlex.quote(self.shown)
        if kind in _OTHERS:
            return self._busy()
        if kind == sqlite3.SQLITE_NOTADB:
            return DamagedData(f"{self.shown} is no SQLite database", hint="name another file: sqlite:PATH")
        if kind == sqlite3.SQLITE_CORRUPT:
            return self._damaged(reason)
        if kind == sqlite3.SQLITE_TOOBIG:
            return UsageError(f"{self.shown} cannot hold as much at once: {reason}", hint="give less")
        hint = _HINTS.get(kind, "try again, or look at the file: ls -ld {path}").format(path=quoted)
        said = f"{self.shown} cannot be {done}: {reason}"
        return StorageError(said, hint=hint, is_permanent=kind not in _PASSING)


_OTHERS = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_REFUSED = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
_PASSING = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT})
_HINTS = {
    sqlite3.SQLITE_FULL: "make room on that disk, then do it again: df -h {path}",
    sqlite3.SQLITE_READONLY: "look at who may write it and its directory: ls -ld {path}",
    sqlite3.SQLITE_CANTOPEN: "look at who may read and write it and its directory: ls -ld {path}",
    sqlite3.SQLITE_PERM: "look at who may read it: ls -ld {path}",
    sqlite3.SQLITE_IOERR: "the disk or the network failed: copy the file to a safe place, then try again",
}


def _free_pages(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA freelist_count").fetchone()[0])


def _kind(error: sqlite3.Error) -> int:
    """The primary result code; 0 where Python gives none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _after_fork() -> None:
    for each in _OPEN:
        each.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
