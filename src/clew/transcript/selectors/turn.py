"""`turn:N`: the end of a turn. Prompts of the chain count from 1; -1 is the last turn and keeps everything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

from clew.errors import NotFound, UsageError
from clew.records.record import Record
from clew.transcript.points import Point
from clew.transcript.prompts import is_prompt

_TURN = re.compile(r"[+-]?[0-9]{1,9}")


class Turn(Point, frozen=True):
    """The end of a turn: from 1 on, or from -1 backwards."""

    n: int

    @classmethod
    def parse(cls, value: str, text: str) -> Self:
        if not _TURN.fullmatch(value) or int(value) == 0:
            raise UsageError(f"{text!r} names no turn", hint="turns count from turn:1; turn:-1 is the last one")
        return cls(int(value))

    def place(self, chain: Sequence[Record]) -> int:
        if self.n == 0:
            raise UsageError("there is no turn 0", hint="turns count from 1; -1 is the last one")
        starts = [place for place, record in enumerate(chain) if is_prompt(record)]
        number = self.n if self.n > 0 else len(starts) + self.n + 1
        if not 1 <= number <= len(starts):
            count = len(starts)
            raise NotFound(
                f"no turn {self.n}: this conversation has {count} turn{'' if count == 1 else 's'}",
                hint=f"turn:1 to turn:{count} exist" if count else "name a record by its uuid",
            )
        return (starts[number] if number < len(starts) else len(chain)) - 1
