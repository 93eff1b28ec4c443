"""Without sessions that are archived. The client goes on with them all the same, and takes them out of the archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.marks import beside
from clew.resume.choosing import Asked, Contender


def skip_archived(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """By the sidecar in which the client notes it."""
    return asked.unless(contenders, _against)


def _against(contender: Contender) -> str | None:
    said = beside(contender.look.store.engine, contender.stat.key, is_titled=True)
    return "it is archived" if said.archived else None
