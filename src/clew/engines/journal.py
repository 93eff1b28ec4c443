"""What is noted beside a shared log before it is appended to: which batch, where, and the rows themselves.

Two questions are answered from it. Whether a batch was written already, when its caller got no answer; and which rows
went lost, when another program read the log before they stood in it and then put a shorter copy in its place.

A journal is a line of JSON for each append, followed by its rows where they are kept. It may be torn by a crash: what
follows the damage counts as not noted. It is derived data with one use that is not: exact retries of rows without ids.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator

import msgspec

from clew.engines.filesystem import FileSystem
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


class _Header(msgspec.Struct):
    batch: str | None
    inode: int
    start: int
    size: int
    kept: bool


_decode_header = msgspec.json.Decoder(_Header).decode


def to_bytes(noted: Noted) -> bytes:
    """The note as it stands in the journal; a batch id may be any text."""
    batch = None if noted.batch is None else noted.batch.encode("utf-8", "surrogatepass").hex()
    header = _Header(batch, noted.inode, noted.start, noted.size, noted.rows is not None)
    return msgspec.json.encode(header) + b"\n" + (noted.rows or b"")


def notes_in(data: bytes) -> list[Noted]:
    """The notes of a journal in order, up to where it is damaged."""
    return [*_notes(data)]


def _notes(data: bytes) -> Iterator[Noted]:
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        try:
            header = _decode_header(data[at:end])
            batch = None if header.batch is None else bytes.fromhex(header.batch).decode("utf-8", "surrogatepass")
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            return
        at = end + 1
        rows = data[at : at + header.size] if header.kept else None
        if rows is not None and len(rows) < header.size:
            return
        at += len(rows or b"")
        yield Noted(batch, header.inode, header.start, header.size, rows)


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
        self._seen: tuple[int, int] | None = None
        self.changed_ns = 0
        """When something was noted last, as of the newest call of `notes`."""

    def notes(self) -> list[Noted]:
        """What is noted, oldest first. What this process wrote itself is not read again."""
        try:
            stat = self._fs.stat(self._path)
        except FileNotFoundError:
            self._notes, self._seen, self.changed_ns = [], None, 0
            return self._notes
        self.changed_ns = stat.st_mtime_ns
        if self._seen != (stat.st_ino, stat.st_size):
            with self._fs.open(self._path) as file:
                self._notes = notes_in(b"".join(iter(lambda: file.read(JOURNAL_BYTES_MAX), b"")))
            self._seen = (stat.st_ino, stat.st_size)
        return self._notes

    def note(self, noted: Noted, *, is_durable: bool) -> None:
        """Adds a note. `is_durable` returns when it is on the disk; otherwise it outlives this process alone."""
        notes, data = self.notes(), to_bytes(noted)
        if self._seen is not None and self._seen[1] + len(data) > JOURNAL_BYTES_MAX:
            data = shortened([*notes, noted])
            write_whole(self._fs, self._path, [data])
            self._notes, self._seen = notes_in(data), None
            return
        with self._open() as file:
            write_all(self._fs, file, data)
            if is_durable:
                self._fs.sync(file)
            stat = self._fs.size_and_time(file)
        notes.append(noted)
        self._seen = (stat.st_ino, stat.st_size)

    def _open(self) -> io.RawIOBase:
        try:
            return self._fs.open_append(self._path, make=True)
        except FileNotFoundError:
            make_dirs(self._fs, os.path.dirname(self._path))
            return self._fs.open_append(self._path, make=True)
