"""The conformance suite: what `engines/contract.py` says that an engine MUST and MUST NOT do, as tests to inherit.

An engine, or a wrapper around one, passes when a subclass does that says how it is opened:

    class TestMyEngine(EngineConformance):
        def open_engine(self, place, *, line_bytes_max=LINE_BYTES_MAX):
            return MyEngine(place / "store", line_bytes_max=line_bytes_max)

What engines differ in is read from `engine.capabilities`, never from their class. Parts can be inherited alone:

    AppendConformance     order, writing once, exact retries, expectations, summaries, times, torn ends
    ExtendConformance     raw bytes into a log
    ReplaceConformance    other bytes in the place of a log
    DeleteConformance     gone for good, sublogs along
    ReadConformance       every byte once, places, ranges, newest first, lines over the limit
    ListConformance       orders, limits, sublogs, projects, ids, names that are data
    BlobConformance       content under names
    AsideConformance      setting aside, bringing back, freeing
    SharingConformance    threads, several engines on one store, watching, closing
    ProcessConformance    child processes that write and read at the same time

Whoever passes `AppendConformance`, `ReadConformance`, `ListConformance` and `DeleteConformance` does more than the
session stores of the agent SDKs are asked for. Two tests carry the mark `slow`, which the project that
runs the suite declares: one writes 50 MB, one appends 4,000 times from eight processes.
"""

from __future__ import annotations

from clew.testing.conformance_appends import AppendConformance
from clew.testing.conformance_base import EngineUnderTest
from clew.testing.conformance_blobs import AsideConformance, BlobConformance
from clew.testing.conformance_bytes import DeleteConformance, ExtendConformance, ReplaceConformance
from clew.testing.conformance_reads import ListConformance, ReadConformance
from clew.testing.conformance_sharing import SharingConformance
from clew.testing.processes import ProcessConformance

__all__ = [
    "AppendConformance", "AsideConformance", "BlobConformance", "DeleteConformance", "EngineConformance",
    "EngineUnderTest", "ExtendConformance", "ListConformance", "ProcessConformance", "ReadConformance",
    "ReplaceConformance", "SharingConformance",
]  # fmt: skip


class EngineConformance(
    AppendConformance,
    ExtendConformance,
    ReplaceConformance,
    DeleteConformance,
    ReadConformance,
    ListConformance,
    BlobConformance,
    AsideConformance,
    SharingConformance,
    ProcessConformance,
):
    """All of it."""
