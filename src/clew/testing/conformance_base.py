"""What the classes of the conformance suite share: how they get an engine, and the lines they write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from clew.engines.contract import BlobKey, BlobStat, Engine, Entry, LogKey, LogStat
from clew.records.line import LINE_BYTES_MAX

PROJECT = "-home-a-project"
OTHER = "-home-another"
S1, S2, S3 = (f"{letter * 8}-0000-4000-8000-000000000001" for letter in "abc")
MAIN = LogKey(PROJECT, S1)
SUB1 = LogKey(PROJECT, S1, "subagents/agent-a1")
SUB2 = LogKey(PROJECT, S1, "subagents/workflows/run/agent-b2")
LONG_AGO_NS = 1_700_000_000_000_000_000
"""A last line without a newline that was written then is being written by nobody any more."""


class EngineUnderTest:
    """How the suite gets an engine. A subclass says `open_engine`; everything else has a default."""

    is_kept: ClassVar[bool] = True
    """Whether an engine that is opened again in the same directory has what was written there."""

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        """An engine that keeps everything below `place`, an existing directory. Called again with the same directory it
        opens the same store. An engine without a limit for lines ignores `line_bytes_max`.
        """
        raise NotImplementedError("say how an engine is opened: def open_engine(self, place, *, line_bytes_max=...)")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """The directory of the engine: empty, with nothing of anybody else beside it."""
        place = tmp_path / "around" / "store"
        place.mkdir(parents=True, mode=0o700)
        return place

    @pytest.fixture
    def engine(self, place: Path) -> Iterator[Engine]:
        """An engine with nothing in it, closed when the test ends."""
        engine = self.open_engine(place)
        try:
            yield engine
        finally:
            engine.close()

    def reopened(self, engine: Engine, place: Path) -> Engine:
        """What another start of the program finds; the engine itself where nothing is kept."""
        if not self.is_kept:
            return engine
        engine.close()
        return self.open_engine(place)

    def second(self, engine: Engine, place: Path) -> Engine:
        """Another engine on the same store, as another process would have it; skips where there can be none."""
        if not (self.is_kept and engine.capabilities.is_shared):
            pytest.skip("a store of one process")
        return self.open_engine(place)


def line_of(**fields: object) -> bytes:
    """A compact JSON object, as bytes without a newline."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def uuid_of(number: int) -> str:
    """The uuid that `row` gives to its line."""
    return f"{number:08x}-1111-4111-8111-111111111111"


def row(number: int, text: str = "") -> Entry:
    """A line that is written once."""
    uuid = uuid_of(number)
    return Entry(line_of(type="user", uuid=uuid, message={"role": "user", "content": text or f"line {number}"}), uuid)


def rows(*numbers: int) -> list[Entry]:
    """Lines that are written once each."""
    return [row(number) for number in numbers]


def note(number: int = 0) -> Entry:
    """A line that may stand in a log as often as it is appended."""
    return Entry(line_of(type="mode", n=number))


def bytes_of(entries: Iterable[Entry]) -> bytes:
    """What a log holds that nothing but these was appended to."""
    return b"".join(entry.data + b"\n" for entry in entries)


def content_of(engine: Engine, key: LogKey) -> bytes:
    """Everything a log holds. A line over the limit is read as a range."""
    return b"".join(
        line.data if line.is_held else b"".join(engine.read_range(key, position=line.position, size=line.size))
        for line in engine.read(key)
    )


def keys_of(stats: Iterable[LogStat] | Iterable[BlobStat]) -> Sequence[LogKey | BlobKey]:
    """The keys of what a listing gave, in its order."""
    return [stat.key for stat in stats]


def everything_of(engine: Engine, session: LogKey) -> dict[LogKey | BlobKey, bytes]:
    """The content of every log and every blob of a session."""
    logs = [session.main, *(stat.key for stat in engine.list_sub(session))]
    found: dict[LogKey | BlobKey, bytes] = {
        key: content_of(engine, key) for key in logs if engine.stat(key) is not None
    }
    return found | {stat.key: b"".join(engine.open(stat.key)) for stat in engine.blobs(session)}


def blob(name: str = "one", kind: str = "checkpoint", session: str = S1, project: str = PROJECT) -> BlobKey:
    """The address of a blob of a kind that is clew's own."""
    return BlobKey(project, session, kind, name)


def files_around(place: Path) -> dict[str, bytes]:
    """Every file beside the directory of a store, for tests that look whether one was made outside."""
    around = place.parent
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(around):
        if Path(folder) == around:
            folders[:] = [name for name in folders if name != place.name]
        for name in names:
            path = Path(folder, name)
            found[str(path.relative_to(around))] = path.read_bytes()
    return found
