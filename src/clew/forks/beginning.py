"""How a fork begins that holds its own rows only, and where it cannot be made."""

from __future__ import annotations

from clew.engines.contract import Engine, Entry, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import Conflict, UsageError
from clew.forks.kind import Parent, Wanted
from clew.records.compact import compact
from clew.records.titles import title_rows


def must_be_possible(parent: Parent, wanted: Wanted, kind: str) -> None:
    """Raises `UsageError` for what such a fork cannot be made of, and for what can be asked of copied rows only."""
    where, copy = shown_path(parent.where), f"clew fork {parent.key.session} --kind copy"
    if parent.engine.capabilities.is_clients:
        raise UsageError(
            f"{where} is on files that Claude Code reads, where an {kind} fork would be a session without its beginning"
            if kind == "attached"
            else f"{where} is on files that Claude Code reads, which shows no"
            f" session without a conversation, as a {kind} fork is",
            hint=f"copy it instead: {copy}",
        )
    if parent.is_agent:
        raise UsageError(f"{where} is the log of a subagent, which goes with its session", hint="fork the session")
    if wanted.new_ids or wanted.rewrite_paths:
        raise UsageError(
            f"the {kind} fork of a session has no copied rows whose ids or paths could be other ones",
            hint=f"copy it instead: {copy}",
        )


def begin(engine: Engine, key: LogKey, first: bytes, title: str | None) -> int:
    """Makes the log with its first row, and its title, in one append: all of it or nothing. Returns how many rows."""
    rows = [first, *titles(key, title)]
    try:
        engine.append(key, [Entry(row) for row in rows], expect="")
    except Conflict as error:
        raise Conflict(f"there is a session {key.session} already", hint="give another id, or none") from error
    return len(rows)


def titles(key: LogKey, title: str | None) -> list[bytes]:
    """The rows that give a session its title; none without one."""
    return [] if title is None else [compact({**row, "sessionId": key.session}) for row in title_rows(title)]
