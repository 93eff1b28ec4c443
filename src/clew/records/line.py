"""A line of a log, as bytes with its place."""

from __future__ import annotations

import msgspec

LINE_BYTES_MAX = 64 * 1024 * 1024
"""A longer line is never held in memory: it stays a range of its log. The real client loads a row of 60 MB."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line with its terminator, which the last line of a log may lack.

    `position` is where its log continues reading from this line: opaque and ordered (on files it is the byte offset).
    `number` counts from 1. A line longer than the limit has `data == b""` and its true `size`.
    """

    data: bytes
    position: int
    number: int
    size: int

    @property
    def is_held(self) -> bool:
        """False for a line over the limit, whose bytes must be read as a range of the log."""
        return len(self.data) == self.size

    @property
    def is_terminated(self) -> bool:
        return self.data.endswith(b"\n")
