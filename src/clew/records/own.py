"""Rows that clew writes itself, beside the conversation: no other program has them, and the client passes them over."""

from __future__ import annotations

from clew.records.record import Record
from clew.records.views import JsonValue, View

NOTE_TYPE = "clew-session"
FORK_TYPE = "clew-fork"
ATTACHED = "attached"


class SessionNote(View, frozen=True):
    """What is noted of a session. Of each field the last row that has it counts, and null takes it off."""

    exit_reason: str | None = None
    pinned: bool | None = None
    owner: str | None = None
    workspace: str | None = None
    labels: tuple[str, ...] | None = None


class ForkNote(View, frozen=True):
    """What the session was forked from, and where: `at` is the uuid of the point, None for an empty fork."""

    kind: str | None = None
    parent_session_id: str | None = None
    parent_project: str | None = None
    at: str | None = None
    forked_at: str | None = None
    lineage: JsonValue = None
    """Of an attached fork: the point of every ancestor."""


def is_attached(first: Record) -> bool:
    """Whether a log that begins with this row goes on from other logs, and says nothing whole without them."""
    if first.type != FORK_TYPE:
        return False
    body = first.body()
    return body.get("kind") == ATTACHED or "lineage" in body
