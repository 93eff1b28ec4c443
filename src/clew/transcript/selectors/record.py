"""`UUID`: the record with that uuid, or with the only one that begins so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Self

from clew.errors import Ambiguous, NotFound, UsageError
from clew.records.record import Record
from clew.transcript.points import CANDIDATES_MAX, FORMS, Point
from clew.transcript.prompts import is_prompt
from clew.transcript.tree import Tree

PREFIX_CHARACTERS_MIN = 6
"""A shorter beginning of a uuid is not looked up: it is more likely a typing error."""
_BLANK_OR_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")


class AtRecord(Point, frozen=True):
    """The record with this uuid, or the only one whose uuid begins so."""

    uuid: str

    @classmethod
    def parse(cls, value: str, text: str) -> Self:
        if not value or _BLANK_OR_CONTROL.search(value):
            raise UsageError(f"{text!r} is no point", hint=FORMS)
        return cls(value)

    def place(self, chain: Sequence[Record]) -> int:
        places = {record.uuid: place for place, record in enumerate(chain) if record.uuid}
        found = self.uuid if self.uuid in places else _one_of(places, self.uuid)
        if found is None:
            prompts = [record.uuid for record in chain if record.uuid and is_prompt(record)]
            raise NotFound(
                f"no record {self.uuid!r} in this session",
                hint="`clew tree SESSION` shows its branches, `clew show SESSION --json` the uuids of its messages",
                candidates=prompts[-CANDIDATES_MAX:],
            )
        return places[found]

    def elsewhere(self, tree: Tree, chain: Sequence[Record]) -> tuple[str, Point] | None:
        on_chain = {record.uuid for record in chain if record.uuid}
        if self.uuid in on_chain:
            return None
        if self.uuid in tree.records:
            return self.uuid, self
        if _beginning_with(on_chain, self.uuid):
            return None
        uuid = _one_of(tree.records, self.uuid)
        return (uuid, AtRecord(uuid)) if uuid else None


def _one_of(uuids: Iterable[str], beginning: str) -> str | None:
    """The only uuid that begins so, None when none does. Raises Ambiguous."""
    found = _beginning_with(uuids, beginning)
    if len(found) > 1:
        raise Ambiguous(
            f"{len(found)} records begin with {beginning!r}",
            hint="write more of the uuid",
            candidates=sorted(found)[:CANDIDATES_MAX],
        )
    return next(iter(found), None)


def _beginning_with(uuids: Iterable[str], beginning: str) -> Collection[str]:
    if len(beginning) < PREFIX_CHARACTERS_MIN:
        return ()
    return [uuid for uuid in uuids if uuid.startswith(beginning)]
