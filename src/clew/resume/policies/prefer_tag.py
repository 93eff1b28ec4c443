"""First those with a tag, then the others: `prefer-tag:active`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.errors import UsageError
from clew.resume.choosing import Asked, Contender
from clew.resume.look import TAGS, folded


def prefer_tag(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """The last tag of the whole log counts. Raises `UsageError` where no tag is named."""
    wanted = folded(asked.argument)
    if not wanted:
        raise UsageError("prefer-tag names no tag", hint="write prefer-tag:NAME")
    return _tagged_first([*contenders], asked, wanted)


def _tagged_first(contenders: list[Contender], asked: Asked, wanted: str) -> Iterator[Contender]:
    tags = asked.look.digests(TAGS, [each.stat for each in contenders])
    tagged = {stat.key for stat, digest in tags if digest.tag and folded(digest.tag) == wanted}
    for each in contenders:
        if each.stat.key in tagged:
            each.reasons.append(f"it has the tag {asked.argument}")
            yield each
    yield from (each for each in contenders if each.stat.key not in tagged)
