"""`project:DIR#WHAT`: any other way to say it, in the project of that directory."""

from __future__ import annotations

import os

from clew.errors import NotFound, UsageError
from clew.resume.answers import Answer, Resolved, Unclear
from clew.resume.look import Look

PREFIX = "project:"


def resolve(text: str, look: Look) -> Answer:
    """What comes after the last `#`, in the project before it: an id or its beginning, `latest`, a title, `tag:…`."""
    if not text.startswith(PREFIX):
        return None
    directory, mark, what = text.removeprefix(PREFIX).rpartition("#")
    if not mark or not what or not _is_path(directory):
        raise UsageError(f"{text[:400]!r} names no session of a project", hint="write project:DIR#ID, or DIR#latest")
    there = Look(look.store, directory, ingress=look.ingress)
    stats = [stat for stat in there.logs() if stat.key.session.lower().startswith(what.lower())]
    stats = [stat for stat in stats if stat.key.session == what] or stats
    answer = there.answer(stats, "ids of this project begin so")
    return answer or _named(what, there, text)


def _is_path(directory: str) -> bool:
    """Whether a directory can have that name at all."""
    try:
        return bool(directory) and b"\0" not in os.fsencode(directory)
    except UnicodeEncodeError:
        return False


def _named(what: str, there: Look, text: str) -> Resolved | Unclear:
    from clew.resume.resolving import asked

    # An id was looked for already, and one of another project is not meant.
    answer = asked(what, there, without=("id", "path", "url"))
    if answer is None:
        raise NotFound(
            f"no session of that project answers to {what[:400]!r}",
            hint=f"`clew ls --project DIR` lists them; {text[:40]!r} was read as DIR#WHAT",
            candidates=[each.name for each in there.candidates(there.logs())],
        )
    return answer
