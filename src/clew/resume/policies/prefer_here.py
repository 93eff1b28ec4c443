"""First those that were last at work in the present directory, then those of its project and its worktrees.

A project's folder may hold sessions of several directories, since the client's rule for its name is lossy; and with
`--all` those of every project are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.errors import ClewError
from clew.resume.choosing import Asked, Contender


def prefer_here(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """Without a present directory the order stays. The last row of a conversation says where it was at work."""
    if asked.cwd is None:
        yield from contenders
        return
    own = asked.look.store.own_projects(asked.cwd)
    beside = [key for key in asked.look.store.projects_of(asked.cwd) if key not in own]
    everybody = [*contenders]
    later = []
    for each in (each for each in everybody if each.stat.key.project in own):
        if _cwd(each) == asked.cwd:
            each.reasons.append("it was last at work in this directory")
            yield each
        else:
            later.append(each)
    for each in later:
        each.reasons.append("it is of this project")
        yield each
    for each in (each for each in everybody if each.stat.key.project in beside):
        each.reasons.append("it is of a worktree of this repository")
        yield each
    yield from (each for each in everybody if each.stat.key.project not in {*own, *beside})


def _cwd(contender: Contender) -> str | None:
    try:
        row = contender.last_row()
    except ClewError:
        return None  # Whoever comes later says so.
    cwd = None if row is None else row.body().get("cwd")
    return cwd if isinstance(cwd, str) else None
