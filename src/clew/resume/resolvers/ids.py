"""A full id, or the beginning of one, over all projects: what is unique everywhere needs no scope."""

from __future__ import annotations

from clew.errors import Ambiguous, NotFound
from clew.layouts.claude import is_safe
from clew.resume.answers import Answer, Candidate, Resolved, Unclear
from clew.resume.look import Look


def resolve(text: str, look: Look) -> Answer:
    """The session whose id that is, or the only one whose id begins so."""
    if not is_safe(text):
        return None
    try:
        return Resolved("session", look.store.session(text))
    except Ambiguous as found:
        return Unclear(found.message, found.hint, tuple(map(Candidate, found.candidates)))
    except NotFound:
        return None
