"""What a copy is going to do: decided from what is known of both sides, without writing anything."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from clew.engines.contract import BlobStat, LogStat


class Way(Enum):
    """What a plan says of one log or blob."""

    NEW = "new"
    GROW = "grow"
    SAME = "same"
    REPLACE = "replace"
    CONFLICT = "conflict"


class MarkedLog(msgspec.Struct, frozen=True):
    """A log as a copy left it: the revisions of both sides, and how many bytes are the same."""

    source: str
    target: str
    size_bytes: int


class MarkedBlob(msgspec.Struct, frozen=True):
    """A blob as a copy left it at the target."""

    size_bytes: int
    modified_ns: int


class Mark(msgspec.Struct, frozen=True):
    """What a copy left of a session: logs by subpath, blobs by kind and name."""

    logs: dict[str, MarkedLog] = {}
    blobs: dict[str, MarkedBlob] = {}


class LogStep(msgspec.Struct, frozen=True):
    """What is to be done for a log: the bytes from `start` up to the size that `stat` has."""

    stat: LogStat
    way: Way
    start: int = 0
    expect: str = ""
    """The revision at the target that may be replaced."""
    reason: str = ""


class BlobStep(msgspec.Struct, frozen=True):
    """What is to be done for a blob."""

    stat: BlobStat
    way: Way
    reason: str = ""


def plan_log(
    source: LogStat,
    target: LogStat | None,
    marked: MarkedLog | None,
    *,
    is_trusted: bool,
    same_up_to: Callable[[], int],
) -> LogStep:
    """What is to be done for a log. `same_up_to` counts the bytes that both begin with; it is asked only if needed.

    `is_trusted`: both sides are what the mark says, as far as their revisions and their ends can tell.
    """
    if target is None:
        return LogStep(source, Way.NEW)
    if marked is not None and is_trusted:
        if source.revision == marked.source:
            return LogStep(source, Way.SAME)
        if source.size_bytes > target.size_bytes:
            return LogStep(source, Way.GROW, target.size_bytes)
    same = same_up_to()
    if same == source.size_bytes:
        # The target may have more by now; nothing of the source is missing there.
        return LogStep(source, Way.SAME)
    if same == target.size_bytes:
        return LogStep(source, Way.GROW, same)
    # A log that was put in the place of another is one that a program wrote on purpose. One that changed in itself,
    # which no program does that appends, is damaged: the copy is then what is left of it.
    if marked is not None and marked.target == target.revision and log_name(source.revision) != log_name(marked.source):
        return LogStep(source, Way.REPLACE, expect=target.revision)
    reason = f"the logs differ from byte {same} on: {source.size_bytes} bytes there, {target.size_bytes} here"
    return LogStep(source, Way.CONFLICT, reason=reason)


def log_name(revision: str) -> str:
    """What tells this log from an earlier or later one of the same key."""
    return revision.partition("-")[0]


def plan_blob(
    source: BlobStat, target: BlobStat | None, marked: MarkedBlob | None, is_same: Callable[[], bool]
) -> BlobStep:
    """What is to be done for a blob. `is_same` compares the contents; it is asked only if needed.

    Without digests, equal sizes and times are taken for equal contents: a copy gives the time of its source.
    """
    if target is None:
        return BlobStep(source, Way.NEW)
    if source.size_bytes == target.size_bytes:
        if source.digest is not None and target.digest is not None:
            is_equal = source.digest == target.digest
        else:
            is_equal = source.modified_ns == target.modified_ns or is_same()
        if is_equal:
            return BlobStep(source, Way.SAME)
    if marked == MarkedBlob(target.size_bytes, target.modified_ns):
        return BlobStep(source, Way.REPLACE)
    reason = f"it differs: {source.size_bytes} bytes there, {target.size_bytes} here"
    return BlobStep(source, Way.CONFLICT, reason=reason)
