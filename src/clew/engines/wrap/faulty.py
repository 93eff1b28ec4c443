"""An engine that fails as planned, for tests: how an agent behaves when its store does not.

Faulty(engine, at(Fault("append", 3, "after")))     the third append is done, and its answer is lost
Faulty(engine, seeded(7, rate=0.1))                 one call in ten fails, in every run the same ones
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Literal, TypeAlias, TypeVar

import msgspec

from clew.engines.contract import Engine
from clew.engines.wrap.base import Call, Wrapper
from clew.errors import ClewError, StorageError

T = TypeVar("T")
When: TypeAlias = Literal["before", "after", "during"]
"""Nothing was done; all was done and the answer is lost; an iterator breaks off before its second piece."""
Plan: TypeAlias = Callable[[Call, int], "Fault | None"]
"""Says for the n-th call of a method, counted from 1, whether it fails. Calls are asked about in their order."""

NEVER = frozenset({"close", "where"})
"""What a seeded plan lets pass: `close` must always work, and `where` only makes words."""


class Fault(msgspec.Struct, frozen=True):
    """One failure: of which method, at which of its calls (0 for every one), when, and with what error.

    Without an error it is a `StorageError` that says a retry may help.
    """

    method: str = ""
    """"" for any."""
    number: int = 0
    when: When = "before"
    error: ClewError | None = None


class Faulty(Wrapper):
    """Fails where the plan says so. `faults` lists what it did, as (method, number of the call, when)."""

    def __init__(self, inner: Engine, plan: Plan) -> None:
        super().__init__(inner)
        self._plan = plan
        self._lock = Lock()
        self._counts: dict[str, int] = {}
        self.faults: list[tuple[str, int, When]] = []

    def _call(self, call: Call, do: Callable[[], T]) -> T:
        fault, number = self._next(call)
        if fault is None:
            return do()
        if fault.when == "after":
            do()
        raise self._failed(call, number, fault)

    def _stream(self, call: Call, do: Callable[[], Iterator[T]]) -> Iterator[T]:
        fault, number = self._next(call)
        if fault is None:
            return do()
        if fault.when == "before":
            raise self._failed(call, number, fault)
        return self._broken_off(call, number, fault, do())

    def _broken_off(self, call: Call, number: int, fault: Fault, pieces: Iterator[T]) -> Iterator[T]:
        """All pieces, or the first, then the error."""
        for piece in pieces:
            yield piece
            if fault.when == "during":
                break
        raise self._failed(call, number, fault)

    def _next(self, call: Call) -> tuple[Fault | None, int]:
        with self._lock:
            number = self._counts[call.method] = self._counts.get(call.method, 0) + 1
            return self._plan(call, number), number

    def _failed(self, call: Call, number: int, fault: Fault) -> ClewError:
        with self._lock:
            self.faults.append((call.method, number, fault.when))
        return fault.error or StorageError(
            f"planned: call {number} of {call.method} fails {fault.when} it is done",
            hint="this is a test; do it again",
            is_permanent=False,
        )


def at(*faults: Fault) -> Plan:
    """The first of these that fits."""

    def plan(call: Call, number: int) -> Fault | None:
        fits = (fault for fault in faults if fault.method in ("", call.method) and fault.number in (0, number))
        return next(fits, None)

    return plan


def seeded(seed: int, *, rate: float = 0.1, when: Mapping[str, tuple[When, ...]] | None = None) -> Plan:
    """Each call fails with this probability, in every run the same ones, as long as the calls are the same.

    `when` says for a method how it may fail, "" for all others; without it in each way.
    """
    chosen = random.Random(seed)
    ways = when or {"": ("before", "after", "during")}

    def plan(call: Call, number: int) -> Fault | None:  # noqa: ARG001 - The dice know no numbers.
        fails, way = chosen.random() < rate, chosen.random()
        allowed = ways.get(call.method, ways.get("", ()))
        if not fails or not allowed or call.method in NEVER:
            return None
        return Fault(when=allowed[int(way * len(allowed))])

    return plan
