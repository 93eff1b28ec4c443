"""Answers, calls and results that stand together in ways no single rule was made for."""

from __future__ import annotations

from odd_files.rows import (
    LOST,
    START,
    Block,
    Piece,
    answer,
    api_error,
    attachment,
    boundary,
    call,
    end,
    exact,
    files,
    head,
    image,
    local_command,
    result,
    row,
    source,
    summary,
    system,
    text,
    thought,
    user,
)

DATE: Block = {"type": "date", "date": "x"}
SHOWN: Block = {"rendered": [{"content": "REND"}], "renderedRole": "user"}
CALLED: list[Piece] = [user(1), answer(2, 1, [call(1)])]
BOTH: list[Piece] = [user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m")]
"""A prompt and two rows of one answer, each with a call."""


def back(number: int, parent: int, *calls: int, at: float | None = None, words: str = "r") -> Piece:
    """A row with the results of these calls."""
    return user(number, parent, [result(one, f"{words}{one}") for one in calls], at=at)


def told(number: int, parent: int, at: float | None = None) -> Piece:
    """An attachment whose text is sent."""
    return attachment(number, parent, DATE, at=at, **SHOWN)


RESULTS: dict[str, list[Piece]] = {
    "both results on the first": [back(4, 2, 1), back(5, 2, 2), answer(6, 5)],
    "both results on the second": [back(4, 3, 1), back(5, 3, 2), answer(6, 5)],
    "both results on the prompt": [back(4, 1, 1), back(5, 1, 2), answer(6, 5)],
    "results the wrong way round": [back(4, 3, 1), back(5, 2, 2), answer(6, 5)],
    "both results in one row on the first": [back(4, 2, 1, 2), answer(6, 4)],
    "both results in one row on the second": [back(4, 3, 1, 2), answer(6, 4)],
    "both results in one row, the second first": [back(4, 3, 2, 1), answer(6, 4)],
    "one result twice, the other never": [back(4, 2, 1), back(5, 3, 1), answer(6, 5)],
    "each result twice": [
        back(4, 3, 2), back(5, 2, 1), back(7, 3, 2, words="s"), back(8, 2, 1, words="s"), answer(6, 8)],
    "the results before the calls in time": [back(4, 3, 2, at=1.1), back(5, 2, 1, at=1.2), answer(6, 5)],
    "an attachment under each result": [
        back(4, 3, 2), told(7, 4), back(5, 2, 1), told(8, 5), answer(6, 8)],
    "an attachment under the result beside the chain": [back(4, 3, 2), told(7, 4), back(5, 2, 1), answer(6, 5)],
    "a meta prompt under the result beside the chain": [
        back(4, 3, 2), user(7, 4, "M7", isMeta=True), back(5, 2, 1), answer(6, 5)],
    "a prompt under the result beside the chain": [back(4, 3, 2), user(7, 4), back(5, 2, 1), answer(6, 5)],
    "an answer under the result beside the chain": [back(4, 3, 2), answer(7, 4), back(5, 2, 1), answer(6, 5)],
    "a local command under the result beside the chain": [
        back(4, 3, 2), local_command(7, 4, "LC"), back(5, 2, 1), answer(6, 5)],
    "a system row under the result beside the chain": [
        back(4, 3, 2), system(7, 4), back(5, 2, 1), answer(6, 5)],
    "the result beside the chain a sidechain row": [
        user(4, 3, [result(2)], isSidechain=True), back(5, 2, 1), answer(6, 5)],
    "the result on the chain a sidechain row": [
        back(4, 3, 2), user(5, 2, [result(1)], isSidechain=True), answer(6, 5)],
    "a result that is meta": [user(4, 3, [result(2)], isMeta=True), back(5, 2, 1), answer(6, 5)],
    "a prompt between the results": [back(4, 3, 2), user(7, 4), back(5, 2, 1), answer(6, 7), head(6)],
    "a head record on the first result": [back(4, 3, 2), back(5, 2, 1), head(4)],
    "an explicit head record on the first result": [back(4, 3, 2), back(5, 2, 1), answer(6, 5), exact(4)],
    "an explicit head record on the first call": [back(4, 3, 2), back(5, 2, 1), answer(6, 5), exact(2)],
    "an explicit head record on the second call": [back(4, 3, 2), back(5, 2, 1), answer(6, 5), exact(3)],
    "no answer behind the results": [back(4, 3, 2), back(5, 2, 1)],
    "the results, then a prompt on the calls": [back(4, 3, 2), back(5, 2, 1), *end(7, 3)],
    "the results, then a prompt on the first call": [back(4, 3, 2), back(5, 2, 1), *end(7, 2)],
    "a result without a parent": [user(4, None, [result(2)]), back(5, 2, 1), answer(6, 5)],
    "a result long after without a parent": [
        back(5, 2, 1), answer(6, 5), user(4, None, [result(2)], at=90), head(6)],
    "a result that names its source alone": [
        user(4, LOST, [result(2)], at=90, **source(3)), back(5, 2, 1), answer(6, 5), head(6)],
    "a result that names another source": [
        user(4, 3, [result(2)], **source(2)), user(5, 2, [result(1)], **source(3)), answer(6, 5)],
    "texts beside the results": [
        user(4, 3, [result(2), text("t2")]), user(5, 2, [result(1), text("t1")]), answer(6, 5)],
    "images in the results": [
        user(4, 3, [result(2, [image()])]), user(5, 2, [result(1, [text("a"), image()])]), answer(6, 5)],
    "the second result an error": [
        user(4, 3, [result(2, "bad", is_error=True)]), back(5, 2, 1), answer(6, 5)],
    "an error of the API instead of an answer": [back(4, 3, 2), back(5, 2, 1), api_error(6, 5), *end(7, 6)],
    "a boundary behind the results": [
        back(4, 3, 2), back(5, 2, 1), boundary(6, 5), summary(7, 6), *end(8, 7)],
    "a boundary beside the results": [
        back(4, 3, 2), boundary(7, 4), back(5, 2, 1), answer(6, 5)],
    "a progress row under the calls": [
        row(7, 2, "progress", at=3.1), row(8, 3, "progress", at=3.2), back(4, 8, 2), back(5, 7, 1), answer(6, 5)],
    "attachments between calls and results": [
        attachment(7, 2, at=3.1), attachment(8, 3, at=3.2), back(4, 8, 2), back(5, 7, 1), answer(6, 5)],
    "told attachments between calls and results": [
        told(7, 2, 3.1), told(8, 3, 3.2), back(4, 8, 2), back(5, 7, 1), answer(6, 5)],
}  # fmt: skip
ORDERS = files({f"two calls in two rows, {where}": [*BOTH, *rows] for where, rows in RESULTS.items()})

SHARED_IDS = files({
    "one message id in answers of two branches": [
        user(1), answer(2, 1), user(3, 2), answer(4, 3, of="m"), user(5, 2), answer(6, 5, of="m")],
    "one message id in answers of two branches, the older pointed at": [
        user(1), answer(2, 1), user(3, 2), answer(4, 3, of="m"), user(5, 2), answer(6, 5, of="m"), head(4)],
    "one message id above the fork and on the other branch": [
        user(1), answer(2, 1, of="m"), user(3, 2), answer(4, 3, of="m"), *end(5, 2)],
    "one message id in the calls of two branches": [
        user(1), answer(2, 1), user(3, 2), answer(4, 3, [call(1)], of="m"), back(7, 4, 1), answer(8, 7),
        user(5, 2), answer(6, 5, [call(2)], of="m"), back(9, 6, 2), answer(10, 9)],
    "one message id in two turns": [user(1), answer(2, 1, of="m"), user(3, 2), answer(4, 3, of="m"), *end(5, 4)],
    "one message id in two turns, with calls": [
        user(1), answer(2, 1, [call(1)], of="m"), back(3, 2, 1), answer(4, 3), user(5, 4),
        answer(6, 5, [call(2)], of="m"), back(7, 6, 2), answer(8, 7)],
    "one message id in two turns, and a row of it beside the first": [
        user(1), answer(2, 1, [call(1)], of="m"), back(3, 2, 1), answer(9, 2, "off", of="m"), answer(4, 3), user(5, 4),
        answer(6, 5, "again", of="m"), *end(7, 6)],
    "one message id in two turns, and a row of it beside the second": [
        user(1), answer(2, 1, "X", of="m"), user(5, 2), answer(6, 5, "again", of="m"), answer(9, 5, "off", of="m"),
        *end(7, 6)],
    "one message id in two turns, and a call of it beside the second": [
        user(1), answer(2, 1, "X", of="m"), user(5, 2), answer(6, 5, "again", of="m"),
        answer(9, 6, [call(1)], of="m"), back(10, 9, 1), *end(7, 6)],
    "one message id over a boundary": [
        user(1), answer(2, 1, of="m"), boundary(5), summary(6, 5), user(7, 6), answer(8, 7, of="m")],
    "one message id over a boundary with a parent": [
        user(1), answer(2, 1, of="m"), boundary(5, 2), summary(6, 5), user(7, 6), answer(8, 7, of="m")],
    "one message id for every answer": [
        user(1), answer(2, 1, of="m"), user(3, 2), answer(4, 3, of="m"), user(5, 4), answer(6, 5, of="m")],
    "one message id for every answer, with results between": [
        user(1), answer(2, 1, [call(1)], of="m"), back(3, 2, 1), answer(4, 3, [call(2)], of="m"), back(5, 4, 2),
        answer(6, 5, of="m")],
    "an empty message id in every answer": [
        user(1), answer(2, 1, of=""), user(3, 2), answer(4, 3, of=""), answer(5, 4, of="")],
    "one message id, another row of it a sidechain row": [
        user(1), answer(2, 1, of="m"), answer(9, 1, "S", of="m", isSidechain=True), *end(3, 2)],
    "one message id, another row of it of another agent": [
        user(1), answer(2, 1, of="m"), answer(9, 1, "S", of="m", agentId="a1"), *end(3, 2)],
    "rows of one answer, the second on a prompt of a dead branch": [
        user(1), answer(2, 1, "X", of="m"), user(8, 2), answer(9, 8, "Y", of="m"), *end(3, 2)],
    "rows of one answer, the calls on a dead branch with their results": [
        user(1), answer(2, 1, "X", of="m"), user(8, 2), answer(9, 8, [call(1)], of="m"), back(10, 9, 1),
        answer(11, 10), *end(3, 2)],
    "three rows of one answer, the middle one beside the chain": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 1, "Y", of="m"), answer(4, 2, "Z", of="m"), *end(5, 4)],
    "three rows of one answer, each on the prompt": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 1, "Y", of="m"), answer(4, 1, [call(1)], of="m"),
        back(5, 4, 1), answer(6, 5)],
    "three rows of one answer in the wrong order": [
        user(1), answer(4, 3, [call(1)], of="m"), answer(3, 2, "Y", of="m"), answer(2, 1, [thought()], of="m"),
        back(5, 4, 1), answer(6, 5)],
    "a row of an answer comes twice with other content": [
        user(1), answer(2, 1, "X", of="m"), answer(2, 1, "X2", of="m"), answer(3, 2, "Y", of="m"), *end(4, 3)],
    "a row of an answer comes twice with another message id": [
        user(1), answer(2, 1, "X", of="m"), answer(2, 1, "X2", of="k"), answer(3, 2, "Y", of="m"), *end(4, 3)],
    "a row of an answer comes twice, beside the chain with another message id": [
        user(1), answer(2, 1, "X", of="m"), answer(9, 1, "Y", of="m"), answer(9, 1, "Y2", of="k"), *end(4, 2)],
})  # fmt: skip

LONGER = files({
    "a call answered two turns later": [*CALLED, *end(3, 2), *end(5, 4), back(7, 6, 1), answer(8, 7)],
    "a call answered on another branch": [*CALLED, back(9, 2, 1), answer(10, 9), *end(3, 2)],
    "a call answered on another branch, pointed at": [*CALLED, back(9, 2, 1), answer(10, 9), *end(3, 2), head(10)],
    "a call answered by a row that has other results": [
        *CALLED, answer(3, 2, [call(2)]), back(4, 3, 1, 2, 3), answer(5, 4)],
    "a call and its result behind a prompt of the same time": [
        user(1, at=1), answer(2, 1, [call(1)], at=1), user(3, 2, [result(1)], at=1), answer(4, 3, at=1)],
    "a result on a result": [*CALLED, back(3, 2, 1), back(4, 3, 1, words="s"), answer(5, 4)],
    "a result, and another of the same call behind a prompt": [
        *CALLED, back(3, 2, 1), answer(4, 3), user(5, 4), back(6, 5, 1, words="s"), answer(7, 6)],
    "calls of three answers, results at the end": [
        user(1), answer(2, 1, [call(1)]), answer(3, 2, [call(2)]), answer(4, 3, [call(3)]), back(5, 4, 3, 2, 1),
        answer(6, 5)],
    "a text, two calls and a thought in one row": [
        user(1), answer(2, 1, [text("X"), call(1), call(2), thought()]), back(3, 2, 1, 2), answer(4, 3)],
    "a thought between two calls in rows": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [thought()], of="m"), answer(4, 3, [call(2)], of="m"),
        back(5, 4, 1, 2), answer(6, 5)],
    "thoughts around a call in rows": [
        user(1), answer(2, 1, [thought("a")], of="m"), answer(3, 2, [call(1)], of="m"),
        answer(4, 3, [thought("b")], of="m"), back(5, 4, 1), answer(6, 5)],
    "the same call in two answers": [
        *CALLED, back(3, 2, 1), answer(4, 3), user(5, 4), answer(6, 5, [text("A6"), call(1)]), back(7, 6, 1, words="s"),
        answer(8, 7)],
    "the same call in two rows of one answer": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(1)], of="m"), back(4, 3, 1), answer(5, 4)],
    "the same call on two branches": [
        *START, user(3, 2), answer(4, 3, [call(1)]), back(7, 4, 1, words="old"), user(5, 2), answer(6, 5, [call(1)]),
        back(8, 6, 1, words="new"), answer(9, 8)],
    "the same call on two branches, one unanswered": [
        *START, user(3, 2), answer(4, 3, [call(1)]), back(7, 4, 1, words="old"), user(5, 2), answer(6, 5, [call(1)])],
    "an interruption between call and result": [
        *CALLED, user(3, 2, [text("[Request interrupted by user for tool use]")]), back(4, 3, 1), answer(5, 4)],
    "an interruption behind a result": [
        *CALLED, back(3, 2, 1), user(4, 3, [text("[Request interrupted by user for tool use]")]), *end(5, 4)],
    "an interruption in the row of a result": [
        *CALLED, user(3, 2, [result(1, "no", is_error=True), text("[Request interrupted by user for tool use]")]),
        *end(4, 3)],
    "an error of the API between call and result": [*CALLED, api_error(3, 2), back(4, 3, 1), answer(5, 4)],
    "an error of the API between two prompts": [user(1), api_error(2, 1), user(3, 2), api_error(4, 3), *end(5, 4)],
    "an error of the API with the id of an answer": [
        user(1), answer(2, 1, of="x"), api_error(3, 2), user(4, 3), answer(5, 4, of="x")],
    "an error of the API with a call": [
        user(1), answer(2, 1, [text("E"), call(1)], isApiErrorMessage=True), back(3, 2, 1), answer(4, 3)],
    "a meta prompt between a call and its result": [
        *CALLED, user(3, 2, "M3", isMeta=True), back(4, 3, 1), answer(5, 4)],
    "a meta prompt beside the result": [*CALLED, user(3, 2, "M3", isMeta=True), back(4, 2, 1), answer(5, 4)],
    "a meta prompt beside a prompt": [*START, user(3, 2, "M3", isMeta=True), *end(4, 2)],
    "an attachment beside a prompt": [*START, told(3, 2), *end(4, 2)],
    "an attachment beside a result": [*CALLED, told(3, 2), back(4, 2, 1), answer(5, 4)],
    "attachments one on the other beside a result": [*CALLED, told(3, 2), told(6, 3), back(4, 2, 1), answer(5, 4)],
    "an attachment under a row of an answer without calls": [
        user(1), answer(2, 1, "X", of="m"), told(3, 2), answer(4, 2, "Y", of="m"), *end(5, 4)],
    "a summary row and no boundary between call and result": [*CALLED, summary(3, 2), back(4, 3, 1), answer(5, 4)],
    "a result of no call beside the chain": [*CALLED, back(9, 2, 7), back(3, 2, 1), answer(4, 3)],
    "a result of no call on the chain, its own on none": [*CALLED, back(3, 2, 7), answer(4, 3)],
    "a local command between a call and its result": [*CALLED, local_command(3, 2, "LC"), back(4, 3, 1), answer(5, 4)],
    "a queued prompt behind a result and another result": [
        *BOTH, back(4, 3, 2), attachment(7, 4, {"type": "queued_command", "prompt": "qq", "commandMode": "prompt"}),
        back(5, 2, 1), answer(6, 5)],
})  # fmt: skip

CASES = ORDERS | SHARED_IDS | LONGER
