"""What truncating a session costs beyond reading it: planning where its head goes. The write itself is one append."""

from __future__ import annotations

from collections.abc import Iterator

import clew
from benchmarks.harness import Bench, Measured, largest_log
from clew.engines.files import FilesEngine


def measure(bench: Bench) -> Iterator[Measured]:
    """Every round opens the store anew, and changes nothing."""
    config = bench.one_session()
    stat = largest_log(config)
    path = FilesEngine(config).path_of(stat.key)

    def session() -> clew.Session:
        return clew.open(config).session(path)

    taken = bench.processor_seconds(
        planned=lambda: session().truncate("turn:-2", dry_run=True), messages=lambda: session().messages()
    )
    what = f"read {stat.size_bytes / 1e6:.1f} MB and plan a truncation"
    yield Measured(what, taken["planned"], taken["messages"], "read it and make the messages")
