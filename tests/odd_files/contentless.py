"""Prompts and answers whose content is neither a text nor a list of blocks: the client walks through them."""

from __future__ import annotations

from typing import Any

from odd_files.rows import (
    ABSENT,
    LOST,
    OTHER,
    START,
    TALK,
    Piece,
    Row,
    answer,
    attachment,
    boundary,
    end,
    exact,
    files,
    head,
    local_command,
    segment,
    summary,
    system,
    text,
    thought,
    user,
)

NOTED: list[Piece] = [*TALK, boundary(5, note=segment(3, 4, anchor=6)), summary(6, 5)]


def empty(number: int, parent: int | None, **fields: Any) -> Row:
    return user(number, parent, None, **fields)


def no_answer(number: int, parent: int | None, **fields: Any) -> Row:
    return answer(number, parent, message={"role": "assistant", "content": None}, **fields)


LAST = files({
    f"the last prompt, on a branch of its own, has {what}": [*TALK, *OTHER, prompt]
    for what, prompt in {
        "a null content": empty(7, 2),
        "a number for a content": user(7, 2, 5),
        "an object for a content": user(7, 2, {"a": 1}),
        "false for a content": user(7, 2, False),
        "zero for a content": user(7, 2, 0),
        "an empty array for a content": user(7, 2, []),
        "an empty text for a content": user(7, 2, ""),
        "one blank block for a content": user(7, 2, [text("")]),
        "a null in an array for a content": user(7, 2, [None]),
        "an array of strings for a content": user(7, 2, ["a"]),
        "a block without a type for a content": user(7, 2, [{"text": "x"}]),
        "an empty message": user(7, 2, message={}),
        "a string for a message": user(7, 2, message="s"),
        "an array for a message": user(7, 2, message=[]),
        "true for a message": user(7, 2, message=True),
        "zero for a message": user(7, 2, message=0),
        "no message": user(7, 2, message=ABSENT),
    }.items()
} | {
    "the last answer, on a branch of its own, is empty": [*TALK, *OTHER, answer(7, 2, [])],
    "the last prompt has no content, its answer neither": [*TALK, *OTHER, empty(7, 2), empty(8, 7)],
    "the last answer has no content, its prompt has": [*TALK, *OTHER, user(7, 2), no_answer(8, 7)],
    "an answer without content on the older branch": [*TALK, user(7, 2), no_answer(8, 7), *OTHER],
    "a prompt without content is a new root at the end": [*TALK, empty(6, None)],
    "a prompt without content is a new root with an answer": [*TALK, empty(6, None), answer(7, 6)],
    "a prompt without content hangs on a boundary at the end": [*TALK, boundary(5), empty(6, 5)],
    "a prompt without content hangs on a boundary": [*TALK, boundary(5, 4), empty(6, 5), *end(7, 6)],
    "a prompt without content names itself": [*TALK, empty(5, 5)],
    "a prompt without content and without a time at the end": [*TALK, empty(5, 4, timestamp=ABSENT)],
    "a prompt without content, the newest branch written first": [
        *START, *end(5, 2), user(3, 2), answer(4, 3), empty(7, 2)],
    "a prompt without content and an attachment on a branch at the end": [
        *TALK, *OTHER, empty(7, 2), attachment(8, 7)],
    "a prompt without a message and an attachment on a branch at the end": [
        *TALK, *OTHER, user(7, 2, message=ABSENT), attachment(8, 7)],
})  # fmt: skip

ALONE = files({
    "nothing but a prompt without content": [empty(7, 6)],
    "nothing but a meta prompt without content": [empty(7, 6, isMeta=True)],
    "nothing but a prompt with a number": [user(1, None, 5)],
    "nothing but a prompt with an empty message": [user(1, message={})],
    "nothing but an answer without content": [no_answer(1, None)],
    "nothing but a prompt that is an empty array": [user(1, None, [])],
    "nothing but an empty prompt": [user(1, None, "")],
    "nothing but an empty answer": [answer(1, None, [])],
    "nothing but a thought": [answer(1, None, [thought()])],
    "nothing but a local command": [local_command(1, None, "x")],
    "a prompt without content, then an answer": [empty(1, None), answer(2, 1)],
    "a prompt without content, then a meta prompt": [empty(1, None), user(2, 1, "m", isMeta=True)],
    "an attachment, then a prompt without content": [attachment(1, None), empty(2, 1)],
    "a prompt without content, then an attachment": [empty(1, None), attachment(2, 1)],
    "a prompt without content, then a system row": [empty(1, None), system(2, 1)],
    "a prompt without a message, then an attachment": [user(1, message=ABSENT), attachment(2, 1)],
    "an attachment, then a prompt without a message beside it": [attachment(2, None), user(1, message=ABSENT)],
    "a sidechain prompt without content, then an attachment": [empty(1, None, isSidechain=True), attachment(2, 1)],
    "a prompt without content and time, then an attachment": [empty(1, None, timestamp=ABSENT), attachment(2, 1)],
    "a head record on a prompt without content alone": [empty(1, None), head(1)],
})  # fmt: skip

POINTED = files({
    "a head record names a prompt without content": [*TALK, *OTHER, empty(7, 2), head(7)],
    "an explicit head record names a prompt without content": [*TALK, *OTHER, empty(7, 2), exact(7)],
    "a head record, then one that names a prompt without content": [*TALK, head(4), *OTHER, empty(7, 2), head(7)],
    "a head record names a sidechain prompt without content": [*TALK, empty(5, 4, isSidechain=True), head(5)],
    "a head record, and a prompt without content below it": [*TALK, *OTHER, empty(7, 4), head(4)],
    "a head record on a prompt, and one without content below it": [*TALK, *OTHER, empty(7, 3), head(3)],
    "an explicit head record, then a prompt without content below it": [*TALK, *OTHER, exact(4), empty(7, 4)],
    "a clearing, then a prompt without content": [*TALK, *OTHER, exact(None), empty(7, 4)],
    "kept rows, and a prompt without content is the last row": [*NOTED, *end(7, 6), *end(9, 6), empty(30, 8)],
    "kept rows, and a head record on a turn with a prompt without content below": [
        *NOTED, *end(7, 6), empty(30, 8), *end(9, 6), head(8)],
    "kept rows, and a head record on a prompt without content": [
        *NOTED, *end(7, 6), empty(30, 8), *end(9, 6), head(30)],
    "kept rows, and a head record on a prompt whose answer has no content": [
        *NOTED, user(7, 6), no_answer(8, 7), *end(9, 6), head(7)],
    "kept rows whose anchor has no content": [
        *TALK, boundary(5, note=segment(3, 4, anchor=6)), empty(6, 5), *end(7, 6)],
})  # fmt: skip

WALKED_THROUGH = files({
    "a prompt without content long before its answer": [*START, empty(3, 2, at=30), answer(4, 3, at=31)],
    "a prompt without content is written after its answer": [
        *START, answer(4, 3, at=31), empty(3, 2, at=30), *end(5, 4)],
    "a prompt without content is written after its answer, a head record on that": [
        *START, answer(4, 3, at=31), empty(3, 2, at=30), head(4)],
    "a prompt without content has lost its parent": [*START, empty(3, LOST, at=3), answer(4, 3, at=31)],
    "a lost parent, a prompt without content the newest": [
        *START, empty(7, 1, at=2.5), user(3, LOST, at=3), answer(4, 3)],
    "a lost parent, a prompt without a message the newest": [
        *START, user(7, 1, message=ABSENT, at=2.5), user(3, LOST, at=3), answer(4, 3)],
    "a uuid comes twice, the second without content": [*TALK, empty(3, 2, at=9)],
    "a uuid comes twice, the first without content": [
        *START, empty(3, 2), answer(4, 3), user(3, 2, "U3b", at=9)],
    "a row of an answer without content, another with": [
        user(1), answer(2, 1, None, of="m"), answer(3, 2, "x", of="m"), *end(4, 3)],
})  # fmt: skip

CASES = LAST | ALONE | POINTED | WALKED_THROUGH
