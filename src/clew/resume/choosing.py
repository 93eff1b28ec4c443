"""Which session is gone on with when nobody named one: policies, one after the other, over the sessions of a directory.

A policy takes the sessions in the order of the one before it and gives them in its own, without those that it passes
over; the first that comes out at the end is taken. It is asked for one at a time, so nothing is read of a session that
nobody asks about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import TypeAlias, cast

import msgspec

from clew.engines.contract import SORTS, LogStat, Order
from clew.errors import ClewError, NotFound, UsageError
from clew.plugins import entry_points_of, function_of
from clew.records.codec import decode_lines
from clew.records.record import Record, records_in
from clew.resume.look import Look
from clew.resume.policies.table import ENTRY_POINTS, POLICIES
from clew.session import Session
from clew.transcript.tree import CHAIN_TYPES

DEFAULT = "newest"
POLICIES_MAX = 20
"""More of them in one text are a mistake."""


class PassedOver(msgspec.Struct, frozen=True):
    """A session that was not taken, and why."""

    id: str
    why: str


class Choice(msgspec.Struct, frozen=True):
    """The session that is taken, the reasons for it, and the newer ones that were passed over."""

    session: Session
    reason: str
    passed_over: tuple[PassedOver, ...] = ()


class Contender:
    """A session that may be taken. What it is asked for is read then."""

    def __init__(self, look: Look, stat: LogStat) -> None:
        self.look = look
        self.stat = stat
        self.reasons: list[str] = []
        """Why it is taken, if it is."""

    @property
    def id(self) -> str:
        return self.stat.key.session

    @cached_property
    def session(self) -> Session:
        return self.look.session(self.stat)

    def piece(self, position: int, size: int) -> Iterator[bytes]:
        """Bytes of its log, as far as it has them, in chunks."""
        size = min(size, self.stat.size_bytes - position)
        return self.look.store.engine.read_range(self.stat.key, position=position, size=size) if size > 0 else iter(())

    def rows_back(self) -> Iterator[Record]:
        """Its records, newest first."""
        return records_in(decode_lines(self.look.store.engine.read_back(self.stat.key)))

    def last_row(self) -> Record | None:
        """The newest row of the conversation itself."""
        return next((row for row in self.rows_back() if row.type in CHAIN_TYPES and not row.is_sidechain), None)


class Asked:
    """What a policy is told besides the sessions, and where it tells what it passes over."""

    def __init__(self, look: Look, cwd: str | None, argument: str = "") -> None:
        self.look = look
        self.cwd = cwd
        self.argument = argument
        """What stands behind the colon of its name."""
        self.passed_over: list[PassedOver] = []

    def pass_over(self, contender: Contender, why: str) -> None:
        self.passed_over.append(PassedOver(contender.id, why))

    def unless(self, contenders: Iterable[Contender], reason: Callable[[Contender], str | None]) -> Iterator[Contender]:
        """Those of which the function gives no reason against. One that cannot be read is passed over, too."""
        for each in contenders:
            try:
                why = reason(each)
            except ClewError as error:
                why = error.message
            if why is None:
                yield each
            else:
                self.pass_over(each, why)


Policy: TypeAlias = Callable[[Iterable[Contender], Asked], Iterator[Contender]]


def choose(look: Look, text: str, *, projects: Sequence[str] | None = None, cwd: str | None = None) -> Choice:
    """What the policies of the text choose between the sessions of these projects, or of all.

    The client's own rule comes last where it is not named: what the client would not go on with is never chosen.
    """
    asked: list[Asked] = []
    wanted = parsed(text)
    contenders: Iterator[Contender] = iter([Contender(look, stat) for stat in _newest_first(look, projects)])
    for name, argument in wanted:
        asked.append(Asked(look, cwd, argument))
        contenders = policy_of(name)(contenders, asked[-1])
    found = next(contenders, None)
    passed_over = tuple(each for one in asked for each in one.passed_over)
    if found is None:
        where = "this store" if projects is None else "this directory"
        if not passed_over:
            raise NotFound(f"there is no session of {where} to continue", hint="look elsewhere with `clew ls --all`")
        raise NotFound(
            f"there is no session of {where} to continue: all {len(passed_over)} were passed over",
            hint=f"{passed_over[0].id}: {passed_over[0].why}. Name one: clew resume ID",
            candidates=list(dict.fromkeys(each.id for each in passed_over))[:20],
        )
    return Choice(found.session, "; ".join(found.reasons), passed_over)


def parsed(text: str) -> list[tuple[str, str]]:
    """The policies of a text by name, each with what stands behind its colon."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(parts) > POLICIES_MAX:
        raise UsageError(f"{text[:200]!r} names no policies", hint=f"write them so: {', '.join(POLICIES)}")
    wanted = [(name.strip(), argument.strip()) for name, _, argument in (part.partition(":") for part in parts)]
    return wanted if any(name == DEFAULT for name, _ in wanted) else [*wanted, (DEFAULT, "")]


def policy_of(name: str) -> Policy:
    """The policy of that name. Raises `UsageError` when there is none."""
    if name in POLICIES:
        module, _, function = POLICIES[name].partition(":")
        return cast(Policy, getattr(import_module(module), function))
    if name in entry_points_of(ENTRY_POINTS):
        return cast(Policy, function_of(ENTRY_POINTS, name))
    names = [*POLICIES, *entry_points_of(ENTRY_POINTS)]
    raise UsageError(f"there is no policy {name[:80]!r}", hint=f"choose from {', '.join(names)}", candidates=names)


def _newest_first(look: Look, projects: Sequence[str] | None) -> list[LogStat]:
    found = look.store.logs() if projects is None else [stat for key in projects for stat in look.store.logs(key)]
    # The client compares whole milliseconds. Which of two it takes that have the same is chance; here it is the later.
    return sorted(found, key=SORTS[Order.NEWEST_FIRST])
