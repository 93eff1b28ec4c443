"""Which rows of a log are there already: the memory of engines that have no unique keys of their own.

What it says is derived from the logs and may be lost at any time: an engine that finds nothing reads the log again. So
an id MUST be learned only after its row was written, never before; else a crash in between would lose the row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from threading import Lock
from typing import Protocol

import msgspec

from clew.engines.contract import LogKey

LOGS_KEPT = 64
"""So many logs a process remembers; of those that were asked for least recently nothing is known any more."""


class Known(Protocol):
    """What is known of one log, up to `position`: ids of rows beyond it have to be read and learned first."""

    @property
    def position(self) -> int: ...

    def among(self, ids: Collection[str]) -> AbstractSet[str]:
        """Those of these ids that rows before `position` have."""
        ...


class DedupeStore(Protocol):
    """Remembers ids of rows. A `generation` names one life of a log - what stands before the first dash of its
    revision: what was learned of another one counts for nothing. MUST be safe to share by threads.

    Every method MAY forget, and no answer of `among` may be a guess: a filter that errs can only spare questions.
    """

    def known(self, key: LogKey, generation: str) -> Known | None:
        """None where nothing is known of this life of the log."""
        ...

    def learn(self, key: LogKey, generation: str, ids: Iterable[str], *, start: int, end: int) -> bool:
        """Adds the ids of all rows from `start` up to `end`. False, and nothing is added, when `start` is not where
        the knowledge ends (0 where there is none): somebody else has learned meanwhile, so ask again.
        """
        ...

    def forget(self, key: LogKey) -> None:
        """Lets go of all that is known of a log, whatever its generation."""
        ...


class _Seen(msgspec.Struct):
    generation: str
    ids: set[str] = msgspec.field(default_factory=set)
    position: int = 0

    def among(self, ids: Collection[str]) -> AbstractSet[str]:
        return self.ids.intersection(ids)


class MemoryDedupe:
    """Keeps the ids in this process. About 100 bytes for a row."""

    def __init__(self, logs_kept: int = LOGS_KEPT) -> None:
        self._lock = Lock()
        self._logs: dict[LogKey, _Seen] = {}
        self._logs_kept = logs_kept

    def known(self, key: LogKey, generation: str) -> Known | None:
        with self._lock:
            seen = self._logs.get(key)
            if seen is None or seen.generation != generation:
                return None
            self._logs[key] = self._logs.pop(key)
            return seen

    def learn(self, key: LogKey, generation: str, ids: Iterable[str], *, start: int, end: int) -> bool:
        with self._lock:
            seen = self._logs.get(key)
            if seen is None or seen.generation != generation:
                seen = _Seen(generation)
            if seen.position != start:
                return False
            seen.ids.update(ids)
            seen.position = end
            self._logs.pop(key, None)
            self._logs[key] = seen
            while len(self._logs) > self._logs_kept:
                del self._logs[next(iter(self._logs))]
            return True

    def forget(self, key: LogKey) -> None:
        with self._lock:
            self._logs.pop(key, None)
