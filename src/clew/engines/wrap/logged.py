"""What is asked of an engine and how long it takes, to `logging`: methods, keys, sizes and times, never contents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from clew.engines.contract import Appended, BlobKey, Engine, Entry, LogKey
from clew.engines.filesystem import shown_path
from clew.engines.wrap.base import About, Call, Wrapper
from clew.records.line import Line

T = TypeVar("T")


class _Size(msgspec.Struct):
    """What went through one call."""

    count: int = 0
    size_bytes: int = 0


class Logged(Wrapper):
    """Writes a line for each call, at DEBUG; at WARNING where it raised, with the name of the error alone, since a
    message may quote what was passed in.

    An iterator gets its line when it ends or is dropped. `clock` says seconds, as `time.perf_counter` does.
    """

    def __init__(self, inner: Engine, *, clock: Callable[[], float], logger: logging.Logger | None = None) -> None:
        super().__init__(inner)
        self._clock = clock
        self._logger = logger or logging.getLogger("clew.engine")

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
        size = _Size(len(entries), sum(len(entry.data) + 1 for entry in entries))
        return self._logged(
            Call("append", key, is_change=True),
            lambda: self.inner.append(
                key, entries, batch_id=batch_id, expect=expect, summary=summary, keep_time=keep_time
            ),
            size,
        )

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        size = _Size()
        return self._logged(
            Call("extend", key, is_change=True),
            lambda: self.inner.extend(key, _counted(chunks, size), start=start, modified_ns=modified_ns, make=make),
            size,
        )

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        size = _Size()
        return self._logged(
            Call("replace", key, is_change=True),
            lambda: self.inner.replace(key, _counted(lines, size), expect=expect),
            size,
        )

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        size = _Size()
        return self._logged(
            Call("put", key, is_change=True),
            lambda: self.inner.put(key, _counted(chunks, size), mode=mode, modified_ns=modified_ns),
            size,
        )

    def _call(self, call: Call, do: Callable[[], T]) -> T:
        return self._logged(call, do, _Size())

    def _logged(self, call: Call, do: Callable[[], T], size: _Size) -> T:
        begun = self._clock()
        try:
            answer = do()
        except BaseException as error:
            self._say(call, size, begun, error)
            raise
        self._say(call, size, begun)
        return answer

    def _stream(self, call: Call, do: Callable[[], Iterator[T]]) -> Iterator[T]:
        begun = self._clock()
        try:
            pieces = do()
        except BaseException as error:
            self._say(call, _Size(), begun, error)
            raise
        return self._watched(call, pieces, begun)

    def _watched(self, call: Call, pieces: Iterator[T], begun: float) -> Iterator[T]:
        size = _Size()
        try:
            yield from _counting(pieces, size)
        except GeneratorExit:
            self._say(call, size, begun)
            raise
        except BaseException as error:
            self._say(call, size, begun, error)
            raise
        self._say(call, size, begun)

    def _say(self, call: Call, size: _Size, begun: float, error: BaseException | None = None) -> None:
        level = logging.DEBUG if error is None else logging.WARNING
        if not self._logger.isEnabledFor(level):
            return
        self._logger.log(
            level, "%s %s: %d pieces, %d bytes, %.3f ms%s", call.method, shown(call.about), size.count, size.size_bytes,
            (self._clock() - begun) * 1000, "" if error is None else f", {type(error).__name__}",
        )  # fmt: skip


def shown(about: About) -> str:
    """A key in printable characters of which no part can look like another line of a log."""
    if about is None:
        return "-"
    names = (about,) if isinstance(about, str) else msgspec.structs.astuple(about)
    return "/".join(shown_path(name) for name in names if name)


def _counted(pieces: Iterable[T], size: _Size) -> Iterable[T]:
    """The same pieces, counted as they are taken. What can be gone through twice still can."""
    if isinstance(pieces, Sequence):
        for piece in pieces:
            _count(piece, size)
        return pieces
    return _counting(pieces, size)


def _counting(pieces: Iterable[T], size: _Size) -> Iterator[T]:
    for piece in pieces:
        _count(piece, size)
        yield piece


def _count(piece: object, size: _Size) -> None:
    size.count += 1
    if isinstance(piece, Line):
        size.size_bytes += piece.size
    elif isinstance(piece, bytes):
        size.size_bytes += len(piece)
