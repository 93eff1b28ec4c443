"""`label:NAME`, `owner:NAME` and `workspace:NAME`: the session that clew's own marks say this of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clew.errors import NotFound, UsageError
from clew.resume.answers import Answer
from clew.resume.look import MARKS, Look
from clew.transcript.marks import Marks

NAMES_MAX = 20


def label(text: str, look: Look) -> Answer:
    """A session may have several labels."""
    return _marked("label", text, look, lambda marks: marks.labels)


def owner(text: str, look: Look) -> Answer:
    return _marked("owner", text, look, lambda marks: [marks.owner] if marks.owner else [])


def workspace(text: str, look: Look) -> Answer:
    return _marked("workspace", text, look, lambda marks: [marks.workspace] if marks.workspace else [])


def _marked(kind: str, text: str, look: Look, names: Callable[[Marks], Sequence[str]]) -> Answer:
    """Whole names only, as they are written. Raises `NotFound`, with the names there are, where no session has it."""
    if not text.startswith(f"{kind}:"):
        return None
    wanted = text.removeprefix(f"{kind}:").strip()
    if not wanted:
        raise UsageError(f"{kind}: names no {kind}", hint=f"write {kind}:NAME")
    said = [(stat, names(digest.marks)) for stat, digest in look.digests(MARKS)]
    answer = look.answer([stat for stat, has in said if wanted in has], f"sessions have this {kind}")
    if answer is None:
        there = dict.fromkeys(f"{kind}:{name}" for _, has in said for name in has)
        why = f"no session here has the {kind} {wanted[:400]!r}"
        raise NotFound(why, hint=look.hint, candidates=[*there][:NAMES_MAX])
    return answer
