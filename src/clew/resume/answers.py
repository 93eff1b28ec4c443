"""What a resolver answers, and what comes of asking all of them.

A resolver answers with a session, says that several are meant, or declines with None. It never guesses. Where the text
is of its own form and nothing answers to it, it raises `NotFound`, so that no later one takes the text for another
thing; a text of its form that can name nothing is a `UsageError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from clew.session import Session

Ingress: TypeAlias = Callable[[str], str | None]
"""Where sessions at a URL come from: gives the id of the one that the URL names, or None for a URL that it does not
know. What is done with it is the caller's.
"""

CANDIDATES_MAX = 20
"""No more candidates than these are named."""


class Candidate(msgspec.Struct, frozen=True):
    """A session that may be meant: what to type to name it, and its title, which may hold any characters."""

    name: str
    title: str | None = None


class Unclear(msgspec.Struct, frozen=True):
    """Several sessions answer to the text: what they have in common, and what to do about it."""

    why: str
    hint: str
    candidates: tuple[Candidate, ...]


class Resolved(msgspec.Struct, frozen=True):
    """What a text names.

    session   a session of the store
    file      a session at a path that lies elsewhere
    remote    a session at a `url`, by the ingress that the caller gave; `session_id` is what it is called there
    picker    none for sure: `query` is what was asked, `candidates` are what it may mean, and `why` says what is wrong
    """

    kind: Literal["session", "file", "remote", "picker"]
    session: Session | None = None
    session_id: str | None = None
    url: str | None = None
    query: str | None = None
    candidates: tuple[Candidate, ...] = ()
    why: str = ""
    hint: str = ""
    is_ambiguous: bool = False


Answer: TypeAlias = Resolved | Unclear | None
