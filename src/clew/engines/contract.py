"""What a place that holds logs and blobs must do: the contract that every engine and every wrapper keeps.

An engine answers with bytes and knows nothing of what they mean. Names in a key are data: an engine on disk refuses or
encodes what is no safe file name, and never joins it to a path unchecked. `clew.testing.conformance` tests all of this;
docs/design/0006-the-store-contract.md says what was measured before it was frozen.

MUST and MUST NOT are promises that callers build on. What is not written here is not promised. In particular:

* Nothing orders the appends of two logs.
* A reader may see an append before it is durable, and before the writer has its answer.
* Times are for people and for sorting. Whether a log changed is told by its revision alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from threading import Event, RLock
from typing import Literal

import msgspec

from clew.errors import ClewError, NotFound, UsageError
from clew.layouts.keys import KeyStrategy
from clew.records.line import Line

WATCH_SECONDS = 0.1
"""How often an engine that cannot be told of changes looks for them."""
TICK_NS = 1_000_000
"""By so much `modified_ns` of a log grows at least: protocols that count milliseconds see each change too."""
BATCHES_KEPT = 100
"""So many batches of a log are known at least, for callers that did not get an answer."""


class LogKey(msgspec.Struct, frozen=True, order=True):
    """The address of a log. `subpath` is "" for the main log, else like "subagents/agent-a1b2"."""

    project: str
    session: str
    subpath: str = ""

    @property
    def main(self) -> LogKey:
        """The main log of the same session."""
        return LogKey(self.project, self.session)


class BlobKey(msgspec.Struct, frozen=True, order=True):
    """The address of a blob: a reference to content. `session` is "" for what belongs to the whole store."""

    project: str
    session: str
    kind: str
    name: str


class Entry(msgspec.Struct, frozen=True):
    """One line to append, without its newline.

    `dedupe_id` is the `uuid` that stands in the line, for a row that is written once; None for one that may stand there
    again. An engine may keep ids beside the lines or find them in the lines, by `records.identity`.
    """

    data: bytes
    dedupe_id: str | None = None


class Appended(msgspec.Struct, frozen=True):
    """What came of an append: the revision that it left, how many entries were written, how many were there before."""

    revision: str
    written: int
    duplicates: int = 0
    notes: tuple[str, ...] = ()
    """What a person should know: a torn line was closed, the file was replaced meanwhile."""


class LogStat(msgspec.Struct, frozen=True):
    """What is known of a log without reading it. `modified_ns` is a point in time in nanoseconds since 1970.

    `summary` is what was passed to the last append, or None where that no longer belongs to this revision: `extend` and
    `replace` leave none. What stands before the first dash of `revision` names the log itself: it stays the same while
    the log only grows, and is another one after `replace`, or when a log was deleted and made anew.
    """

    key: LogKey
    revision: str
    size_bytes: int
    modified_ns: int
    summary: bytes | None = None


class BlobStat(msgspec.Struct, frozen=True):
    """What is known of a blob without reading it. `digest` is the SHA-256 in hex, None where only reading could say."""

    key: BlobKey
    size_bytes: int
    modified_ns: int
    digest: str | None = None
    mode: int = 0o600


class Aside(msgspec.Struct, frozen=True):
    """What was set aside: how many logs and blobs, and how many bytes they have."""

    logs: int = 0
    blobs: int = 0
    size_bytes: int = 0


class Problem(msgspec.Struct, frozen=True):
    """Something that a listing left out, and why. The path may hold any characters."""

    path: str
    reason: str


class Order(Enum):
    """How `list` sorts: by last change or by key, so that equal times still have one order."""

    NEWEST_FIRST = "newest"
    OLDEST_FIRST = "oldest"
    BY_KEY = "key"


_ALONE = RLock()

SORTS: Mapping[Order, Callable[[LogStat], tuple[int, LogKey]]] = {
    Order.NEWEST_FIRST: lambda stat: (-stat.modified_ns, stat.key),
    Order.OLDEST_FIRST: lambda stat: (stat.modified_ns, stat.key),
    Order.BY_KEY: lambda stat: (0, stat.key),
}


class Capabilities(msgspec.Struct, frozen=True):
    """What engines differ in, as data: callers ask these fields and never what class an engine is."""

    cas: Literal["atomic", "cooperative"] = "atomic"
    """Whether `expect` holds against everybody, or only among those who write through clew."""
    is_durable: bool = True
    """Whether what was acknowledged is there after the machine failed."""
    atomic_batch: bool = True
    """Whether a crash leaves all entries of an append or none. Otherwise it may leave a prefix of whole lines."""
    atomic_summary: bool = True
    """Whether the summary is stored in the append's own transaction. Otherwise `stat` may have to answer None."""
    dedupes_sublogs: bool = True
    """Whether `dedupe_id` counts in sublogs too."""
    keeps_mode: bool = True
    """Whether blobs come back with the mode they were put with."""
    is_shared: bool = True
    """Whether several processes may hold the store at once."""
    is_clients: bool = False
    """Whether Claude Code itself reads and appends here."""
    search: bool = False
    """Whether `search` finds words."""


class Found(msgspec.Struct, frozen=True):
    """A line that holds the words that were searched for. A higher `score` is a better match."""

    key: LogKey
    position: int
    size: int
    score: float


class LogStore(ABC):
    """Holds logs: append-only sequences of lines.

    An engine MUST be safe to share by threads, and by processes if `capabilities.is_shared`. Every method MUST raise
    errors of `clew.errors` for what the place does, `UsageError` for a key that it cannot hold, and MUST NOT leave a
    log that another method would call damaged.
    """

    capabilities = Capabilities()
    url = ""
    """What `clew.open` takes to open the same place again."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What the newest look at each place left out."""
        return ()

    # Writing.

    @abstractmethod
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
        """Adds lines at the end, in order, each with one newline. When it returns they are as durable as was asked.

        * Lines of one append MUST stand together, and no line of anybody MUST be broken by it. After a crash all of
          them are there, or a prefix of whole lines (none, if `atomic_batch`).
        * An entry whose `dedupe_id` an earlier line of this log was appended with, or that stands twice in `entries`,
          MUST NOT be written again; it is counted in `duplicates`. In a sublog only if `dedupes_sublogs`.
        * The same `batch_id` for the same log with the same entries MUST add what the first try did not, and nothing
          else: a caller without an answer calls again. What the first try wrote is counted in `duplicates`, and
          `expect` is not compared where anything of it was written. An engine MUST know at least the last
          `BATCHES_KEPT` batches of a log.
        * `expect` is a revision from `stat` or `append`, or "" for a log that is not there. Anything else than the
          present one MUST raise `Conflict`, naming both, and write nothing.
        * `summary` replaces the one before; None leaves it.
        * `keep_time` leaves `modified_ns` as it is, where the engine can, for lines that are no conversation.
        * No entries: nothing happens, and no log is made. An entry with a newline in it, or of no bytes, MUST raise
          `UsageError`, and nothing is written.
        * Where the last line lacks its newline and is not being written any more, it gets one first: `notes` says so.

        A log that does not exist is made. The revision MUST change with every line that is written. `modified_ns` MUST
        grow by at least `TICK_NS` with every append that writes and does not keep the time.
        """

    @abstractmethod
    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        """Goes on with a log by raw bytes, for copies: no newline is added, nothing is healed or deduplicated.

        Later appends know the lines that came so: an engine finds their `dedupe_id` by `records.identity`. A line over
        the engine's limit may have none. The chunks may be read from this very engine while they are taken.
        `start` MUST be the size of the log now (0 where there is none), else `Conflict` and nothing is written. Memory
        MUST NOT grow with the bytes, nor with the length of a line. A new log appears whole or not at all; one that
        grows may keep a prefix of the chunks after a crash. `make` makes a log of no bytes. `modified_ns` is the time
        of the log from then on, also where no bytes came: so an interrupted copy is ended. Returns the new size.
        """

    @abstractmethod
    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        """Puts other bytes in the place of a log, for repair only: whole or not at all. Returns the new revision.

        Raises `Conflict` when the log is not at `expect`, and `NotFound` when it is not there.
        """

    @abstractmethod
    def delete(self, key: LogKey) -> bool:
        """Removes a log for good; a main log takes its sublogs along, also where only they are there. False when there
        was nothing. Blobs stay.
        """

    def flush(self) -> None:  # noqa: B027 - Nothing to do where an append is durable when it returns.
        """Returns when every append of any thread that returned before is durable."""

    def close(self) -> None:
        """Flushes and lets go of files and connections. Calling it again does nothing."""
        self.flush()

    # Setting aside: what stands behind `delete` with undo.

    def alone(self) -> AbstractContextManager[object]:
        """Held by one at a time of all who share the place: whoever changes the state of an operation. Others wait.

        It MUST be let go when the process that holds it ends, however it ends. It keeps nobody from reading or
        appending. Here it orders the threads of this process, which is not enough where `is_shared`.
        """
        return _ALONE

    @abstractmethod
    def set_aside(self, key: LogKey, operation: str) -> Aside:
        """Takes a session - main log, sublogs, blobs - out of sight, kept under the name of an operation.

        No other method MUST show any of it afterwards. One operation may take several sessions, one call for each.
        Doing it again goes on where a crash ended it; the answer counts what this call took. Nothing there: an empty
        `Aside`. Raises `Conflict` when something of the same name is kept under that operation and stands there too.
        """

    @abstractmethod
    def bring_back(self, operation: str) -> Aside:
        """Puts back everything that is kept under that name, byte for byte and with its times.

        Raises `Conflict`, and brings back nothing, when something stands in its place now. Can be done again after a
        crash. Nothing kept: an empty `Aside`.
        """

    @abstractmethod
    def free_aside(self, operation: str) -> Aside:
        """Removes for good what is kept under that name. Only `gc` calls it."""

    # Reading.

    @abstractmethod
    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """Lines from `start` (a position that `read` gave, or 0) on, whole, as far as they begin before `end`.

        A read MUST give every byte that was in the log when it began, in order, once, and MUST NOT give a part of a
        line that a writer finished before. Lines appended while it runs MAY be missing. When the log is replaced or
        deleted while it runs, it gives the bytes of before, or raises an error, but MUST NOT mix the two. Memory MUST
        NOT grow with the log; a line over the engine's limit comes as a `Line` without data, whose bytes `read_range`
        gives. Raises `NotFound` at the call when there is no such log, and `Conflict` when no line begins at `start`
        any more. The last line may lack its terminator; it is then either torn or still being written. Line numbers
        count from the first line read. Positions are offsets: the next line begins at `position + size`.
        """

    @abstractmethod
    def read_back(self, key: LogKey) -> Iterator[Line]:
        """The same lines, newest first. `number` is 0: counting would mean reading everything."""

    @abstractmethod
    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        """The bytes of a range in chunks, as they are. Raises `Conflict` when the log does not hold all of them."""

    @abstractmethod
    def stat(self, key: LogKey) -> LogStat | None:
        """None when there is no such log."""

    @abstractmethod
    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        """Main logs, of one project or of all. An unknown project has none."""

    @abstractmethod
    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        """The other logs of the session, by key; also where the main log is not there."""

    @abstractmethod
    def projects(self) -> Sequence[str]:
        """The keys of all projects with a log, sorted. An engine may name projects without any too."""

    # Defaults that are right everywhere; an engine that can do better does.

    def projects_for(self, cwd: str, keys: KeyStrategy) -> Sequence[str]:
        """The projects that hold sessions of a directory, its own key first. `cwd` is a real path."""
        own = keys.key(cwd)
        return [own] if own in self.projects() else []

    def retention_days(self) -> float | None:
        """After how many days without a change another program deletes sessions here; None where none does."""
        return None

    def search(
        self,
        words: str,
        *,
        project: str | None = None,  # noqa: ARG002 - For engines that can.
        limit: int | None = None,  # noqa: ARG002
    ) -> Iterator[Found]:
        """Lines whose texts hold all of the words, the best first. Raises `UsageError` where `search` is False."""
        raise UsageError(f"this store cannot search for {words!r}", hint="use one that can, such as sqlite:PATH")

    def find_row(self, key: LogKey, dedupe_id: str) -> int | None:  # noqa: ARG002 - For engines that can.
        """The position of the first line with this `dedupe_id`, where the engine knows it without reading the log.

        None says nothing: whoever must know reads.
        """
        return None

    def list_subs(self, project: str) -> Mapping[str, Sequence[LogStat]]:
        """What `list_sub` gives for every session of a project that has any."""
        found = {stat.key.session: [*self.list_sub(stat.key)] for stat in self.list(project, order=Order.BY_KEY)}
        return {session: subs for session, subs in found.items() if subs}

    def find_sessions(self, id_or_prefix: str) -> Sequence[LogStat]:
        """Sessions of all projects whose id begins so, in any case, newest first; an id that is given whole, as it is
        written, excludes all others. The same id may stand in several projects.
        """
        wanted = id_or_prefix.lower()
        found = [stat for stat in self.list() if stat.key.session.lower().startswith(wanted)]
        return [stat for stat in found if stat.key.session == id_or_prefix] or found

    def lines_with(self, keys: Sequence[LogKey], needle: bytes) -> Iterator[tuple[LogKey, Sequence[Line] | ClewError]]:
        """For each log, in the order given, its lines that hold the bytes, in their order and perhaps without numbers;
        for a log that cannot be read, why. For what few lines say: an engine that can passes over the others unread.
        """
        for key in keys:
            try:
                found: Sequence[Line] | ClewError = [line for line in self.read(key) if needle in line.data]
            except ClewError as error:
                found = error
            yield key, found

    def where(self, key: LogKey) -> str:
        """The place of a log in words: a path on disk, else the store and the names."""
        return "#".join((self.url, "/".join(filter(None, (key.project, key.session, key.subpath)))))

    def live_sessions(self) -> frozenset[str]:
        """The ids of sessions that a running client holds, each with a head of its own."""
        return frozenset()

    def watch(self, keys: Sequence[LogKey], stop: Event, *, seconds: float = WATCH_SECONDS) -> Iterator[None]:
        """Yields whenever one of the logs may have changed since the call, until `stop` is set. Never misses the last
        change. Whoever reads after the call and then at every yield has seen everything.
        """
        return self._changes(keys, [self._revision(key) for key in keys], stop, seconds)

    def _changes(
        self, keys: Sequence[LogKey], before: Sequence[str | None], stop: Event, seconds: float
    ) -> Iterator[None]:
        while not stop.wait(seconds):
            now = [self._revision(key) for key in keys]
            if now != before:
                before = now
                yield None

    def _revision(self, key: LogKey) -> str | None:
        stat = self.stat(key)
        return None if stat is None else stat.revision


class BlobStore(ABC):
    """Holds blobs: content under names. Content that several names refer to is held once where the engine can.

    The kinds `backup`, `tool result`, `meta`, `custom title`, `archived` and `sidecar` are the client's own; an engine
    on Claude's files puts them where the client looks. All others are clew's.
    """

    @abstractmethod
    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        """Stores content under a name, whole or not at all, durable when it returns; replaces what was there.

        Returns the digest, the SHA-256 in hex. Memory MUST NOT grow with the content.
        """

    def link(self, key: BlobKey, name: BlobKey) -> None:
        """Gives the content of a blob a second name, with its mode and time; replaces what was there. It is held once
        where the engine can, and taking away one name leaves the other. Raises `NotFound` for an unknown `key`.
        """
        stat = self.blob_stat(key)
        if stat is None:
            raise NotFound(f"there is no {key.kind} {key.name!a} of the session {key.session!a}")
        self.put(name, self.open(key), mode=stat.mode, modified_ns=stat.modified_ns)

    @abstractmethod
    def open(self, key: BlobKey) -> Iterator[bytes]:
        """The content in chunks. Raises `NotFound` for an unknown name.

        Where the engine knows the digest it MUST raise `DamagedData` at the end when the bytes are not those that were
        put; a caller that must know before it uses them reads twice.
        """

    @abstractmethod
    def blob_stat(self, key: BlobKey) -> BlobStat | None:
        """None when there is no such blob."""

    @abstractmethod
    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        """The blobs of a session, of every kind, by kind and name. With `session` "", those of the whole store."""

    @abstractmethod
    def delete_blob(self, key: BlobKey) -> bool:
        """Removes a name; the content goes when no name refers to it any more. False when there was none."""


class Engine(LogStore, BlobStore):
    """A place that holds both. The rest of clew asks for this and nothing more special."""


SMALL_BLOB_BYTES_MAX = 1024 * 1024
"""More than any note about a session or a subagent has."""


def small_blob(blobs: BlobStore, key: BlobKey, limit: int = SMALL_BLOB_BYTES_MAX) -> bytes | None:
    """A whole small blob, or None when there is none that can be read, or it is longer than the limit."""
    try:
        stat = blobs.blob_stat(key)
        return None if stat is None or stat.size_bytes > limit else b"".join(blobs.open(key))[: limit + 1]
    except ClewError:
        return None


def checked_entries(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries themselves. Raises `UsageError` for one that would not be one line."""
    for at, entry in enumerate(entries):
        if b"\n" in entry.data or not entry.data:
            what = "holds a newline" if entry.data else "is empty"
            raise UsageError(f"entry {at} of {len(entries)} {what}: an entry is one line", hint="append compact JSON")
    return entries
