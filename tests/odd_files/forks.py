"""Head records on parts of parallel calls, answers without an id, and answers that go on behind another one."""

from __future__ import annotations

from typing import Any

from odd_files.rows import (
    START,
    Block,
    Piece,
    Row,
    answer,
    attachment,
    bare_answer,
    boundary,
    call,
    end,
    exact,
    files,
    head,
    local_command,
    result,
    source,
    summary,
    text,
    thought,
    user,
)

CALLS: list[Piece] = [user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m")]
FIRST = user(5, 2, [result(1)])
SECOND = user(4, 3, [result(2)])
BOTH: list[Piece] = [*CALLS, SECOND, FIRST]
"""Two parallel calls; the conversation goes on from the result of the first, row 5."""
DONE: list[Piece] = [*BOTH, answer(6, 5)]
ONE_ROW: list[Piece] = [user(1), answer(2, 1, [call(1), call(2)])]


def silent(number: int, parent: int, *blocks: Block, **fields: Any) -> Row:
    """An answer without an id."""
    return bare_answer(number, parent, role="assistant", content=list(blocks)) | fields


POINTED = files({
    f"parallel calls, a head record on {what}": pieces
    for what, pieces in {
        "the other result": [*DONE, head(4)],
        "the other result, a turn later": [*DONE, *end(7, 6), head(4)],
        "the other result, written before the answer": [*BOTH, head(4), answer(6, 5), *end(7, 6)],
        "the other call": [*DONE, head(3)],
        "an attachment on the other result": [*BOTH, attachment(9, 4, at=4.2), answer(6, 5), head(9)],
        "an attachment on the other call": [*CALLS, attachment(8, 3, at=3.5), SECOND, FIRST, answer(6, 5), head(8)],
        "a local command on the other result": [
            *CALLS, SECOND, local_command(8, 4, "LC", at=4.5), FIRST, answer(6, 5), head(8)],
        "a meta prompt on the other result": [
            *CALLS, SECOND, user(8, 4, "M", isMeta=True, at=4.5), FIRST, answer(6, 5), head(8)],
        "a prompt on the other result": [*CALLS, SECOND, user(8, 4), FIRST, answer(6, 5), head(8)],
        "an answer on the other result": [*CALLS, SECOND, answer(8, 4), FIRST, answer(6, 5), head(8)],
        "the other result, which has an answer of its own": [*BOTH, answer(8, 4, at=5.5), answer(6, 5), head(4)],
        "the result of the first, both answered": [*DONE, answer(8, 4), head(5)],
        "the first result, gone on from the second": [*CALLS, FIRST, SECOND, answer(6, 4), head(5)],
        "the first result, written last, gone on from the second": [*BOTH, answer(6, 4), head(5)],
        "the second result, which comes twice": [
            *CALLS, SECOND, user(7, 3, [result(2, "again")]), answer(6, 7), head(4)],
        "the second call, a prompt on the first and no results": [*CALLS, *end(7, 2), head(3)],
        "the second call, a prompt on the first": [*DONE, *end(7, 2), head(3)],
        "the second result, a prompt on the first call": [*CALLS, SECOND, *end(7, 2), head(4)],
        "the second result, a prompt on the first prompt": [*CALLS, SECOND, *end(7, 1), head(4)],
        "the other result, a prompt on it": [*DONE, *end(7, 4), head(4)],
        "the other result, a branch above": [*DONE, *end(7, 1), head(4)],
        "the other result that is a sidechain row": [
            *CALLS, user(4, 3, [result(2)], isSidechain=True), FIRST, answer(6, 5), head(4)],
        "the other result, which hangs on the prompt": [
            *CALLS, user(4, 1, [result(2)], **source(3)), FIRST, answer(6, 5), head(4)],
        "the other result with a text": [
            *CALLS, user(4, 3, [result(2), text("tt")]), FIRST, answer(6, 5), head(4)],
        "the other call, a compaction later": [
            *DONE, boundary(8, 6), summary(9, 8), *end(10, 9), head(3)],
        "the other result, then one without a leaf": [*DONE, head(4), head(None)],
        "the other result, two more parallel calls later": [
            *BOTH, answer(10, 5, [call(3)], of="n"), answer(11, 10, [call(4)], of="n"), user(12, 11, [result(4)]),
            user(13, 10, [result(3)]), answer(14, 13), head(4)],
        "the other result, an explicit one, then an answer": [*BOTH, exact(4), answer(6, 5)],
        "the thought before the calls": [
            user(1), answer(7, 1, [thought()], of="m", at=1.5), answer(2, 7, [call(1)], of="m"), *CALLS[2:], SECOND,
            FIRST, answer(6, 5), head(7)],
    }.items()
} | {
    "two calls in one row, a head record on the first result": [
        *ONE_ROW, user(4, 2, [result(1)]), user(5, 2, [result(2)]), answer(6, 5), head(4)],
    "one call with two results, a head record on the first": [
        user(1), answer(2, 1, [call(1)]), user(9, 2, [result(1, "OFF")], at=2.5), user(3, 2, [result(1, "ON")]),
        answer(4, 3), head(9)],
    "two calls in one row, one with two results, a head record on the first": [
        *ONE_ROW, user(4, 2, [result(2)]), user(6, 2, [result(2, "again")]), answer(7, 6), head(4)],
    "two calls in one row, a head record on a result, gone on from the calls": [
        *ONE_ROW, user(3, 2, [result(1)]), head(3), answer(4, 2), *end(5, 4)],
    "two answers with a call each, a head record on the other result": [
        user(1), answer(2, 1, [call(1)]), answer(3, 2, [call(2)]), SECOND, FIRST, answer(6, 5), head(4)],
    "two answers with a call each, a head record on the second": [
        user(1), answer(2, 1, [call(1)]), answer(3, 2, [call(2)]), SECOND, FIRST, answer(6, 5), head(3)],
    "calls beside each other on the prompt, a head record on the other": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 1, [call(2)], of="m"), SECOND, FIRST, answer(6, 5),
        head(3)],
    "calls beside each other on a text, a head record on a result": [
        user(1), answer(2, 1, "A2", of="m"), answer(3, 2, [call(1)], of="m"), answer(4, 2, [call(2)], of="m"),
        user(5, 3, [result(1)]), head(5), user(6, 4, [result(2)]), *end(7, 6)],
    "a text beside a result, a head record on it": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, "t", of="m"), FIRST, answer(6, 5), head(3)],
    "a text of the answer on a dead branch, a head record on it": [
        user(1), answer(2, 1, "X", of="m"), answer(9, 1, "Y", of="m"), *end(3, 2), head(9)],
    "three parallel calls, a head record on the second result": [
        *CALLS, answer(7, 3, [call(3)], of="m"), user(8, 3, [result(2)]), user(9, 2, [result(1)]),
        user(10, 7, [result(3)]), answer(11, 10), head(8)],
    "three parallel calls, a head record on the third result, gone on from the first": [
        *CALLS, answer(7, 3, [call(3)], of="m"), user(8, 7, [result(3)]), user(9, 3, [result(2)]),
        user(10, 2, [result(1)]), answer(11, 10), head(8)],
    "three parallel calls, an explicit head record on the second result": [
        *CALLS, answer(7, 3, [call(3)], of="m"), user(8, 3, [result(2)]), user(9, 2, [result(1)]),
        user(10, 7, [result(3)]), answer(11, 10), exact(8)],
})  # fmt: skip

NO_ID = files({
    "calls in a row without an id": [
        user(1), silent(2, 1, call(1), call(2)), user(4, 2, [result(1)]), user(5, 2, [result(2)]), answer(6, 5)],
    "calls in two rows without an id": [
        user(1), silent(2, 1, call(1)), silent(3, 2, call(2)), SECOND, FIRST, answer(6, 5)],
    "calls in two rows without an id, a head record on a result": [
        user(1), silent(2, 1, call(1)), silent(3, 2, call(2)), SECOND, FIRST, answer(6, 5), head(4)],
    "a local command beside the result of a call without an id": [
        user(1), silent(2, 1, call(1)), local_command(9, 2, "LC", at=2.5), user(4, 2, [result(1)]), answer(6, 4)],
    "a result of a call without an id on the prompt": [
        user(1), silent(2, 1, call(1), call(2)), user(9, 1, [result(2)], at=2.5), user(3, 2, [result(1)]),
        answer(4, 3)],
    "calls in a row with an empty id": [
        user(1), answer(2, 1, [call(1), call(2)], of=""), user(4, 2, [result(1)]), user(5, 2, [result(2)]),
        answer(6, 5)],
})  # fmt: skip

GOES_ON = files({
    "an answer goes on behind an open call of another": [
        user(7), answer(8, 7, "A7", of="m"), answer(9, 8, [call(4)]), answer(10, 9, [call(2)], of="m")],
    "an answer with a result goes on behind an open call of another": [
        user(6), answer(7, 6, [call(1)], of="m"), user(8, 7, [result(1)]), answer(9, 8, [call(2)]),
        answer(10, 9, [text("A10"), call(3)], of="m")],
    "a thought goes on behind a text and open calls of another answer": [
        answer(4, None, [thought()], of="m"), answer(5, 4, [text("A5"), call(1), call(2)]),
        answer(9, 5, [call(3)], of="m")],
    "a text, a result and a thought of the answer behind it": [
        user(1), answer(2, 1, [call(1)], of="m"), user(3, 2, [text("T"), result(1)]), answer(4, 3, [thought()], of="m"),
        answer(5, 4)],
    "a text, a result and a text of the answer behind it": [
        user(1), answer(2, 1, [call(1)], of="m"), user(3, 2, [text("T"), result(1)]), answer(4, 3, [text("x")], of="m"),
        answer(6, 4)],
    "a text, a result and a call of the answer behind it": [
        user(1), answer(2, 1, [call(1)], of="m"), user(3, 2, [text("T"), result(1)]), answer(4, 3, [call(2)], of="m"),
        user(5, 4, [result(2)]), answer(6, 5)],
    "a blank text and a result without a call at the beginning": [
        user(1, None, [text(""), result(1)]), answer(2, 1), *end(3, 2)],
    "a blank prompt and a result without a call at the beginning": [
        user(1, None, [text("")]), user(2, 1, [result(1)]), answer(3, 2)],
    "a blank text and a result without a call in the middle": [*START, user(3, 2, [text(""), result(1)]), answer(4, 3)],
    "ends with a blank text and a result without a call": [*START, user(3, 2, [text(""), result(1)])],
    "a cycle of meta prompts beside the result of a call": [
        user(1), answer(2, 1, [call(1)]), user(3, 4, "M3", isMeta=True), user(4, 3, "M4", isMeta=True),
        user(5, 3, [result(1)]), answer(6, 5)],
})  # fmt: skip

CASES = POINTED | NO_ID | GOES_ON
