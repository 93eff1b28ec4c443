"""Lines of a session into records, against the fastest way to make plain dicts of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec
import orjson

from benchmarks.harness import Bench, Goal, Measured, largest_log
from clew.engines.files import FilesEngine
from clew.engines.files_reader import CHUNK_BYTES
from clew.records.codec import decode_lines
from clew.records.record import Row

GOAL = Goal(0.7, of_ratio=True)
AGAINST = "orjson.loads of each line"
BUFFER_BYTES = CHUNK_BYTES
"""All read the file in pieces of one size: with a small one the baseline would be slower by a tenth."""


class TenFields(msgspec.Struct, gc=False, rename="camel"):
    """What a reader keeps that wants to know where rows belong: no bytes, no positions, and no odd lines."""

    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    is_meta: bool | None = None
    subtype: str | None = None
    leaf_uuid: str | None = None


def measure(bench: Bench) -> Iterator[Measured]:
    """Every way reads the file itself. What it makes of a line is let go before the next one, or all of it is held."""
    config = bench.one_session()
    engine, stat = FilesEngine(config), largest_log(config)
    path, bare = engine.path_of(stat.key), msgspec.json.Decoder(TenFields).decode

    def rows() -> Iterator[Row]:
        return decode_lines(engine.read(stat.key))

    def dicts() -> Iterator[object]:
        with open(path, "rb", BUFFER_BYTES) as file:
            yield from map(orjson.loads, file)

    def fields() -> Iterator[TenFields]:
        with open(path, "rb", BUFFER_BYTES) as file:
            yield from map(bare, file)

    size = f"{stat.size_bytes / 1e6:.1f} MB"
    taken = bench.processor_seconds(
        ours=lambda: _drained(rows()), orjson=lambda: _drained(dicts()), bare=lambda: _drained(fields())
    )
    yield Measured(f"decode {size}, a row at a time", taken["ours"], taken["orjson"], AGAINST, GOAL)
    yield Measured("the same, bare structs of ten fields", taken["bare"], taken["orjson"], AGAINST)
    taken = bench.processor_seconds(ours=lambda: [*rows()], orjson=lambda: [*dicts()])
    yield Measured(f"decode {size}, all rows held", taken["ours"], taken["orjson"], AGAINST, GOAL)


def _drained(found: Iterator[object]) -> None:
    deque(found, maxlen=0)
