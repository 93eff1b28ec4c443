"""The path of a `.jsonl`, wherever it lies."""

from __future__ import annotations

from clew.layouts.claude import LOG_SUFFIX
from clew.resume.answers import Answer, Resolved
from clew.resume.look import Look


def resolve(text: str, look: Look) -> Answer:
    """The session of that file. Raises `NotFound` when there is none."""
    if not text.endswith(LOG_SUFFIX):
        return None
    session = look.store.session(text)
    is_own = session.engine.url == look.store.engine.url
    return Resolved("session" if is_own else "file", session)
