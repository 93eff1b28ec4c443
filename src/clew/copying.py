"""Copying sessions from one engine to another: raw bytes out, raw bytes in. Nothing is decoded, joined or healed.

    look     the sizes of the logs, main logs first, and then the blobs: what a row points to was there before it
    plan     for each log and blob: new, grown, the same, or something else. Pure, and nothing is written for a session
             that has a conflict anywhere
    write    blobs, then sublogs, then the main log up to the size that was looked at
    mark     a note at the target of what was left there, so that the next copy reads only what is new

A copy that was killed is made again: what is there is a prefix of its source, or a whole blob. Memory is bounded by the
names in the source, but for a line over the limit in a log that is replaced.

An attached fork comes after the sessions that it goes on from, and only where these are as they must be: never without
its beginning, and never to files that Claude Code reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import groupby
from threading import Lock

import msgspec

from clew.copying_plan import BlobStep, LogStep, Mark, MarkedBlob, MarkedLog, Way, log_name, plan_blob, plan_log
from clew.engines.contract import BlobKey, BlobStat, Engine, LogKey, LogStat, Order, small_blob
from clew.errors import Busy, ClewError, Conflict, DamagedData, NotFound, UsageError
from clew.lineage import ForkPoint, fork_point_of, must_be_there
from clew.records.compact import compact
from clew.records.record import body_of

MARK_KIND = "copied"
MARK_BYTES_MAX = 64 * 1024 * 1024
TRIES_MAX = 10
"""So often a session is looked at anew that changed under the copy: each of its logs may meet every other copy."""
ENDS_BYTES = 64 * 1024
"""So much is compared at either end of what an earlier copy left, before its rest is believed to be the same."""
WORKERS = 4
"""So many sessions are copied at once: nearly all the time goes into waiting for the disk, once for each file."""


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

    sessions: int
    sessions_total: int
    size_bytes: int
    size_bytes_total: int


class Copied(msgspec.Struct, frozen=True):
    """What came of a copy. `sessions` got something new, `skipped` had it all; `records` counts lines.

    A session is in `conflicts` as a whole: nothing of it was written then.
    """

    sessions: int
    records: int
    blobs: int
    skipped: int
    conflicts: int
    size_bytes: int
    left_out: Sequence[LeftOut]


class Looked(msgspec.Struct, frozen=True):
    """A session at the source: its logs as they were before its blobs were asked for, the main log first."""

    key: LogKey
    logs: Sequence[LogStat]

    @property
    def size_bytes(self) -> int:
        return sum(stat.size_bytes for stat in self.logs)


class Outcome(msgspec.Struct, frozen=True):
    """What came of one session. `mark` is what is there now, None where it is not known to be as a copy leaves it."""

    key: LogKey
    is_new: bool = False
    records: int = 0
    blobs: int = 0
    size_bytes: int = 0
    mark: Mark | None = None
    left_out: LeftOut | None = None


class Marks(msgspec.Struct):
    """What copies from one place left of the sessions of a project, by id."""

    source: str
    project: str
    sessions: dict[str, Mark] = {}


class _Unreadable(ClewError):
    """The source failed, not the target."""

    def __init__(self, cause: ClewError) -> None:
        super().__init__(cause.message, hint=cause.hint)
        self.cause = cause


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
    One that is neither is a conflict and never overwritten, unless it is what an earlier copy from here left and the
    source was rewritten as another log; one that changed in its place may be damaged, and this its good copy. What
    cannot be read, or cannot be held by the target, is in `left_out`; where the target itself fails, that is raised,
    and the same call goes on from there. A row that is appended meanwhile is copied whole, in part, or not at all; the
    next copy brings the rest. `is_verified` reads back what was written and raises `DamagedData` if it differs.
    `on_progress` is called by one thread at a time, not always the same.
    """
    if source is target or (source.url == target.url and source.capabilities.is_shared):
        raise UsageError(f"{source.url} cannot be copied to itself", hint="give two different stores")
    return _Copy(source, target, is_verified=is_verified, on_progress=on_progress).run(projects)


class _Copy:
    """One run."""

    def __init__(
        self, source: Engine, target: Engine, *, is_verified: bool, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._source = source
        self._target = target
        self._is_verified = is_verified
        self._on_progress = on_progress
        self._live: frozenset[str] = frozenset()
        self._guard = Lock()
        self._under_way: dict[LogKey, int] = {}
        self._forks: dict[LogKey, ForkPoint] = {}
        self._told = Progress(0, 0, 0, 0)

    def run(self, projects: Iterable[str] | None) -> Copied:
        listed = [looked for project in self._projects(projects) for looked in self._listed(project)]
        self._told = Progress(0, len(listed), 0, sum(looked.size_bytes for looked in listed))
        self._live = self._target.live_sessions()
        # What was left out while listing; a look at a session forgets what was said of it before.
        problems = {problem.path: problem for problem in self._source.problems}
        outcomes = [*self._outcomes(listed)]
        problems.update((problem.path, problem) for problem in self._source.problems)
        left_out = [each.left_out for each in outcomes if each.left_out is not None]
        return Copied(
            sessions=sum(each.is_new for each in outcomes),
            records=sum(each.records for each in outcomes),
            blobs=sum(each.blobs for each in outcomes),
            skipped=sum(not each.is_new and each.left_out is None for each in outcomes),
            conflicts=sum(each.is_conflict for each in left_out),
            size_bytes=sum(each.size_bytes for each in outcomes),
            left_out=(*left_out, *(LeftOut("", "", each.path, each.reason) for each in problems.values())),
        )

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

    def _depth(self, looked: Looked) -> int:
        """How many sessions this one goes on from. One that is damaged is copied as it is."""
        with suppress(ClewError):
            point = fork_point_of(self._source, looked.key)
            if point is not None and point.lineage:
                self._forks[looked.key] = point
                return len(point.lineage)
        return 0

    def _why_not(self, key: LogKey) -> str:
        """Why an attached fork would be broken at the target; "" where it is well there."""
        point = self._forks.get(key)
        if point is None:
            return ""
        advice = f"copy it with what it inherited: clew fork {key.session} --kind copy"
        if self._target.capabilities.is_clients:
            return f"an attached fork, which Claude Code would read without its beginning; {advice}"
        for each in point.lineage:
            try:
                must_be_there(self._target, key, each)
            except DamagedData:
                return f"the session {each.session!a:.80} that it goes on from is not there as it must be; {advice}"
        return ""

    def _outcomes(self, listed: Sequence[Looked]) -> Iterator[Outcome]:
        """What comes of each session, in order. The marks of a project are set when its last session is done."""
        marks = {project: self._marks_of(project) for project in {looked.key.project for looked in listed}}
        before = {project: dict(each.sessions) for project, each in marks.items()}
        with ThreadPoolExecutor(WORKERS) as workers:
            try:
                # All that others may go on from is there, or left out, before these begin.
                depths = {looked.key: self._depth(looked) for looked in listed}
                by_depth = sorted(listed, key=lambda looked: depths[looked.key])
                for _, level in groupby(by_depth, lambda looked: depths[looked.key]):
                    done = workers.map(lambda looked: self._session(looked, marks[looked.key.project]), level)
                    for project, outcomes in groupby(done, lambda outcome: outcome.key.project):
                        try:
                            for outcome in outcomes:
                                if outcome.mark is not None:
                                    marks[project].sessions[outcome.key.session] = outcome.mark
                                yield outcome
                        finally:
                            if marks[project].sessions != before[project]:
                                self._set(marks[project])
            finally:
                workers.shutdown(cancel_futures=True)

    # One session.

    def _session(self, looked: Looked, marks: Marks) -> Outcome:
        """Tries it, and again where it changed under the copy. Raises what the target itself fails with."""
        key, first = looked.key, looked
        if why_not := self._why_not(key):
            self._done(first)
            return _left_out(key, self._source.where(key), why_not)
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                outcome = self._once(looked, marks.sessions.get(key.session, Mark()))
                break
            except (_Unreadable, Conflict, Busy, UsageError) as error:
                cause = error.cause if isinstance(error, _Unreadable) else error
                is_conflict = cause is error and not isinstance(error, UsageError)
                outcome = _left_out(key, self._source.where(key), error.message, is_conflict=is_conflict)
                if not tries_left or not isinstance(cause, Conflict | NotFound):
                    break
            try:
                looked = self._look(key)
            except _Unreadable as error:
                outcome = _left_out(key, self._source.where(key), error.message)
                break
        self._done(first)
        return outcome

    def _look(self, key: LogKey) -> Looked:
        with _of_source():
            main = self._source.stat(key)
            return Looked(key, [*([main] if main is not None else []), *self._source.list_sub(key)])

    def _once(self, looked: Looked, mark: Mark) -> Outcome:
        key = looked.key
        with _of_source():
            blobs = self._source.blobs(key)
        blob_steps = [self._blob_step(stat, mark) for stat in blobs]
        log_steps = [self._log_step(stat, mark) for stat in looked.logs]
        wrong = [(self._source.where(step.stat.key), step.reason) for step in log_steps if step.way is Way.CONFLICT]
        wrong += [(_name(step.stat.key), step.reason) for step in blob_steps if step.way is Way.CONFLICT]
        new_blobs = [step.stat for step in blob_steps if step.way is not Way.SAME]
        # The main log comes last: without it nothing of the session is shown.
        new_logs = [step for step in log_steps if step.way is not Way.SAME]
        new_logs.sort(key=lambda step: not step.stat.key.subpath)
        is_new = bool(new_blobs or new_logs)
        if not wrong and is_new and key.session in self._live:
            wrong = [(self._target.where(key), "a running client holds it there")]
        if wrong:
            more = f"; and {len(wrong) - 1} more of the session" if len(wrong) > 1 else ""
            return _left_out(key, wrong[0][0], wrong[0][1] + more, is_conflict=True)
        for blob in new_blobs:
            self._put(blob)
        counted = [self._put_log(step) for step in new_logs]
        size = sum(blob.size_bytes for blob in new_blobs) + sum(each.size for each in counted)
        left = self._left(blob_steps, log_steps)
        return Outcome(key, is_new, sum(each.lines for each in counted), len(new_blobs), size, left)

    def _log_step(self, stat: LogStat, mark: Mark) -> LogStep:
        target, marked = self._target.stat(stat.key), mark.logs.get(stat.key.subpath)
        shorter = min(stat.size_bytes, 0 if target is None else target.size_bytes)
        return plan_log(
            stat,
            target,
            marked,
            is_trusted=self._is_trusted(stat, target, marked),
            same_up_to=lambda: self._same_up_to(stat.key, 0, shorter),
        )

    def _is_trusted(self, source: LogStat, target: LogStat | None, marked: MarkedLog | None) -> bool:
        """Whether the log only grew since the mark was set. A name may have been given again, so the ends count too."""
        if marked is None or target is None or not self._source.capabilities.is_shared:
            return False
        if target.revision != marked.target or not target.size_bytes == marked.size_bytes <= source.size_bytes:
            return False
        if source.revision == marked.source:
            return True
        size = marked.size_bytes
        ends = ((0, min(ENDS_BYTES, size)), (max(0, size - ENDS_BYTES), size))
        return log_name(source.revision) == log_name(marked.source) and all(
            self._same_up_to(source.key, start, end) == end - start for start, end in ends
        )

    def _blob_step(self, stat: BlobStat, mark: Mark) -> BlobStep:
        target = self._target.blob_stat(stat.key)
        return plan_blob(stat, target, mark.blobs.get(_name(stat.key)), lambda: self._is_same_blob(stat))

    def _is_same_blob(self, stat: BlobStat) -> bool:
        with _of_source():
            there = self._source.open(stat.key)
        return _common(_from_source(there), self._target.open(stat.key)) == stat.size_bytes

    def _same_up_to(self, key: LogKey, start: int, end: int) -> int:
        """How many bytes of a range are the same on both sides, from its start on."""
        with _of_source():
            there = self._source.read_range(key, position=start, size=end - start)
        return _common(_from_source(there), self._target.read_range(key, position=start, size=end - start))

    # Writing.

    def _put(self, stat: BlobStat) -> None:
        with _of_source():
            chunks = self._source.open(stat.key)
        self._target.put(stat.key, _from_source(chunks), mode=stat.mode, modified_ns=stat.modified_ns)
        if self._is_verified:
            there = self._target.blob_stat(stat.key)
            if there is None or there.size_bytes != stat.size_bytes or not self._is_same_blob(stat):
                raise _not_as_written(_name(stat.key), self._target.url)

    def _put_log(self, step: LogStep) -> _Counted:
        key, size, modified_ns = step.stat.key, step.stat.size_bytes, step.stat.modified_ns
        counted = _Counted(self._range(step), lambda count: self._advance(key, count))
        if step.way is Way.REPLACE:
            self._target.replace(key, _lines(counted), expect=step.expect)
            self._target.extend(key, (), start=size, modified_ns=modified_ns)
        else:
            self._target.extend(key, counted, start=step.start, modified_ns=modified_ns, make=True)
        if self._is_verified and self._same_up_to(key, 0, size) != size:
            raise _not_as_written(self._target.where(key), self._target.url)
        return counted

    def _range(self, step: LogStep) -> Iterator[bytes]:
        """The bytes that are to be written, of the very log that was looked at."""
        key, start = step.stat.key, step.start
        with _of_source():
            chunks = self._source.read_range(key, position=start, size=step.stat.size_bytes - start)
            # It is open by now. Where the name is still that of before, it is the log that was looked at, and a reader
            # that has one open is never given bytes of another.
            now = self._source.stat(key)
            if now is None or log_name(now.revision) != log_name(step.stat.revision):
                raise Conflict(f"{self._source.where(key)} was replaced during the copy", hint="copy again")
        yield from _from_source(chunks)

    # Marks.

    def _mark_key(self, project: str) -> BlobKey:
        name = f"{self._source.url}\0{project}".encode("utf-8", "surrogatepass")
        return BlobKey("", "", MARK_KIND, hashlib.sha256(name).hexdigest()[:32])

    def _marks_of(self, project: str) -> Marks:
        """The marks of the last copy from here. What cannot be read counts for nothing: then contents are compared."""
        data = small_blob(self._target, self._mark_key(project), MARK_BYTES_MAX)
        with suppress(msgspec.ValidationError):
            marks = msgspec.convert(body_of(data or b""), Marks)
            if (marks.source, marks.project) == (self._source.url, project):
                return marks
        return Marks(self._source.url, project)

    def _set(self, marks: Marks) -> None:
        # Marks only save work: a copy that cannot set them is a copy.
        with suppress(ClewError):
            self._target.put(self._mark_key(marks.project), [compact(msgspec.to_builtins(marks))])

    def _left(self, blob_steps: Sequence[BlobStep], log_steps: Sequence[LogStep]) -> Mark:
        """What is at the target now, as far as it is what was copied."""
        mark = Mark({}, {})
        for blob in blob_steps:
            there = self._target.blob_stat(blob.stat.key)
            if there is not None:
                mark.blobs[_name(blob.stat.key)] = MarkedBlob(there.size_bytes, there.modified_ns)
        for step in log_steps:
            after, size = self._target.stat(step.stat.key), step.stat.size_bytes
            if after is not None and after.size_bytes == size:
                mark.logs[step.stat.key.subpath] = MarkedLog(step.stat.revision, after.revision, size)
        return mark

    # Progress.

    def _advance(self, key: LogKey, count: int) -> None:
        with self._guard:
            self._under_way[key] = self._under_way.get(key, 0) + count
            self._tell()

    def _done(self, looked: Looked) -> None:
        with self._guard:
            for stat in looked.logs:
                self._under_way.pop(stat.key, None)
            told = self._told
            self._told = msgspec.structs.replace(
                told, sessions=told.sessions + 1, size_bytes=told.size_bytes + looked.size_bytes
            )
            self._tell()

    def _tell(self) -> None:
        if self._on_progress is not None:
            size = min(self._told.size_bytes + sum(self._under_way.values()), self._told.size_bytes_total)
            self._on_progress(msgspec.structs.replace(self._told, size_bytes=size))


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


def _left_out(key: LogKey, where: str, reason: str, *, is_conflict: bool = False) -> Outcome:
    return Outcome(key, left_out=LeftOut(key.project, key.session, where, reason, is_conflict))


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


def _name(key: BlobKey) -> str:
    return f"{key.kind}/{key.name}"


def _not_as_written(name: str, where: str) -> DamagedData:
    return DamagedData(f"{name} in {where} is not what was written there", hint="look at that disk, then copy again")
