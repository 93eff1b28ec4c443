"""Explicit head records wherever a person may truncate, what is said there afterwards, and the way back."""

from __future__ import annotations

from odd_files.rows import (
    TALK,
    Piece,
    answer,
    attachment,
    boundary,
    call,
    encoded,
    end,
    exact,
    head,
    kept,
    result,
    summary,
    system,
    text,
    thought,
    user,
)

SCENES: dict[str, tuple[list[Piece], dict[str, int]]] = {
    "parallel calls": (
        [
            user(1), answer(2, 1, [thought(), text("T2")], of="m"), answer(3, 2, [call(1)], of="m"),
            answer(4, 3, [call(2)], of="m"), user(5, 4, [result(2)]), user(6, 3, [result(1)]), attachment(7, 6),
            answer(8, 7), *end(9, 8),
        ],
        {"prompt": 1, "text before the calls": 2, "first call": 3, "second call": 4, "second result": 5,
         "first result": 6, "attachment on a result": 7, "answer to the results": 8},
    ),
    "a call after a call": (
        [
            user(1), attachment(2, 1), answer(3, 2, [call(1)]), user(4, 3, [result(1)]), answer(5, 4, [call(2)]),
            user(6, 5, [result(2)]), answer(7, 6), system(8, 7, "turn_duration"), *end(9, 8),
        ],
        {"prompt": 1, "attachment": 2, "first call": 3, "first result": 4, "second call": 5, "answer": 7,
         "system row": 8},
    ),
    "a compaction that kept rows": (
        [*TALK, boundary(5, None, kept(3, 4, anchor=6)), summary(6, 5), answer(7, 6), *end(8, 7)],
        {"row before it": 2, "first kept row": 3, "last kept row": 4, "summary": 6, "answer to it": 7,
         "last prompt": 8},
    ),
    "a compaction": (
        [*TALK, boundary(5), summary(6, 5), answer(7, 6), *end(8, 7)],
        {"summary": 6, "answer to it": 7, "last prompt": 8},
    ),
}  # fmt: skip

END = {"parallel calls": 10, "a call after a call": 10, "a compaction that kept rows": 9, "a compaction": 9}
"""The last row of each."""


def _cases() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for scene, (rows, parts) in SCENES.items():
        for part, leaf in parts.items():
            name = f"{scene}, truncated at the {part}"
            new = [user(20, leaf), answer(21, 20)]
            found[name] = encoded(*rows, exact(leaf))
            found[f"{name}, and a turn there"] = encoded(*rows, exact(leaf), *new)
            found[f"{name}, and a turn there with its head record"] = encoded(*rows, exact(leaf), *new, head(21))
            found[f"{name}, a turn there, and back"] = encoded(*rows, exact(leaf), *new, head(21), exact(END[scene]))
    return found


CASES = _cases()
