"""Logs that are removed for good: out of sight at once, then out of the search index and out of the file.

Forgetting the words of a line costs as much as learning them did, so it is done a part at a time, and others write in
between. What a crash leaves is out of sight, and goes with the next removal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from clew.engines import sqlite_search
from clew.engines.sqlite_file import SqliteFile
from clew.engines.sqlite_schema import ids_of

PIECES_AT_ONCE = 256

_REMOVED = "aside IS NOT NULL AND aside >= x'FF'"


def hide(db: sqlite3.Connection, where: str, values: Sequence[object]) -> int:
    """Takes the logs that a condition selects out of sight for good. Returns how many there were."""
    logs = db.execute(f"SELECT id FROM log WHERE {where}", values).fetchall()
    for (log,) in logs:
        # No operation has such a name: this byte stands in no UTF-8.
        db.execute("UPDATE log SET aside = ? WHERE id = ?", (b"\xff%d" % log, log))
    return len(logs)


def sweep(file: SqliteFile, line_bytes_max: int) -> None:
    """Frees everything that was hidden."""
    while _is_any(file):
        with file.writing() as db:
            row = db.execute(f"SELECT id FROM log WHERE {_REMOVED} LIMIT 1").fetchone()
            if row is not None and not sqlite_search.forget(db, row[0], line_bytes_max):
                _free(db, row[0])


def _is_any(file: SqliteFile) -> bool:
    with file.reading() as db:
        return db is not None and db.execute(f"SELECT 1 FROM log WHERE {_REMOVED} LIMIT 1").fetchone() is not None


def _free(db: sqlite3.Connection, log: int) -> None:
    some = "SELECT id FROM piece WHERE id BETWEEN ? AND ? LIMIT ?"
    freed = db.execute(f"DELETE FROM piece WHERE id IN ({some})", (*ids_of(log), PIECES_AT_ONCE)).rowcount
    if freed < PIECES_AT_ONCE:
        for table in ("dedupe", "batch"):
            db.execute(f"DELETE FROM {table} WHERE log = ?", (log,))
        db.execute("DELETE FROM log WHERE id = ?", (log,))
