"""Logs and blobs in memory: the contract in its plainest form, and the model that other engines are compared with.

Nothing here outlives the process. One lock is held for every change and every look, never while the bytes of a caller
are being made and never while a caller has a line in hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import RLock

import msgspec

from clew.engines.contract import (
    BATCHES_KEPT,
    SORTS,
    TICK_NS,
    Appended,
    Aside,
    BlobKey,
    BlobStat,
    Capabilities,
    Engine,
    Entry,
    LogKey,
    LogStat,
    Order,
    checked_entries,
)
from clew.errors import Conflict, DamagedData, NotFound, UsageError
from clew.records.identity import uuid_of_line
from clew.records.line import LINE_BYTES_MAX, Line

CHUNK_BYTES = 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _Log(msgspec.Struct):
    """A log. `data` only grows: whoever reads it may keep it, and goes no further than where it ended."""

    name: int
    """Tells this log from an earlier or later one under the same key."""
    modified_ns: int
    data: bytearray
    ids: dict[str, int]
    """Where the first line of each id begins."""
    batches: dict[str, None]
    """The last ones, oldest first."""
    summary: bytes | None = None

    @property
    def revision(self) -> str:
        return f"{self.name:x}-{len(self.data):x}"

    @property
    def tail(self) -> int:
        """Where the line begins that still lacks its newline; the size, where none does."""
        return self.data.rfind(b"\n") + 1


class _Blob(msgspec.Struct, frozen=True):
    data: bytes
    digest: str
    mode: int
    modified_ns: int


class _Kept(msgspec.Struct):
    """What was set aside by one operation."""

    logs: dict[LogKey, _Log]
    blobs: dict[BlobKey, _Blob]

    def told(self) -> Aside:
        size = sum(len(log.data) for log in self.logs.values()) + sum(len(blob.data) for blob in self.blobs.values())
        return Aside(len(self.logs), len(self.blobs), size)


class MemoryEngine(Engine):
    """Logs and blobs of this process. Threads may share it.

    Times are those of `clock`; without one they only count, from 1970 on.
    """

    capabilities = Capabilities(is_durable=False, is_shared=False)
    url = "memory:"

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        line_bytes_max: int = LINE_BYTES_MAX,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        self._clock = clock
        self._line_bytes_max = line_bytes_max
        self._chunk_bytes = chunk_bytes
        self._lock = RLock()
        self._names = count(1)
        self._logs: dict[LogKey, _Log] = {}
        self._blobs: dict[BlobKey, _Blob] = {}
        self._kept: dict[str, _Kept] = {}

    # Writing.

    def append(
        self,
        key: LogKey,
        entries: Sequence[Entry],
        *,
        batch_id: str | None = None,
        expect: str | None = None,
        summary: bytes | None = None,
        keep_time: bool = False,
    ) -> Appended:
        checked_entries(entries)
        with self._lock:
            log = self._log(key)
            if not entries:
                return Appended(_revision(log), 0)
            if log is not None and batch_id in log.batches:
                return Appended(log.revision, 0, len(entries))
            if expect is not None and expect != _revision(log):
                raise _conflict(key, expect, log)
            log, is_new = (self._make(key), True) if log is None else (log, False)
            notes, fresh = _add(log, entries)
            if fresh and (is_new or not keep_time):
                self._touch(log)
            if summary is not None:
                log.summary = summary
            if batch_id is not None:
                _remember(log, batch_id)
            return Appended(log.revision, fresh, len(entries) - fresh, notes)

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        self._log(key)
        added = b"".join(chunks)
        with self._lock:
            log = self._log(key)
            size = len(log.data) if log is not None else 0
            if start != size:
                raise Conflict(
                    f"{self.where(key)} has {size} bytes, not {start}: it cannot be gone on with from there",
                    hint="ask for its size and go on from there",
                )
            if not added and (log is not None or not make):
                if log is not None and modified_ns is not None:
                    self._touch(log, modified_ns)
                return size
            log = log or self._make(key)
            tail = log.tail
            log.data += added
            log.ids = _ids_in(log.data, tail) | log.ids
            log.summary = None
            self._touch(log, modified_ns)
            return len(log.data)

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        self._log(key)
        data = bytearray(b"".join(lines))
        with self._lock:
            log = self._found(key)
            if log.revision != expect:
                raise _conflict(key, expect, log)
            self._logs[key] = _Log(next(self._names), log.modified_ns, data, _ids_in(data, 0), {})
            self._touch(self._logs[key])
            return self._logs[key].revision

    def delete(self, key: LogKey) -> bool:
        with self._lock:
            self._log(key)
            gone = [each for each in self._logs if key in (each, each.main)]
            for each in gone:
                del self._logs[each]
            return bool(gone)

    # Setting aside.

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        with self._lock:
            self._log(key)
            kept = self._kept.get(operation) or _Kept({}, {})
            taken = _Kept(
                {each: log for each, log in self._logs.items() if each.main == key.main},
                {each: blob for each, blob in self._blobs.items() if _owner(each) == key.main},
            )
            _must_be_free(taken, kept.logs, kept.blobs, f"is kept under {operation!r} already")
            for key_of_log in taken.logs:
                del self._logs[key_of_log]
            for key_of_blob in taken.blobs:
                del self._blobs[key_of_blob]
            self._kept[operation] = _Kept(kept.logs | taken.logs, kept.blobs | taken.blobs)
            return taken.told()

    def bring_back(self, operation: str) -> Aside:
        with self._lock:
            kept = self._kept.get(operation) or _Kept({}, {})
            _must_be_free(kept, self._logs, self._blobs, "is there again")
            self._logs |= kept.logs
            self._blobs |= kept.blobs
            return self.free_aside(operation)

    def free_aside(self, operation: str) -> Aside:
        with self._lock:
            return self._kept.pop(operation, _Kept({}, {})).told()

    # Reading.

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        if start < 0 or (end is not None and end < 0):
            raise UsageError(f"a log has no position {min(start, end or 0)}", hint="use the position of a line, or 0")
        with self._lock:
            data = self._found(key).data
            size = len(data)
        if start > size or (start and data[start - 1] != ord(b"\n")):
            raise Conflict(
                f"{self.where(key)} has no line that begins at byte {start} any more: it was replaced",
                hint="read it again from the beginning",
            )
        return self._forward(data, start, size if end is None else min(end, size), size)

    def _forward(self, data: bytearray, start: int, end: int, size: int) -> Iterator[Line]:
        number = 1
        while start < end:
            stop = data.find(b"\n", start, size) + 1 or size
            yield self._line(data, start, stop, number)
            start, number = stop, number + 1

    def read_back(self, key: LogKey) -> Iterator[Line]:
        with self._lock:
            data = self._found(key).data
            size = len(data)
        return self._backward(data, size)

    def _backward(self, data: bytearray, end: int) -> Iterator[Line]:
        while end > 0:
            # The newline that ends the line itself is not what divides it from the one before.
            start = data.rfind(b"\n", 0, end - 1) + 1
            yield self._line(data, start, end, 0)
            end = start

    def _line(self, data: bytearray, start: int, end: int, number: int) -> Line:
        held = bytes(data[start:end]) if end - start <= self._line_bytes_max else b""
        return Line(held, start, number, end - start)

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        if position < 0 or size < 0:
            raise UsageError(f"a log has no range {position}+{size}", hint="use the position and the size of a line")
        with self._lock:
            data = self._found(key).data
        end = position + size
        if end > len(data):
            raise Conflict(
                f"{self.where(key)} ends {end - len(data)} bytes too early: it was replaced",
                hint="read it again from the beginning",
            )
        return (bytes(data[at : min(at + self._chunk_bytes, end)]) for at in range(position, end, self._chunk_bytes))

    def stat(self, key: LogKey) -> LogStat | None:
        with self._lock:
            log = self._log(key)
            return None if log is None else _stat(key, log)

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        if limit is not None and limit < 0:
            raise UsageError(f"a limit of {limit} sessions cannot be", hint="use 0 or more, or none for all")
        with self._lock:
            stats = [_stat(key, log) for key, log in self._logs.items() if not key.subpath]
        found = [stat for stat in stats if project is None or stat.key.project == project]
        return iter(sorted(found, key=SORTS[order])[:limit])

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        with self._lock:
            self._log(key)
            logs = [(each, log) for each, log in self._logs.items() if each.subpath and each.main == key.main]
            return iter([_stat(each, log) for each, log in sorted(logs, key=lambda pair: pair[0])])

    def find_row(self, key: LogKey, dedupe_id: str) -> int | None:
        with self._lock:
            log = self._log(key)
            return None if log is None else log.ids.get(dedupe_id)

    def projects(self) -> Sequence[str]:
        with self._lock:
            return sorted({key.project for key in self._logs})

    # Blobs.

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        data = b"".join(chunks)
        blob = _Blob(data, hashlib.sha256(data).hexdigest(), mode, self._now() if modified_ns is None else modified_ns)
        with self._lock:
            self._blobs[key] = blob
        return blob.digest

    def open(self, key: BlobKey) -> Iterator[bytes]:
        with self._lock:
            blob = self._blobs.get(key)
        if blob is None:
            raise NotFound(f"there is no {key.kind} {key.name!r}", hint="list the blobs of its session")
        return self._checked(key, blob)

    def _checked(self, key: BlobKey, blob: _Blob) -> Iterator[bytes]:
        for at in range(0, len(blob.data), self._chunk_bytes):
            yield blob.data[at : at + self._chunk_bytes]
        if hashlib.sha256(blob.data).hexdigest() != blob.digest:
            raise DamagedData(f"the {key.kind} {key.name!r} is not what was put there", hint="put it there again")

    def blob_stat(self, key: BlobKey) -> BlobStat | None:
        with self._lock:
            blob = self._blobs.get(key)
        return None if blob is None else _blob_stat(key, blob)

    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        with self._lock:
            found = [_blob_stat(each, blob) for each, blob in self._blobs.items() if _owner(each) == key.main]
        return sorted(found, key=lambda stat: stat.key)

    def delete_blob(self, key: BlobKey) -> bool:
        with self._lock:
            return self._blobs.pop(key, None) is not None

    # What is shared by these.

    def _log(self, key: LogKey) -> _Log | None:
        """The log, or None. Raises `UsageError` for a key that is none."""
        if not key.session:
            raise UsageError("a log needs the id of a session", hint="list the sessions with `clew ls --all`")
        return self._logs.get(key)

    def _found(self, key: LogKey) -> _Log:
        log = self._log(key)
        if log is None:
            raise NotFound(f"there is no log {self.where(key)}", hint="list what there is with `clew ls --all`")
        return log

    def _make(self, key: LogKey) -> _Log:
        self._logs[key] = _Log(next(self._names), 0, bytearray(), {}, {})
        return self._logs[key]

    def _touch(self, log: _Log, modified_ns: int | None = None) -> None:
        log.modified_ns = max(self._now(), log.modified_ns + TICK_NS) if modified_ns is None else modified_ns

    def _now(self) -> int:
        return (self._clock() - _EPOCH) // _MICROSECOND * 1000 if self._clock is not None else 0


def _add(log: _Log, entries: Sequence[Entry]) -> tuple[tuple[str, ...], int]:
    """Puts the lines at the end that are to be written, and says how many. Their ids are known from then on.

    Returns what a person should know first.
    """
    is_torn = log.tail < len(log.data)
    added, position = [], len(log.data) + is_torn
    for entry in entries:
        if entry.dedupe_id in log.ids:
            continue
        if entry.dedupe_id is not None:
            log.ids[entry.dedupe_id] = position
        added.append(entry.data + b"\n")
        position += len(entry.data) + 1
    is_torn = is_torn and bool(added)
    log.data += b"\n" * is_torn + b"".join(added)
    return ("the last line had no end and was closed",) if is_torn else (), len(added)


def _remember(log: _Log, batch_id: str) -> None:
    log.batches[batch_id] = None
    while len(log.batches) > BATCHES_KEPT:
        del log.batches[next(iter(log.batches))]


def _ids_in(data: bytearray, start: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in bytes(data[start:]).split(b"\n"):
        uuid = uuid_of_line(line)
        if uuid is not None:
            found.setdefault(uuid, start)
        start += len(line) + 1
    return found


def _must_be_free(moved: _Kept, logs: dict[LogKey, _Log], blobs: dict[BlobKey, _Blob], why: str) -> None:
    """Raises `Conflict` where something of the same name stands already."""
    taken = [*(str(key) for key in moved.logs if key in logs), *(str(key) for key in moved.blobs if key in blobs)]
    if taken:
        raise Conflict(f"{taken[0]} {why}", hint="move or delete what stands there first", candidates=taken)


def _owner(key: BlobKey) -> LogKey:
    return LogKey(key.project, key.session)


def _revision(log: _Log | None) -> str:
    return "" if log is None else log.revision


def _conflict(key: LogKey, expect: str, log: _Log | None) -> Conflict:
    return Conflict(
        f"{key.session} is at revision {_revision(log)!r}, not at {expect!r}", hint="read what is new and try again"
    )


def _stat(key: LogKey, log: _Log) -> LogStat:
    return LogStat(key, log.revision, len(log.data), log.modified_ns, log.summary)


def _blob_stat(key: BlobKey, blob: _Blob) -> BlobStat:
    return BlobStat(key, len(blob.data), blob.modified_ns, blob.digest, blob.mode)
