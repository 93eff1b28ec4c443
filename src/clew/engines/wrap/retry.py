"""Tries again where a place says that the same call may succeed later, by the one rule in `backoff`."""

from __future__ import annotations

import hashlib
import random as dice
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from threading import Event
from typing import TypeVar
from uuid import uuid4

import msgspec

from clew.engines.contract import (
    WATCH_SECONDS,
    Appended,
    Aside,
    BlobKey,
    Engine,
    Entry,
    Found,
    LogKey,
    LogStat,
    Order,
)
from clew.engines.wrap.backoff import Backoff, may_pass
from clew.engines.wrap.base import Call, Wrapper
from clew.engines.wrap.taken import Taken
from clew.errors import ClewError, Conflict, StorageError
from clew.records.line import Line

T = TypeVar("T")


class Retry(Wrapper):
    """Tries a call up to `tries_max` times; then the last error comes out.

    * An append gets a `batch_id` if it has none, so that one whose answer was lost is not written twice; what its first
      try wrote is then counted in `duplicates`, as the contract says.
    * A read that breaks off goes on where it was, in the same log, or raises `Conflict`; nothing is given twice. Tries
      are counted from the last piece on.
    * Chunks and lines in a list are gone through again. Those of an iterator are gone once they were taken: `extend`
      goes on if nothing but a part of the newest one is missing, `put` and `replace` if everything arrived; else the
      error comes out, and whoever has the bytes begins anew.
    * After a lost answer, `bring_back` and `free_aside` count only what the last try did.
    """

    def __init__(
        self,
        inner: Engine,
        *,
        backoff: Backoff | None = None,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = dice.random,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        super().__init__(inner)
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._random = random
        self._new_id = new_id

    def _call(self, call: Call, do: Callable[[], T]) -> T:  # noqa: ARG002 - All are tried alike.
        return self._tried(do)

    def _tried(self, do: Callable[[], T], again: Callable[[ClewError], T] | None = None) -> T:
        """`again` is what is called after a failure, where that is something else."""
        failures = 0
        error: ClewError | None = None
        while True:
            try:
                return do() if error is None or again is None else again(error)
            except StorageError as raised:
                failures += 1
                self._wait(raised, failures)
                error = raised

    def _wait(self, error: ClewError, failures: int) -> None:
        """Raises the error where trying again does not help, or was tried often enough."""
        if not may_pass(error) or failures >= self._backoff.tries_max:
            raise error
        self._sleep(self._backoff.seconds(failures, self._random()))

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
        batch = self._new_id() if batch_id is None else batch_id
        return super().append(key, entries, batch_id=batch, expect=expect, summary=summary, keep_time=keep_time)

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        taken = Taken(chunks)

        def write(size: int) -> int:
            return self.inner.extend(key, taken, start=size, modified_ns=modified_ns, make=make)

        def again(error: ClewError) -> int:
            if not taken.is_begun:
                return write(start)
            stat = self.inner.stat(key)
            size = 0 if stat is None else stat.size_bytes
            before = taken.go_to(size - start)
            if before is None or not self._stands_before(key, size, before):
                raise _given_up(error)
            return write(size)

        return self._tried(lambda: write(start), again)

    def _stands_before(self, key: LogKey, position: int, expected: bytes) -> bool:
        """Whether what stands there is what was handed out, and nobody else's."""
        if not expected:
            return True
        found = self.inner.read_range(key, position=position - len(expected), size=len(expected))
        return b"".join(found) == expected

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        taken = Taken(lines)

        def again(error: ClewError) -> str:
            stat = self.inner.stat(key)
            if stat is not None and stat.revision != expect and taken.is_done and stat.size_bytes == taken.size:
                if _digest(self.inner.read_range(key, position=0, size=stat.size_bytes)) == taken.digest:
                    return stat.revision
            if taken.go_to(0) is None:
                raise _given_up(error)
            return self.inner.replace(key, taken, expect=expect)

        return self._tried(lambda: self.inner.replace(key, taken, expect=expect), again)

    def delete(self, key: LogKey) -> bool:
        was_there = self.stat(key) is not None or (not key.subpath and next(self.list_sub(key), None) is not None)
        return super().delete(key) or was_there

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        there = self._there(key)

        def again(_: ClewError) -> Aside:
            self.inner.set_aside(key, operation)
            return there

        return self._tried(lambda: self.inner.set_aside(key, operation), again)

    def _there(self, key: LogKey) -> Aside:
        """What there is of a session."""
        main = self.stat(key.main)
        logs = [*self.list_sub(key), *([] if main is None else [main])]
        blobs = self.blobs(key)
        size = sum(log.size_bytes for log in logs) + sum(blob.size_bytes for blob in blobs)
        return Aside(len(logs), len(blobs), size)

    # Reading.

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        name = self._name(key)
        position, given = start, 0

        def note(line: Line) -> None:
            nonlocal position, given
            position, given = line.position + line.size, line.number

        def again() -> Iterator[Line]:
            before = given
            lines = self.inner.read(key, start=position, end=end)
            self._must_be(key, name)
            return (msgspec.structs.replace(line, number=before + line.number) for line in lines)

        return self._resumed(super().read(key, start=start, end=end), again, note)

    def read_back(self, key: LogKey) -> Iterator[Line]:
        name = self._name(key)
        position: int | None = None

        def note(line: Line) -> None:
            nonlocal position
            position = line.position

        def again() -> Iterator[Line]:
            end = position
            lines = self.inner.read_back(key)
            self._must_be(key, name)
            return (line for line in lines if end is None or line.position < end)

        return self._resumed(super().read_back(key), again, note)

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        name = self._name(key)
        given = 0

        def note(chunk: bytes) -> None:
            nonlocal given
            given += len(chunk)

        def again() -> Iterator[bytes]:
            chunks = self.inner.read_range(key, position=position + given, size=size - given)
            self._must_be(key, name)
            return chunks

        return self._resumed(super().read_range(key, position=position, size=size), again, note)

    def open(self, key: BlobKey) -> Iterator[bytes]:
        given, size = hashlib.sha256(), 0

        def note(chunk: bytes) -> None:
            nonlocal size
            given.update(chunk)
            size += len(chunk)

        def again() -> Iterator[bytes]:
            return _behind(key, self.inner.open(key), size, given.digest())

        return self._resumed(super().open(key), again, note)

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        first = super().list(project, order=order, limit=limit)
        return self._listed(
            first, lambda: self.inner.list(project, order=order, limit=limit), lambda stat: stat.key, limit
        )

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        return self._listed(super().list_sub(key), lambda: self.inner.list_sub(key), lambda stat: stat.key)

    def search(self, words: str, *, project: str | None = None, limit: int | None = None) -> Iterator[Found]:
        first = super().search(words, project=project, limit=limit)
        return self._listed(
            first,
            lambda: self.inner.search(words, project=project, limit=limit),
            lambda found: (found.key, found.position),
            limit,
        )

    def watch(self, keys: Sequence[LogKey], stop: Event, *, seconds: float = WATCH_SECONDS) -> Iterator[None]:
        return self._watched(super().watch(keys, stop, seconds=seconds), keys, stop, seconds)

    def _watched(self, changes: Iterator[None], keys: Sequence[LogKey], stop: Event, seconds: float) -> Iterator[None]:
        failures = 0
        while True:
            try:
                for _ in changes:
                    failures = 0
                    yield None
                return
            except StorageError as error:
                failures += 1
                self._wait(error, failures)
            if stop.is_set():
                return
            # What changed while nobody watched is seen by whoever looks now.
            changes = super().watch(keys, stop, seconds=seconds)
            yield None

    # Going on.

    def _resumed(self, pieces: Iterator[T], again: Callable[[], Iterator[T]], note: Callable[[T], None]) -> Iterator[T]:
        """The pieces. Where they break off, those of `again`, which knows from `note` what was given."""
        failures, is_broken = 0, False
        while True:
            try:
                if is_broken:
                    pieces, is_broken = again(), False
                piece = next(pieces)
            except StopIteration:
                return
            except StorageError as error:
                failures, is_broken = failures + 1, True
                self._wait(error, failures)
                continue
            failures = 0
            note(piece)
            yield piece

    def _listed(
        self,
        pieces: Iterator[T],
        again: Callable[[], Iterator[T]],
        name: Callable[[T], object],
        limit: int | None = None,
    ) -> Iterator[T]:
        given: set[object] = set()
        found = self._resumed(
            pieces,
            lambda: (piece for piece in again() if name(piece) not in given),
            lambda piece: given.add(name(piece)),
        )
        return islice(found, limit)

    def _name(self, key: LogKey) -> str | None:
        """What tells this log from a later one under the same key."""
        stat = self.stat(key)
        return None if stat is None else stat.revision.partition("-")[0]

    def _must_be(self, key: LogKey, name: str | None) -> None:
        stat = self.inner.stat(key)
        if stat is None or stat.revision.partition("-")[0] != name:
            raise Conflict(f"{self.where(key)} was replaced while it was read", hint="read it again from the beginning")

    # Blobs.

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        taken = Taken(chunks)

        def write() -> str:
            return self.inner.put(key, taken, mode=mode, modified_ns=modified_ns)

        def again(error: ClewError) -> str:
            if taken.go_to(0) is not None:
                return write()
            if taken.is_done and self._holds(key, taken):
                return taken.digest
            raise _given_up(error)

        return self._tried(write, again)

    def _holds(self, key: BlobKey, taken: Taken) -> bool:
        stat = self.inner.blob_stat(key)
        if stat is None or stat.size_bytes != taken.size:
            return False
        return (stat.digest or _digest(self.inner.open(key))) == taken.digest

    def delete_blob(self, key: BlobKey) -> bool:
        was_there = self.blob_stat(key) is not None
        return super().delete_blob(key) or was_there


def _given_up(error: ClewError) -> ClewError:
    """The same failure, as one that trying again from here does not help against."""
    return StorageError(error.message, hint=error.hint or "begin anew, from the bytes")


def _digest(chunks: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        found.update(chunk)
    return found.hexdigest()


def _behind(key: BlobKey, chunks: Iterator[bytes], size: int, digest: bytes) -> Iterator[bytes]:
    """The content behind its first `size` bytes, which have that digest if it is still the same content."""
    passed, left = hashlib.sha256(), size
    for chunk in chunks:
        passed.update(chunk[:left])
        chunk, left = chunk[left:], max(0, left - len(chunk))
        if left == 0 and chunk:
            if passed.digest() != digest:
                break
            yield chunk
    if left or passed.digest() != digest:
        raise Conflict(f"the {key.kind} {key.name!a} was replaced while it was read", hint="read it again")
