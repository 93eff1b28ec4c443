"""Without sessions in which nobody said anything: empty ones, and those of metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.resume.choosing import Asked, Contender


def skip_empty(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """What counts is the conversation that the client would go on with; one that was cleared is empty."""
    return asked.unless(contenders, lambda each: None if each.session.messages() else "it has no messages")
