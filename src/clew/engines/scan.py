"""The lines of many files that hold some bytes, without looking at the other lines.

For questions about a name that a few rows of each session say, before there is an index. Over 1,000 sessions a search
with `bytes.find` takes twice as long as one with the `memmem` of the C library, which also lets go of the interpreter,
so that two threads share the work (docs/design/0016-finding-a-session.md has the numbers).
"""

from __future__ import annotations

import ctypes
import io
import os
from collections.abc import Callable, Sequence
from functools import cache
from threading import Thread

from clew.engines.filesystem import FileSystem, failures_of
from clew.errors import ClewError
from clew.records.line import Line

CHUNK_BYTES = 256 * 1024
"""What fits into the cache of a processor is searched faster."""
THREADS_MAX = 4
FILES_A_THREAD = 16
"""Fewer files are not worth another thread."""

Search = Callable[[bytes, int, int], int]
"""Where the bytes stand in the window of the present buffer, or -1."""


def lines_with(
    fs: FileSystem, paths: Sequence[str], needle: bytes, *, line_bytes_max: int
) -> Sequence[Sequence[Line] | ClewError]:
    """For every file its lines that hold the bytes, in order and without numbers, or why it could not be read."""
    found: list[Sequence[Line] | ClewError] = [()] * len(paths)
    waiting = iter(range(len(paths)))

    def work() -> None:
        window = _Window(line_bytes_max)
        for at in waiting:  # Threads may share it: the next number is taken under the interpreter's lock.
            try:
                with failures_of(paths[at]), fs.open(paths[at]) as file:
                    found[at] = window.lines(file, needle)
            except ClewError as error:
                found[at] = error

    count = max(1, min(THREADS_MAX, os.cpu_count() or 1, len(paths) // FILES_A_THREAD))
    threads = [Thread(target=work, daemon=True) for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    return found


class _Window:
    """A buffer of whole lines that goes through a file. It grows with a line that is longer."""

    def __init__(self, line_bytes_max: int) -> None:
        self._most = line_bytes_max
        self._room(CHUNK_BYTES)

    def _room(self, size: int) -> None:
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)
        self._find = _search_of(self._buffer)

    def lines(self, file: io.RawIOBase, needle: bytes) -> list[Line]:
        if len(self._buffer) > CHUNK_BYTES:
            self._room(CHUNK_BYTES)
        found: list[Line] = []
        base = held = 0  # The place of the buffer in the file, and how much of the line before is in it already.
        is_over = False  # Whether the line at hand is over the limit, and passed over up to its end.
        while True:
            count = file.readinto(self._view[held:]) or 0
            end = held + count
            whole = self._buffer.rfind(b"\n", held, end) + 1 if count else end
            start = 0
            if is_over:
                cut = self._buffer.find(b"\n", 0, end) + 1
                is_over, start = not cut, cut or end
                whole = whole or end
            found += self._hits(needle, base, start, whole)
            if not count:
                return found
            if not whole and end > self._most:
                is_over, whole = True, end
            base, held = base + whole, end - whole
            if held == len(self._buffer):
                kept = bytes(self._view[:held])
                self._room(2 * held)
                self._view[:held] = kept
            elif held and whole:
                self._view[:held] = bytes(self._view[whole:end])

    def _hits(self, needle: bytes, base: int, start: int, end: int) -> list[Line]:
        found = []
        while (at := self._find(needle, start, end)) >= 0:
            begin = self._buffer.rfind(b"\n", 0, at) + 1
            start = self._buffer.find(b"\n", at, end) + 1 or end
            if start - begin <= self._most:
                found.append(Line(bytes(self._view[begin:start]), base + begin, 0, start - begin))
        return found


def _search_of(buffer: bytearray) -> Search:
    memmem = _memmem()
    if memmem is None:
        return buffer.find
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))

    def search(needle: bytes, start: int, end: int) -> int:
        place = memmem(address + start, end - start, needle, len(needle))
        return -1 if place is None else place - address

    return search


@cache
def _memmem() -> Callable[[int, int, bytes, int], int | None] | None:
    """The C library's own search; None on a system without one."""
    try:
        found = ctypes.CDLL(None).memmem
    except (OSError, AttributeError, TypeError):
        return None
    found.restype = ctypes.c_void_p
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)

    def memmem(place: int, size: int, needle: bytes, length: int) -> int | None:
        given: int | None = found(place, size, needle, length)
        return given

    return memmem
