"""Every wrapper keeps the contract of what it wraps, alone and over other wrappers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clew.engines.contract import Engine
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.backoff import Backoff
from clew.engines.wrap.base import Wrapper
from clew.engines.wrap.faulty import Faulty, at, seeded
from clew.engines.wrap.logged import Logged
from clew.engines.wrap.mirror import Mirror, MirrorState
from clew.engines.wrap.read_only import ReadOnly
from clew.engines.wrap.retry import Retry
from clew.engines.wrap.scratch import Scratch
from clew.records.line import LINE_BYTES_MAX
from clew.testing.conformance import EngineConformance, ListConformance, ReadConformance

SEED = 20261119
CHANGES = (
    "append", "extend", "replace", "delete", "set_aside", "bring_back", "free_aside", "put", "delete_blob",
)  # fmt: skip
AT_ONCE = Backoff(tries_max=40, first_seconds=0.0)
FAULTS = {
    # What an append, or bringing back, counts after a lost answer is not what it counts without one.
    "": ("before", "after", "during"), "append": ("before",), "bring_back": ("before",), "free_aside": ("before",),
}  # fmt: skip


def memory(line_bytes_max: int = LINE_BYTES_MAX) -> MemoryEngine:
    return MemoryEngine(clock=lambda: datetime.now(UTC), line_bytes_max=line_bytes_max)


def files(place: Path, line_bytes_max: int = LINE_BYTES_MAX) -> FilesEngine:
    return FilesEngine(place, line_bytes_max=line_bytes_max, durability="none")


def retried(inner: Engine) -> Engine:
    """A tenth of all calls fail, each in a way that can be made good."""
    return Retry(Faulty(inner, seeded(SEED, when=FAULTS)), backoff=AT_ONCE)


class OverMemory(EngineConformance):
    is_kept = False

    def wrapped(self, inner: Engine) -> Engine:
        raise NotImplementedError

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:  # noqa: ARG002
        return self.wrapped(memory(line_bytes_max))


class OverFiles(OverMemory):
    is_kept = True

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return self.wrapped(files(place, line_bytes_max))


class TestBase(OverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        return Wrapper(inner)


class TestRetry(OverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        return Retry(inner)


class TestRetryOverFaulty(OverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        return retried(inner)


class TestRetryOverFaultyFiles(OverFiles):
    def wrapped(self, inner: Engine) -> Engine:
        return retried(inner)


class TestFaultyWithoutFaults(OverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        return Faulty(inner, at())


class TestLogged(OverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        return Logged(inner, clock=time.perf_counter)


class MirrorOverMemory(OverMemory):
    """Whatever a test did, the remote place holds the same when the mirror is closed."""

    @pytest.fixture(autouse=True)
    def both_hold_the_same(self) -> Iterator[None]:
        self.pairs: list[tuple[Mirror, Engine]] = []
        yield
        assert self.pairs
        for mirror, remote in self.pairs:
            mirror.close()
            assert mirror.state == MirrorState(0, {}, 0)
            assert holdings(remote) == holdings(mirror.inner)

    def mirrored(self, inner: Engine, remote: Engine, to: Engine) -> Engine:
        mirror = Mirror(inner, to, backoff=AT_ONCE)
        self.pairs.append((mirror, remote))
        return mirror


def holdings(engine: Engine) -> dict[object, bytes]:
    """Everything in a store whose sessions have a main log."""
    found: dict[object, bytes] = {}
    for stat in engine.list():
        for log in (stat, *engine.list_sub(stat.key)):
            found[log.key] = b"".join(engine.read_range(log.key, position=0, size=log.size_bytes))
        for blob in engine.blobs(stat.key):
            found[blob.key] = blob.digest or b"".join(engine.open(blob.key))
    return found


class TestMirrorToMemory(MirrorOverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        remote = memory()
        return self.mirrored(inner, remote, remote)


class TestMirrorToAPlaceThatFails(MirrorOverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        remote = memory()
        return self.mirrored(inner, remote, Faulty(remote, seeded(SEED, rate=0.3)))


class TestMirrorOverFiles(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        remote = place.parent.parent / "remote"
        remote.mkdir(exist_ok=True)
        return Mirror(files(place, line_bytes_max), files(remote), backoff=AT_ONCE)


class TestScratch(EngineConformance):
    is_kept = False

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:  # noqa: ARG002
        return Scratch(memory(line_bytes_max), clock=lambda: datetime.now(UTC), line_bytes_max=line_bytes_max)


class TestScratchOverFiles(EngineConformance):
    is_kept = False

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        inner = files(place, line_bytes_max)
        return Scratch(inner, clock=lambda: datetime.now(UTC), line_bytes_max=line_bytes_max)

    @pytest.fixture(autouse=True)
    def nothing_is_written(self, place: Path) -> Iterator[None]:
        yield
        assert [*place.rglob("*")] == []


class TestAllOfThem(OverMemory):
    def wrapped(self, inner: Engine) -> Engine:
        return Logged(Mirror(Retry(Wrapper(inner)), memory()), clock=time.perf_counter)


class WrittenBelow(Wrapper):
    """Reads through a wrapper and writes below it."""

    def __init__(self, inner: Engine, below: Engine) -> None:
        super().__init__(inner)
        self.below = below


def _below(name: str) -> Callable[..., Any]:
    return lambda self, *given, **named: getattr(self.below, name)(*given, **named)


for _name in CHANGES:
    setattr(WrittenBelow, _name, _below(_name))


class ReadingHalf(ReadConformance, ListConformance):
    def wrapped(self, inner: Engine) -> Engine:
        raise NotImplementedError

    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        inner = files(place, line_bytes_max)
        return WrittenBelow(self.wrapped(inner), inner)


class TestLoggedReadOnly(ReadingHalf):
    def wrapped(self, inner: Engine) -> Engine:
        return Logged(ReadOnly(inner), clock=time.perf_counter)


class TestScratchReadsWhatIsInside(ReadingHalf):
    def wrapped(self, inner: Engine) -> Engine:
        return Scratch(inner)
