"""A wrapper that changes nothing: every method of the contract goes to the engine inside.

A wrapper that does the same around every method overrides `_call`, and `_stream` where it minds what an iterator gives;
one that changes a few methods overrides those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Event
from typing import TypeAlias, TypeVar

import msgspec

from clew.engines.contract import (
    WATCH_SECONDS,
    Appended,
    Aside,
    BlobKey,
    BlobStat,
    Engine,
    Entry,
    Found,
    LogKey,
    LogStat,
    Order,
    Problem,
)
from clew.errors import ClewError
from clew.layouts.keys import KeyStrategy
from clew.records.line import Line

T = TypeVar("T")
About: TypeAlias = LogKey | BlobKey | str | None
"""What a call is about: a log, a blob, a name, or the whole store."""


class Call(msgspec.Struct, frozen=True):
    """One call of a method of the contract."""

    method: str
    about: About = None
    is_change: bool = False
    """Whether it may change what the store holds."""


class Wrapper(Engine):
    """Another engine, `inner`, under the same contract."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.capabilities = inner.capabilities
        self.url = inner.url

    def _call(self, call: Call, do: Callable[[], T]) -> T:  # noqa: ARG002 - For those that do something around it.
        """Every call goes through here."""
        return do()

    def _stream(self, call: Call, do: Callable[[], Iterator[T]]) -> Iterator[T]:
        """So do those that answer with an iterator. What is wrong with the call shows at the call."""
        return self._call(call, do)

    @property
    def problems(self) -> Sequence[Problem]:
        return self.inner.problems

    # Writing.

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
        return self._call(
            Call("append", key, is_change=True),
            lambda: self.inner.append(
                key, entries, batch_id=batch_id, expect=expect, summary=summary, keep_time=keep_time
            ),
        )

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        return self._call(
            Call("extend", key, is_change=True),
            lambda: self.inner.extend(key, chunks, start=start, modified_ns=modified_ns, make=make),
        )

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        return self._call(Call("replace", key, is_change=True), lambda: self.inner.replace(key, lines, expect=expect))

    def delete(self, key: LogKey) -> bool:
        return self._call(Call("delete", key, is_change=True), lambda: self.inner.delete(key))

    def flush(self) -> None:
        self._call(Call("flush"), lambda: self.inner.flush())

    def close(self) -> None:
        self._call(Call("close"), lambda: self.inner.close())

    # Setting aside.

    def alone(self) -> AbstractContextManager[object]:
        return self._call(Call("alone", is_change=True), lambda: self.inner.alone())

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        return self._call(Call("set_aside", key, is_change=True), lambda: self.inner.set_aside(key, operation))

    def bring_back(self, operation: str) -> Aside:
        return self._call(Call("bring_back", operation, is_change=True), lambda: self.inner.bring_back(operation))

    def free_aside(self, operation: str) -> Aside:
        return self._call(Call("free_aside", operation, is_change=True), lambda: self.inner.free_aside(operation))

    # Reading.

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        return self._stream(Call("read", key), lambda: self.inner.read(key, start=start, end=end))

    def read_back(self, key: LogKey) -> Iterator[Line]:
        return self._stream(Call("read_back", key), lambda: self.inner.read_back(key))

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        return self._stream(Call("read_range", key), lambda: self.inner.read_range(key, position=position, size=size))

    def stat(self, key: LogKey) -> LogStat | None:
        return self._call(Call("stat", key), lambda: self.inner.stat(key))

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        return self._stream(Call("list", project), lambda: self.inner.list(project, order=order, limit=limit))

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        return self._stream(Call("list_sub", key), lambda: self.inner.list_sub(key))

    def projects(self) -> Sequence[str]:
        return self._call(Call("projects"), lambda: self.inner.projects())

    def projects_for(self, cwd: str, keys: KeyStrategy) -> Sequence[str]:
        return self._call(Call("projects_for", cwd), lambda: self.inner.projects_for(cwd, keys))

    def retention_days(self) -> float | None:
        return self._call(Call("retention_days"), lambda: self.inner.retention_days())

    def search(self, words: str, *, project: str | None = None, limit: int | None = None) -> Iterator[Found]:
        return self._stream(Call("search", project), lambda: self.inner.search(words, project=project, limit=limit))

    def find_row(self, key: LogKey, dedupe_id: str) -> int | None:
        return self._call(Call("find_row", key), lambda: self.inner.find_row(key, dedupe_id))

    def list_subs(self, project: str) -> Mapping[str, Sequence[LogStat]]:
        return self._call(Call("list_subs", project), lambda: self.inner.list_subs(project))

    def find_sessions(self, id_or_prefix: str) -> Sequence[LogStat]:
        return self._call(Call("find_sessions", id_or_prefix), lambda: self.inner.find_sessions(id_or_prefix))

    def lines_with(self, keys: Sequence[LogKey], needle: bytes) -> Iterator[tuple[LogKey, Sequence[Line] | ClewError]]:
        return self._stream(Call("lines_with", keys[0] if keys else None), lambda: self.inner.lines_with(keys, needle))

    def where(self, key: LogKey) -> str:
        return self._call(Call("where", key), lambda: self.inner.where(key))

    def live_sessions(self) -> frozenset[str]:
        return self._call(Call("live_sessions"), lambda: self.inner.live_sessions())

    def watch(self, keys: Sequence[LogKey], stop: Event, *, seconds: float = WATCH_SECONDS) -> Iterator[None]:
        return self._stream(
            Call("watch", keys[0] if keys else None), lambda: self.inner.watch(keys, stop, seconds=seconds)
        )

    # Blobs.

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        return self._call(
            Call("put", key, is_change=True),
            lambda: self.inner.put(key, chunks, mode=mode, modified_ns=modified_ns),
        )

    def link(self, key: BlobKey, name: BlobKey) -> None:
        self._call(Call("link", name, is_change=True), lambda: self.inner.link(key, name))

    def open(self, key: BlobKey) -> Iterator[bytes]:
        return self._stream(Call("open", key), lambda: self.inner.open(key))

    def blob_stat(self, key: BlobKey) -> BlobStat | None:
        return self._call(Call("blob_stat", key), lambda: self.inner.blob_stat(key))

    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        return self._call(Call("blobs", key), lambda: self.inner.blobs(key))

    def delete_blob(self, key: BlobKey) -> bool:
        return self._call(Call("delete_blob", key, is_change=True), lambda: self.inner.delete_blob(key))
