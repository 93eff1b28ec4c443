"""Attachments and system rows under the last prompt or answer, and what becomes of them there and behind prompts."""

from __future__ import annotations

from odd_files.attachments import KINDS
from odd_files.rows import (
    ABSENT,
    LOST,
    OTHER,
    START,
    TALK,
    Block,
    Piece,
    Row,
    answer,
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
    segment,
    summary,
    text,
    user,
)

CALLED: list[Piece] = [user(1), answer(2, 1, [call(1)])]
RETURNED: list[Piece] = [*CALLED, user(3, 2, [result(1)])]
NOTED: list[Piece] = [*TALK, boundary(5, note=segment(3, 4, anchor=6)), summary(6, 5)]
TWO_TURNS: list[Piece] = [*end(7, 6), *end(9, 6)]


def told(number: int, parent: int | None, words: str = "REND", role: str = "user", at: float | None = None) -> Row:
    """An attachment whose text is sent."""
    shown: Block = {"rendered": [{"content": words}], "renderedRole": role}
    return attachment(number, parent, {"type": "date", "date": "x"}, at=at, **shown)


def ran(number: int, parent: int | None, at: float | None = None) -> Row:
    return local_command(number, parent, f"LC{number}", at=at)


AT_THE_END = files({
    f"{what} behind the last answer": [*TALK, *rows]
    for what, rows in {
        "two local commands": [ran(30, 4), ran(31, 4)],
        "two local commands, the first later by time": [ran(30, 4, 40), ran(31, 4)],
        "two local commands of one time": [ran(30, 4, 40), ran(31, 4, 40)],
        "a local command and an attachment": [ran(30, 4), attachment(31, 4)],
        "a local command, later by time, and an attachment": [ran(30, 4, 40), attachment(31, 4)],
        "a local command on one of two": [ran(30, 4), ran(32, 30), ran(31, 4, 31)],
        "a local command beside a prompt": [ran(30, 4), user(5, 4, at=41)],
        "a local command beside a turn": [ran(30, 4), user(5, 4, at=41), answer(6, 5, at=42)],
        "two local commands and an attachment without a parent": [ran(30, 4), ran(31, 4), attachment(9, None, at=50)],
    }.items()
} | {
    "two local commands behind the last prompt": [*TALK[:3], ran(30, 3), ran(31, 3)],
    "a local command written before its answer, older": [*TALK[:3], ran(30, 4, 1.5), answer(4, 3)],
    "a local command written before its answer, newer": [*TALK[:3], ran(30, 4, 5), answer(4, 3)],
    "two local commands written before their answer": [*TALK[:3], ran(30, 4, 5), ran(31, 4, 6), answer(4, 3)],
    "a local command, and its answer comes again": [*TALK, ran(30, 4, 4.5), answer(4, 3, "A4b", at=9)],
    "the newest leaf has two local commands of one time": [
        *TALK, *OTHER, ran(30, 6, 40), ran(31, 6, 40), attachment(9, None, at=50)],
    "the newest leaf, and a newer local command on the older branch": [
        *TALK, ran(30, 4, 40), *OTHER, attachment(9, None, at=50)],
})  # fmt: skip

POINTED = files({
    f"a head record on an older answer with {what}": [*TALK, *rows, *OTHER, head(4)]
    for what, rows in {
        "a local command": [ran(30, 4)],
        "an attachment": [attachment(30, 4)],
        "a local command and a prompt on that": [ran(30, 4), user(9, 30, at=31)],
        "two local commands": [ran(30, 4), ran(31, 4)],
        "two local commands, the first later by time": [ran(30, 4, 40), ran(31, 4)],
        "a local command on another": [ran(30, 4), ran(31, 30)],
        "a local command on another that is later by time": [ran(30, 4, 40), ran(31, 30, 35)],
        "a local command older than it": [ran(30, 4, 1.5)],
        "a local command without a time": [local_command(30, 4, "LC", timestamp=ABSENT)],
        "a local command of a sidechain": [local_command(30, 4, "LC", isSidechain=True)],
        "a boundary": [boundary(30, 4)],
        "a meta prompt": [user(30, 4, "M", isMeta=True)],
        "a meta prompt between local commands": [ran(30, 4), user(31, 30, "M", isMeta=True), ran(32, 31)],
        "a prompt without content between local commands": [ran(30, 4), user(31, 30, None), ran(32, 31)],
        "a progress row between local commands": [ran(30, 4), row(31, 30, "progress", at=31), ran(32, 31)],
        "a queued prompt": [attachment(30, 4, {"type": "queued_command", "prompt": "q", "commandMode": "prompt"})],
    }.items()
} | {
    "a head record on an older prompt with a local command": [*TALK, ran(30, 3), *OTHER, head(3)],
    "a head record on an older prompt with a told attachment": [*TALK, told(30, 3), *OTHER, head(3)],
    "a head record on an older prompt with a told attachment that was answered": [
        *START, user(3, 2), told(30, 3, at=3.5), answer(4, 30), *OTHER, head(3)],
    "a head record on an older call with a local command": [
        *CALLED, ran(30, 2, 2.5), user(3, 2, [result(1)]), answer(4, 3), user(7, 1), answer(8, 7), head(2)],
    "a head record on an answer in the middle with a local command": [
        *TALK, ran(30, 2), user(7, 1), answer(8, 7), head(2)],
    "a head record on an answer with a boundary, written before the other branch": [
        *TALK, boundary(30, 4), head(4), *OTHER],
    "a head record on a local command with another on it": [*TALK, ran(30, 4), ran(31, 30), *OTHER, head(30)],
    "a head record on an attachment with a local command on it": [
        *TALK, attachment(30, 4), ran(31, 30), *OTHER, head(30)],
    "a head record on the first of two local commands": [*TALK, ran(30, 4), ran(31, 4), *OTHER, head(30)],
    "a head record on the second of two local commands": [*TALK, ran(30, 4), ran(31, 4), *OTHER, head(31)],
    "an explicit head record on the first of two local commands": [*TALK, ran(30, 4), ran(31, 4), *OTHER, exact(30)],
    "a head record on a local command that lost its parent": [
        *TALK, local_command(30, LOST, "LC", at=4.5), *OTHER, head(30)],
    "an explicit head record on an older answer with a local command": [*TALK, ran(30, 4), *OTHER, exact(4)],
    "an explicit head record, then a local command below it and another branch": [*TALK, exact(4), ran(30, 4), *OTHER],
    "an explicit head record, then a local command below it": [*TALK, *OTHER, exact(4), ran(30, 4)],
    "an explicit head record, then two local commands below it": [*TALK, exact(4), ran(30, 4), ran(31, 4)],
    "an explicit head record in the middle, a local command before the next prompt": [
        *START, ran(30, 2, 2.5), *end(3, 2), exact(2)],
    "an explicit head record in the middle, a told attachment on the way to the next prompt": [
        *START, told(30, 2, at=2.5), *end(3, 30), exact(2)],
    "a clearing, then a local command": [*TALK, exact(None), ran(30, 4)],
})  # fmt: skip

AFTER_TWO_TURNS: dict[str, list[Piece]] = {
    "an attachment on the last kept row at the end": [attachment(30, 4)],
    "an attachment on the older turn at the end": [attachment(30, 8)],
    "an attachment on a prompt at the end": [attachment(30, 7)],
    "an attachment on the boundary at the end": [attachment(30, 5)],
    "an attachment without a parent at the end": [attachment(30, None)],
    "an attachment on the older turn, a head record on the newer prompt": [attachment(30, 8), head(9)],
    "an explicit head record, then an attachment below it": [exact(10), attachment(30, 10)],
    "an explicit head record, then an attachment elsewhere": [exact(10), attachment(30, 8)],
    "a head record on the older prompt": [head(7)],
    "an explicit head record on the older prompt": [exact(7)],
    "an explicit head record on the older prompt, then a plain one": [exact(7), head(7)],
    "a head record on the older answer, then on its prompt": [head(8), head(7)],
    "a head record on a row that is gone": [head(8), head(1)],
    "the first row of all comes again": [user(1, None, "U1b", at=20)],
    "the first row of all comes again, a head record on the older answer": [user(1, None, "U1b", at=20), head(8)],
    "the first kept row comes again": [user(3, 2, "U3b", at=20)],
    "the first kept row comes again at its old time": [user(3, 2, "U3b", at=3)],
    "the last kept row comes again": [answer(4, 3, "A4b", at=20)],
    "a new root": [user(20, None), answer(21, 20)],
    "a new root, a head record on the older answer": [user(20, None), answer(21, 20), head(8)],
    "a turn on the older one, a head record on its prompt": [*end(11, 8), head(7)],
    "a turn on the summary, a head record on a turn that went on": [*end(13, 8), *end(11, 6), head(8)],
    "an explicit head record in the middle, then a turn elsewhere": [exact(7), *end(11, 6)],
}  # fmt: skip
AFTER_ONE_TURN: dict[str, list[Piece]] = {
    "the first row of all comes again": [user(1, None, "U1b", at=20)],
    "the first kept row comes again": [user(3, 2, "U3b", at=9)],
    "the prompt comes again": [user(7, 6, "U7b", at=9)],
    "the prompt comes again with a head record on it": [user(7, 6, "U7b", at=20), head(7)],
    "an explicit head record on the prompt, which then comes again": [exact(7), user(7, 6, "U7b", at=20)],
    "the prompt comes again, then an explicit head record on it": [user(7, 6, "U7b", at=20), exact(7)],
    "an attachment beside it, and the last kept row comes again": [
        attachment(30, 6, at=6.5), answer(4, 3, "A4b", at=20)],
    "a sidechain row beside it, and the last kept row comes again": [
        user(30, 6, at=6.5, isSidechain=True), answer(4, 3, "A4b", at=20)],
    "a sidechain row below it, and the last kept row comes again": [
        user(30, 8, at=9, isSidechain=True), answer(4, 3, "A4b", at=20)],
    "two attachments behind it, and the last kept row comes again": [
        attachment(30, 8), attachment(31, 8), answer(4, 3, "A4b", at=20)],
    "an explicit head record on an attachment, then another turn": [attachment(30, 8), exact(30), *end(9, 6)],
    "a local command behind it, another turn, a head record on it": [ran(30, 8), *end(9, 6), head(8)],
    "an attachment behind it, another turn, a head record on the attachment": [
        attachment(30, 8), *end(9, 6), head(30)],
    "a clearing, then a row that is gone comes again": [exact(None), user(1, None, "U1b", at=20)],
}  # fmt: skip
KEPT = files({
    f"kept rows and two turns, and {what}": [*NOTED, *TWO_TURNS, *rows] for what, rows in AFTER_TWO_TURNS.items()
} | {
    f"kept rows and one turn, and {what}": [*NOTED, *end(7, 6), *rows] for what, rows in AFTER_ONE_TURN.items()
} | {
    "kept rows and no turn, attachments on the summary, and the first kept row comes again": [
        *NOTED, attachment(31, 6, at=6.4), attachment(30, 6, at=6.5), user(3, 2, "U3b", at=20)],
    "kept rows and no turn, attachments on the summary the other way, and the first kept row comes again": [
        *NOTED, attachment(31, 6, at=6.9), attachment(30, 6, at=6.5), user(3, 2, "U3b", at=20)],
    "kept rows, and a prompt written after its answer": [*NOTED, answer(8, 7), user(7, 6, at=20)],
    "kept rows, and a prompt written after its two answers": [*NOTED, answer(8, 7), answer(9, 7), user(7, 6, at=6.2)],
    "a broken note, and the prompt comes again": [
        *TALK, boundary(5, note=segment(LOST, 4, anchor=6)), summary(6, 5), *end(7, 6), user(7, 6, "U7b", at=20)],
})  # fmt: skip

OF_EACH_KIND: dict[str, list[Piece]] = {
    f"{kind} behind a prompt": [user(1), attachment(2, 1, payload, **fields), answer(3, 2)]
    for kind, (payload, fields) in KINDS.items()
}
BEHIND_A_PROMPT = files(OF_EACH_KIND | {
    "a told attachment before the first prompt": [told(1, None), user(2, 1), answer(3, 2)],
    "two told attachments behind a prompt": [user(1), told(2, 1, "R1"), told(3, 2, "R2"), answer(4, 3)],
    "a told attachment between two prompts": [*START, user(3, 2), told(4, 3), user(5, 4), answer(6, 5)],
    "a told attachment behind two prompts": [*START, user(3, 2), user(4, 3), told(5, 4), answer(6, 5)],
    "told attachments behind a result and behind a prompt": [
        *RETURNED, told(4, 3, "R1"), user(5, 4), told(6, 5, "R2"), answer(7, 6)],
    "a told attachment behind a prompt behind a result": [*RETURNED, user(5, 3), told(6, 5), answer(7, 6)],
    "a told attachment behind a result with a text": [
        *CALLED, user(3, 2, [result(1), text("x")]), told(6, 3), answer(7, 6)],
    "a told attachment behind a local command and before a prompt": [
        *START, ran(3, 2), told(4, 3), user(5, 4), answer(6, 5)],
    "a told attachment behind a local command": [*START, ran(3, 2), told(4, 3), answer(6, 4)],
    "a told attachment behind a prompt and a local command": [*START, user(3, 2), ran(4, 3), told(5, 4), answer(6, 5)],
    "told attachments before and behind a local command and a prompt": [
        *START, told(3, 2, "R1"), ran(4, 3), user(5, 4), told(6, 5, "R2"), answer(7, 6)],
    "a told attachment behind a meta prompt": [*START, user(3, 2, "M", isMeta=True), told(4, 3), answer(5, 4)],
    "a told attachment behind a prompt with an image": [
        *START, user(3, 2, [text("a"), image()]), told(4, 3), answer(5, 4)],
    "an attachment told to the system between an answer and a prompt": [*START, told(4, 2, role="system"), *end(5, 4)],
    "told attachments behind a summary and the prompt after it": [
        *TALK, boundary(5), summary(6, 5), told(7, 6, "R1"), user(8, 7), told(9, 8, "R2"), answer(10, 9)],
    "a told attachment behind an empty prompt": [*START, user(3, 2, ""), told(4, 3), answer(5, 4)],
    "an attachment told as a text and an image behind a prompt": [
        *START, user(3, 2), attachment(4, 3, {"type": "date", "date": "x"},
                                       rendered=[{"content": [text("RB"), image()]}], renderedRole="user"),
        answer(5, 4)],
    "a told attachment between two results": [
        user(1), answer(2, 1, [call(1), call(2)]), user(3, 2, [result(1)]), told(4, 3), user(5, 4, [result(2)]),
        answer(6, 5)],
    "a told attachment behind a result without a call": [*START, user(3, 2, [result(7)]), told(4, 3), answer(5, 4)],
    "a told attachment behind a command and a result without a call": [
        ran(8, None), user(9, 8, [result(2)]), told(10, 9)],
    "ends with a prompt and a told attachment": [*START, user(3, 2), told(4, 3)],
    "ends with a prompt, a told attachment and a prompt": [*START, user(3, 2), told(4, 3), user(5, 4)],
    "ends with a result and a told attachment": [*RETURNED, told(4, 3)],
    "ends with an open call and a told attachment": [*CALLED, told(4, 2)],
    "ends with parallel results, a local command on the first and a told attachment on the second": [
        user(1), answer(22, 1, [call(6)], of="m", at=3), answer(23, 22, [call(7)], of="m", at=4),
        user(24, 22, [result(6)], at=5), ran(25, 24, 5.1), user(26, 23, [result(7)], at=6), told(27, 26, at=7)],
})  # fmt: skip

CASES = AT_THE_END | POINTED | KEPT | BEHIND_A_PROMPT
