"""Bytes of an open file as lines, forward and backward, with bounded memory.

What is read ends where the file ended when it was opened. So bytes that are appended meanwhile are never seen: a line
that was whole at the beginning is given whole, and the only line without a terminator is the last one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from clew.records.line import Line


class BoundedFile(io.RawIOBase):
    """The bytes of `file` from `start` up to `end`. Closing it closes the file."""

    def __init__(self, file: io.RawIOBase, start: int, end: int) -> None:
        self._file = file
        self._left = max(0, end - start)
        file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._left <= 0:
            return 0
        count = self._file.readinto(buffer[: self._left]) or 0
        self._left -= count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class BorrowedFile(io.RawIOBase):
    """The same file for somebody who closes what he reads; it stays open."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        return self._file.readinto(buffer)


def lines_forward(
    file: io.RawIOBase, *, start: int, end: int, size: int, line_bytes_max: int, chunk_bytes: int
) -> Iterator[Line]:
    """The lines that begin in `start..end`, whole, of a file of `size` bytes. Closes the file when it ends.

    The loop is one call into the buffered reader for each line, which finds the newline in C; a line over the limit
    shows itself as one byte too many.
    """
    position, number, ask = start, 1, line_bytes_max + 1
    with io.BufferedReader(BoundedFile(file, start, size), max(chunk_bytes, 1)) as buffered:
        readline = buffered.readline
        while position < end:
            data = readline(ask)
            if not data:
                # The file is shorter than it was: another program cut it. What was there is given.
                return
            length = len(data)
            if length > line_bytes_max:
                length += _skipped(buffered, data, chunk_bytes)
                data = b""
            yield Line(data, position, number, length)
            position += length
            number += 1


def _skipped(buffered: io.BufferedReader[BoundedFile], data: bytes, chunk_bytes: int) -> int:
    """Reads past the rest of a line that began with `data`. Returns its size."""
    count = 0
    while data and not data.endswith(b"\n"):
        data = buffered.readline(chunk_bytes)
        count += len(data)
    return count


def lines_backward(file: io.RawIOBase, *, end: int, line_bytes_max: int, chunk_bytes: int) -> Iterator[Line]:
    """The lines of the first `end` bytes, newest first, each with `number` 0. Closes the file when it ends.

    A line is put together from the chunks it lies in; once it is over the limit its pieces are let go and only counted.
    """
    with file:
        line_end = end
        pieces: list[bytes] = []  # of the line that ends at `line_end`, the last piece first
        position = end
        while position > 0:
            start = max(0, position - chunk_bytes)
            chunk = _read_at(file, start, position - start)
            stop = position - start
            if len(chunk) < stop:
                # Another program cut the file. What is left of it is no longer what it was, so this is the end.
                return
            while True:
                # A newline that ends the line itself is not what divides it from the one before.
                last = stop - 1 if start + stop == line_end else stop
                cut = chunk.rfind(b"\n", 0, last) + 1
                if cut == 0:
                    break
                yield _line_of(chunk[cut:stop], pieces, start + cut, line_end, line_bytes_max)
                pieces.clear()
                line_end, stop = start + cut, cut
            if line_end - start > line_bytes_max:
                pieces.clear()
            else:
                pieces.append(chunk[:stop])
            position = start
        if line_end > 0:
            yield _line_of(b"", pieces, 0, line_end, line_bytes_max)


def _line_of(first: bytes, pieces: list[bytes], position: int, end: int, line_bytes_max: int) -> Line:
    size = end - position
    if size > line_bytes_max:
        return Line(b"", position, 0, size)
    return Line(b"".join((first, *reversed(pieces))) if pieces else first, position, 0, size)


def chunks_of(file: io.RawIOBase, position: int, size: int, chunk_bytes: int = 1024) -> Iterator[bytes]:
    """The bytes of a range, in chunks. Fewer when the file ends before."""
    file.seek(position)
    while size > 0 and (chunk := file.read(min(size, chunk_bytes))):
        yield chunk
        size -= len(chunk)


def _read_at(file: io.RawIOBase, position: int, size: int) -> bytes:
    """Up to `size` bytes; fewer only at the end of the file. A single read may give less than there is."""
    pieces = [*chunks_of(file, position, size, size)]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
