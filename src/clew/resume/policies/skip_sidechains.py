"""Without sessions whose first row of a conversation belongs to a subagent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.resume.choosing import Asked, Contender
from clew.transcript.tree import CHAIN_TYPES


def skip_sidechains(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """By the rows themselves, where the client only looks at the text of the first 64 KiB."""
    return asked.unless(contenders, _against)


def _against(contender: Contender) -> str | None:
    first = next((row for row in contender.session.records() if row.type in CHAIN_TYPES), None)
    return "its first row is a subagent's" if first is not None and first.is_sidechain else None
