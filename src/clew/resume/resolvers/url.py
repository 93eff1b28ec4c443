"""A URL: a session that is somewhere else. Only a caller who passes an ingress has sessions there."""

from __future__ import annotations

import re

from clew.errors import UsageError
from clew.resume.answers import Answer, Resolved
from clew.resume.look import Look

_URL = re.compile(r"(?:https?|wss?)://", re.IGNORECASE)


def resolve(text: str, look: Look) -> Answer:
    """The remote session, by the ingress. Raises `UsageError`, naming the URL, where there is none or it declines."""
    if not _URL.match(text):
        return None
    session = None if look.ingress is None else look.ingress(text)
    if session is None:
        why = "nothing here reads sessions from the network" if look.ingress is None else "the ingress does not know it"
        raise UsageError(f"{text[:400]!r} is a URL, and {why}", hint="save the session as a .jsonl file and name that")
    return Resolved("remote", url=text, session_id=session)
