"""A second place that gets what is written here, without ever being in the way.

Every change is made here first, and is done when it is done here. The mirror only notes which log or blob it was; one
thread of its own brings the remote place up to date by comparing the two. So a mirror that lags copies more at once,
holds no contents in memory, and heals what it missed at the next change of the same session, or by `resync`.
"""

from __future__ import annotations

import logging
import random as dice
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event, Lock, Thread

import msgspec

from clew.engines.contract import Appended, Aside, BlobKey, Engine, Entry, LogKey, LogStat, Problem
from clew.engines.filesystem import shown_path
from clew.engines.wrap.backoff import Backoff, may_pass
from clew.engines.wrap.base import Wrapper
from clew.engines.wrap.marks import MARKS_MAX, SESSIONS_MAX, STORE, Marks, Segment, Step
from clew.engines.wrap.remote import EngineWriter, RemoteWriter, name_of
from clew.errors import ClewError, Conflict, NotFound, StorageError

DRAIN_SECONDS = 30.0
"""So long `flush` and `close` wait for the remote place."""
LATE_SECONDS = 1.0
"""So long once that was not enough, until it has caught up: that it lags was told already."""

_log = logging.getLogger("clew.mirror")


class MirrorState(msgspec.Struct, frozen=True):
    """How far a mirror is. All is there when the three are empty."""

    pending: int
    """Sessions that wait for their turn."""
    behind: Mapping[LogKey, str]
    """Sessions of which something was not taken, and why. Each is tried again when it changes, or at `flush`."""
    lost: int
    """Changes that will not be tried again; `resync` finds those that still matter."""


class Mirror(Wrapper):
    """Writes to `inner`, and brings what was written to `remote` as well. Everything is read from `inner`.

    * A change here never waits for the remote place and never fails because of it.
    * Of one session, changes arrive in their order, blobs before the lines that speak of them. A log arrives whole,
      with what it held before.
    * What the remote place did not take is in `problems`, in `state`, in the `notes` of the session's next append and
      in the log of `clew.mirror`; `flush` tries it once more and returns after `drain_seconds` at the latest.
    * What is not brought over when the process ends comes with the next change of its session, or by `resync`.
    * What others write here, and summaries, are not noticed.

    `wants` says of which logs, and of which sessions (their main log) the blobs, there is a copy. `remote` belongs to
    the mirror: `close` closes it.
    """

    def __init__(
        self,
        inner: Engine,
        remote: Engine | RemoteWriter,
        *,
        wants: Callable[[LogKey], bool] = lambda _: True,
        backoff: Backoff | None = None,
        drain_seconds: float = DRAIN_SECONDS,
        sessions_max: int = SESSIONS_MAX,
        marks_max: int = MARKS_MAX,
        random: Callable[[], float] = dice.random,
    ) -> None:
        super().__init__(inner)
        self._writer = EngineWriter(remote) if isinstance(remote, Engine) else remote
        self._wants = wants
        self._backoff = backoff or Backoff()
        self._drain_seconds = drain_seconds
        self._random = random
        self._marks = Marks(sessions_max=sessions_max, marks_max=marks_max)
        self._sessions_at_once = max(1, sessions_max // 2)
        self._begun: dict[LogKey, int] = {}
        self._aside: dict[str, set[LogKey]] = {}
        self._is_down = False
        self._is_flushed = True
        self._is_late = False
        self._closing = Event()
        self._guard = Lock()
        self._thread: Thread | None = None

    # What became of it.

    @property
    def state(self) -> MirrorState:
        """How far the mirror is now."""
        return MirrorState(self._marks.pending, self._marks.behind, self._marks.lost[0])

    @property
    def problems(self) -> Sequence[Problem]:
        lost, why = self._marks.lost
        found = [*self.inner.problems, *self._writer.problems]
        found += [Problem(self._place(key), f"not copied yet: {why}") for key, why in self._marks.behind.items()]
        if lost:
            found.append(Problem(self._writer.url, f"{lost} changes were not copied and will not be: {why}"))
        if self._is_late and not self._marks.is_idle:
            found.append(Problem(self._writer.url, f"copying takes too long: {self._marks.pending} sessions wait"))
        return found

    def _place(self, key: LogKey) -> str:
        names = "/".join(filter(None, (key.project, key.session)))
        return f"{self._writer.url}#{names}" if names else self._writer.url

    def flush(self) -> None:
        """Returns when every earlier append is durable here, and the remote place has it durable as well or `problems`
        says what it lacks.
        """
        self.inner.flush()
        self._drain()

    def close(self) -> None:
        """Flushes, and lets go of both places. A remote place that has not answered in time is left to its thread."""
        try:
            if not self._closing.is_set():
                self._drain()
                self._closing.set()
                self._marks.close()
                if self._marks.is_idle:
                    self._writer.close()
        except (ClewError, OSError) as error:
            _log.warning("%s: %s", shown_path(self._writer.url), shown_path(str(error)))
        finally:
            self.inner.close()

    def _drain(self) -> None:
        self._marks.try_again()
        if not self._is_flushed:
            self._is_flushed = True
            self._marks.step(STORE, Step("flushed"))
        if not self._marks.is_idle:
            self._start()
        seconds = min(self._drain_seconds, LATE_SECONDS) if self._is_late else self._drain_seconds
        self._is_late = not self._marks.wait(seconds)
        if self._is_late:
            _log.warning("%s: %d sessions were not copied in time", shown_path(self._writer.url), self._marks.pending)

    def resync(self, project: str | None = None) -> MirrorState:
        """Compares every session, of a project or of all, and brings over what is missing. Returns when it was tried.

        Nothing is removed at the remote place: what was deleted here while no mirror looked stays there.
        """
        for number, stat in enumerate(self.inner.list(project), 1):
            self._marks.whole(stat.key)
            if number % self._sessions_at_once == 0:
                self._drain()
        self._is_flushed = False
        self._drain()
        return self.state

    # Writing, here first.

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
        self._hear(key)
        try:
            done = self.inner.append(
                key, entries, batch_id=batch_id, expect=expect, summary=summary, keep_time=keep_time
            )
        except StorageError:
            self._mark_log(key)  # Some of it may have been written.
            raise
        if not entries:
            return done
        why = self._marks.reason(key.main)
        self._mark_log(key, done.revision)
        notes = done.notes if why is None else (*done.notes, f"the mirror {self._writer.url} is behind: {why}")
        return msgspec.structs.replace(done, notes=notes)

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        self._hear(key)
        try:
            return self.inner.extend(key, chunks, start=start, modified_ns=modified_ns, make=make)
        finally:
            self._mark_log(key)

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        revision = self.inner.replace(key, lines, expect=expect)
        self._mark_step(key, Step("replaced", key, revision.partition("-")[0]))
        return revision

    def delete(self, key: LogKey) -> bool:
        was_there = self.inner.delete(key)
        self._mark_step(key, Step("deleted", key))
        return was_there

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        told = self.inner.set_aside(key, operation)
        with self._guard:
            self._aside.setdefault(operation, set()).add(key.main)
        self._mark_step(key, Step("set aside", key.main, operation=operation))
        return told

    def bring_back(self, operation: str) -> Aside:
        told = self.inner.bring_back(operation)
        for key in self._aside_of(operation):
            self._mark_step(key, Step("brought back", key, operation=operation))
            if key is not STORE:
                self._marks.whole(key)
        return told

    def free_aside(self, operation: str) -> Aside:
        told = self.inner.free_aside(operation)
        for key in self._aside_of(operation):
            self._mark_step(key, Step("freed", operation=operation))
        return told

    def _aside_of(self, operation: str) -> Sequence[LogKey]:
        """The sessions behind whose changes a step of this operation has to come."""
        with self._guard:
            return sorted(self._aside.pop(operation, ())) or [STORE]

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        digest = self.inner.put(key, chunks, mode=mode, modified_ns=modified_ns)
        self._mark_blob(key, is_there=True)
        return digest

    def link(self, key: BlobKey, name: BlobKey) -> None:
        self.inner.link(key, name)
        self._mark_blob(name, is_there=True)

    def delete_blob(self, key: BlobKey) -> bool:
        was_there = self.inner.delete_blob(key)
        self._mark_blob(key, is_there=False)
        return was_there

    # Marking.

    def _hear(self, key: LogKey) -> None:
        """Remembers how long a log was before its first change."""
        if key not in self._begun and self._wants(key):
            stat = self.inner.stat(key)
            self._begun.setdefault(key, 0 if stat is None else stat.size_bytes)

    def _mark_log(self, key: LogKey, revision: str = "") -> None:
        if self._wants(key):
            self._marks.log(key, revision.partition("-")[0])
            self._marked()

    def _mark_blob(self, key: BlobKey, *, is_there: bool) -> None:
        if self._wants(LogKey(key.project, key.session)):
            self._marks.blob(key, is_there=is_there)
            self._marked()

    def _mark_step(self, key: LogKey, step: Step) -> None:
        if key is STORE or self._wants(key):
            self._marks.step(key.main, step)
            self._marked()

    def _marked(self) -> None:
        self._is_flushed = False
        self._start()

    def _start(self) -> None:
        """Sees to it that the thread is there."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._guard:
            if (self._thread is None or not self._thread.is_alive()) and not self._closing.is_set():
                self._thread = Thread(target=self._work, name="clew mirror", daemon=True)
                self._thread.start()

    # The thread.

    def _work(self) -> None:
        while (taken := self._marks.take()) is not None:
            key, segment = taken
            reason, passes, is_bug = "the writer raised an error that is none of clew's", True, True
            try:
                reason, passes = self._tried(key, segment)
                is_bug = False
            finally:
                if is_bug:
                    # The error goes on its way and ends this thread; another one goes on with the other sessions.
                    with self._guard:
                        self._thread = None
                if reason:
                    _log.warning("%s: %s", shown_path(self._place(key)), shown_path(reason))
                    self._marks.failed(key, segment, reason, may_pass=passes)
                else:
                    self._marks.done()
                if is_bug:
                    self._start()

    def _tried(self, key: LogKey, segment: Segment) -> tuple[str, bool]:
        """Brings a segment over. Returns why that did not go, "" if it did, and whether it may go later."""
        failures = 0
        while True:
            before = len(segment)
            try:
                self._bring(key, segment)
            except (ClewError, OSError) as error:
                if len(segment) < before:
                    failures, self._is_down = 0, False
                failures += 1
                passes = isinstance(error, OSError | Conflict | NotFound) or may_pass(error)
                # A place that is down is not asked six times for each session.
                if not passes or self._is_down or failures >= self._backoff.tries_max:
                    self._is_down = passes
                    return str(error) or type(error).__name__, passes
                self._closing.wait(self._backoff.seconds(failures, self._random()))
            else:
                self._is_down = self._is_down and key == STORE
                return "", False

    def _bring(self, key: LogKey, segment: Segment) -> None:
        """Brings a segment over and takes out of it what is done."""
        if segment.is_whole:
            self._unfold(key, segment)
        stats = [stat for log, name in [*segment.logs.items()] if (stat := self._still(log, name, segment)) is not None]
        self._marks.later_blobs(key, segment)
        for blob in [blob for blob, is_there in segment.blobs.items() if is_there]:
            stat_of_blob = self.inner.blob_stat(blob)
            if stat_of_blob is not None:
                self._writer.blob(self.inner, stat_of_blob)
            del segment.blobs[blob]
        for stat in stats:
            self._writer.log(self.inner, stat, self._begun.get(stat.key, 0))
            del segment.logs[stat.key]
        for blob in [*segment.blobs]:
            self._writer.blob_deleted(blob)
            del segment.blobs[blob]
        if segment.step is not None:
            self._take_step(segment.step)
            segment.step = None

    def _unfold(self, key: LogKey, segment: Segment) -> None:
        """Everything of a session that there is to compare."""
        main = self.inner.stat(key)
        for stat in [*([] if main is None else [main]), *self.inner.list_sub(key)]:
            if self._wants(stat.key):
                segment.logs.setdefault(stat.key, name_of(stat))
        if self._wants(key):
            for blob in self.inner.blobs(key):
                segment.blobs.setdefault(blob.key, True)
        segment.is_whole = False

    def _still(self, key: LogKey, name: str, segment: Segment) -> LogStat | None:
        """How a log is now. One that is gone, or is another log by now, has its turn behind the step that did it."""
        stat = self.inner.stat(key)
        if stat is None or (name and name_of(stat) != name):
            del segment.logs[key]
            return None
        return stat

    def _take_step(self, step: Step) -> None:
        match step.what:
            case "replaced":
                stat = self.inner.stat(step.key)
                if stat is not None and name_of(stat) == step.name:
                    self._writer.replaced(self.inner, stat)
            case "deleted":
                self._writer.deleted(step.key)
            case "set aside":
                self._writer.set_aside(step.key, step.operation)
            case "brought back":
                self._bring_back(step)
            case "freed":
                self._writer.freed(step.operation)
            case "flushed":
                self._writer.flush()

    def _bring_back(self, step: Step) -> None:
        try:
            self._writer.brought_back(step.operation)
        except Conflict:
            if step.key == STORE:
                raise
            # What stands there came from here, before or after its time; the session is compared as a whole next.
            self._writer.freed(step.operation)
