"""A store that writes nothing down: what is inside can be read, and every change stays in memory.

A log or blob is the inner engine's until it is changed for the first time; then it is copied to memory and read from
there. What was deleted or set aside is remembered the same way, so it hides what is inside.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice
from threading import Event, RLock

import msgspec

from clew.engines.contract import (
    SORTS,
    WATCH_SECONDS,
    Appended,
    Aside,
    BlobKey,
    BlobStat,
    Capabilities,
    Engine,
    Entry,
    Found,
    LogKey,
    LogStat,
    LogStore,
    Order,
)
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.base import Wrapper
from clew.errors import ClewError, Conflict
from clew.layouts.keys import KeyStrategy
from clew.records.line import LINE_BYTES_MAX, Line


class _Copied(msgspec.Struct, frozen=True):
    """The revisions of a log when it was copied: inside, and in memory."""

    inside: str
    here: str


class Scratch(Wrapper):
    """Reads from `inner` and changes nothing there; what is appended is gone with the process.

    Memory holds the logs that were changed and the blobs that were put. A change of somebody else to a log that was
    copied is not seen any more. `clock` dates what is new.
    """

    def __init__(
        self, inner: Engine, *, clock: Callable[[], datetime] | None = None, line_bytes_max: int = LINE_BYTES_MAX
    ) -> None:
        super().__init__(inner)
        self.capabilities = Capabilities(is_durable=False, is_shared=False, is_clients=inner.capabilities.is_clients)
        self._memory = MemoryEngine(clock=clock, line_bytes_max=line_bytes_max)
        self._lock = RLock()
        self._ours: set[LogKey | BlobKey] = set()
        """What memory answers for, be it there or not."""
        self._copied: dict[LogKey, _Copied] = {}

    def _engine_of(self, key: LogKey | BlobKey) -> Engine:
        return self._memory if key in self._ours else self.inner

    def _take(self, key: LogKey) -> None:
        """Makes a log ours, with what is in it now."""
        with self._lock:
            if key in self._ours:
                return
            stat = self.inner.stat(key)
            if stat is not None:
                chunks = self.inner.read_range(key, position=0, size=stat.size_bytes)
                self._memory.extend(key, chunks, start=0, modified_ns=stat.modified_ns, make=True)
                here = self._memory.stat(key)
                self._copied[key] = _Copied(stat.revision, "" if here is None else here.revision)
            self._ours.add(key)

    def _take_session(self, key: LogKey) -> None:
        """Makes all logs and blobs of a session ours."""
        with self._lock:
            for log in [key.main, *(stat.key for stat in self.inner.list_sub(key))]:
                self._take(log)
            for stat in self.inner.blobs(key):
                if stat.key not in self._ours:
                    chunks = self.inner.open(stat.key)
                    self._memory.put(stat.key, chunks, mode=stat.mode, modified_ns=stat.modified_ns)
                    self._ours.add(stat.key)

    # Revisions: a log that was copied is still the same log, at the same revision until it changes.

    def _shown(self, key: LogKey, revision: str) -> str:
        copied = self._copied.get(key)
        if not revision or copied is None or _name(copied.here) != _name(revision):
            return f"scratch{revision}" if revision else ""
        return copied.inside if revision == copied.here else f"{_name(copied.inside)}-scratch{revision}"

    def _shown_stat(self, stat: LogStat) -> LogStat:
        return msgspec.structs.replace(stat, revision=self._shown(stat.key, stat.revision))

    def _expected(self, key: LogKey, expect: str | None) -> tuple[str | None, str]:
        """What to expect of memory, and the revision that is shown now."""
        stat = self._memory.stat(key)
        revision = "" if stat is None else stat.revision
        shown = self._shown(key, revision)
        return expect if expect is None else revision if expect == shown else _NEVER, shown

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
        with self._lock:
            if not entries:
                stat = self.stat(key)
                return Appended("" if stat is None else stat.revision, 0)
            self._take(key)
            meant, shown = self._expected(key, expect)
            try:
                done = self._memory.append(
                    key, entries, batch_id=batch_id, expect=meant, summary=summary, keep_time=keep_time
                )
            except Conflict as error:
                raise _conflict(key, expect, shown) from error
            return msgspec.structs.replace(done, revision=self._shown(key, done.revision))

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        self._take(key)
        return self._memory.extend(key, chunks, start=start, modified_ns=modified_ns, make=make)

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        # The lines may be read from this very store, by another thread too: not under the lock.
        data = b"".join(lines)
        with self._lock:
            self._take(key)
            meant, shown = self._expected(key, expect)
            try:
                return self._shown(key, self._memory.replace(key, [data], expect=meant or _NEVER))
            except Conflict as error:
                raise _conflict(key, expect, shown) from error

    def delete(self, key: LogKey) -> bool:
        with self._lock:
            logs = [key] if key.subpath else [key, *(stat.key for stat in self.inner.list_sub(key))]
            inside = [log for log in logs if log not in self._ours and self.inner.stat(log) is not None]
            self._ours.update(logs)
            return self._memory.delete(key) or bool(inside)

    def flush(self) -> None:
        """Nothing here is ever durable."""

    # Setting aside.

    def alone(self) -> AbstractContextManager[object]:
        """Nobody else has these changes, so the place inside, which may be read-only, is not asked."""
        return self._memory.alone()

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        with self._lock:
            self._take_session(key)
            return self._memory.set_aside(key, operation)

    def bring_back(self, operation: str) -> Aside:
        return self._memory.bring_back(operation)

    def free_aside(self, operation: str) -> Aside:
        return self._memory.free_aside(operation)

    # Reading.

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        return self._engine_of(key).read(key, start=start, end=end)

    def read_back(self, key: LogKey) -> Iterator[Line]:
        return self._engine_of(key).read_back(key)

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        return self._engine_of(key).read_range(key, position=position, size=size)

    def find_row(self, key: LogKey, dedupe_id: str) -> int | None:
        return self._engine_of(key).find_row(key, dedupe_id)

    def stat(self, key: LogKey) -> LogStat | None:
        with self._lock:
            if key not in self._ours:
                return self.inner.stat(key)
            stat = self._memory.stat(key)
            return None if stat is None else self._shown_stat(stat)

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        with self._lock:
            here = [self._shown_stat(stat) for stat in self._memory.list(project, order=order, limit=limit)]
            inside = _without(self.inner.list(project, order=order), frozenset(self._ours))
        return islice(heapq.merge(inside, here, key=SORTS[order]), limit)

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        with self._lock:
            here = [self._shown_stat(stat) for stat in self._memory.list_sub(key)]
            inside = [*_without(self.inner.list_sub(key), self._ours)]
        return iter(sorted([*inside, *here], key=lambda stat: stat.key))

    def list_subs(self, project: str) -> Mapping[str, Sequence[LogStat]]:
        with self._lock:
            found = dict(self.inner.list_subs(project))
            changed = {key.session for key in self._ours if isinstance(key, LogKey) and key.project == project}
            for session in changed:
                found[session] = [*self.list_sub(LogKey(project, session))]
        return {session: subs for session, subs in found.items() if subs}

    def projects(self) -> Sequence[str]:
        return sorted({*self.inner.projects(), *self._memory.projects()})

    def projects_for(self, cwd: str, keys: KeyStrategy) -> Sequence[str]:
        here = self._memory.projects_for(cwd, keys)
        return [*here, *(project for project in self.inner.projects_for(cwd, keys) if project not in here)]

    def find_sessions(self, id_or_prefix: str) -> Sequence[LogStat]:
        with self._lock:
            here = [self._shown_stat(stat) for stat in self._memory.find_sessions(id_or_prefix)]
            inside = [*_without(self.inner.find_sessions(id_or_prefix), self._ours)]
        found = sorted([*inside, *here], key=SORTS[Order.NEWEST_FIRST])
        return [stat for stat in found if stat.key.session == id_or_prefix] or found

    def search(self, words: str, *, project: str | None = None, limit: int | None = None) -> Iterator[Found]:
        return LogStore.search(self, words, project=project, limit=limit)

    def watch(self, keys: Sequence[LogKey], stop: Event, *, seconds: float = WATCH_SECONDS) -> Iterator[None]:
        return LogStore.watch(self, keys, stop, seconds=seconds)

    def lines_with(self, keys: Sequence[LogKey], needle: bytes) -> Iterator[tuple[LogKey, Sequence[Line] | ClewError]]:
        inside = dict(self.inner.lines_with([key for key in keys if key not in self._ours], needle))
        here = dict(self._memory.lines_with([key for key in keys if key in self._ours], needle))
        return ((key, here[key] if key in here else inside[key]) for key in keys)

    def where(self, key: LogKey) -> str:
        return self._engine_of(key).where(key)

    # Blobs.

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        self.inner.blob_stat(key)  # Refuses what cannot be a name inside.
        digest = self._memory.put(key, chunks, mode=mode, modified_ns=modified_ns)
        with self._lock:
            self._ours.add(key)
        return digest

    def link(self, key: BlobKey, name: BlobKey) -> None:
        Engine.link(self, key, name)

    def open(self, key: BlobKey) -> Iterator[bytes]:
        return self._engine_of(key).open(key)

    def blob_stat(self, key: BlobKey) -> BlobStat | None:
        return self._engine_of(key).blob_stat(key)

    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        with self._lock:
            inside = [stat for stat in self.inner.blobs(key) if stat.key not in self._ours]
            return sorted([*inside, *self._memory.blobs(key)], key=lambda stat: stat.key)

    def delete_blob(self, key: BlobKey) -> bool:
        with self._lock:
            is_inside = key not in self._ours and self.inner.blob_stat(key) is not None
            self._ours.add(key)
            return self._memory.delete_blob(key) or is_inside


_NEVER = "?"
"""A revision that no log in memory has."""


def _name(revision: str) -> str:
    return revision.partition("-")[0]


def _without(stats: Iterable[LogStat], ours: AbstractSet[LogKey | BlobKey]) -> Iterator[LogStat]:
    return (stat for stat in stats if stat.key not in ours)


def _conflict(key: LogKey, expect: str | None, shown: str) -> Conflict:
    return Conflict(f"{key.session} is at revision {shown!r}, not at {expect!r}", hint="read what is new and try again")
