"""The engine on one SQLite file: all that the contract says, and what is its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from clew.engines.contract import Engine
from clew.engines.sqlite import SqliteEngine
from clew.records.line import LINE_BYTES_MAX
from clew.testing.conformance import EngineConformance


def now() -> datetime:
    return datetime.now(UTC)


class TestSqlite(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return SqliteEngine(place / "sessions.db", clock=now, line_bytes_max=line_bytes_max, durability="none")


class TestDurableSqlite(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return SqliteEngine(place / "sessions.db", clock=now, line_bytes_max=line_bytes_max)


class TestFlushedSqlite(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return SqliteEngine(place / "sessions.db", clock=now, line_bytes_max=line_bytes_max, durability="flush")
