"""The record of one operation, and what a kind of operation must do.

    begun ──> done ──> undoing ──> undone
      │         └────> freeing ──> freed
      └──────> undoing

A state that ends in -ing, and `begun`, is unfinished: a crash or a failure came between two steps. Everything a kind
does can be done again, so an unfinished operation is finished by doing its step once more.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol, TypeVar

import msgspec

from clew.engines.contract import Aside, Engine
from clew.errors import DamagedData
from clew.records.compact import compact
from clew.records.record import body_of
from clew.records.views import JsonObject

P = TypeVar("P")


class State(Enum):
    """How far an operation is."""

    BEGUN = "begun"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"
    FREEING = "freeing"
    FREED = "freed"


KEPT = "what it took away is kept, in the trash of the store, under the name of the operation"
"""Said where a record is damaged: nothing is lost with it."""
_UNFINISHED = frozenset({State.BEGUN, State.UNDOING, State.FREEING})
_UNDOABLE = frozenset({State.BEGUN, State.DONE, State.UNDOING})


class Operation(msgspec.Struct, frozen=True, rename={"id": "operation", "size_bytes": "bytes"}):
    """One operation. Times are ISO texts; `plan` is what was to be done and what was there before, by its kind.

    `files` and `size_bytes` count what it took away: logs and blobs, by the plan until it is done.
    """

    id: str
    number: int
    """Counts up in a store: times may be equal, or go back."""
    kind: str
    state: State
    begun_at: str
    changed_at: str
    """When the state changed last."""
    sessions: int
    files: int
    size_bytes: int
    plan: JsonObject

    def plan_as(self, kind: type[P]) -> P:
        """The plan, as its kind of operation wrote it. Raises `DamagedData` for what is none."""
        try:
            return msgspec.convert(self.plan, kind)
        except msgspec.ValidationError as error:
            raise DamagedData(f"the plan of the operation {self.id} cannot be read: {error}") from error

    @property
    def is_unfinished(self) -> bool:
        return self.state in _UNFINISHED

    @property
    def can_be_undone(self) -> bool:
        return self.state in _UNDOABLE


class Planned(msgspec.Struct, frozen=True):
    """A plan as the record will hold it, and what it comes to."""

    plan: JsonObject
    sessions: int
    files: int
    size_bytes: int


class Kind(Protocol):
    """How a kind of operation is done. Each step MUST be safe to do again after a crash in it."""

    def apply(self, engine: Engine, operation: Operation) -> Aside:
        """Does what the plan says. The answer counts what this call did."""
        ...

    def undo(self, engine: Engine, operation: Operation) -> Aside:
        """Brings back what was there before. Raises `Conflict`, and changes nothing, where something is in the way."""
        ...

    def must_be_needless(self, engine: Engine, operation: Operation) -> None:
        """Raises `Conflict` where something that is there cannot be read without what is kept."""
        ...

    def free(self, engine: Engine, operation: Operation) -> Aside:
        """Removes for good what was kept to undo it."""
        ...

    def title(self, operation: Operation) -> str:
        """What it was about, in a few words of the person's own."""
        ...


def encoded(operation: Operation) -> bytes:
    """The record as it is stored."""
    return compact(msgspec.to_builtins(operation))


def decoded(data: bytes, name: str) -> Operation:
    """The record that is stored under this name. Raises `DamagedData` for what is none."""
    if "/" in name:
        raise DamagedData(f"{name[:80]!a} is no id of an operation")
    try:
        operation = msgspec.convert(body_of(data), Operation)
    except msgspec.ValidationError as error:
        raise DamagedData(
            f"the record of the operation {name[:80]!a} cannot be read: {error}",
            hint=KEPT,
        ) from error
    if operation.id != name:
        raise DamagedData(
            f"the record of the operation {name[:80]!a} calls itself {operation.id[:80]!a}",
            hint=KEPT,
        )
    return operation
