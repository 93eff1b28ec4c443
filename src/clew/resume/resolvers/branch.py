"""`branch:NAME`: the session that last worked on this branch."""

from __future__ import annotations

from clew.errors import ClewError, NotFound, UsageError
from clew.resume.answers import Answer
from clew.resume.look import Look

PREFIX = "branch:"


def resolve(text: str, look: Look) -> Answer:
    """Whole names only, as git writes them. Raises `NotFound`, with the branches there are, where none has it."""
    if not text.startswith(PREFIX):
        return None
    wanted = text.removeprefix(PREFIX).strip()
    if not wanted:
        raise UsageError("branch: names no branch", hint="write branch:NAME; `clew ls` shows the branches")
    branches = []
    for stat in look.logs():
        try:
            branches.append((stat, look.branch(stat)))
        except ClewError as error:
            look.store.note_problem(look.store.engine.where(stat.key), error.message)
    answer = look.answer([stat for stat, name in branches if name == wanted], "sessions are on this branch")
    if answer is None:
        raise NotFound(
            f"no session here is on the branch {wanted[:400]!r}",
            hint=look.hint,
            candidates=[f"branch:{name}" for name in dict.fromkeys(name for _, name in branches if name)][:20],
        )
    return answer
