"""The words for the newest session of the scope."""

from __future__ import annotations

from clew.resume.answers import Answer, Resolved
from clew.resume.look import Look

KEYWORDS = frozenset({"latest", "recent", "last"})


def resolve(text: str, look: Look) -> Answer:
    """The session that was changed last. Raises `NotFound` where the scope has none."""
    return Resolved("session", look.store.latest(look.scope)) if text in KEYWORDS else None
