"""Which rows of a shared log are there already. The log is read once, and later only what was added to it."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet

from clew.engines.contract import LogKey
from clew.engines.dedupe import DedupeStore
from clew.engines.lines import BorrowedFile, chunks_of, lines_forward
from clew.records.identity import uuid_of_line
from clew.records.line import LINE_BYTES_MAX, Line

SAMPLE_BYTES = 64
"""So many bytes before the place up to which a log is known must still be there, or it is read again."""
CHUNK_BYTES = 1024 * 1024
LEARNED_AT_ONCE = 10_000


class KnownRows:
    """The ids of the rows of one log. Whoever asks holds the lock of the log's session."""

    def __init__(self, key: LogKey, dedupe: DedupeStore) -> None:
        self._key = key
        self._dedupe = dedupe
        self._sample: tuple[str, int, bytes] = ("", 0, b"")
        self._doubtful: tuple[str, int, int] = ("", 0, 0)

    def among(self, file: io.RawIOBase, stat: os.stat_result, ids: Collection[str]) -> AbstractSet[str]:
        """Those of the ids that rows of the file have. A last row that lacks its newline counts when it is whole."""
        if not ids:
            return frozenset()
        generation = generation_of(stat)
        known = self._dedupe.known(self._key, generation)
        if known is not None and not self._is_still_there(file, stat, generation, known.position):
            self.forget()
            known = None
        open_id = self._learn(file, stat, generation, 0 if known is None else known.position)
        known = self._dedupe.known(self._key, generation)
        found = frozenset() if known is None else known.among(ids)
        return found | {open_id} if open_id is not None and open_id in ids else found

    def add(self, stat: os.stat_result, start: int, end: int, ids: Collection[str], rows: bytes) -> None:
        """Rows that were just written. Nothing is learned when others stand before them that were not read yet."""
        generation = generation_of(stat)
        known = self._dedupe.known(self._key, generation)
        position = 0 if known is None else known.position
        if position in (start, start - 1) and self._dedupe.learn(self._key, generation, ids, start=position, end=end):
            self._sample = (generation, end, rows[-SAMPLE_BYTES:])

    def doubt(self, stat: os.stat_result, start: int, end: int) -> None:
        """What stands there may never reach the disk, since a flush failed: it counts as not written, and a retry
        writes it again.
        """
        self.forget()
        before = self._doubtful
        is_same = before[0] == generation_of(stat)
        self._doubtful = (generation_of(stat), min(start, before[1]) if is_same else start, end)

    def is_doubtful(self, stat: os.stat_result, position: int) -> bool:
        generation, start, end = self._doubtful
        return generation == generation_of(stat) and start <= position < end

    def forget(self) -> None:
        """What was known of the log counts for nothing any more."""
        self._dedupe.forget(self._key)
        self._sample = ("", 0, b"")

    def _is_still_there(self, file: io.RawIOBase, stat: os.stat_result, generation: str, position: int) -> bool:
        """Whether the log only grew. A program that writes a file anew in place keeps its inode."""
        if position > stat.st_size:
            return False
        sampled, at, sample = self._sample
        if (sampled, at) != (generation, position):
            return position == 0 or _bytes_before(file, position, 1) == b"\n"
        return _bytes_before(file, position, len(sample)) == sample

    def _learn(self, file: io.RawIOBase, stat: os.stat_result, generation: str, start: int) -> str | None:
        """Reads on from `start`. Returns the id of a last row without a newline; it is not learned, it may go on."""
        if start >= stat.st_size:
            return None
        ids: list[str] = []
        begun, line = start, None
        for line in lines_of(file, start, stat.st_size):
            if not line.is_terminated and line.is_held:
                break
            found = None if self.is_doubtful(stat, line.position) else uuid_of_line(line.data)
            if found is not None:
                ids.append(found)
            start = line.position + line.size
            if len(ids) >= LEARNED_AT_ONCE:
                self._dedupe.learn(self._key, generation, ids, start=begun, end=start)
                ids, begun = [], start
        if start > begun:
            self._dedupe.learn(self._key, generation, ids, start=begun, end=start)
            self._sample = (generation, start, _bytes_before(file, start, SAMPLE_BYTES))
        return None if line is None or line.is_terminated else uuid_of_line(line.data)


def generation_of(stat: os.stat_result) -> str:
    """What stands before the first dash of a revision: the same as long as the log only grows."""
    return f"{stat.st_ino:x}"


def lines_of(file: io.RawIOBase, start: int, end: int) -> Iterator[Line]:
    """The lines of an open file, which stays open."""
    return lines_forward(
        BorrowedFile(file), start=start, end=end, size=end, line_bytes_max=LINE_BYTES_MAX, chunk_bytes=CHUNK_BYTES
    )


def _bytes_before(file: io.RawIOBase, position: int, count: int) -> bytes:
    count = min(count, position)
    return b"".join(chunks_of(file, position - count, count))
