"""Answers that were written as several rows, calls made at the same time, and what of them stands beside the chain."""

from __future__ import annotations

from odd_files.rows import (
    LOST,
    Piece,
    answer,
    attachment,
    call,
    end,
    exact,
    files,
    head,
    local_command,
    result,
    source,
    text,
    thought,
    user,
)

FIRST: list[Piece] = [user(1), answer(2, 1, [call(1)], of="m")]
"""A prompt and the first call of an answer."""
BOTH: list[Piece] = [*FIRST, answer(3, 2, [call(2)], of="m")]
"""A prompt and two rows of one answer, each with a call."""
THREE: list[Piece] = [*BOTH, answer(7, 3, [call(3)], of="m")]
ONE_CALL: list[Piece] = [user(1), answer(2, 1, [call(1)])]
TWO_CALLS: list[Piece] = [user(1), answer(2, 1, [call(1), call(2)])]
"""Two calls in one row."""
SAID: list[Piece] = [user(1), answer(2, 1, [text("X")], of="m")]
ON, OFF = result(1, "ON"), result(1, "OFF")


def part(number: int, parent: int, at: float | None = None) -> Piece:
    """One more row of the answer "m"."""
    return answer(number, parent, [text(f"X{number}")], of="m", at=at)


def first(number: int, parent: int, at: float | None = None) -> Piece:
    return user(number, parent, [result(1)], at=at, **source(2))


def second(number: int, parent: int, at: float | None = None) -> Piece:
    return user(number, parent, [result(2)], at=at, **source(3))


def third(number: int, parent: int, at: float | None = None) -> Piece:
    return user(number, parent, [result(3)], at=at, **source(7))


def note(number: int, parent: int) -> Piece:
    """What the client itself wrote to the model."""
    return user(number, parent, f"M{number}", isMeta=True)


PARALLEL = files({
    "parallel calls, the second result first": [*BOTH, second(4, 3), first(5, 2), answer(6, 5)],
    "parallel calls, the first result first": [*BOTH, first(5, 2, 4), second(4, 3, 5), answer(6, 4)],
    "three parallel calls": [*THREE, third(8, 7, 8), second(4, 3, 9), first(5, 2, 10), answer(6, 5, at=11)],
    "three parallel calls, times in another order": [
        *THREE, third(8, 7, 9), second(4, 3, 8), first(5, 2, 10), answer(6, 5, at=11)],
    "three parallel calls, one result after the answer": [
        *THREE, second(4, 3, 8), third(8, 7, 9), answer(6, 8, at=11), first(5, 2, 8.5), head(6)],
    "three parallel calls, two results beside the chain": [
        *THREE, first(5, 2, 8.5), third(8, 7, 9), second(4, 3, 8), answer(6, 8, at=11), head(6)],
    "parallel calls whose results name no source": [
        *BOTH, user(4, 3, [result(2)]), user(5, 2, [result(1)]), answer(6, 5)],
    "parallel calls, a result hangs elsewhere and names its source": [*BOTH, second(4, 1), first(5, 2), answer(6, 5)],
    "parallel calls, a result has lost its parent and names its source": [
        *BOTH, second(4, LOST), first(5, 2), answer(6, 5)],
    "parallel calls, a result beside the chain has an attachment": [
        *BOTH, second(4, 3), attachment(10, 4), first(5, 2), answer(6, 5)],
    "parallel calls, a note beside the chain": [*BOTH, first(4, 2), second(5, 3), note(6, 4), answer(7, 5)],
    "parallel calls, a note beside the chain and an answer below it": [
        *BOTH, first(4, 2), second(5, 3), note(6, 4), answer(8, 6), answer(7, 5)],
    "parallel calls, a note beside the chain, a second one and a prompt below it": [
        *BOTH, first(4, 2), second(5, 3), note(6, 4), note(8, 6), user(9, 6), note(10, 4), answer(7, 5), exact(7)],
    "parallel calls, a note on the chain and one beside it": [
        *BOTH, first(4, 2), second(5, 3), note(6, 5), note(8, 4), answer(7, 6)],
    "a head record on a call whose result has a note, and an answer below it": [
        *ONE_CALL, user(3, 2, [result(1)]), note(4, 3), answer(5, 4), exact(2)],
    "parallel calls, all in one line": [*BOTH, user(4, 3, [result(1)]), user(5, 4, [result(2)]), answer(6, 5)],
    "parallel calls, all in one line, results the other way": [
        *BOTH, user(4, 3, [result(2)]), user(5, 4, [result(1)]), answer(6, 5)],
    "parallel calls, one result after the answer": [*BOTH, second(4, 3), answer(6, 4), first(5, 2, 4.5), head(6)],
    "parallel calls, one result after the answer, later by time": [
        *BOTH, second(4, 3), answer(6, 4), first(5, 2, 9), head(6)],
    "calls of two answers, results beside each other": [
        *ONE_CALL, answer(3, 2, [call(2)]), second(4, 3), first(5, 2), answer(6, 5)],
    "calls of two answers, all in one line": [
        *ONE_CALL, answer(3, 2, [call(2)]), user(4, 3, [result(1)]), user(5, 4, [result(2)]), answer(6, 5)],
    "calls of two answers, each with its result": [
        *ONE_CALL, user(3, 2, [result(1)]), answer(4, 3, [call(2)]), user(5, 4, [result(2)]), answer(6, 5)],
})  # fmt: skip

JOINED = files({
    "a call and then a text in one answer": [*FIRST, answer(3, 2, [text("T")], of="m"), first(4, 3), answer(5, 4)],
    "a text, a call and a text in one answer": [
        *SAID, answer(3, 2, [call(1)], of="m"), answer(4, 3, [text("Y")], of="m"), user(5, 4, [result(1)], **source(3)),
        answer(6, 5)],
    "a call and then a text in one row": [user(1), answer(2, 1, [call(1), text("T")]), first(4, 2), answer(5, 4)],
    "a text and then a thought in one answer": [*SAID, answer(3, 2, [thought()], of="m"), *end(4, 3)],
    "two rows of one answer": [user(1), answer(2, 1, of="m"), answer(3, 2, of="m"), *end(4, 3)],
    "two answers behind each other": [user(1), answer(2, 1), answer(3, 2), *end(4, 3)],
    "a prompt between two rows of one answer": [*SAID, user(3, 2), part(4, 3), *end(5, 4)],
    "an attachment between two rows of one answer": [*SAID, attachment(3, 2), part(4, 3), *end(5, 4)],
    "a local command between two rows of one answer": [*SAID, local_command(3, 2), part(4, 3), *end(5, 4)],
    "another answer between two rows of one answer": [*SAID, answer(3, 2, of="k"), part(4, 3), *end(5, 4)],
    "a result between two rows of one answer": [
        *FIRST, user(3, 2, [result(1)]), answer(4, 3, [call(2)], of="m"), user(5, 4, [result(2)]), answer(6, 5)],
    "a result with a text between two rows of one answer": [
        *FIRST, user(3, 2, [result(1), text("q")]), answer(4, 3, [call(2)], of="m"), user(5, 4, [result(2)]),
        answer(6, 5)],
    "a result and a meta row between two rows of one answer": [
        *FIRST, user(3, 2, [result(1)]), user(7, 3, "MET", isMeta=True), answer(4, 7, [call(2)], of="m"),
        user(5, 4, [result(2)]), answer(6, 5)],
    "calls of another answer between two calls of one answer": [
        *FIRST, user(3, 2, [result(1)]), answer(4, 3, [call(2)], of="k"), user(5, 4, [result(2)]),
        answer(6, 5, [call(3)], of="m"), user(7, 6, [result(3)]), answer(8, 7)],
})  # fmt: skip

BESIDE = files({
    "a text of the answer beside the chain": [*FIRST, answer(3, 2, [text("off")], of="m"), first(5, 2), answer(6, 5)],
    "a row of the answer on a dead branch": [*SAID, part(9, 1), *end(3, 2)],
    "a row of the answer hung on much later": [*SAID, *end(3, 2), part(9, 4, 3.5), *end(5, 4)],
    "a row of the answer beside the end of the chain": [*SAID, part(9, 1, 1.5)],
    "a thought of the answer beside the chain": [*SAID, answer(9, 1, [thought()], of="m", at=1.5), *end(4, 2)],
    "two rows of the answer beside the chain": [*SAID, part(9, 1, 1.6), part(10, 1, 1.5), *end(4, 2)],
    "two rows of the answer on the chain and two beside it": [
        *SAID, part(3, 2), part(9, 1, 2.5), part(10, 1, 3.5), *end(4, 3)],
    "a row of the answer beside the chain, earlier in the file": [user(1), part(9, 1, 3), part(2, 1, 2), *end(4, 2)],
    "an unanswered call of the answer beside the chain": [*SAID, answer(9, 2, [call(1)], of="m", at=2.5), *end(4, 2)],
    "an answered call of the answer beside the chain": [
        *SAID, answer(9, 2, [call(1)], of="m", at=2.5), user(10, 9, [result(1)], at=2.6), *end(4, 2)],
    "an answered call below an explicit head record": [
        *SAID, answer(9, 2, [call(1)], of="m", at=2.5), user(10, 9, [result(1)], at=2.6), exact(2)],
    "an answered call of the answer beside the chain, between results": [
        *FIRST, user(3, 2, [result(1)]), answer(4, 3, [call(2)], of="m"), user(5, 4, [result(2)]),
        answer(9, 2, [call(3)], of="m", at=2.5), user(10, 9, [result(3)], at=2.6), answer(6, 5), head(6)],
    "an answered call of the answer beside the chain, before the others": [
        user(1), answer(9, 1, [call(3)], of="m", at=1.5), user(10, 9, [result(3)], at=1.6), *FIRST[1:],
        user(3, 2, [result(1)]), answer(4, 3, [call(2)], of="m"), user(5, 4, [result(2)]), answer(6, 5), head(6)],
    "a row of the answer beside the chain, a sidechain row of it on the chain": [
        answer(4, None, [text("X4")], of="m", at=8, isSidechain=True), user(5, 4, at=9),
        answer(7, 5, [text("A7"), call(3)], of="m", at=10),
        user(8, 5, [result(1)], at=16), answer(9, 8, [thought()], of="m", at=17)],
})  # fmt: skip

STRAY_RESULTS = files({
    "a second result beside the chain": [*ONE_CALL, user(9, 2, [OFF], at=2.5), user(3, 2, [ON]), answer(4, 3)],
    "a second result beside the chain, later by time": [
        *ONE_CALL, user(9, 2, [OFF], at=3.5), user(3, 2, [ON]), answer(4, 3)],
    "a second result beside the chain, later in the file": [
        *ONE_CALL, user(3, 2, [ON]), answer(4, 3), user(9, 2, [OFF], at=2.5), head(4)],
    "a second result beside the chain, much later": [
        *ONE_CALL, user(3, 2, [ON]), answer(4, 3), user(9, 2, [OFF], at=200), head(4)],
    "a second result with a text beside the chain": [
        *ONE_CALL, user(9, 2, [OFF, text("off")], at=2.5), user(3, 2, [ON]), answer(4, 3)],
    "a second result with a text beside the chain, later in the file": [
        *ONE_CALL, user(3, 2, [ON]), answer(4, 3), user(9, 2, [OFF, text("off")], at=2.5), head(4)],
    "a prompt beside the result of a call": [
        *ONE_CALL, user(9, 2, "dead", at=2.5), user(3, 2, [result(1)]), answer(4, 3)],
    "a result with a text beside the chain": [
        *TWO_CALLS, user(9, 2, [result(2), text("dead")], at=2.5), user(3, 2, [result(1)]), answer(4, 3)],
    "a result that hangs on the prompt of its call": [
        *TWO_CALLS, user(9, 1, [result(2)], at=2.5), user(3, 2, [result(1)]), answer(4, 3)],
    "a result that has lost its parent long ago": [
        *TWO_CALLS, user(9, LOST, [result(2)], at=200), user(3, 2, [result(1)]), answer(4, 3), head(4)],
    "a result that hangs on a later answer": [
        *TWO_CALLS, user(9, 4, [result(2)], at=20), user(3, 2, [result(1)]), answer(4, 3), *end(5, 4)],
})  # fmt: skip

PLACES = files({
    f"a row beside the chain {where}": [user(1), *pieces, user(5, 4), answer(6, 5)]
    for where, pieces in {
        "before both rows of its answer": [part(9, 1), part(2, 1), part(4, 2)],
        "between the rows of its answer": [part(2, 1), part(9, 2), part(4, 2)],
        "after the rows of its answer": [part(2, 1), part(4, 2), part(9, 2)],
        "between rows with an attachment": [part(2, 1), attachment(3, 2), part(9, 2), part(4, 3)],
        "after rows with an attachment": [part(2, 1), attachment(3, 2), part(4, 3), part(9, 2)],
        "before rows with a result": [part(9, 1), *FIRST[1:], user(3, 2, [result(1)]), part(4, 3)],
        "before the result between the rows": [*FIRST[1:], part(9, 2), user(3, 2, [result(1)]), part(4, 3)],
        "after the result between the rows": [*FIRST[1:], user(3, 2, [result(1)]), part(9, 2), part(4, 3)],
        "after rows with a result": [*FIRST[1:], user(3, 2, [result(1)]), part(4, 3), part(9, 2)],
        "before rows with a prompt": [part(9, 1), part(2, 1), user(3, 2), part(4, 3)],
        "before the prompt between the rows": [part(2, 1), part(9, 1), user(3, 2), part(4, 3)],
        "after rows with a prompt": [part(2, 1), user(3, 2), part(4, 3), part(9, 4)],
        "after rows with a prompt, hung on the first prompt": [part(2, 1), user(3, 2), part(4, 3), part(9, 1)],
    }.items()
} | {
    "a row beside the chain after the next prompt": [
        user(1), part(2, 1), part(4, 2), user(5, 4), part(9, 2), answer(6, 5)],
    "three rows beside the chain, before, between and after": [
        user(1), part(9, 1), part(2, 1), part(10, 1), part(4, 2), part(11, 4), user(5, 4), answer(6, 5)],
    "two rows beside the chain, one on the other": [
        user(1), part(2, 1), part(9, 2), part(10, 9), part(4, 2), user(5, 4), answer(6, 5)],
})  # fmt: skip

CASES = PARALLEL | JOINED | BESIDE | STRAY_RESULTS | PLACES
