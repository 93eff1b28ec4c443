"""A title without any mark: the way the client's own `--resume` takes it."""

from __future__ import annotations

from clew.resume.answers import Answer
from clew.resume.look import Look, folded
from clew.resume.resolvers.title import titled


def resolve(text: str, look: Look) -> Answer:
    """The session of exactly that title; declines for any other text."""
    return titled(folded(text), look)[0]
