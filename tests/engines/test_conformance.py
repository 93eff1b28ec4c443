"""Every engine does what the contract says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from clew.engines.contract import Engine
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.records.line import LINE_BYTES_MAX
from clew.testing.conformance import AppendConformance, EngineConformance, SharingConformance


class TestMemory(EngineConformance):
    is_kept = False

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:  # noqa: ARG002
        return MemoryEngine(clock=lambda: datetime.now(UTC), line_bytes_max=line_bytes_max)


class TestFiles(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return FilesEngine(place, line_bytes_max=line_bytes_max, durability="none")


class TestDurableFiles(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return FilesEngine(place, line_bytes_max=line_bytes_max)


class TestFlushedFiles(AppendConformance, SharingConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return FilesEngine(place, line_bytes_max=line_bytes_max, durability="flush")
