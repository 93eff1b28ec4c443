"""Rows that clew writes itself, beside the conversation: no other program has them, and the client passes them over."""

from __future__ import annotations

from clew.records.views import View

NOTE_TYPE = "clew-session"


class SessionNote(View, frozen=True):
    """What is noted of a session. Of each field the last row that has it counts."""

    exit_reason: str | None = None
