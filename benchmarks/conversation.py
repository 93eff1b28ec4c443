"""From the file of a session to its messages, against parsing its lines alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

import clew
from benchmarks.harness import Bench, Goal, Measured, largest_log
from clew.engines.files import FilesEngine
from clew.engines.files_reader import CHUNK_BYTES

GOAL = Goal(0.1)
GOAL_BYTES = 25_000_000
"""The goal is meant for a session of 24 MB; a larger one has none."""


def measure(bench: Bench) -> Iterator[Measured]:
    """Every round opens the store anew; nothing that an earlier one made is used."""
    config = bench.one_session()
    stat = largest_log(config)
    path = FilesEngine(config).path_of(stat.key)

    def session() -> clew.Session:
        return clew.open(config).session(path)

    taken = bench.processor_seconds(
        chain=lambda: session().chain(), messages=lambda: session().messages(), dicts=lambda: _dicts(path)
    )
    size, goal = f"{stat.size_bytes / 1e6:.1f} MB", GOAL if stat.size_bytes <= GOAL_BYTES else None
    against = "orjson.loads of each line, held"
    yield Measured(f"chain of {size}", taken["chain"], taken["dicts"], against, goal)
    yield Measured(f"chain and messages of {size}", taken["messages"], taken["dicts"], against, goal)


def _dicts(path: Path) -> list[object]:
    with open(path, "rb", CHUNK_BYTES) as file:
        return [*map(orjson.loads, file)]
