"""Where a mirror sends what was changed: another engine, or whatever takes records.

EngineWriter     the default: the same bytes in another engine
RecordSender     a base for what takes records, such as a service: `send`, and `wants` for which of them
RecordsTo        the records of which `wants` is true, in another engine
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from clew.engines.contract import BlobKey, BlobStat, BlobStore, Engine, Entry, LogKey, LogStat, LogStore, Problem
from clew.errors import Conflict, StorageError, UsageError
from clew.records.codec import decode
from clew.records.identity import uuid_of_line
from clew.records.line import Line
from clew.records.own import is_attached
from clew.records.record import Record

TAIL_BYTES = 4096
"""So much of the end of a copy must be what stands at that place in the log, or it is a copy of something else."""
BATCH_BYTES = 1024 * 1024
BATCH_LINES = 100
"""A sender gets no more at once."""


class RemoteWriter:
    """Is told what to bring up to date; reads the rest from the source itself.

    One thread calls it at a time. It may be called again for what is there already, which MUST change nothing. What it
    cannot do it says by an error of `clew.errors`, or an `OSError`; after one that may pass it is called again.
    """

    url = ""
    """What a person calls the place."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What it had to leave out."""
        return ()

    def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
        """Brings a log to the size that `stat` says. `begun` is the size it had before the first change that the mirror
        saw, for a place that takes only what is new.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how a log gets there")

    def replaced(self, source: LogStore, stat: LogStat) -> None:
        """The log has other bytes now."""

    def deleted(self, key: LogKey) -> None:
        """The log is gone; if it is a main log, so are its sublogs."""

    def blob(self, source: BlobStore, stat: BlobStat) -> None:
        """Stores what the blob is now."""

    def blob_deleted(self, key: BlobKey) -> None:
        """The blob is gone."""

    def set_aside(self, key: LogKey, operation: str) -> None:
        """The session was taken out of sight."""

    def brought_back(self, operation: str) -> None:
        """What was taken out of sight under that name is there again."""

    def freed(self, operation: str) -> None:
        """It will not be brought back."""

    def flush(self) -> None:
        """Returns when what was sent is durable there."""

    def close(self) -> None:
        """Lets go of connections."""


class EngineWriter(RemoteWriter):
    """Keeps the same bytes in another engine. A log is there from its first line on, also what was written before.

    It only ever goes on with a log that is a beginning of the source's. One that has something else is left as it is,
    and an error says so. So is an attached fork, where Claude Code would read it without its beginning.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.url = engine.url

    def log(self, source: LogStore, stat: LogStat, begun: int) -> None:  # noqa: ARG002 - Older lines belong to it too.
        self._must_be_whole_there(source, stat)
        there = self.engine.stat(stat.key)
        size = 0 if there is None else there.size_bytes
        self._must_be_a_copy(source, stat, min(size, stat.size_bytes))
        if there is None or size < stat.size_bytes:
            chunks = source.read_range(stat.key, position=size, size=stat.size_bytes - size)
            _must_be_the_same(source, stat)
            self.engine.extend(stat.key, chunks, start=size, modified_ns=stat.modified_ns, make=True)

    def _must_be_whole_there(self, source: LogStore, stat: LogStat) -> None:
        if not self.engine.capabilities.is_clients or stat.key.subpath:
            return
        first = next((decode(line) for line in source.read(stat.key, end=1)), None)
        if isinstance(first, Record) and is_attached(first):
            session = stat.key.session
            raise UsageError(
                f"{session} is an attached fork, which Claude Code would read without its beginning",
                hint=f"copy it with what it inherited: clew fork {session} --kind copy",
            )

    def _must_be_a_copy(self, source: LogStore, stat: LogStat, size: int) -> None:
        count = min(size, TAIL_BYTES)
        if count and _range(source, stat.key, size - count, count) != _range(
            self.engine, stat.key, size - count, count
        ):
            _must_be_the_same(source, stat)
            raise StorageError(
                f"{self.engine.where(stat.key)} is no copy of {source.where(stat.key)}: it has other lines",
                hint="compare the two; then move one of them away, or delete it",
            )

    def replaced(self, source: LogStore, stat: LogStat) -> None:
        there = self.engine.stat(stat.key)
        if there is None:
            self.log(source, stat, 0)
        else:
            chunks = source.read_range(stat.key, position=0, size=stat.size_bytes)
            _must_be_the_same(source, stat)
            self.engine.replace(stat.key, chunks, expect=there.revision)

    def deleted(self, key: LogKey) -> None:
        self.engine.delete(key)

    def blob(self, source: BlobStore, stat: BlobStat) -> None:
        there = self.engine.blob_stat(stat.key)
        if there is None or not _is_same_blob(stat, there):
            self.engine.put(stat.key, source.open(stat.key), mode=stat.mode, modified_ns=stat.modified_ns)

    def blob_deleted(self, key: BlobKey) -> None:
        self.engine.delete_blob(key)

    def set_aside(self, key: LogKey, operation: str) -> None:
        self.engine.set_aside(key, operation)

    def brought_back(self, operation: str) -> None:
        self.engine.bring_back(operation)

    def freed(self, operation: str) -> None:
        self.engine.free_aside(operation)

    def flush(self) -> None:
        self.engine.flush()

    def close(self) -> None:
        self.engine.close()


class _Sent(msgspec.Struct, frozen=True):
    """Up to where the lines of a log were sent, and which log that was."""

    name: str
    position: int


class RecordSender(RemoteWriter):
    """Sends lines as they are appended, in order, and knows nothing of blobs, of deleting or of setting aside.

    What the process did not send before it ended is not sent by the next one. After a failure lines may come again: who
    takes them knows those with a uuid. A log that was replaced or made anew is sent from its beginning.
    """

    def __init__(self) -> None:
        self._sent: dict[LogKey, _Sent] = {}
        self._left_out: dict[LogKey, Problem] = {}

    def send(self, key: LogKey, lines: Sequence[Line]) -> None:
        """Takes up to `BATCH_LINES` whole lines of a log."""
        raise NotImplementedError(f"{type(self).__name__} does not say how lines are sent")

    def wants(self, key: LogKey, line: Line) -> bool:  # noqa: ARG002 - For those that choose.
        """Whether this line is sent. `clew.decode(line)` tells what it is."""
        return True

    @property
    def problems(self) -> Sequence[Problem]:
        return tuple(self._left_out.values())

    def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
        sent = self._sent.get(stat.key) or _Sent(name_of(stat), begun)
        position = sent.position if sent.name == name_of(stat) else 0
        batch: list[Line] = []
        for line in _lines_from(source, stat, position):
            if not line.is_held:
                where = source.where(stat.key)
                self._left_out[stat.key] = Problem(where, f"the line at byte {line.position} is too long to be sent")
            elif not line.is_terminated:
                break
            elif self.wants(stat.key, line):
                batch.append(line)
            position = line.position + line.size
            if len(batch) >= BATCH_LINES or sum(each.size for each in batch) >= BATCH_BYTES:
                self._send(stat, batch, position)
                batch = []
        self._send(stat, batch, position)

    def _send(self, stat: LogStat, batch: Sequence[Line], position: int) -> None:
        if batch:
            self.send(stat.key, batch)  # Only what was taken counts as sent.
        self._sent[stat.key] = _Sent(name_of(stat), position)

    def replaced(self, source: LogStore, stat: LogStat) -> None:
        self.log(source, stat, 0)


class RecordsTo(RecordSender):
    """Appends those lines to another engine for which `wants` is true; each row with a uuid once."""

    def __init__(self, engine: Engine, wants: Callable[[LogKey, Line], bool]) -> None:
        super().__init__()
        self._engine = engine
        self._wants = wants
        self.url = engine.url

    def wants(self, key: LogKey, line: Line) -> bool:
        return bool(line.data.strip()) and self._wants(key, line)

    def send(self, key: LogKey, lines: Sequence[Line]) -> None:
        entries = [Entry(line.data.removesuffix(b"\n"), uuid_of_line(line.data)) for line in lines]
        # Of lines without a uuid the batch tells which were sent: its name follows from what they are and where.
        digest = hashlib.sha256(b"".join(line.data for line in lines)).hexdigest()
        self._engine.append(key, entries, batch_id=f"mirror-{lines[0].position}-{digest}")

    def flush(self) -> None:
        self._engine.flush()

    def close(self) -> None:
        self._engine.close()


def name_of(stat: LogStat) -> str:
    """What tells this log from an earlier or later one under the same key."""
    return stat.revision.partition("-")[0]


def _must_be_the_same(source: LogStore, stat: LogStat) -> None:
    now = source.stat(stat.key)
    if now is None or name_of(now) != name_of(stat):
        raise Conflict(f"{source.where(stat.key)} was replaced while it was copied", hint="look again")


def _range(engine: LogStore, key: LogKey, position: int, size: int) -> bytes:
    return b"".join(engine.read_range(key, position=position, size=size))


def _is_same_blob(here: BlobStat, there: BlobStat) -> bool:
    if here.digest is not None and there.digest is not None:
        return here.digest == there.digest
    return (here.size_bytes, here.modified_ns) == (there.size_bytes, there.modified_ns)


def _lines_from(source: LogStore, stat: LogStat, position: int) -> Iterator[Line]:
    """Lines from a place on that is mostly the beginning of one; else from the line that it lies in."""
    try:
        lines = source.read(stat.key, start=position, end=stat.size_bytes)
    except Conflict:
        found = (line.position for line in source.read_back(stat.key) if line.position <= position)
        lines = source.read(stat.key, start=next(found, 0), end=stat.size_bytes)
    _must_be_the_same(source, stat)
    return lines
