"""Durable appends to a SQLite file, against plain INSERT statements of the same rows with the same settings.

The baseline is what somebody would write who needs no more than rows in a table: one transaction for what is appended
at once, no ids that are written once, no revision, no times.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from uuid import uuid4

from benchmarks.harness import Bench, Goal, Measured
from clew.engines.contract import Entry, LogKey
from clew.engines.sqlite import SqliteEngine
from clew.records.compact import compact
from clew.testing.corpus import user

TEXT = "The cookie is set on another domain, so the browser drops it. " * 10
BATCHES = 40
GOAL = Goal(1 / 0.6, of_ratio=True)
"""60 % of the speed of the baseline."""


def measure(bench: Bench) -> Iterator[Measured]:
    """Rows one by one, and batches of 100."""
    place = bench.place / "inserting"
    place.mkdir()
    inserting = Inserting(place)
    yield from inserting.measured(bench, bench.appends, 1, "rows")
    yield from inserting.measured(bench, min(bench.appends, BATCHES), 100, "batches of 100 rows")


class Inserting:
    """The same rows into two files. Every run has a new session."""

    def __init__(self, place: Path) -> None:
        self._numbers = count()
        self._engine = SqliteEngine(place / "ours.db")
        self._plain = _plain(place / "plain.db")

    def measured(self, bench: Bench, times: int, size: int, told: str) -> Iterator[Measured]:
        """So many times, so many rows at once."""
        batches = [[_row() for _ in range(size)] for _ in range(times)]
        taken = bench.seconds(ours=lambda: self.ours(batches), plain=lambda: self.plain(batches))
        yield Measured(f"{times} {told}, sqlite, durable", taken["ours"], taken["plain"], "INSERT", GOAL)

    def ours(self, batches: Sequence[Sequence[Entry]]) -> None:
        """By the engine."""
        key = LogKey("p", str(next(self._numbers)))
        for batch in batches:
            self._engine.append(key, batch)

    def plain(self, batches: Sequence[Sequence[Entry]]) -> None:
        """By INSERT statements."""
        name = str(next(self._numbers))
        for batch in batches:
            self._plain.execute("BEGIN IMMEDIATE")
            rows = [(name, entry.data) for entry in batch]
            self._plain.executemany("INSERT INTO row (session, data) VALUES (?, ?)", rows)
            self._plain.execute("COMMIT")


def _plain(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, session TEXT NOT NULL, data BLOB NOT NULL)")
    return db


def _row() -> Entry:
    # As the client's are: ids that count up would all be at one place of the index.
    uuid = str(uuid4())
    return Entry(compact(user(TEXT, uuid=uuid, parent=None)), uuid)
