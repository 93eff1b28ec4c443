"""Sessions out of a seed: turns with calls, parallel answers, branches and compactions, some of it a little odd.

The same seed gives the same session for ever. How odd a session is, from not at all to one row in seven, is drawn too.
"""

from __future__ import annotations

import random
from typing import Any

from odd_files.rows import (
    ABSENT,
    LOST,
    Block,
    Row,
    answer,
    attachment,
    boundary,
    call,
    encoded,
    head,
    kept,
    local_command,
    result,
    row,
    segment,
    source,
    system,
    text,
    thought,
    user,
)

ODDNESS = (0, 0.05, 0.15)
STEPS_S = (0.001, 0.5, 1, 1, 1, 2, 6)
STEPS_BACK_S = (0.5, 3, 10)
"""Around the five seconds within which a lost parent is repaired."""
OUTPUT = "<local-command-stdout>z</local-command-stdout>"
COMMAND = "<command-name>/z</command-name>"


def session(seed: int) -> bytes:
    """A session file of 3 to 14 rows and some head records."""
    return encoded(*_Writer(random.Random(seed)).rows())


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.size = rng.randint(3, 14)
        self.odd = rng.choice(ODDNESS)
        self.seconds = 0.0
        self.count = 0
        self.written: list[Row] = []
        self.numbers: list[int] = []
        self.answers: list[str] = []
        self.calls: list[tuple[int, int]] = []
        """Each call with the row it is in."""
        self.previous: int | None = None
        self.spoke = "nobody"
        """Who wrote the last row: "user", "model", or "call" when a result is due."""

    def rows(self) -> list[Row]:
        for _ in range(self.size):
            self._row()
            if self.rng.random() < 0.12:
                self._head()
        if self.rng.random() < self.odd * 0.5:
            places = range(len(self.written))
            one, other = self.rng.choice(places), self.rng.choice(places)
            self.written[one], self.written[other] = self.written[other], self.written[one]
        return self.written

    def _is_odd(self, share: float = 1.0) -> bool:
        return self.rng.random() < self.odd * share

    def _row(self) -> None:
        step = self.rng.choice(STEPS_S) if self.rng.random() < 0.9 else -self.rng.choice(STEPS_BACK_S)
        self.seconds = max(self.seconds + step, 0)
        self.count += 1
        number, parent = self.count, self.previous
        if self.numbers and self._is_odd():
            parent = self.rng.choice([None, LOST, self.rng.choice(self.numbers), self.rng.choice(self.numbers), number])
        fields: dict[str, Any] = {"at": self.seconds}
        if self._is_odd(0.3):
            fields["isSidechain"] = True
        if self._is_odd(0.2):
            fields["timestamp"] = self.rng.choice([ABSENT, None, "zz"])
        if self.numbers and self._is_odd(0.3):
            number = self.rng.choice(self.numbers)
        self.written.append(self._kind(number, parent, fields))
        if number not in self.numbers:
            self.numbers.append(number)
        if self.rng.random() < 0.93:
            self.previous = number

    def _kind(self, number: int, parent: int | None, fields: dict[str, Any]) -> Row:
        kind = self.rng.random()
        if self.spoke == "call" and self.rng.random() < 0.8:
            return self._results(number, parent, fields)
        if kind < 0.15 or (self.spoke in ("nobody", "model") and kind < 0.75):
            return self._prompt(number, parent, fields)
        if kind < 0.92:
            return self._answer(number, parent, fields)
        if kind < 0.95:
            return attachment(number, parent, **fields)
        if kind < 0.97:
            if self.rng.random() < 0.25:
                return local_command(number, parent, f"SYS{number}", **fields)
            return system(number, parent, self.rng.choice(["informational", "api_error", "turn_duration"]), **fields)
        if kind < 0.98:
            return row(number, parent, "progress", at=self.seconds)
        return self._boundary(number, parent, fields)

    def _results(self, number: int, parent: int | None, fields: dict[str, Any]) -> Row:
        asked, asked_in = self.rng.choice(self.calls[-3:])
        if self.rng.random() < 0.7:
            parent = asked_in
        if self.rng.random() < 0.6:
            fields |= source(asked_in)
        content: list[Block] = [result(asked, f"r{number}")]
        if self._is_odd():
            content.append(text(f"T{number}"))
        if self._is_odd():
            content.insert(0, text(f"T{number}"))
        if self._is_odd():
            content.append(result(self.rng.randint(1, 12), "x"))
        self.spoke = "call" if self.rng.random() < 0.4 else "user"
        return user(number, parent, content, **fields)

    def _prompt(self, number: int, parent: int | None, fields: dict[str, Any]) -> Row:
        self.spoke = "user"
        plain = f"U{number}"
        if self._is_odd(0.2):
            return user(number, parent, "<local-command-caveat>q</local-command-caveat>", isMeta=True, **fields)
        if self._is_odd(0.3):
            fields["isMeta"] = True
        if self._is_odd():
            odd: list[Any] = ["", " ", [text(plain), text(f"V{number}")], [text("")], [], None, OUTPUT, COMMAND]
            return user(number, parent, self.rng.choice(odd), **fields)
        return user(number, parent, plain, **fields)

    def _answer(self, number: int, parent: int | None, fields: dict[str, Any]) -> Row:
        goes_on = self.answers and self.rng.random() < 0.45
        of = self.rng.choice(self.answers[-2:]) if goes_on else f"m{number}"
        self.answers.append(of)
        kind = self.rng.random()
        if kind < 0.4:
            content, self.spoke = self._calls(number), "call"
        elif kind < 0.55:
            content, self.spoke = [thought()], "model"
        else:
            content, self.spoke = [text(f"A{number}")], "model"
            if self._is_odd():
                content = self.rng.choice([[text(" ")], [text("")], [], [thought(), *content], [*content, thought()]])
        written = answer(number, parent, content, of=of, **fields)
        if self._is_odd(0.2):
            written["isApiErrorMessage"] = True
            if self.rng.random() < 0.7:
                written["message"]["model"] = "<synthetic>"
        return written

    def _calls(self, number: int) -> list[Block]:
        content = [text(f"A{number}")] if self.rng.random() < 0.3 else []
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            asked = self.rng.randint(1, 6) if self._is_odd(0.3) else len(self.calls) + 1
            content.append(call(asked))
            self.calls.append((asked, number))
        if self._is_odd():
            content.append(text(f"B{number}"))
        return content

    def _boundary(self, number: int, parent: int | None, fields: dict[str, Any]) -> Row:
        self.spoke = "nobody"
        note = None
        if self.numbers and self.rng.random() < 0.7:
            one, other, third = (self.rng.choice(self.numbers) for _ in range(3))
            if self.rng.random() < 0.6:
                note = segment(one, other, anchor=number + 1)
            else:
                note = kept(*sorted({one, other, third}), anchor=number + 1)
        return boundary(number, None if self.rng.random() < 0.6 else parent, note, **fields)

    def _head(self) -> None:
        last = self.numbers[-1]
        leaf = self.rng.choice(
            [last, last, last, self.rng.choice(self.numbers), self.rng.choice(self.numbers), LOST, None]
        )
        fields = {"explicit": True} if self.rng.random() < 0.3 else {}
        self.written.append(head(leaf, **fields))
