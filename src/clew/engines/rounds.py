"""Threads that want the same thing done go in rounds, and whoever leads a round does it for all that wait.

The lead is handed on to the one who waits longest, who takes everybody along that came meanwhile. Without that, as with
a plain lock, mostly two of eight threads shared a round, and so a flush of the disk: three times as many flushes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

GATHER_SECONDS = 0.0001
"""So long a round is held back when others were about in the last one: they come right after they were answered."""

T = TypeVar("T")


class _Waiting(msgspec.Struct, Generic[T], eq=False):
    want: T
    bell: threading.Lock
    """Held until the one who waits is served, or leads."""
    leads: bool = False


class Rounds(Generic[T]):
    """`serve` is called with all that threads want, by one thread at a time, in the order in which they came."""

    def __init__(self, serve: Callable[[Sequence[T]], None], *, gathers: bool = True) -> None:
        self._serve = serve
        self._gathers = gathers
        self._guard = threading.Lock()
        self._queue: deque[_Waiting[T]] = deque()
        self._is_taken = False
        self._size = 1

    def take(self, want: T) -> None:
        """Returns when `serve` was called with it. Raises what `serve` raises if it was this thread that called it."""
        bell = threading.Lock()
        bell.acquire()
        mine = _Waiting(want, bell)
        with self._guard:
            self._queue.append(mine)
            mine.leads, self._is_taken = not self._is_taken, True
        if not mine.leads:
            try:
                bell.acquire()
            except BaseException:
                self._give_up(mine)
                raise
        if mine.leads:
            self._lead()

    def _lead(self) -> None:
        served: list[_Waiting[T]] = []
        try:
            if self._gathers and self._size > len(self._queue):
                time.sleep(GATHER_SECONDS)
            with self._guard:
                served = [*self._queue]
                self._queue.clear()
            self._size = len(served)
            self._serve([each.want for each in served])
        finally:
            with self._guard:
                self._hand_on()
            for each in served:
                each.bell.release()

    def _hand_on(self) -> None:
        self._is_taken = bool(self._queue)
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].bell.release()

    def _give_up(self, mine: _Waiting[T]) -> None:
        """One who was interrupted does not keep the others waiting."""
        with self._guard:
            if mine in self._queue:
                self._queue.remove(mine)
                if mine.leads:
                    self._hand_on()
