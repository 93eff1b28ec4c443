"""Copying sessions from one engine to another: raw bytes out, raw bytes in. Nothing is decoded, joined or healed.

    look     the sizes of the logs, the main log first, and then the blobs: what a row points to was there before it
    plan     for each log and blob: new, grown, the same, or something else. Pure, and nothing is written for a session
             that has a conflict anywhere
    write    blobs, then sublogs, then the main log up to the size that was looked at
    mark     a note at the target of what was left there, so that the next copy reads only what is new

A copy that was killed is made again: what is there is a prefix of its source, or a whole blob. Memory is bounded by the
names of one session, but for a line over the limit in a log that is replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

import msgspec

from clew.engines.contract import BlobKey, BlobStat, Engine, LogKey, LogStat, Order, small_blob
from clew.errors import Busy, ClewError, Conflict, DamagedData, NotFound, UsageError
from clew.records.compact import compact
from clew.records.record import body_of

MARK_KIND = "copied"
MARK_BYTES_MAX = 64 * 1024 * 1024
LOCAL_KINDS = frozenset({MARK_KIND})
"""Blobs that say something about one store and are not copied to another."""
TRIES_MAX = 3
"""So often a session is looked at anew that changed under the copy."""
ENDS_BYTES = 64 * 1024
"""So much is compared at either end of what an earlier copy left, before its rest is believed to be the same."""


class LeftOut(msgspec.Struct, frozen=True):
    """A session, or something of one, that was not copied."""

    project: str
    session: str
    where: str
    reason: str
    is_conflict: bool = False
    """Both sides have something there, and neither is what the other was."""


class Progress(msgspec.Struct, frozen=True):
    """How far a copy is. Bytes are those of logs; what was there already counts as done."""

    session: str
    sessions: int
    sessions_total: int
    size_bytes: int
    size_bytes_total: int


class Copied(msgspec.Struct, frozen=True):
    """What came of a copy. `sessions` got something new, `skipped` had it all; `records` counts lines.

    A session is in `conflicts` as a whole: nothing of it was written then.
    """

    sessions: int = 0
    records: int = 0
    blobs: int = 0
    skipped: int = 0
    conflicts: int = 0
    size_bytes: int = 0
    left_out: Sequence[LeftOut] = ()


class Way(Enum):
    """What a plan says of one log or blob."""

    NEW = "new"
    GROW = "grow"
    SAME = "same"
    REPLACE = "replace"
    CONFLICT = "conflict"


class MarkedLog(msgspec.Struct, frozen=True):
    """A log as a copy left it: the revisions of both sides, and how many bytes are the same."""

    source: str
    target: str
    size_bytes: int


class MarkedBlob(msgspec.Struct, frozen=True):
    """A blob as a copy left it at the target."""

    size_bytes: int
    modified_ns: int


class Mark(msgspec.Struct):
    """What copies from one place left of a session: logs by subpath, blobs by kind and name."""

    source: str
    logs: dict[str, MarkedLog] = {}
    blobs: dict[str, MarkedBlob] = {}


class LogStep(msgspec.Struct, frozen=True):
    """What is to be done for a log: the bytes from `start` up to the size that `stat` has."""

    stat: LogStat
    way: Way
    start: int = 0
    expect: str = ""
    """The revision at the target that may be replaced."""
    reason: str = ""


class BlobStep(msgspec.Struct, frozen=True):
    """What is to be done for a blob."""

    stat: BlobStat
    way: Way
    reason: str = ""


class Looked(msgspec.Struct, frozen=True):
    """A session at the source: its logs as they were before its blobs were asked for, the main log first."""

    key: LogKey
    logs: Sequence[LogStat]


class _Unreadable(ClewError):
    """The source failed, not the target."""

    def __init__(self, cause: ClewError) -> None:
        super().__init__(cause.message, hint=cause.hint)
        self.cause = cause


# Plans: pure.


def plan_log(
    source: LogStat,
    target: LogStat | None,
    marked: MarkedLog | None,
    *,
    is_trusted: bool,
    same_up_to: Callable[[], int],
) -> LogStep:
    """What is to be done for a log. `same_up_to` counts the bytes that both begin with; it is asked only if needed.

    `is_trusted`: both sides are what the mark says, as far as their revisions and their ends can tell.
    """
    if target is None:
        return LogStep(source, Way.NEW)
    if marked is not None and is_trusted:
        if source.revision == marked.source:
            return LogStep(source, Way.SAME)
        if source.size_bytes > target.size_bytes:
            return LogStep(source, Way.GROW, target.size_bytes)
    same = same_up_to()
    if same == source.size_bytes:
        # The target may have more by now; nothing of the source is missing there.
        return LogStep(source, Way.SAME)
    if same == target.size_bytes:
        return LogStep(source, Way.GROW, same)
    if marked is not None and marked.target == target.revision:
        return LogStep(source, Way.REPLACE, expect=target.revision)
    reason = f"the logs differ from byte {same} on: {source.size_bytes} bytes there, {target.size_bytes} here"
    return LogStep(source, Way.CONFLICT, reason=reason)


def plan_blob(
    source: BlobStat, target: BlobStat | None, marked: MarkedBlob | None, is_same: Callable[[], bool]
) -> BlobStep:
    """What is to be done for a blob. `is_same` compares the contents; it is asked only if needed.

    Without digests, equal sizes and times are taken for equal contents: a copy gives the time of its source.
    """
    if target is None:
        return BlobStep(source, Way.NEW)
    if source.size_bytes == target.size_bytes:
        if source.digest is not None and target.digest is not None:
            is_equal = source.digest == target.digest
        else:
            is_equal = source.modified_ns == target.modified_ns or is_same()
        if is_equal:
            return BlobStep(source, Way.SAME)
    if marked == MarkedBlob(target.size_bytes, target.modified_ns):
        return BlobStep(source, Way.REPLACE)
    reason = f"it differs: {source.size_bytes} bytes there, {target.size_bytes} here"
    return BlobStep(source, Way.CONFLICT, reason=reason)


# The copy itself.


def copy(
    source: Engine,
    target: Engine,
    *,
    projects: Iterable[str] | None = None,
    is_verified: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Copied:
    """Copies the sessions of these projects, or of all, with everything that belongs to them, byte for byte.

    A log at the target that is the beginning of its source is gone on with, one that is the same or ahead is skipped.
    One that is neither is a conflict and never overwritten, unless it is what an earlier copy from here left. What
    cannot be read, or cannot be held by the target, is in `left_out`; where the target itself fails, that is raised,
    and the same call goes on from there. A row that is appended meanwhile is copied whole, in part, or not at all; the
    next copy brings the rest. `is_verified` reads back what was written and raises `DamagedData` if it differs.
    """
    if source is target or (source.url == target.url and source.capabilities.is_shared):
        raise UsageError(f"{source.url} cannot be copied to itself", hint="give two different stores")
    return _Copy(source, target, is_verified=is_verified, on_progress=on_progress).run(projects)


class _Copy:
    """One run. Counts as it goes."""

    def __init__(
        self,
        source: Engine,
        target: Engine,
        *,
        is_verified: bool,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._source = source
        self._target = target
        self._is_verified = is_verified
        self._on_progress = on_progress
        self._live: frozenset[str] = frozenset()
        self._told = Copied()
        self._left_out: list[LeftOut] = []
        self._seen = 0
        self._count = 0
        self._bytes = 0
        self._bytes_total = 0

    def run(self, projects: Iterable[str] | None) -> Copied:
        listed = [looked for project in self._projects(projects) for looked in self._listed(project)]
        self._count = len(listed)
        self._bytes_total = sum(stat.size_bytes for looked in listed for stat in looked.logs)
        self._live = self._target.live_sessions()
        # What looking around left out is told before a session's own look adds to it or forgets it.
        problems = {problem.path: problem for problem in self._source.problems}
        for looked in listed:
            before = self._bytes
            self._session(looked)
            self._seen += 1
            self._bytes = before + sum(stat.size_bytes for stat in looked.logs)
            self._progress(looked.key)
        problems.update((problem.path, problem) for problem in self._source.problems)
        self._left_out += [LeftOut("", "", each.path, each.reason) for each in problems.values()]
        return msgspec.structs.replace(self._told, left_out=tuple(self._left_out))

    def _projects(self, projects: Iterable[str] | None) -> Sequence[str]:
        there = self._source.projects()
        return there if projects is None else [each for each in projects if each in there]

    def _listed(self, project: str) -> Iterator[Looked]:
        """The sessions of a project. Main logs are sized before sublogs, and sublogs before blobs."""
        mains = {stat.key: stat for stat in self._source.list(project, order=Order.BY_KEY)}
        subs = self._source.list_subs(project)
        for key in sorted({*mains, *(LogKey(project, session) for session in subs)}):
            main = [mains[key]] if key in mains else []
            yield Looked(key, [*main, *subs.get(key.session, ())])

    def _look(self, key: LogKey) -> Looked:
        with _of_source():
            main = self._source.stat(key)
            return Looked(key, [*([main] if main is not None else []), *self._source.list_sub(key)])

    # One session.

    def _session(self, looked: Looked) -> None:
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                self._once(looked)
                return
            except _Unreadable as error:
                if not tries_left or not isinstance(error.cause, Conflict | NotFound):
                    self._leave_out(looked.key, error.message)
                    return
            except (Busy, UsageError) as error:
                self._leave_out(looked.key, error.message, is_conflict=isinstance(error, Busy))
                return
            except Conflict as error:
                if not tries_left:
                    self._leave_out(looked.key, error.message, is_conflict=True)
                    return
            looked = self._look(looked.key)

    def _leave_out(self, key: LogKey, reason: str, *, is_conflict: bool = False, where: str = "") -> None:
        place = where or self._source.where(key)
        self._left_out.append(LeftOut(key.project, key.session, place, reason, is_conflict))
        if is_conflict:
            self._told = msgspec.structs.replace(self._told, conflicts=self._told.conflicts + 1)

    def _once(self, looked: Looked) -> None:
        with _of_source():
            blobs = [stat for stat in self._source.blobs(looked.key) if stat.key.kind not in LOCAL_KINDS]
        mark = self._mark_of(looked.key)
        blob_steps = [self._blob_step(stat, mark) for stat in blobs]
        log_steps = [self._log_step(stat, mark) for stat in looked.logs]
        wrong = [(self._source.where(step.stat.key), step.reason) for step in log_steps if step.way is Way.CONFLICT]
        wrong += [(_name(step.stat.key), step.reason) for step in blob_steps if step.way is Way.CONFLICT]
        has_work = {Way.SAME} != {*(step.way for step in blob_steps), *(step.way for step in log_steps), Way.SAME}
        if not wrong and has_work and looked.key.session in self._live:
            wrong = [(self._target.where(looked.key), "a running client holds it there")]
        if wrong:
            more = f"; and {len(wrong) - 1} more of the session" if len(wrong) > 1 else ""
            self._leave_out(looked.key, wrong[0][1] + more, is_conflict=True, where=wrong[0][0])
            return
        records, size = self._written(looked.key, blob_steps, log_steps, mark)
        new_blobs = sum(step.way is not Way.SAME for step in blob_steps)
        told = self._told
        self._told = msgspec.structs.replace(
            told,
            sessions=told.sessions + has_work,
            skipped=told.skipped + (not has_work),
            records=told.records + records,
            blobs=told.blobs + new_blobs,
            size_bytes=told.size_bytes + size,
        )

    def _log_step(self, stat: LogStat, mark: Mark) -> LogStep:
        target, marked = self._target.stat(stat.key), mark.logs.get(stat.key.subpath)
        return plan_log(
            stat, target, marked, is_trusted=target is not None and self._is_trusted(stat, target, marked),
            same_up_to=lambda: self._same_up_to(stat.key, 0, min(stat.size_bytes, target.size_bytes if target else 0)),
        )  # fmt: skip

    def _is_trusted(self, source: LogStat, target: LogStat, marked: MarkedLog | None) -> bool:
        """Whether the log only grew since the mark was set. A name may have been given again, so the ends count too."""
        if marked is None or not self._source.capabilities.is_shared or target.revision != marked.target:
            return False
        if source.revision == marked.source:
            return True
        size = marked.size_bytes
        if _log_name(source) != marked.source.partition("-")[0] or not size == target.size_bytes <= source.size_bytes:
            return False
        ends = ((0, min(ENDS_BYTES, size)), (max(0, size - ENDS_BYTES), size))
        return all(self._same_up_to(source.key, start, end) == end - start for start, end in ends)

    def _blob_step(self, stat: BlobStat, mark: Mark) -> BlobStep:
        target = self._target.blob_stat(stat.key)

        def is_same() -> bool:
            with _of_source():
                there = self._source.open(stat.key)
            return _common(_from_source(there), self._target.open(stat.key)) == stat.size_bytes

        return plan_blob(stat, target, mark.blobs.get(_name(stat.key)), is_same)

    def _same_up_to(self, key: LogKey, start: int, end: int) -> int:
        """How many bytes of a range are the same on both sides."""
        with _of_source():
            there = self._source.read_range(key, position=start, size=end - start)
        return _common(_from_source(there), self._target.read_range(key, position=start, size=end - start))

    # Writing one session.

    def _written(
        self, key: LogKey, blob_steps: Sequence[BlobStep], log_steps: Sequence[LogStep], mark: Mark
    ) -> tuple[int, int]:
        """Does what was planned: how many lines and bytes were written. The main log comes last."""
        records, size, marked = 0, 0, Mark(mark.source, dict(mark.logs), dict(mark.blobs))
        for blob in blob_steps:
            if blob.way is not Way.SAME:
                self._put(blob.stat)
                size += blob.stat.size_bytes
            marked.blobs[_name(blob.stat.key)] = self._blob_left(blob.stat.key)
        for step in sorted(log_steps, key=lambda each: not each.stat.key.subpath):
            if step.way is not Way.SAME:
                counted = self._put_log(step)
                records, size = records + counted.lines, size + counted.size
            left = self._log_left(step)
            if left is not None:
                marked.logs[step.stat.key.subpath] = left
        if marked != mark:
            self._target.put(self._mark_key(key), [compact(msgspec.to_builtins(marked))])
        return records, size

    def _put(self, stat: BlobStat) -> None:
        with _of_source():
            chunks = self._source.open(stat.key)
        self._target.put(stat.key, _from_source(chunks), mode=stat.mode, modified_ns=stat.modified_ns)
        if self._is_verified:
            again, there = self._source.open(stat.key), self._target.blob_stat(stat.key)
            size = -1 if there is None else there.size_bytes
            if _common(_from_source(again), self._target.open(stat.key)) != size:
                raise _not_as_written(self._target.url, _name(stat.key))

    def _put_log(self, step: LogStep) -> _Counted:
        key, size = step.stat.key, step.stat.size_bytes
        counted = _Counted(self._range(step), lambda count: self._advance(key, count))
        if step.way is Way.REPLACE:
            self._target.replace(key, _lines(counted), expect=step.expect)
            self._target.extend(key, (), start=size, modified_ns=step.stat.modified_ns)
        else:
            self._target.extend(key, counted, start=step.start, modified_ns=step.stat.modified_ns, make=True)
        after = self._target.stat(key)
        if after is None or after.size_bytes < size:
            raise Conflict(f"{self._target.where(key)} was changed by another program during the copy")
        if self._is_verified and self._same_up_to(key, 0, size) != size:
            raise _not_as_written(self._target.url, self._target.where(key))
        return counted

    def _range(self, step: LogStep) -> Iterator[bytes]:
        """The bytes that are to be written, of the very log that was looked at."""
        key, start = step.stat.key, step.start
        with _of_source():
            chunks = self._source.read_range(key, position=start, size=step.stat.size_bytes - start)
            # It is open by now. Where the name is still that of before, it is the log that was looked at, and a reader
            # that has one open is never given bytes of another.
            self._must_be_same(step.stat)
        yield from _from_source(chunks)

    def _must_be_same(self, before: LogStat) -> None:
        now = self._source.stat(before.key)
        if now is None or _log_name(now) != _log_name(before) or now.size_bytes < before.size_bytes:
            raise Conflict(f"{self._source.where(before.key)} was replaced during the copy", hint="copy again")

    # What was left.

    def _mark_key(self, key: LogKey) -> BlobKey:
        name = hashlib.sha256(self._source.url.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return BlobKey(key.project, key.session, MARK_KIND, name)

    def _mark_of(self, key: LogKey) -> Mark:
        """The mark of the last copy from here. What cannot be read counts for nothing: then contents are compared."""
        data = small_blob(self._target, self._mark_key(key), MARK_BYTES_MAX)
        if data is not None:
            try:
                mark = msgspec.convert(body_of(data), Mark)
            except msgspec.ValidationError:
                return Mark(self._source.url)
            if mark.source == self._source.url:
                return mark
        return Mark(self._source.url)

    def _log_left(self, step: LogStep) -> MarkedLog | None:
        """None where the target has more than what was copied: then it is not as a copy left it."""
        after, size = self._target.stat(step.stat.key), step.stat.size_bytes
        if after is None or after.size_bytes != size:
            return None
        return MarkedLog(step.stat.revision, after.revision, size)

    def _blob_left(self, key: BlobKey) -> MarkedBlob:
        after = self._target.blob_stat(key)
        return MarkedBlob(-1, 0) if after is None else MarkedBlob(after.size_bytes, after.modified_ns)

    # Progress.

    def _advance(self, key: LogKey, count: int) -> None:
        self._bytes += count
        self._progress(key)

    def _progress(self, key: LogKey) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(key.session, self._seen, self._count, self._bytes, self._bytes_total))


class _Counted:
    """Chunks; `size` and `lines` say what went through. A last line without a newline is one too."""

    def __init__(self, chunks: Iterable[bytes], passed: Callable[[int], None]) -> None:
        self._chunks = chunks
        self._passed = passed
        self._newlines = 0
        self._is_open = False
        self.size = 0

    @property
    def lines(self) -> int:
        return self._newlines + self._is_open

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if chunk:
                self.size += len(chunk)
                self._newlines += chunk.count(b"\n")
                self._is_open = not chunk.endswith(b"\n")
                yield chunk
                self._passed(len(chunk))


@contextmanager
def _of_source() -> Iterator[None]:
    try:
        yield
    except ClewError as error:
        raise _Unreadable(error) from error


def _from_source(chunks: Iterator[bytes]) -> Iterator[bytes]:
    with _of_source():
        yield from chunks


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes line by line, as `replace` takes them."""
    kept: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for each in whole:
            yield b"".join([*kept, each, b"\n"])
            kept.clear()
        kept += [rest] if rest else []
    if kept:
        yield b"".join(kept)


def _common(one: Iterable[bytes], other: Iterable[bytes]) -> int:
    """How many bytes two streams begin with alike."""
    ones, others = (chunk for chunk in one if chunk), (chunk for chunk in other if chunk)
    left, right, same = b"", b"", 0
    while True:
        left, right = left or next(ones, b""), right or next(others, b"")
        count = min(len(left), len(right))
        if not count:
            return same
        if left[:count] != right[:count]:
            return same + _first_difference(left, right, count)
        left, right, same = left[count:], right[count:], same + count


def _first_difference(one: bytes, other: bytes, end: int) -> int:
    """Where two chunks differ first, if they differ before `end`."""
    start = 0
    while end - start > 1:
        middle = (start + end) // 2
        if one[start:middle] == other[start:middle]:
            start = middle
        else:
            end = middle
    return start


def _log_name(stat: LogStat) -> str:
    """What tells this log from an earlier or later one of the same key."""
    return stat.revision.partition("-")[0]


def _name(key: BlobKey) -> str:
    return f"{key.kind}/{key.name}"


def _not_as_written(where: str, name: str) -> DamagedData:
    return DamagedData(f"{name} in {where} is not what was written there", hint="look at that disk, then copy again")
