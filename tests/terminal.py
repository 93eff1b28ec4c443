"""A program at a terminal of its own: what is typed, and what comes back."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence

SECONDS_MAX = 60
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9]|[=>])|[\x07\r]")


class Terminal:
    """`type` sends keys, `sees` waits until a text has come back."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], *, size: tuple[int, int] = (0, 0)) -> None:
        pid, self.number = pty.fork()
        if pid == 0:
            os.execvpe(command[0], [*command], environment)
        self._pid = pid
        self._code: int | None = None
        self.seen = b""
        """What came since the last text that was waited for, escapes and all."""
        self.resize(*size)

    def resize(self, lines: int, columns: int) -> None:
        if lines:
            fcntl.ioctl(self.number, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.number, keys.encode())

    def sees(self, text: str) -> str:
        """What came until the text was there, without escapes."""
        end = time.monotonic() + SECONDS_MAX
        while text.encode() not in _ESCAPES.sub(b"", self.seen):
            ready, _, _ = select.select([self.number], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} did not come: {self.seen!r}"
            self.seen += os.read(self.number, 65536)
        found = _ESCAPES.sub(b"", self.seen).decode(errors="replace")
        self.seen = b""
        return found

    def ends(self) -> tuple[int, bytes]:
        """The exit code, once it has ended by itself, and what came until then."""
        end = time.monotonic() + SECONDS_MAX
        while True:
            ready, _, _ = select.select([self.number], [], [], max(0, end - time.monotonic()))
            assert ready, f"it did not end: {self.seen!r}"
            try:
                data = os.read(self.number, 65536)
            except OSError:
                data = b""  # So it ends on Linux.
            if not data:
                self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
                return self._code, self.seen
            self.seen += data

    def close(self) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self.number)
