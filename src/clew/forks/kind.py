"""What a kind of fork is given, does and answers. A session is told here by what a kind asks of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

import msgspec

from clew.engines.contract import Engine, Entry, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import Conflict, UsageError
from clew.forks.table import FORK_KINDS
from clew.records.compact import compact
from clew.transcript.chain import Chain
from clew.transcript.head import Head
from clew.transcript.points import Point
from clew.transcript.tree import Tree


class Parent(Protocol):
    """The session that is forked."""

    engine: Engine
    key: LogKey

    @property
    def is_agent(self) -> bool: ...

    @property
    def is_read(self) -> bool:
        """Whether its log was read already."""
        ...

    @property
    def tree(self) -> Tree: ...

    @property
    def head(self) -> Head: ...

    def chain(self, up_to: Point | str | None = None) -> Chain: ...

    def refresh(self) -> bool: ...


class Wanted(msgspec.Struct, frozen=True):
    """What was asked for: `at` is where, None the head; `id` and `timestamp` are those of the new session."""

    id: str
    timestamp: str
    new_id: Callable[[], str]
    at: Point | str | None = None
    title: str | None = None
    new_ids: bool = False
    rewrite_paths: str | None = None


class Made(msgspec.Struct, frozen=True):
    """The log of the new session, how many rows were written to it, and what a person should know."""

    key: LogKey
    records: int
    notes: tuple[str, ...] = ()


class ForkKind(Protocol):
    """Makes a fork whole or not at all. The parent is not changed."""

    def fork(self, parent: Parent, wanted: Wanted) -> Made:
        """Raises `NotFound` for a point that is not there, and `Conflict` for an id that is taken."""
        ...


ENTRY_POINTS = "clew.fork_kinds"
"""The entry point group of outside packages: the name is that of the kind, the value a class that is a `ForkKind`."""


def kind_named(name: str) -> ForkKind:
    """The kind of that name: one of ours, else that of an outside package. Raises `UsageError` for an unknown one."""
    from importlib.metadata import entry_points  # It costs more than all of this package.

    where = FORK_KINDS.get(name)
    if where is not None:
        module, _, attribute = where.partition(":")
        kind: ForkKind = getattr(import_module(module), attribute)()
        return kind
    outside = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in outside:
        known = ", ".join([*FORK_KINDS, *sorted(outside)])
        raise UsageError(f"there is no fork of the kind {name!a:.60}", hint=f"use one of {known}")
    try:
        theirs: ForkKind = outside[name].load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise UsageError(f"the fork kind {outside[name].value} does not load: {error}", hint="uninstall it") from error
    return theirs


def refuse(parent: Parent, wanted: Wanted, kind: str) -> None:
    """Raises `UsageError` for what a fork that consists of its own rows only cannot be."""
    if parent.engine.capabilities.is_clients:
        raise UsageError(
            f"{shown_path(parent.engine.where(parent.key))} is on files that Claude Code reads, where an {kind} fork"
            " would be a session without its beginning",
            hint=f"copy it instead: clew fork {parent.key.session} --kind copy",
        )
    if parent.is_agent:
        raise UsageError(
            f"{shown_path(parent.engine.where(parent.key))} is the log of a subagent, which goes with its session",
            hint="fork the session",
        )
    if wanted.new_ids or wanted.rewrite_paths is not None:
        raise UsageError(
            f"an {kind} fork has no copied rows in which ids or paths could be written anew",
            hint=f"copy it instead: clew fork {parent.key.session} --kind copy",
        )


def begin(engine: Engine, key: LogKey, first: bytes, title: str | None) -> int:
    """Makes the log of a fork with its first row, and its title, in one append. Returns how many rows that are."""
    rows = [first]
    if title is not None:
        rows.append(compact({"type": "custom-title", "customTitle": title, "sessionId": key.session}))
        rows.append(compact({"type": "agent-name", "agentName": title, "sessionId": key.session}))
    try:
        engine.append(key, [Entry(row) for row in rows], expect="")
    except Conflict as error:
        raise Conflict(f"there is a session {key.session} already", hint="give another id, or none") from error
    return len(rows)
