"""Truncating a session: planned from what is read, recorded as an operation, and planned anew when somebody appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from clew.errors import ClewError, UsageError
from clew.operations.operation import Planned
from clew.session_writer import IS_LIVE, TRIES_MAX
from clew.transcript.points import Point
from clew.transcript.truncate import Cut, cut_at

if TYPE_CHECKING:
    from clew.operations.log import Operations
    from clew.session import Session


class Truncated(msgspec.Struct, frozen=True):
    """What came of it, or would come of it. `head` is where the conversation goes on now, `dropped` counts messages.

    `operation` is the id for `undo`; None where the conversation ended there already, or nothing was to be written.
    `is_live` says that a running client holds the session: it goes on from its own head, and from ours when it is
    started anew. `notes` is what a person should know.
    """

    session_id: str
    head: str
    dropped: int
    operation: str | None = None
    is_live: bool = False
    notes: tuple[str, ...] = ()
    first_dropped: str | None = None
    """The first words of the first prompt that was dropped."""
    before: str | None = None
    """The row that brings it back when it is truncated to; None where the conversation was empty."""
    is_moved: bool = True
    """False where the conversation ended there already."""


class _IsThere(ClewError):
    """The conversation ends there already: nothing is to be done."""


def truncate(session: Session, log: Operations, point: Point, *, is_dry: bool = False) -> Truncated:
    """Moves the head of a session to the point. See `Session.truncate`."""
    if session.is_agent:
        raise UsageError(
            f"{session.id} is the log of a subagent, which goes on from its last row and has no head to be moved",
            hint="truncate the session that started it",
        )
    session.refresh()
    seen, cut = session.seen.revision, cut_at(session.links, point, session.messages())
    if is_dry or not cut.is_moved:
        return _told(session, cut, None)
    from clew.operations.truncate import planned

    def plan() -> Planned:
        nonlocal seen, cut
        session.refresh()
        if session.seen.revision != seen:
            seen, cut = session.seen.revision, cut_at(session.links, point, session.messages())
        if not cut.is_moved:
            raise _IsThere("the conversation ends there already")
        return planned(session.seen, cut)

    try:
        operation = log.run("truncate", plan, tries=TRIES_MAX)
    except _IsThere:
        return _told(session, cut, None)
    finally:
        session.fall_behind()
    return _told(session, cut, operation.id)


def _told(session: Session, cut: Cut, operation: str | None) -> Truncated:
    is_live = session.is_live
    notes = (*cut.notes, *((IS_LIVE,) if is_live else ()))
    return Truncated(
        session.id, cut.head, cut.dropped, operation, is_live, notes, cut.first_dropped, cut.before, cut.is_moved
    )
