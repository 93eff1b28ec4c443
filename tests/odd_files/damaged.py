"""Sessions out of a seed as the client writes them, with attachments, parallel calls, branches and compactions, and
then damaged in up to three places.

The same seed gives the same session for ever.
"""

from __future__ import annotations

import random
from typing import Any

from odd_files.rows import (
    LOST,
    Block,
    Piece,
    Row,
    answer,
    api_error,
    attachment,
    boundary,
    call,
    exact,
    head,
    image,
    kept,
    line,
    local_command,
    result,
    row,
    segment,
    source,
    summary,
    system,
    text,
    thought,
    user,
    uuid,
)

TURNS_MAX = 5
DAMAGES_MAX = 3
INTERRUPTED = "[Request interrupted by user for tool use]"
SHOWN: Block = {"rendered": [{"content": "REND"}], "renderedRole": "user"}


def session(seed: int) -> bytes:
    """A session file of a few turns, perhaps damaged."""
    rng = random.Random(seed)
    pieces = _Writer(rng).session()
    for _ in range(rng.randint(0, DAMAGES_MAX)):
        rng.choice(_DAMAGES)(rng, pieces)
    lines = [piece if isinstance(piece, bytes) else line(piece) for piece in pieces]
    return _as_file(rng, lines)


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.pieces: list[Piece] = []
        self.count = 0
        self.calls = 0
        self.seconds = 0.0
        self.last: int | None = None

    def session(self) -> list[Piece]:
        for turn in range(self.rng.randint(1, TURNS_MAX)):
            if turn and self.rng.random() < 0.12:
                self._compaction()
            if turn > 1 and self.rng.random() < 0.2:
                self.last = self.rng.randint(1, self.count)
            self._turn()
            if self.last is not None and self.rng.random() < 0.6:
                self.pieces.append(head(self.last))
        if self.rng.random() < 0.25:
            leaf = self.rng.randint(1, self.count)
            self.pieces.append(self.rng.choice([head, exact])(leaf))
        if self.rng.random() < 0.3:
            self.pieces.append({"type": "mode", "mode": "normal"})
        return self.pieces

    def _next(self) -> int:
        self.count += 1
        self.seconds += self.rng.choice((0.001, 0.1, 1, 1, 2, 6))
        return self.count

    def _add(self, number: int, built: Row) -> int:
        built["timestamp"] = row(number, None, "x", at=self.seconds)["timestamp"]
        self.pieces.append(built)
        self.last = number
        return number

    def _turn(self) -> None:
        number = self._next()
        content: Any = self.rng.choice([f"U{number}", [text(f"U{number}")], [image(), text(f"U{number}")]])
        self._add(number, user(number, self.last, content))
        self._beside_prompt()
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            self._calls()
        if self.rng.random() < 0.1:
            return
        if self.rng.random() < 0.08:
            number = self._next()
            self._add(number, api_error(number, self.last))
            return
        of = f"m{self.count + 1}"
        if self.rng.random() < 0.4:
            number = self._next()
            self._add(number, answer(number, self.last, [thought()], of=of))
        number = self._next()
        self._add(number, answer(number, self.last, f"A{number}", of=of))
        if self.rng.random() < 0.3:
            self._of_the_client()

    def _beside_prompt(self) -> None:
        for _ in range(self.rng.choice((0, 1, 2))):
            number = self._next()
            fields = SHOWN if self.rng.random() < 0.3 else {}
            self._add(number, attachment(number, self.last, **fields))

    def _of_the_client(self) -> None:
        number = self._next()
        kind = self.rng.random()
        if kind < 0.3:
            self._add(number, local_command(number, self.last, f"LC{number}"))
        elif kind < 0.6:
            self._add(number, system(number, self.last, "turn_duration"))
        elif kind < 0.8:
            self._add(number, attachment(number, self.last, **SHOWN))
        else:
            self._add(number, user(number, self.last, f"M{number}", isMeta=True))

    def _calls(self) -> None:
        """An answer with one to three calls, its rows in a chain, and their results."""
        of = f"m{self.count + 1}"
        asked: list[tuple[int, int]] = []
        if self.rng.random() < 0.3:
            number = self._next()
            content = [thought()] if self.rng.random() < 0.5 else [text(f"A{number}")]
            self._add(number, answer(number, self.last, content, of=of))
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            number = self._next()
            self.calls += 1
            self._add(number, answer(number, self.last, [call(self.calls)], of=of))
            asked.append((self.calls, number))
        if self.rng.random() < 0.5:
            self.rng.shuffle(asked)
        if self.rng.random() < 0.1:
            asked.pop()
        for one, parent in asked:
            number = self._next()
            content = [result(one, f"r{number}")]
            if self.rng.random() < 0.1:
                content.append(text(INTERRUPTED))
            self._add(number, user(number, parent, content, **source(parent)))
            if self.rng.random() < 0.2:
                self._of_the_client()

    def _compaction(self) -> None:
        number = self._next()
        old = list(range(1, number))
        note = None
        if self.rng.random() < 0.6:
            one = self.rng.choice(old)
            note = self.rng.choice([segment(one, old[-1], anchor=number + 1), kept(*old[-2:], anchor=number + 1)])
        parent = None if self.rng.random() < 0.8 else self.last
        self._add(number, boundary(number, parent, note, logicalParentUuid=uuid(old[-1])))
        number = self._next()
        self._add(number, summary(number, number - 1))


def _place(rng: random.Random, pieces: list[Piece]) -> int:
    return rng.randrange(len(pieces))


def _rows(pieces: list[Piece]) -> list[Row]:
    return [piece for piece in pieces if isinstance(piece, dict) and "uuid" in piece]


def _drop(rng: random.Random, pieces: list[Piece]) -> None:
    if len(pieces) > 1:
        del pieces[_place(rng, pieces)]


def _repeat(rng: random.Random, pieces: list[Piece]) -> None:
    pieces.insert(_place(rng, pieces), pieces[_place(rng, pieces)])


def _swap(rng: random.Random, pieces: list[Piece]) -> None:
    one, other = _place(rng, pieces), _place(rng, pieces)
    pieces[one], pieces[other] = pieces[other], pieces[one]


def _change(rng: random.Random, pieces: list[Piece]) -> None:
    """Gives one field of one row another value."""
    rows = _rows(pieces)
    if not rows:
        return
    changed, other = rng.choice(rows), rng.choice(rows)
    name, value = rng.choice([
        ("parentUuid", other["uuid"]), ("parentUuid", None), ("parentUuid", uuid(LOST)), ("parentUuid", ""),
        ("timestamp", other["timestamp"]), ("timestamp", "zz"), ("isSidechain", True), ("isMeta", True),
        ("message", None), ("message", {"role": "user", "content": None}), ("message", {"content": "W"}),
        ("message", {"role": "user", "content": []}), ("message", {"role": "user", "content": [text(" ")]}),
        ("type", "progress"), ("type", "zzz"), ("uuid", other["uuid"]), ("uuid", uuid(77)),
    ])  # fmt: skip
    pieces[pieces.index(changed)] = {**changed, name: value}


def _torn(rng: random.Random, pieces: list[Piece]) -> None:
    place = _place(rng, pieces)
    piece = pieces[place]
    whole = piece if isinstance(piece, bytes) else line(piece)
    pieces[place] = whole[: rng.randrange(1, max(len(whole), 2))]


def _glued(rng: random.Random, pieces: list[Piece]) -> None:
    """Puts two lines on one, the first of them perhaps torn."""
    place = _place(rng, pieces)
    if place + 1 < len(pieces):
        one, other = (piece if isinstance(piece, bytes) else line(piece) for piece in pieces[place : place + 2])
        pieces[place : place + 2] = [(one if rng.random() < 0.5 else one[: len(one) // 2]) + other]


def _noise(rng: random.Random, pieces: list[Piece]) -> None:
    pieces.insert(_place(rng, pieces), rng.choice([b"", b"garbage", b"[1,2]", b"{}", b"null", b"  ", b"{", b'{"a":1}']))


_DAMAGES = (_drop, _repeat, _swap, _change, _change, _change, _torn, _glued, _noise)


def _as_file(rng: random.Random, lines: list[bytes]) -> bytes:
    end = b"\r\n" if rng.random() < 0.05 else b"\n"
    start = b"\xef\xbb\xbf" if rng.random() < 0.05 else b""
    return start + end.join(lines) + (b"" if rng.random() < 0.1 else end)
