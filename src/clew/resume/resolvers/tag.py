"""`tag:NAME`: the session that has this tag now."""

from __future__ import annotations

from clew.errors import NotFound, UsageError
from clew.resume.answers import Answer
from clew.resume.look import TAGS, Look, folded

PREFIX = "tag:"


def resolve(text: str, look: Look) -> Answer:
    """Raises `NotFound`, with the tags there are, where no session has this one."""
    if not text.startswith(PREFIX):
        return None
    wanted = folded(text.removeprefix(PREFIX))
    if not wanted:
        raise UsageError("tag: names no tag", hint="write tag:NAME; `clew ls --json` shows the tags")
    tags = [(stat, digest.tag) for stat, digest in look.digests(TAGS) if digest.tag]
    answer = look.answer([stat for stat, tag in tags if folded(tag) == wanted], "sessions have this tag")
    if answer is None:
        raise NotFound(
            f"no session here has the tag {wanted[:400]!r}",
            hint=look.hint,
            candidates=[f"tag:{tag}" for tag in dict.fromkeys(tag for _, tag in tags)][:20],
        )
    return answer
