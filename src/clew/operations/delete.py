"""`delete`: sessions are set aside under the name of the operation, each whole, and are kept until they are freed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec

from clew.engines.contract import Aside, Engine, LogKey
from clew.errors import Busy, Conflict, DamagedData, NotFound, UsageError
from clew.lineage import children_of, materialise
from clew.operations.operation import Operation, Planned

CANDIDATES_MAX = 20
TITLE_CHARACTERS = 60
"""So much of the first title is told where there are several."""


class Found(msgspec.Struct, frozen=True, rename={"size_bytes": "bytes"}):
    """A session as it was found. `files` counts its logs and blobs, `revision` is that of its main log."""

    project: str
    session: str
    title: str | None
    revision: str
    files: int
    size_bytes: int

    @property
    def key(self) -> LogKey:
        return LogKey(self.project, self.session)


class Child(msgspec.Struct, frozen=True):
    """An attached fork of what goes."""

    project: str
    session: str


class Plan(msgspec.Struct, frozen=True):
    """What goes, in this order. `materialised` are attached forks that get their beginning from it before."""

    sessions: Sequence[Found]
    materialised: Sequence[Child] = ()


def look(engine: Engine, key: LogKey, title: str | None = None) -> Found:
    """What there is of a session. Raises `NotFound` when there is no such log."""
    stat = engine.stat(key.main)
    if stat is None:
        raise NotFound(f"there is no session {engine.where(key.main)}", hint="list what there is with `clew ls --all`")
    sizes = [stat.size_bytes]
    sizes += [sub.size_bytes for sub in engine.list_sub(key.main)]
    sizes += [blob.size_bytes for blob in engine.blobs(key.main)]
    return Found(key.project, key.session, title, stat.revision, len(sizes), sum(sizes))


def plan(found: Sequence[Found], live: Collection[str], *, even_live: bool = False) -> Plan:
    """What deleting these sessions means. Pure.

    Raises `UsageError` for none, and `Busy` for one that a running client holds, unless that is wanted: it goes on
    writing under the same name, so that the beginning of the session would be in the trash and its end in the list, and
    undo could not join them.
    """
    if not found:
        raise UsageError("no session was named, so nothing was deleted", hint="name one, by its id or its path")
    held = [each.session for each in found if each.session in live]
    if held and not even_live:
        raise Busy(
            f"a running client holds the session {held[0]}: nothing was deleted",
            hint="end it there first, or delete it all the same with --force",
        )
    return Plan(list({each.key: each for each in found}.values()))


def must_have_no_children(engine: Engine, keys: Collection[LogKey]) -> None:
    """Raises `Conflict`, naming them, where an attached fork would be left without its beginning."""
    left = children_of(engine, keys)
    if left:
        what = "1 attached fork goes" if len(left) == 1 else f"{len(left)} attached forks go"
        named, typed = "these sessions", "SESSION..."
        if len(keys) == 1:
            named = typed = next(iter(keys)).session
        raise Conflict(
            f"{what} on from {named}: nothing was deleted",
            hint=f"give them their own copy of it: clew delete --materialise {typed}; or delete them too",
            candidates=[key.session for key in left[:CANDIDATES_MAX]],
        )


def planned(
    engine: Engine,
    named: Sequence[tuple[LogKey, str | None]],
    *,
    even_live: bool = False,
    materialises: bool = False,
) -> Planned:
    """The plan for these sessions and titles, as they are now. Raises what `look` and `plan` raise, and `Conflict`
    where an attached fork would be left without its beginning, unless it is to have that itself.
    """
    found = [look(engine, key, title) for key, title in named]
    keys = [each.key for each in found]
    if not materialises:
        must_have_no_children(engine, keys)
    live = engine.live_sessions() if engine.capabilities.is_clients else frozenset()
    wanted = plan(found, live, even_live=even_live)
    children = [Child(key.project, key.session) for key in children_of(engine, keys)] if materialises else []
    wanted = msgspec.structs.replace(wanted, materialised=children)
    files, size = sum(each.files for each in wanted.sessions), sum(each.size_bytes for each in wanted.sessions)
    return Planned(msgspec.to_builtins(wanted), len(wanted.sessions), files, size)


class Delete:
    """Sessions go to the trash of the store, as one operation."""

    def apply(self, engine: Engine, operation: Operation) -> Aside:
        told, wanted = Aside(), operation.plan_as(Plan)
        for child in wanted.materialised:
            materialise(engine, LogKey(child.project, child.session))
        for each in wanted.sessions:
            one = engine.set_aside(each.key, operation.id)
            told = Aside(told.logs + one.logs, told.blobs + one.blobs, told.size_bytes + one.size_bytes)
        return told

    def undo(self, engine: Engine, operation: Operation) -> Aside:
        told = engine.bring_back(operation.id)
        sessions = operation.plan_as(Plan).sessions
        # An earlier try may have brought everything back, so that nothing was kept. Where nothing is there either, what
        # was kept is lost, and nobody may be told that it came back.
        if sessions and told == Aside() and all(engine.stat(each.key) is None for each in sessions):
            raise NotFound(
                f"nothing is kept under the operation {operation.id} any more: its sessions did not come back",
                hint="see what is there: clew ls --all",
            )
        return told

    def must_be_needless(self, engine: Engine, operation: Operation) -> None:
        """An attached fork that was deleted before its parent, and brought back alone, has its beginning in here."""
        with suppress(DamagedData):
            gone = [each.key for each in operation.plan_as(Plan).sessions if engine.stat(each.key) is None]
            for child in children_of(engine, gone):
                raise Conflict(
                    f"the attached fork {child.session} goes on from what the operation {operation.id} took away",
                    hint=f"bring that back: clew undo {operation.id}; or delete the fork: clew delete {child.session}",
                )

    def free(self, engine: Engine, operation: Operation) -> Aside:
        return engine.free_aside(operation.id)

    def title(self, operation: Operation) -> str:
        sessions = operation.plan_as(Plan).sessions
        if not sessions:
            return ""
        first = sessions[0].title or sessions[0].session
        if len(sessions) == 1:
            return first
        cut = first if len(first) <= TITLE_CHARACTERS else f"{first[:TITLE_CHARACTERS].rstrip()}…"
        return f"{cut} and {len(sessions) - 1:,} more"
