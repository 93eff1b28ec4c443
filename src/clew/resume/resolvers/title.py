"""`title:TEXT`: the session of that title, as the client compares titles."""

from __future__ import annotations

from clew.errors import NotFound, UsageError
from clew.resume.answers import Answer, Candidate
from clew.resume.look import Look, folded

PREFIX = "title:"


def resolve(text: str, look: Look) -> Answer:
    """Whole titles only, whatever their case. Raises `NotFound`, with the titles that hold the text, for no other."""
    if not text.startswith(PREFIX):
        return None
    wanted = folded(text.removeprefix(PREFIX))
    if not wanted:
        raise UsageError("title: names no title", hint="write title:TEXT; `clew ls` shows the titles")
    answer, near = titled(wanted, look)
    if answer is None:
        raise NotFound(
            f"no session here has the title {text.removeprefix(PREFIX)[:400]!r}",
            hint=look.hint,
            candidates=[each.name for each in near],
        )
    return answer


def titled(wanted: str, look: Look) -> tuple[Answer, tuple[Candidate, ...]]:
    """The session of that title, and those whose titles hold it where none is just that."""
    titles = [(stat, folded(title)) for stat, title in look.titles() if title]
    exact = look.answer([stat for stat, title in titles if title == wanted], "sessions have this title")
    if exact is not None:
        return exact, ()
    return None, look.candidates(stat for stat, title in titles if wanted in title)
