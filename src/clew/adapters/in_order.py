"""Calls that several tasks and threads make, done one after the other for each log, in the order in which they came.

A thread that wants its own call done does those before it as well. So no thread waits for one that has not started, and
a call whose task went away holds up nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from clew.engines.contract import LogKey
from clew.errors import ClewError


class _Line:
    """The calls for one log; `lock` is held by whoever does them. `open_calls` counts those waiting and running."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.waiting: deque[Call] = deque()
        self.open_calls = 0


class Call:
    """One call that waits, runs or is over."""

    def __init__(self, key: LogKey, line: _Line, work: Callable[[], None]) -> None:
        self.key = key
        self.line = line
        self.work = work
        self.is_over = False
        self.error: BaseException | None = None


class InOrder:
    """Lines of calls, one for each log. A log without calls takes no memory."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._lines: dict[LogKey, _Line] = {}

    def put(self, key: LogKey, work: Callable[[], None]) -> Call:
        """Puts a call at the end of its line, without waiting. Nothing is done before somebody calls `finish`."""
        with self._guard:
            line = self._lines.setdefault(key, _Line())
            call = Call(key, line, work)
            line.waiting.append(call)
            line.open_calls += 1
        return call

    def finish(self, call: Call) -> None:
        """Returns when the call was done or given up, and raises what it raised."""
        with call.line.lock:
            while not call.is_over:
                self._do(call.line)
        if call.error is not None:
            raise call.error

    def give_up(self, call: Call) -> None:
        """Takes the call out of its line. One that runs already is done all the same."""
        with self._guard:
            if call in call.line.waiting:
                call.line.waiting.remove(call)
                self._leave(call)

    def _do(self, line: _Line) -> None:
        with self._guard:
            call = line.waiting.popleft() if line.waiting else None
        if call is None:
            return
        try:
            call.work()
        except ClewError as error:
            call.error = error
        except BaseException as error:
            call.error = error
            raise
        finally:
            with self._guard:
                self._leave(call)

    def _leave(self, call: Call) -> None:
        call.is_over = True
        call.line.open_calls -= 1
        if not call.line.open_calls:
            del self._lines[call.key]
