"""What a place that holds logs must do. This is the reading half; writing comes with the one write path.

An engine answers with bytes and knows nothing of what they mean. Names in a key are data: an engine on disk refuses or
encodes what is no safe file name, and never joins it to a path unchecked.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Protocol

import msgspec

from clew.records.line import Line


class LogKey(msgspec.Struct, frozen=True, order=True):
    """The address of a log. `subpath` is "" for the main log, else like "subagents/agent-a1b2"."""

    project: str
    session: str
    subpath: str = ""

    @property
    def main(self) -> LogKey:
        """The main log of the same session."""
        return LogKey(self.project, self.session)


class LogStat(msgspec.Struct, frozen=True):
    """What is known of a log without reading it. `modified_ns` is a point in time in nanoseconds since 1970."""

    key: LogKey
    revision: str
    size_bytes: int
    modified_ns: int


class Order(Enum):
    """How `list` sorts: by last change or by key, so that equal times still have one order."""

    NEWEST_FIRST = "newest"
    OLDEST_FIRST = "oldest"
    BY_KEY = "key"


class LogStore(Protocol):
    """Reads logs.

    A read MUST give every byte that was in the log when it began, in order, once, and MUST NOT give a part of a line
    that a writer finished before. Lines appended while it runs MAY be missing. Memory MUST NOT grow with the log.
    """

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """Lines from `start` (a position that `read` gave, or 0) up to but without `end`.

        Raises `NotFound` when there is no such log. The last line may lack its terminator; it is then either torn or
        still being written. Line numbers count from the first line read.
        """
        ...

    def read_back(self, key: LogKey) -> Iterator[Line]:
        """The same lines, newest first. `number` is 0: counting would mean reading everything."""
        ...

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        """The bytes of a range in chunks, for lines that are too long to hold."""
        ...

    def stat(self, key: LogKey) -> LogStat | None:
        """None when there is no such log."""
        ...

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        """Main logs, of one project or of all."""
        ...

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        """The other logs of the session, by key."""
        ...
