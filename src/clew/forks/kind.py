"""What a kind of fork is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Protocol, cast

import msgspec

from clew.engines.contract import Engine, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import Conflict, NotFound, UsageError
from clew.forks.table import FORK_KINDS
from clew.layouts.claude import is_session_id
from clew.plugins import entry_points_of, loaded, unusable
from clew.transcript.chain import Chain
from clew.transcript.head import Head
from clew.transcript.points import Point
from clew.transcript.tree import Tree

ENTRY_POINTS = "clew.fork_kinds"
"""The group in which other packages name their kinds: the name, and a class that keeps `ForkKind`."""


class Parent(Protocol):
    """What a kind asks of the session that is forked. A `Session` is one."""

    @property
    def engine(self) -> Engine: ...
    @property
    def key(self) -> LogKey: ...
    @property
    def where(self) -> str: ...
    @property
    def is_live(self) -> bool: ...
    @property
    def head(self) -> Head: ...
    @property
    def tree(self) -> Tree: ...
    @property
    def is_agent(self) -> bool: ...
    @property
    def is_read(self) -> bool: ...

    def chain(self, up_to: Point | str | None = None) -> Chain: ...
    def refresh(self) -> bool: ...
    def inherits(self, uuid: str | None) -> bool: ...


class Wanted(msgspec.Struct, frozen=True):
    """The fork as somebody wants it. `session` is its id, which is free; `at` None is the head of the parent."""

    session: str
    at: Point | str | None
    timestamp: str
    """When it is made, as the client writes times."""
    new_id: Callable[[], str]
    title: str | None = None
    new_ids: bool = False
    rewrite_paths: bool = False


class Forked(msgspec.Struct, frozen=True):
    """What came of a fork. `records` counts the lines of its main log, `at` is the row that it goes on from.

    Lines of the parent that are no records are in no fork; `malformed` are their numbers. `left_out` counts the rows of
    its conversations that are on another way than this one. `notes` is what a person should know.
    """

    key: LogKey
    parent: LogKey
    kind: str
    at: str | None
    records: int
    agents: int = 0
    blobs: int = 0
    left_out: int = 0
    malformed: tuple[int, ...] = ()
    is_live: bool = False
    """Whether a running client holds the parent: what it writes from now on is not in the fork."""
    notes: tuple[str, ...] = ()


class ForkKind(Protocol):
    """One way to fork a session."""

    def make(self, parent: Parent, wanted: Wanted) -> Forked:
        """Makes the new session, whole or not at all; nothing of the parent is changed.

        Raises `UsageError` where this kind cannot be made of this parent, and `NotFound` for an unknown point.
        """


def kind_of(name: str) -> ForkKind:
    """The kind of that name. Raises `UsageError` when there is none, or it does not load."""
    where = FORK_KINDS.get(name)
    return _ours(where) if where is not None else _theirs(name)


@cache
def _ours(where: str) -> ForkKind:
    module, _, name = where.partition(":")
    return cast(ForkKind, getattr(import_module(module), name)())


def _theirs(name: str) -> ForkKind:
    there = entry_points_of(ENTRY_POINTS)
    if name not in there:
        names = ", ".join([*FORK_KINDS, *there])
        raise UsageError(f"there is no kind of fork {name!r:.40}", hint=f"there are {names}")
    what = f"the kind of fork {there[name].value}"
    found = loaded(there[name], what)
    if not isinstance(found, type):
        raise unusable(there[name], f"{what} is no class")
    return cast(ForkKind, found())


def must_be_free(engine: Engine, session: str) -> None:
    """Raises `Conflict` for an id that a session has in any project, `UsageError` for one that the client would not
    show.
    """
    if engine.capabilities.is_clients and not is_session_id(session):
        raise UsageError(f"{session!r:.80} is no id that Claude Code shows", hint="give a UUID, or no id at all")
    with suppress(NotFound):  # The place itself is made with the first session in it.
        taken = [stat for stat in engine.find_sessions(session) if stat.key.session == session]
        if taken:
            where = shown_path(engine.where(taken[0].key))
            raise Conflict(f"there is a session {session} already: {where}", hint="give another id, or none")
