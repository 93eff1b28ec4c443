"""A dedupe store on disk: what one process learned of a long log spares the next one reading it.

One SQLite file, which may be deleted at any time. Whatever happens to it costs speed and never an answer: a file that
is damaged, full or locked for too long is a file that knows nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from clew.engines.contract import LogKey
from clew.engines.dedupe import Known, MemoryDedupe

WAIT_SECONDS = 2.0
"""So long another process may hold the file before it is done without."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL, session TEXT NOT NULL, subpath TEXT NOT NULL,
    generation TEXT NOT NULL, position INTEGER NOT NULL, UNIQUE (project, session, subpath));
CREATE TABLE IF NOT EXISTS row (
    log INTEGER NOT NULL, uuid TEXT NOT NULL, PRIMARY KEY (log, uuid)) WITHOUT ROWID;
"""
_FIND = "SELECT id, generation, position FROM log WHERE project = ? AND session = ? AND subpath = ?"


class DiskDedupe:
    """Keeps the ids in a file of mode 0600, in a directory that is there, and those of this process in memory too.

    Shared by threads and processes. The ids of a log are read when it is first asked for.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = Lock()
        self._memory = MemoryDedupe()
        self._file: sqlite3.Connection | None = None

    def known(self, key: LogKey, generation: str) -> Known | None:
        seen = self._memory.known(key, generation)
        if seen is None:
            with self._lock, contextlib.suppress(sqlite3.Error, OSError, UnicodeError):
                self._load(key, generation)
            seen = self._memory.known(key, generation)
        return seen

    def learn(self, key: LogKey, generation: str, ids: Iterable[str], *, start: int, end: int) -> bool:
        new = tuple(ids)
        if not self._memory.learn(key, generation, new, start=start, end=end):
            return False
        with self._lock, contextlib.suppress(sqlite3.Error, OSError, UnicodeError), self._opened() as file:
            file.execute("BEGIN IMMEDIATE")
            self._add(file, key, generation, new, start, end)
        return True

    def forget(self, key: LogKey) -> None:
        self._memory.forget(key)
        with self._lock, contextlib.suppress(sqlite3.Error, OSError, UnicodeError), self._opened() as file:
            file.execute("BEGIN IMMEDIATE")
            _drop(file, key)

    def close(self) -> None:
        """Lets go of the file. It is opened again when it is needed."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _load(self, key: LogKey, generation: str) -> None:
        with self._opened() as file:
            # One transaction, so that the ids and the position belong together.
            file.execute("BEGIN")
            found = file.execute(_FIND, _names(key)).fetchone()
            if found is not None and found[1] == generation:
                ids = [uuid for (uuid,) in file.execute("SELECT uuid FROM row WHERE log = ?", found[:1])]
                self._memory.learn(key, generation, ids, start=0, end=found[2])

    def _add(
        self, file: sqlite3.Connection, key: LogKey, generation: str, ids: Iterable[str], start: int, end: int
    ) -> None:
        found = file.execute(_FIND, _names(key)).fetchone()
        if found is not None and found[1] != generation:
            _drop(file, key)
            found = None
        if not start <= (0 if found is None else found[2]) <= end:
            # There is a gap, or another process knows more already.
            return
        named = (*_names(key), generation, end)
        if found is None:
            file.execute("INSERT INTO log (project, session, subpath, generation, position) VALUES (?,?,?,?,?)", named)
        else:
            file.execute("UPDATE log SET position = ? WHERE id = ?", (end, found[0]))
        log = file.execute(_FIND, _names(key)).fetchone()[0]
        file.executemany("INSERT OR IGNORE INTO row VALUES (?, ?)", [(log, uuid) for uuid in ids])

    def _opened(self) -> sqlite3.Connection:
        """The file, made or made anew where it is none of ours. As a context manager it ends the transaction."""
        if self._file is None:
            try:
                self._file = _open(self._path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                # Derived data that cannot be read is worth nothing.
                self._path.unlink()
                self._file = _open(self._path)
        return self._file


def _open(path: Path) -> sqlite3.Connection:
    # SQLite gives its other files the mode of this one.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    file = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        # What a crash of the machine takes away is read from the logs again.
        file.execute("PRAGMA synchronous = OFF")
        file.executescript(_SCHEMA)
    except BaseException:
        file.close()
        raise
    return file


def _drop(file: sqlite3.Connection, key: LogKey) -> None:
    found = file.execute(_FIND, _names(key)).fetchone()
    if found is not None:
        file.execute("DELETE FROM row WHERE log = ?", found[:1])
        file.execute("DELETE FROM log WHERE id = ?", found[:1])


def _names(key: LogKey) -> tuple[str, str, str]:
    return key.project, key.session, key.subpath
