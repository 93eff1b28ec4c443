"""What is noted beside a shared log before it is appended to: which batch, where, and the rows themselves.

Two questions are answered from it. Whether a batch was written already, when its caller got no answer; and which rows
went lost, when another program read the log before they stood in it and then put a shorter copy in its place.

A journal is a line of JSON for each append, followed by its rows where they are kept. It may be torn by a crash: what
follows the damage counts as not noted, and the next note writes it anew. It is derived data with one use that is not:
exact retries of rows without ids.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Annotated

import msgspec

from clew.engines.filesystem import FileSystem
from clew.engines.lines import chunks_of
from clew.engines.whole import make_dirs, write_all, write_whole

BATCHES_NOTED = 200
"""So many batches stay noted when a journal is made shorter; the contract asks for 100."""
ROWS_BYTES_MAX = 256 * 1024
"""The rows of a larger append are not kept here."""
JOURNAL_BYTES_MAX = 1024 * 1024
"""A longer journal is made shorter: the batches stay, and the newest rows."""


class Noted(msgspec.Struct, frozen=True):
    """One append: where the log ended before it, how many bytes were to follow, and the rows, if they are kept."""

    batch: str | None
    inode: int
    start: int
    size: int
    rows: bytes | None = None


Count = Annotated[int, msgspec.Meta(ge=0)]


class _Header(msgspec.Struct):
    batch: str | None
    inode: Count
    start: Count
    size: Count
    kept: bool


_decode_header = msgspec.json.Decoder(_Header).decode


def to_bytes(noted: Noted) -> bytes:
    """The note as it stands in the journal; a batch id may be any text."""
    batch = None if noted.batch is None else noted.batch.encode("utf-8", "surrogatepass").hex()
    header = _Header(batch, noted.inode, noted.start, noted.size, noted.rows is not None)
    return msgspec.json.encode(header) + b"\n" + (noted.rows or b"")


def notes_in(data: bytes) -> tuple[list[Noted], int]:
    """The notes of a journal in order, up to where it is damaged, and where that is: at the end, where it is whole."""
    notes: list[Noted] = []
    whole = 0
    while (end := data.find(b"\n", whole)) >= 0:
        try:
            header = _decode_header(data[whole:end])
            batch = None if header.batch is None else bytes.fromhex(header.batch).decode("utf-8", "surrogatepass")
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            break
        end += 1
        rows = data[end : end + header.size] if header.kept else None
        if rows is not None and len(rows) < header.size:
            break
        whole = end + len(rows or b"")
        notes.append(Noted(batch, header.inode, header.start, header.size, rows))
    return notes, whole


def shortened(notes: list[Noted]) -> bytes:
    """A journal without what is no longer needed: the newest batches, and rows up to a quarter of the limit."""
    left, batches = JOURNAL_BYTES_MAX // 4, BATCHES_NOTED
    kept: list[Noted] = []
    for noted in reversed(notes):
        left -= len(noted.rows or b"")
        batches -= noted.batch is not None
        if left >= 0:
            kept.append(noted)
        elif noted.batch is not None and batches >= 0:
            kept.append(msgspec.structs.replace(noted, rows=None))
    return b"".join(map(to_bytes, reversed(kept)))


def written_of(rows: list[bytes], skippable: list[bool], lines: Iterable[bytes]) -> list[int]:
    """Which rows of a batch stand in the lines that follow its note: those of its beginning, one after the other.

    Lines of other programs may stand before them. A row that may be skipped was there before the batch.
    """
    found: list[int] = []
    at = 0
    for line in lines:
        bare = line.removesuffix(b"\n")
        ahead = at
        while ahead < len(rows) and rows[ahead] != bare and skippable[ahead]:
            ahead += 1
        if ahead < len(rows) and rows[ahead] == bare:
            found.append(ahead)
            at = ahead + 1
            if at == len(rows):
                break
        elif found:
            break
    return found


class Journal:
    """The journal of one log. Whoever asks it holds the lock of the log's session."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self._path = path
        self._notes: list[Noted] = []
        self._inode = self._size = 0
        """Up to where it was read; 0 where there is none."""
        self._is_damaged = False
        self.changed_ns = 0
        """When something was noted last, as of the newest call of `notes`."""

    def notes(self) -> list[Noted]:
        """What is noted, oldest first. What was read, or was written here, is not read again."""
        try:
            stat = self._fs.stat(self._path)
        except FileNotFoundError:
            self._notes, self._inode, self._size, self._is_damaged, self.changed_ns = [], 0, 0, False, 0
            return self._notes
        self.changed_ns = stat.st_mtime_ns
        if (self._inode, self._size) != (stat.st_ino, stat.st_size):
            is_longer = self._inode == stat.st_ino and self._size < stat.st_size and not self._is_damaged
            self._read(stat, self._size if is_longer else 0)
        return self._notes

    def _read(self, stat: os.stat_result, start: int) -> None:
        with self._fs.open(self._path) as file:
            data = b"".join(chunks_of(file, start, stat.st_size - start, JOURNAL_BYTES_MAX))
        found, whole = notes_in(data)
        self._notes = [*self._notes, *found] if start else found
        self._inode, self._size, self._is_damaged = stat.st_ino, stat.st_size, whole < len(data)

    def note(self, noted: Noted, *, is_durable: bool) -> None:
        """Adds a note; `notes` was asked since the lock is held. `is_durable` returns when it is on the disk; otherwise
        it outlives this process alone.
        """
        data = to_bytes(noted)
        if self._is_damaged or self._size + len(data) > JOURNAL_BYTES_MAX:
            data = shortened([*self._notes, noted])
            is_missed = any(each.batch is not None for each in self._notes) or is_durable
            write_whole(self._fs, self._path, [data], is_synced=is_missed)
            self._notes, self._is_damaged = notes_in(data)[0], False
            self._inode, self._size = self._fs.stat(self._path).st_ino, len(data)
            return
        with self._open() as file:
            write_all(self._fs, file, data)
            if is_durable:
                self._fs.sync(file)
            if not self._inode:
                self._inode = self._fs.size_and_time(file).st_ino
        self._notes.append(noted)
        self._size += len(data)

    def _open(self) -> io.RawIOBase:
        try:
            return self._fs.open_append(self._path, make=True)
        except FileNotFoundError:
            make_dirs(self._fs, os.path.dirname(self._path))
            return self._fs.open_append(self._path, make=True)
