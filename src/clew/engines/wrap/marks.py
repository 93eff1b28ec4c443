"""What a mirror still has to bring over: marks, not contents, in the order in which a session was changed.

Each session has segments. A segment is a set of blobs and logs that changed, and at most one step, such as a deletion,
that comes after them and before everything later. Marking the same log again costs nothing, so a mirror that lags does
fewer and larger copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Condition
from typing import Literal, TypeAlias

import msgspec

from clew.engines.contract import BlobKey, LogKey

What: TypeAlias = Literal["replaced", "deleted", "set aside", "brought back", "freed", "flushed"]
STORE = LogKey("", "")
"""Stands for what belongs to no session."""
SESSIONS_MAX = 10_000
"""Changes of more sessions than this are not remembered while the remote place does not take them."""
MARKS_MAX = 1_000
"""A session with more marks than this is compared as a whole instead; one with more steps loses the newest."""


class Step(msgspec.Struct, frozen=True):
    """Something that must come after what was before and before what comes later."""

    what: What
    key: LogKey = STORE
    name: str = ""
    """Of a log that was replaced: which log it is now."""
    operation: str = ""


class Segment(msgspec.Struct):
    """What changed in a session up to a step."""

    blobs: dict[BlobKey, bool] = {}
    """Whether the blob is still there."""
    logs: dict[LogKey, str] = {}
    """Which log it was that changed; "" where that is not known."""
    is_whole: bool = False
    """Whether the session has to be compared as a whole."""
    step: Step | None = None

    def __bool__(self) -> bool:
        return bool(self.blobs or self.logs or self.is_whole or self.step)


class Behind(msgspec.Struct):
    """A session of which the remote place did not take something, and why."""

    segments: list[Segment]
    reason: str


class Marks:
    """The marks of all sessions. Threads may share it; marking never waits for more than another mark."""

    def __init__(self, *, sessions_max: int = SESSIONS_MAX, marks_max: int = MARKS_MAX) -> None:
        self._sessions_max = sessions_max
        self._marks_max = marks_max
        self._changed = Condition()
        self._pending: dict[LogKey, list[Segment]] = {}
        self._behind: dict[LogKey, Behind] = {}
        self._taken: LogKey | None = None
        self._is_closed = False
        self._lost = 0
        self._why_lost = ""

    # Marking.

    def log(self, key: LogKey, name: str) -> None:
        with self._changed:
            if (segment := self._open(key.main)) is not None:
                segment.logs[key] = name

    def blob(self, key: BlobKey, *, is_there: bool) -> None:
        with self._changed:
            if (segment := self._open(LogKey(key.project, key.session))) is not None:
                segment.blobs[key] = is_there

    def whole(self, key: LogKey) -> None:
        with self._changed:
            if (segment := self._open(key.main)) is not None:
                segment.is_whole = True

    def step(self, key: LogKey, step: Step) -> None:
        with self._changed:
            segment = self._open(key)
            if segment is None:
                return
            if len(self._pending[key]) > self._marks_max:
                self._lose("too many changes are waiting")
            else:
                segment.step = step

    def _open(self, key: LogKey) -> Segment | None:
        """The segment that takes a mark of a session now; None, and the change is lost, where there is no room."""
        behind = self._behind.pop(key, None)
        if behind is not None:
            self._pending[key] = [*behind.segments, *self._pending.get(key, [])]
        segments = self._pending.get(key)
        if segments is None:
            if len(self._pending) + len(self._behind) >= self._sessions_max:
                self._lose("changes of too many sessions are waiting")
                return None
            segments = self._pending[key] = []
        self._changed.notify_all()
        if not segments or segments[-1].step is not None:
            segments.append(Segment())
        last = segments[-1]
        if len(last.logs) + len(last.blobs) >= self._marks_max:
            segments[-1] = last = Segment(is_whole=True)
        return last

    def _lose(self, reason: str) -> None:
        self._lost += 1
        self._why_lost = reason

    # Working through them; one thread does.

    def take(self) -> tuple[LogKey, Segment] | None:
        """Waits for a segment. None when there is nothing left and no more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._is_closed)
            if not self._pending:
                return None
            key = next(iter(self._pending))
            segments = self._pending.pop(key)
            if len(segments) > 1:
                self._pending[key] = segments[1:]
            self._taken = key
            return key, segments[0]

    def later_blobs(self, key: LogKey, segment: Segment) -> None:
        """Moves to the segment which blobs were put since, so that no record comes before what it speaks of."""
        with self._changed:
            if segment.step is None and key in self._pending:
                later = self._pending[key][0]
                segment.blobs |= {blob: True for blob, is_there in later.blobs.items() if is_there}
                later.blobs = {blob: False for blob, is_there in later.blobs.items() if not is_there}

    def done(self) -> None:
        with self._changed:
            self._taken = None
            self._changed.notify_all()

    def failed(self, key: LogKey, left: Segment, reason: str, *, may_pass: bool) -> None:
        """What is left of a segment waits until the session is marked again, or everything is tried again.

        What will not pass does not keep later steps from being done, since one of them may be the cure; a step that
        will not pass is lost.
        """
        with self._changed:
            self._taken = None
            later = self._pending.pop(key, [])
            steps: list[Segment] = []
            if not may_pass and left.step is not None:
                if left.logs or left.blobs or left.is_whole:
                    steps = [Segment(step=left.step)]
                else:
                    self._lose(reason)
                left.step = None
            if not may_pass and (steps or later):
                first, *others = later or [Segment()]
                first.logs, first.blobs = left.logs | first.logs, left.blobs | first.blobs
                first.is_whole |= left.is_whole
                self._pending[key] = [*steps, first, *others]
            elif left or later:
                self._behind[key] = Behind([left, *later], reason)
            self._changed.notify_all()

    # Waiting and asking.

    def try_again(self) -> None:
        """What did not go before is to be tried once more."""
        with self._changed:
            for key in [*self._behind]:
                self._pending[key] = [*self._behind.pop(key).segments, *self._pending.get(key, [])]
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Whether everything was tried within this time."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, seconds)

    def _is_idle(self) -> bool:
        return not self._pending and self._taken is None

    def close(self) -> None:
        """No more marks will come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being done."""
        with self._changed:
            return self._is_idle()

    @property
    def pending(self) -> int:
        """How many sessions wait for their turn, or have it."""
        with self._changed:
            return len({*self._pending, self._taken} - {STORE, None})

    @property
    def behind(self) -> Mapping[LogKey, str]:
        """The sessions of which something was not taken, and why."""
        with self._changed:
            return {key: behind.reason for key, behind in self._behind.items()}

    def reason(self, key: LogKey) -> str | None:
        """Why a session is behind; None where it is not."""
        behind = self._behind.get(key)
        return None if behind is None else behind.reason

    @property
    def lost(self) -> tuple[int, str]:
        """How many changes will never be brought over by themselves, and why the newest will not."""
        with self._changed:
            return self._lost, self._why_lost
