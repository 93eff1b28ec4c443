"""Following a log that is being written: its new records, one after the other, each once and whole."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from clew.engines.contract import Engine, LogKey
from clew.errors import Conflict, NotFound
from clew.records.codec import decode_lines
from clew.records.line import Line
from clew.records.record import Record, records_in


def new_records(engine: Engine, key: LogKey, stop: Event) -> Iterator[Record]:
    """Records whose lines were ended after this call, until `stop` is set. A log that is not there yet may come."""
    follower = _Follower(engine, key)
    follower.skip()
    changes = engine.watch([key], stop)

    def given() -> Iterator[Record]:
        yield from follower.new()
        for _ in changes:
            yield from follower.new()

    return given()


class _Follower:
    def __init__(self, engine: Engine, key: LogKey) -> None:
        self._engine = engine
        self._key = key
        self._position = 0
        self._last: bytes | None = None
        """The line that ends at the position, by which a replaced log is known again."""

    def skip(self) -> None:
        """Goes to the end of what is there."""
        try:
            for line in self._engine.read_back(self._key):
                if self._is_ended(line):
                    self._stand_behind(line)
                    return
        except NotFound:
            return

    def new(self) -> Iterator[Record]:
        """The records of lines that were ended since. A line over the limit has none."""
        try:
            self._find_again()
            yield from records_in(decode_lines(self._lines(self._position)))
        except (Conflict, NotFound):
            # Replaced or gone while it was read: the next look finds out where to go on.
            return

    def _lines(self, start: int) -> Iterator[Line]:
        for line in self._engine.read(self._key, start=start):
            if not self._is_ended(line):
                return
            self._stand_behind(line)
            yield line

    def _is_ended(self, line: Line) -> bool:
        """Whether nobody goes on with it. Of one over the limit only its last byte is looked at."""
        if line.is_held:
            return line.is_terminated
        end = line.position + line.size
        return b"".join(self._engine.read_range(self._key, position=end - 1, size=1)) == b"\n"

    def _stand_behind(self, line: Line) -> None:
        self._position, self._last = line.position + line.size, line.data or None

    def _find_again(self) -> None:
        """Sees to it that the position is right behind the last line, in a log that was replaced too."""
        if self._last is None:
            return
        size = len(self._last)
        start = self._position - size
        try:
            if start >= 0 and b"".join(self._engine.read_range(self._key, position=start, size=size)) == self._last:
                return
        except Conflict:
            pass
        self._position = 0
        for line in self._engine.read(self._key):
            if line.data == self._last:
                self._position = line.position + line.size
        if self._position == 0:
            self._last = None
