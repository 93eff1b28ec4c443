"""`msg:MESSAGE_ID`: the last record of that answer, so that all rows of the answer are kept.

The results of its calls come after the point unless they stand between its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from clew.errors import NotFound, UsageError
from clew.records.record import Record
from clew.transcript.points import CANDIDATES_MAX, Point
from clew.transcript.tree import Tree


class AtMessage(Point, frozen=True):
    """The last record of the answer with this API message id."""

    id: str

    @classmethod
    def parse(cls, value: str, text: str) -> Self:
        if not value:
            raise UsageError(f"{text!r} names no message", hint="write msg:ID, the message.id in the rows of an answer")
        return cls(value)

    def place(self, chain: Sequence[Record]) -> int:
        for place in range(len(chain) - 1, -1, -1):
            if _message_id(chain[place]) == self.id:
                return place
        ids = dict.fromkeys(found for record in chain if (found := _message_id(record)))
        raise NotFound(
            f"no answer with the message id {self.id!r} in this session",
            hint="a message id stands in `message.id` of the rows of an answer",
            candidates=list(ids)[-CANDIDATES_MAX:],
        )

    def elsewhere(self, tree: Tree, chain: Sequence[Record]) -> tuple[str, Point] | None:
        if any(_message_id(record) == self.id for record in chain):
            return None
        rows = tree.siblings.get(self.id)
        return (rows[-1], self) if rows else None


def _message_id(record: Record) -> str | None:
    return record.message.id if record.type == "assistant" and record.message else None
