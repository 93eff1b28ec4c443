"""How lines get to the end of a file that another program appends to as well.

The client opens, writes once and closes; it takes no lock, so ours only orders our own processes. What keeps its rows
whole: each append is one write of whole lines; it follows a newline, or ends a line that nobody is writing any more;
and while the end is looked at and written, a lease of the system keeps others from opening the file, where it can.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress

import msgspec

from clew.engines.filesystem import FileSystem, shown_path, translated
from clew.engines.lines import chunks_of
from clew.errors import Busy, StorageError

IN_FLIGHT_NS = 2_000_000_000
"""A last line without a newline belongs to whoever writes it, as long as the file changed within this time."""
WAIT_SECONDS_MAX = 6.0
"""So long an append waits for such a line; then it is `Busy`."""
WAIT_SECONDS = 0.02
LEASE_TRIES_MAX = 8
"""So often a lease is asked for while another has the file open, mostly a reader; then it goes without."""
LEASE_SECONDS = 0.0005

ENDED = "ended a line that another program had left without a newline"
DISTURBED = "another program wrote at the same moment, so the rows were written once more, on lines of their own"


class Placed(msgspec.Struct, frozen=True):
    """Where rows stand now: from `start` to `end`, and how the file was before and right after."""

    start: int
    end: int
    before: os.stat_result
    after: os.stat_result
    notes: tuple[str, ...] = ()


class Waiting(msgspec.Struct, frozen=True):
    """How to wait, and what the time is by the clock of the disk, so that both sides of a comparison have one clock."""

    pause: Callable[[float], None]
    now_ns: Callable[[], int]


def place_at_end(fs: FileSystem, waiting: Waiting, path: str, file: io.RawIOBase, rows: bytes) -> Placed:
    """Appends whole lines, in one write. Raises `Busy` when the last line stays unfinished and keeps moving.

    Where the disk is full, what was begun is ended as a malformed line if there is room for a newline, else by the next
    append.
    """
    waited, tries = 0.0, 0
    while True:
        with fs.lease(file) as is_alone:
            if is_alone is False and tries < LEASE_TRIES_MAX:
                seconds, tries = LEASE_SECONDS, tries + 1
            else:
                before = fs.size_and_time(file)
                is_torn = not _ends_line(file, before.st_size)
                if not is_torn or waiting.now_ns() - before.st_mtime_ns >= IN_FLIGHT_NS:
                    return _write(fs, path, file, rows, before, is_torn=is_torn, is_alone=is_alone is True)
                seconds, tries = WAIT_SECONDS, 0
        waited += seconds
        if waited > WAIT_SECONDS_MAX:
            raise Busy(
                f"{shown_path(path)} ends in the middle of a line that another program is still writing",
                hint="do it again when that program is done",
            )
        waiting.pause(seconds)


def _ends_line(file: io.RawIOBase, end: int) -> bool:
    return end == 0 or b"".join(chunks_of(file, end - 1, 1)) == b"\n"


def _write(
    fs: FileSystem,
    path: str,
    file: io.RawIOBase,
    rows: bytes,
    before: os.stat_result,
    *,
    is_torn: bool,
    is_alone: bool,
) -> Placed:
    notes = (ENDED,) if is_torn else ()
    start, end = _write_once(fs, path, file, b"\n" + rows if is_torn else rows)
    # Where nobody else could have the file open, the byte before is the one that was looked at.
    is_as_seen = is_alone and start == before.st_size
    if is_torn:
        start += 1
    if end - start != len(rows) or not (is_as_seen or _ends_line(file, start)):
        start, end = _write_once(fs, path, file, b"\n" + rows)
        start, notes = start + 1, (*notes, DISTURBED)
    return Placed(start, end, before, fs.size_and_time(file), notes)


def _write_once(fs: FileSystem, path: str, file: io.RawIOBase, data: bytes) -> tuple[int, int]:
    """Where the data begins and ends. They lie further apart than its length if another program came in between two
    short writes.
    """
    count = fs.write(file, data)
    # In append mode the system puts each write at the end and tells where that was.
    start = file.tell() - count
    try:
        while count < len(data):
            count += fs.write(file, data[count:])
    except OSError as error:
        with suppress(OSError):
            fs.write(file, b"\n")
        what = translated(error, path, "written")
        said = f"{what.message}; of the {len(data)} bytes to write, {count} stand there, the last line cut off"
        raise StorageError(said, hint=what.hint, is_permanent=False) from error
    return start, file.tell()
