"""The log of operations: each is recorded before anything is done, and after each step, in a blob of the whole store.

Whoever changes the state of an operation holds the store alone, so that an unfinished operation seen by them is one
that nobody is at any more. A record is replaced as a whole; a crash leaves the state of before or the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from importlib import import_module

import msgspec

from clew.engines.contract import Aside, BlobKey, Engine, LogKey, Problem, small_blob
from clew.errors import Ambiguous, ClewError, Conflict, DamagedData, NotFound, StorageError, UsageError
from clew.operations.operation import Kind, Operation, Planned, State, decoded, encoded
from clew.operations.table import KINDS

BLOB_KIND = "operation"
TRASH_DAYS = 30
"""So long is kept what an operation took away; as long as the client keeps a session that nobody touches."""
RECORD_BYTES_MAX = 64 * 1024 * 1024
"""A longer record is none of ours: one with 100,000 sessions has some 25 MB."""
CANDIDATES_MAX = 20

STEPS: dict[State, tuple[str, State]] = {
    State.BEGUN: ("apply", State.DONE),
    State.UNDOING: ("undo", State.UNDONE),
    State.FREEING: ("free", State.FREED),
}
"""What an unfinished state waits for, and the state that it leads to."""


class Freed(msgspec.Struct, frozen=True):
    """What emptying the trash gave, or would give: how many bytes are gone for good, and how many are kept."""

    freed_bytes: int
    kept_bytes: int
    operations: Sequence[str] = ()
    """Those that were freed, or would be."""
    failed: Sequence[Problem] = ()
    """Those that could not be freed; another call tries again."""


class Operations:
    """The operations of one store. `now` gives ISO texts. `problems` lists records that could not be read, as of the
    last look.
    """

    def __init__(self, engine: Engine, *, now: Callable[[], str], new_id: Callable[[], str]) -> None:
        self.problems: list[Problem] = []
        self._engine = engine
        self._now = now
        self._new_id = new_id

    # Looking.

    def all(self) -> list[Operation]:
        """Every operation, newest first. A record that cannot be read is a problem and hides no other."""
        self.problems.clear()
        found = []
        for name in self._names():
            try:
                found.append(self._read(name))
            except ClewError as error:
                self.problems.append(Problem(name, error.message))
        return sorted(found, key=lambda each: (each.number, each.id), reverse=True)

    def unfinished(self) -> list[Operation]:
        """Those that a crash ended, or that another process is at right now, newest first."""
        return [each for each in self.all() if each.is_unfinished]

    def find(self, name: str) -> Operation:
        """The operation of that id, or of that unique beginning. Raises `NotFound`, `Ambiguous` or `DamagedData`."""
        names = self._names()
        found = [name] if name in names else [each for each in names if name and each.startswith(name)]
        if not found:
            raise NotFound(f"no operation has an id that begins with {name[:80]!a}", hint="see them: clew operations")
        if len(found) > 1:
            raise Ambiguous(
                f"{name} is ambiguous: {len(found)} operations begin so",
                hint="give more of the id",
                candidates=found[:CANDIDATES_MAX],
            )
        return self._read(found[0])

    def title(self, operation: Operation) -> str:
        """What it was about, for people; "" where that cannot be told."""
        with suppress(ClewError):
            return _kind(operation).title(operation)
        return ""

    # Changing.

    def run(self, kind: str, plan: Callable[[], Planned], *, tries: int = 1) -> Operation:
        """Plans, records the plan, applies it, and records that it is done. What the plan raises, nothing came of.

        When applying fails, what was done is undone at once, and the error of the step is raised. Where that fails too,
        the operation stays unfinished. With `tries`, a plan that met a `Conflict` is made anew, for what others do
        while this one waits: only for a kind that does nothing where it raises that.
        """
        with self._engine.alone():
            begun = self._begun(kind, plan())
            while True:
                tries -= 1
                try:
                    told = _kind(begun).apply(self._engine, begun)
                    return self._put(_counted(self._moved(begun, State.DONE), told))
                except Conflict as error:
                    if tries <= 0:
                        self._take_back(begun, error)
                        raise
                    begun = self._put(self._planned_anew(begun, plan))
                except ClewError as error:
                    self._take_back(begun, error)
                    raise

    def _begun(self, kind: str, wanted: Planned) -> Operation:
        moment, number = self._now(), 1 + max((each.number for each in self.all()), default=0)
        begun = Operation(
            self._new_id(), number, kind, State.BEGUN, moment, moment,
            wanted.sessions, wanted.files, wanted.size_bytes, wanted.plan,
        )  # fmt: skip
        if begun.id in self._names():
            raise Conflict(f"there is an operation {begun.id} already", hint="do it again")
        self._put(begun)
        if begun.id not in self._names():
            raise StorageError(
                f"the record of the operation {begun.id} cannot be found where it was put: nothing was done",
                hint="see why: clew operations",
            )
        return begun

    def _planned_anew(self, begun: Operation, plan: Callable[[], Planned]) -> Operation:
        """The operation with another plan; nothing was done by the one before."""
        try:
            wanted = plan()
        except ClewError as error:
            self._take_back(begun, error)
            raise
        return msgspec.structs.replace(
            begun, sessions=wanted.sessions, files=wanted.files, size_bytes=wanted.size_bytes, plan=wanted.plan
        )

    def undo(self, name: str = "") -> Operation:
        """Undoes an operation; without a name the newest that can be undone. Returns it as it is now.

        Raises `NotFound` where nothing is kept to undo it with, `UsageError` for one that was undone already, and
        `Conflict`, with nothing changed, where something stands in the way.
        """
        # Looked at first, so that nothing is made where there is nothing to undo.
        wanted = self.find(name) if name else self._newest()
        with self._engine.alone():
            operation = self._read(wanted.id)
            if operation.state is State.UNDONE:
                raise UsageError(
                    f"the operation {operation.id} was undone already, at {operation.changed_at}",
                    hint="see what there is to undo: clew operations",
                )
            if not operation.can_be_undone:
                what = "what it took away is gone for good" if operation.files else "nothing is lost: see clew tree"
                raise NotFound(
                    f"the operation {operation.id} was freed at {operation.changed_at}, and {what}",
                    hint="see what there is to undo: clew operations",
                )
            return self._undo(operation)

    def finish(self, name: str) -> Operation:
        """Does the step that an unfinished operation waits for. Returns it as it is now; a finished one as it was."""
        wanted = self.find(name)
        with self._engine.alone():
            operation = self._read(wanted.id)
            if operation.state is State.UNDOING:
                return self._undo(operation)
            return self._step(operation) if operation.is_unfinished else operation

    def free(self, *, days: float = TRASH_DAYS, is_dry: bool = False) -> Freed:
        """Removes for good what was taken away longer ago than so many days, and what an earlier call began to remove.

        What is unfinished otherwise is kept, and so are what has no readable time and what something that is there
        needs. With `is_dry` it only says what would be freed.
        """
        freed, kept, names, failed = 0, 0, [], []
        now = _moment(self._now())
        for listed in reversed(self.all()):
            try:
                with nullcontext() if is_dry else self._engine.alone():
                    operation = self._read(listed.id)
                    if operation.state in (State.UNDONE, State.FREED):
                        continue
                    if operation.state is not State.FREEING and not _is_older(operation, now, days):
                        kept += operation.size_bytes
                        continue
                    if operation.state is not State.FREEING:
                        _kind(operation).must_be_needless(self._engine, operation)
                    freed += operation.size_bytes if is_dry else self._free(operation)
                    names.append(operation.id)
            except ClewError as error:
                # One that cannot be freed, as a link in its place or one that is needed, must not keep the others.
                failed.append(Problem(listed.id, error.message))
                kept += listed.size_bytes
        return Freed(freed, kept, names, failed)

    # Steps. Whoever calls these holds the store alone.

    def _undo(self, operation: Operation) -> Operation:
        undoing = self._put(self._moved(operation, State.UNDOING))
        try:
            return self._step(undoing)
        except Conflict:
            # What this try would have brought back is kept still. Some may have come back by an earlier one, and there
            # is no way on from there but another undo: so it is no more unfinished than any other.
            self._put(operation if operation.state is not State.UNDOING else self._moved(operation, State.DONE))
            raise
        except NotFound:
            self._put(self._moved(operation, State.FREED))
            raise

    def _free(self, operation: Operation) -> int:
        if operation.state is not State.FREEING:
            operation = self._put(self._moved(operation, State.FREEING))
        freed = _kind(operation).free(self._engine, operation)
        self._put(self._moved(operation, State.FREED))
        return freed.size_bytes

    def _step(self, operation: Operation) -> Operation:
        method, end = STEPS[operation.state]
        getattr(_kind(operation), method)(self._engine, operation)
        return self._put(self._moved(operation, end))

    def _take_back(self, begun: Operation, error: ClewError) -> None:
        """Undoes what was done of an operation whose step failed. The error of the step is the one to be told."""
        try:
            self._undo(begun)
        except ClewError:
            name = begun.id
            error.hint = f"bring back what was taken: clew undo {name}; or go on: clew operations --finish {name}"

    def _moved(self, operation: Operation, state: State) -> Operation:
        # What is freed for good leaves no title behind, which may be the first words of a secret.
        plan = {} if state is State.FREED else operation.plan
        return msgspec.structs.replace(operation, state=state, changed_at=self._now(), plan=plan)

    # Records.

    def _newest(self) -> Operation:
        for operation in self.all():
            if operation.can_be_undone:
                return operation
        raise NotFound("there is nothing to undo", hint="see what was done: clew operations")

    def _names(self) -> list[str]:
        stats = self._engine.blobs(LogKey("", ""))
        return [stat.key.name for stat in stats if stat.key.kind == BLOB_KIND]

    def _read(self, name: str) -> Operation:
        data = small_blob(self._engine, _key(name), RECORD_BYTES_MAX)
        if data is None:
            raise DamagedData(f"the record of the operation {name[:80]!a} cannot be read: it is too long, or no file")
        operation = decoded(data, name)
        if operation.kind not in KINDS:
            raise DamagedData(
                f"the operation {name} is of the kind {operation.kind[:80]!a}, which this version does not know",
                hint="use the version of clew that made it",
            )
        return operation

    def _put(self, operation: Operation) -> Operation:
        self._engine.put(_key(operation.id), [encoded(operation)])
        return operation


def _key(name: str) -> BlobKey:
    return BlobKey("", "", BLOB_KIND, name)


def _kind(operation: Operation) -> Kind:
    module, _, name = KINDS[operation.kind].partition(":")
    kind: Kind = getattr(import_module(module), name)()
    return kind


def _counted(operation: Operation, told: Aside) -> Operation:
    return msgspec.structs.replace(operation, files=told.logs + told.blobs, size_bytes=told.size_bytes)


def _is_older(operation: Operation, now: datetime | None, days: float) -> bool:
    since = _moment(operation.changed_at)
    if operation.state is not State.DONE or since is None or now is None:
        return False
    return (now - since).total_seconds() >= days * 86_400


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
