"""What blobs hold: small content in the database, large content in files beside it, both once for each digest.

A file is whole and on the disk before a row refers to it, and it goes after the last row that did: what a crash leaves
behind is at most a file that nothing refers to. Files get and lose their names only while the database is locked for
writing, so that nobody frees what another one is about to refer to.
"""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from uuid import uuid4

import msgspec

from clew.engines.contract import Aside, BlobKey, BlobStat, LogKey
from clew.engines.filesystem import FileSystem, failures_of
from clew.engines.lines import chunks_of
from clew.engines.sqlite_logs import INT64_MAX
from clew.engines.sqlite_schema import packed, unpacked
from clew.engines.whole import Digested, make_dirs, write_whole
from clew.errors import DamagedData, NotFound

INSIDE_BYTES_MAX = 64 * 1024
"""Larger content is a file: the database stays small, and such a file is written and read in chunks."""
INCOMING_NS_MAX = 24 * 3600 * 1_000_000_000
"""What is being written for longer than a day was left by a crash."""

_COLUMNS = "blob.project, blob.session, blob.kind, blob.name, content.size, blob.modified_ns, content.digest, blob.mode"
_FROM = "FROM blob JOIN content ON content.id = blob.content"
_BY_KEY = "blob.project = ? AND blob.session = ? AND blob.kind = ? AND blob.name = ? AND blob.aside IS NULL"
BlobRow = tuple[bytes, bytes, bytes, bytes, int, int, bytes, int]


class Content(msgspec.Struct, frozen=True):
    """Bytes that were taken in: held, or in a file under a name that nobody knows yet."""

    digest: str
    size: int
    data: bytes | None
    incoming: str = ""


class Beside:
    """The files beside the database, in a folder of mode 0700 that comes with the first of them."""

    def __init__(self, fs: FileSystem, folder: str, chunk_bytes: int) -> None:
        self._fs = fs
        self._folder = folder
        self._chunk_bytes = chunk_bytes

    def take_in(self, chunks: Iterable[bytes]) -> Content:
        """Reads the chunks to their end. What is large is on the disk when it returns."""
        source, held, size = iter(chunks), [], 0
        for piece in source:
            held.append(piece)
            size += len(piece)
            if size > INSIDE_BYTES_MAX:
                break
        else:
            data = b"".join(held)
            return Content(hashlib.sha256(data).hexdigest(), size, data)
        incoming = f"{self._folder}/{uuid4().hex}"
        with failures_of(incoming, "written"):
            content = Digested(chain(held, source))
            write_whole(self._fs, incoming, content)
            size = self._fs.stat(incoming).st_size
        return Content(content.hex, size, None, incoming)

    def settle(self, content: Content) -> None:
        """Gives the file its name. The caller holds the database, and refers to it afterwards."""
        path = self._path(content.digest)
        with failures_of(path, "written"):
            make_dirs(self._fs, os.path.dirname(path))
            self._fs.rename(content.incoming, path)
            self._fs.sync_dir(os.path.dirname(path))

    def let_go(self, content: Content) -> None:
        """What was taken in and came to nothing."""
        if content.incoming:
            with suppress(OSError):
                self._fs.unlink(content.incoming)

    def open(self, digest: str) -> io.RawIOBase:
        """The file; freeing it meanwhile takes nothing from who reads it."""
        path = self._path(digest)
        with failures_of(path):
            return self._fs.open(path)

    def verified(self, key: BlobKey, digest: str, content: bytes | io.RawIOBase) -> Iterator[bytes]:
        """The bytes in chunks. Raises `DamagedData` at the end when they are not those of the digest."""
        found = self._verified(key, digest, content)
        next(found)  # From here on the file is closed even where nobody reads it.
        return found

    def _verified(self, key: BlobKey, digest: str, content: bytes | io.RawIOBase) -> Iterator[bytes]:
        seen = hashlib.sha256()
        for chunk in self._chunks(digest, content):
            seen.update(chunk)
            yield chunk
        if seen.hexdigest() != digest:
            raise DamagedData(f"the {key.kind} {key.name!r} is not what was put there", hint="put it there again")

    def _chunks(self, digest: str, content: bytes | io.RawIOBase) -> Iterator[bytes]:
        if isinstance(content, bytes):
            yield b""
            yield from (content[at : at + self._chunk_bytes] for at in range(0, len(content), self._chunk_bytes))
            return
        with failures_of(self._path(digest)), content:
            yield b""
            yield from chunks_of(content, 0, self._fs.size_and_time(content).st_size, self._chunk_bytes)

    def free(self, digest: str) -> None:
        """Removes a file. The caller holds the database, and nothing refers to it any more."""
        path = self._path(digest)
        with failures_of(path, "removed"), suppress(FileNotFoundError):
            self._fs.unlink(path)

    def free_incoming(self, now_ns: int) -> None:
        """Removes what crashes left, a day after: no file stays here that got a name."""
        with suppress(OSError):
            for entry in self._fs.scan(self._folder):
                old = now_ns - entry.stat(follow_symlinks=False).st_mtime_ns > INCOMING_NS_MAX
                if old and not entry.is_dir(follow_symlinks=False):
                    self._fs.unlink(entry.path)

    def _path(self, digest: str) -> str:
        return f"{self._folder}/{digest[:2]}/{digest}"


# Rows. Whoever changes them holds the transaction.


def refer(
    db: sqlite3.Connection, beside: Beside, key: BlobKey, content: Content, mode: int, modified_ns: int
) -> list[int]:
    """Puts a name on content. Returns what `remove` says of the content that it was on before."""
    if content.incoming:
        # Also where there is such a file already: that heals one that was damaged or lost.
        beside.settle(content)
    digest = bytes.fromhex(content.digest)
    db.execute(
        "INSERT INTO content (digest, size, data) VALUES (?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET size = excluded.size, data = excluded.data",
        (digest, content.size, content.data),
    )
    number = db.execute("SELECT id FROM content WHERE digest = ?", (digest,)).fetchone()[0]
    before = remove(db, key)
    db.execute(
        "INSERT INTO blob (project, session, kind, name, content, mode, modified_ns) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*names_of_blob(key), number, mode, max(-INT64_MAX, min(modified_ns, INT64_MAX))),
    )
    return [each for each in before if each != number]


def remove(db: sqlite3.Connection, key: BlobKey) -> list[int]:
    """Takes a name away. Returns which content it was on, for `free`, if there was such a name."""
    return [each for (each,) in db.execute(f"DELETE FROM blob WHERE {_BY_KEY} RETURNING content", names_of_blob(key))]


def free(db: sqlite3.Connection, beside: Beside, contents: Iterable[int]) -> None:
    """Frees those without a name. In a transaction of its own: the names must be gone from the disk first."""
    for each in contents:
        gone = db.execute(
            "DELETE FROM content WHERE id = ? AND NOT EXISTS (SELECT 1 FROM blob WHERE content = content.id)"
            " RETURNING digest, data IS NULL",
            (each,),
        ).fetchone()
        if gone is not None and gone[1]:
            beside.free(bytes(gone[0]).hex())


def unreferred(db: sqlite3.Connection) -> list[int]:
    """All content without a name, also what a crash left so."""
    found = db.execute("SELECT id FROM content WHERE NOT EXISTS (SELECT 1 FROM blob WHERE content = content.id)")
    return [each for (each,) in found]


def blob_stat(db: sqlite3.Connection, key: BlobKey) -> BlobStat | None:
    row = db.execute(f"SELECT {_COLUMNS} {_FROM} WHERE {_BY_KEY}", names_of_blob(key)).fetchone()
    return None if row is None else _stat_of(row)


def blob_stats(db: sqlite3.Connection, key: LogKey) -> list[BlobStat]:
    rows: Iterable[BlobRow] = db.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE blob.project = ? AND blob.session = ? AND blob.aside IS NULL"
        " ORDER BY blob.kind, blob.name",
        (packed(key.project), packed(key.session)),
    )
    return [_stat_of(row) for row in rows]


def content_of(db: sqlite3.Connection, beside: Beside, key: BlobKey) -> tuple[str, bytes | io.RawIOBase] | None:
    """The digest, and the bytes or the open file."""
    row = db.execute(f"SELECT content.digest, content.data {_FROM} WHERE {_BY_KEY}", names_of_blob(key)).fetchone()
    if row is None:
        return None
    digest = bytes(row[0]).hex()
    if row[1] is not None:
        return digest, bytes(row[1])
    try:
        return digest, beside.open(digest)
    except NotFound as error:
        raise DamagedData(
            f"what the {key.kind} {key.name!r} holds is missing: {error.message}", hint="put it there again"
        ) from error


def aside_blobs(db: sqlite3.Connection, operation: bytes) -> Aside:
    """How many blobs are kept by an operation, and their bytes."""
    count, size = db.execute(
        f"SELECT count(*), coalesce(sum(size), 0) {_FROM} WHERE aside = ?", (operation,)
    ).fetchone()
    return Aside(0, int(count), int(size))


def names_of_blob(key: BlobKey) -> tuple[bytes, bytes, bytes, bytes]:
    return packed(key.project), packed(key.session), packed(key.kind), packed(key.name)


def _stat_of(row: BlobRow) -> BlobStat:
    project, session, kind, name, size, modified_ns, digest, mode = row
    key = BlobKey(unpacked(project), unpacked(session), unpacked(kind), unpacked(name))
    return BlobStat(key, size, modified_ns, digest.hex(), mode)
