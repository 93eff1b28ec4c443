"""Chunks that are handed to an engine and may have to be handed out once more, since an answer did not come."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

TAIL_BYTES = 64
"""By so many bytes before a place one tells that what stands there is ours."""


class Taken:
    """An iterable over chunks that knows what was taken of it, by offset from their beginning.

    A list is gone through again. Of an iterator only the newest chunk is kept, so memory does not grow.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._kept = chunks if isinstance(chunks, Sequence) else None
        self._rest = iter(chunks)
        self._last = b""
        self._tail = b""
        """The end of what came before the last chunk."""
        self._again = b""
        """What of the last chunk comes once more."""
        self._hash = hashlib.sha256()
        self._is_broken = False
        self.size = 0
        self.is_done = False
        """Whether everything was taken."""

    def __iter__(self) -> Iterator[bytes]:
        if self._again:
            again, self._again = self._again, b""
            yield again
        while (chunk := self._next()) is not None:
            self._tail = (self._tail + self._last)[-TAIL_BYTES:]
            self._last = chunk
            self.size += len(chunk)
            self._hash.update(chunk)
            yield chunk
        self.is_done = not self._is_broken

    def _next(self) -> bytes | None:
        try:
            return next(self._rest, None)
        except BaseException:
            # An iterator that raised is at its end from then on, as if there had been nothing more.
            self._is_broken = True
            raise

    @property
    def is_begun(self) -> bool:
        """Whether anything was taken, or looked for."""
        return self.size > 0 or self.is_done or self._is_broken

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that was taken, in hex."""
        return self._hash.hexdigest()

    def go_to(self, offset: int) -> bytes | None:
        """What comes next begins at this offset. Returns up to `TAIL_BYTES` bytes before it; None, and nothing happens,
        where the bytes behind it are gone.
        """
        if self._kept is not None and offset < self.size - len(self._last):
            self._begin_anew(offset)
        begun = self.size - len(self._last)
        if self._is_broken or not begun <= offset <= self.size:
            return None
        self._again = self._last[offset - begun :]
        return (self._tail + self._last[: offset - begun])[-TAIL_BYTES:]

    def _begin_anew(self, offset: int) -> None:
        self._rest = iter(self._kept or ())
        self._last = self._tail = b""
        self._hash = hashlib.sha256()
        self.size, self.is_done = 0, False
        taken = iter(self)
        while self.size < offset and next(taken, None) is not None:
            pass
