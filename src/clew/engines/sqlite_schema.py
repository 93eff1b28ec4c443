"""What the tables of `sqlite:PATH` are, and how a file that an earlier version made gets those of this one.

A migration has a name and is applied once, in the order they stand here; the file says which it has. None is ever
changed: what must be different is a further one. docs/design/0007-sqlite.md says what was measured.

    log      a log. `id` is never used again, so it tells a log from a later one under the same key. `tail` is where
             the last line begins while it lacks its newline, else the size; `learned` how far the ids of its lines
             are in `dedupe`; `lower_session` the id of a main log, to find it by in any case; `aside` the operation
             that took it away. No partial index compares a name: each query would be prepared anew, 7 µs
    piece    the bytes of all logs, each once. `id` is the log and the position in it, so the pieces of a log lie
             together in order and need no index. Where one ends says nothing of lines
    dedupe   the ids of lines that are written once, and where the first line of each begins; unknown (null) of what
             was appended before there was a place for it
    batch    the last batches of a log
    content  what blobs hold, by digest. Without data it is a file of that name beside the database
    blob     names for content

Names are bytes: UTF-8 that may hold lone surrogates, compared and sorted as the characters are.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

from clew.errors import DamagedData, UsageError

APPLICATION_ID = 0x636C6577
"""Says in the header of the file whose it is: "clew"."""
POSITION_BITS = 36
"""A log has at most 64 GiB, and a file 2**27 logs in its life."""
LOGS_MAX = 2 ** (63 - POSITION_BITS)
LOG_BYTES_MAX = 2**POSITION_BITS

MIGRATIONS: Mapping[str, tuple[str, ...]] = {
    "0001 logs": (
        """CREATE TABLE log (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            project BLOB NOT NULL, session BLOB NOT NULL, subpath BLOB NOT NULL, lower_session BLOB,
            size INTEGER NOT NULL, tail INTEGER NOT NULL, learned INTEGER NOT NULL,
            modified_ns INTEGER NOT NULL, batches INTEGER NOT NULL, aside BLOB, summary BLOB) STRICT""",
        # Beginning anywhere tells the logs of this file from those of one that stood here before.
        f"INSERT INTO sqlite_sequence VALUES ('log', abs(random() % {LOGS_MAX // 2}))",
        "CREATE UNIQUE INDEX log_by_key ON log (project, session, subpath) WHERE aside IS NULL",
        "CREATE INDEX log_by_session ON log (lower_session) WHERE aside IS NULL",
        "CREATE UNIQUE INDEX log_aside ON log (aside, project, session, subpath) WHERE aside IS NOT NULL",
        "CREATE TABLE piece (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
        """CREATE TABLE dedupe (log INTEGER NOT NULL, uuid BLOB NOT NULL, PRIMARY KEY (log, uuid))
            STRICT, WITHOUT ROWID""",
        """CREATE TABLE batch (log INTEGER NOT NULL, name BLOB NOT NULL, number INTEGER NOT NULL,
            PRIMARY KEY (log, name)) STRICT, WITHOUT ROWID""",
    ),
    "0002 blobs": (
        """CREATE TABLE content (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB)
            STRICT""",
        """CREATE TABLE blob (
            id INTEGER PRIMARY KEY,
            project BLOB NOT NULL, session BLOB NOT NULL, kind BLOB NOT NULL, name BLOB NOT NULL,
            content INTEGER NOT NULL, mode INTEGER NOT NULL, modified_ns INTEGER NOT NULL, aside BLOB) STRICT""",
        "CREATE UNIQUE INDEX blob_by_key ON blob (project, session, kind, name) WHERE aside IS NULL",
        "CREATE UNIQUE INDEX blob_aside ON blob (aside, project, session, kind, name) WHERE aside IS NOT NULL",
        "CREATE INDEX blob_by_content ON blob (content)",
    ),
    "0003 positions": ("ALTER TABLE dedupe ADD COLUMN position INTEGER",),
}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_APPLIED = "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID"


def is_current(db: sqlite3.Connection, where: str) -> bool:
    """Whether the file has all the tables. Raises `DamagedData` for a database of another program, and `UsageError` for
    one of a later version.
    """
    tables = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return False
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID or "migration" not in tables:
        raise DamagedData(f"{where} is a database of another program", hint="name another file: sqlite:PATH")
    applied = {str(name) for (name,) in db.execute("SELECT name FROM migration")}
    later = sorted(applied - MIGRATIONS.keys())
    if later:
        raise UsageError(
            f"{where} was made by a later version of clew: this one does not know {later[0]!r}",
            hint="pip install --upgrade clew",
        )
    return applied == MIGRATIONS.keys()


def migrate(db: sqlite3.Connection) -> None:
    """Applies what is missing. The caller holds the write lock of the file, and what fails undoes all of it."""
    db.execute(_APPLIED)
    applied = {str(name) for (name,) in db.execute("SELECT name FROM migration")}
    for name, statements in MIGRATIONS.items():
        if name not in applied:
            for statement in statements:
                db.execute(statement)
            db.execute("INSERT INTO migration VALUES (?)", (name,))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def packed(name: str) -> bytes:
    """A name as the tables hold it."""
    return name.encode("utf-8", "surrogatepass")


def packed_uuid(uuid: str) -> bytes:
    """An id as `dedupe` holds it: nearly all are UUIDs, which are half as long so."""
    return b"u" + bytes.fromhex(uuid.replace("-", "")) if _UUID.fullmatch(uuid) else b"=" + packed(uuid)


def unpacked(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def first_id(log: int, position: int = 0) -> int:
    """What a piece at that position is called."""
    return log << POSITION_BITS | position


def ids_of(log: int) -> tuple[int, int]:
    """The first and the last that a piece of that log can be called."""
    return first_id(log), first_id(log, LOG_BYTES_MAX - 1)
