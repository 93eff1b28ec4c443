"""Compactions in ways that single notes do not show: twice, half lost, damaged, and beside what points at them."""

from __future__ import annotations

from typing import Any

from odd_files.rows import (
    ABSENT,
    LOST,
    NOBODY,
    TALK,
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
    kept,
    local_command,
    result,
    row,
    segment,
    summary,
    system,
    thought,
    user,
    uuid,
)

SEGMENT = segment(3, 4, anchor=6)
LIST = kept(3, 4, anchor=6)
AFTER: list[Piece] = [summary(6, 5), *end(7, 6)]


def noted(note: Any, *more: Piece) -> list[Piece]:
    """U1, A2, U3, A4, a compaction with this note, and a turn."""
    return [*TALK, boundary(5, note=note), *AFTER, *more]


ODD_NOTES = files({
    f"the note of a compaction {what}": noted(note)
    for what, note in {
        "is null": {"preservedSegment": None, "preservedMessages": None},
        "has a null list and a segment": SEGMENT | {"preservedMessages": None},
        "has a null segment and a list": LIST | {"preservedSegment": None},
        "has an empty object for a segment": {"preservedSegment": {}},
        "has an empty object for a list": {"preservedMessages": {}},
        "has a string for a segment": {"preservedSegment": "x"},
        "has a list without uuids": {"preservedMessages": {"anchorUuid": uuid(6)}},
        "has a list without an anchor": {"preservedMessages": {"uuids": [uuid(3), uuid(4)]}},
        "has a list with all but no uuids": {
            "preservedMessages": {"anchorUuid": uuid(6), "allUuids": [uuid(3), uuid(4)]}},
        "has a list with a null in it": {"preservedMessages": {"anchorUuid": uuid(6), "uuids": [uuid(3), None]}},
        "has a segment without an anchor": {"preservedSegment": {"headUuid": uuid(3), "tailUuid": uuid(4)}},
        "has a segment without a head": {"preservedSegment": {"anchorUuid": uuid(6), "tailUuid": uuid(4)}},
        "has a segment without a tail": {"preservedSegment": {"anchorUuid": uuid(6), "headUuid": uuid(3)}},
        "has a segment with a null anchor": {
            "preservedSegment": {"anchorUuid": None, "headUuid": uuid(3), "tailUuid": uuid(4)}},
        "keeps everything": segment(1, 4, anchor=6),
        "keeps everything as a list": kept(1, 2, 3, 4, anchor=6),
        "keeps the first row alone": segment(1, 1, anchor=6),
        "keeps an old row as its own anchor": segment(3, 4, anchor=3),
        "keeps rows behind an old row": segment(3, 4, anchor=1),
        "lists rows behind an old row": kept(3, 4, anchor=1),
        "keeps its own boundary": segment(5, 5, anchor=6),
        "lists its own summary": kept(4, 6, anchor=6),
        "lists its own summary behind the boundary": kept(4, 6, anchor=5),
        "keeps rows behind a row that comes later": segment(3, 4, anchor=8),
        "lists a row and one that comes later behind it": kept(3, 8, anchor=6),
    }.items()
})  # fmt: skip

NOT_AN_OBJECT = files({
    "compactMetadata is a string": [*TALK, boundary(5, compactMetadata="x"), *AFTER],
    "compactMetadata is null": [*TALK, boundary(5, compactMetadata=None), *AFTER],
    "compactMetadata is an array": [*TALK, boundary(5, compactMetadata=[SEGMENT]), *AFTER],
    "compactMetadata in the words of the wire": [
        *TALK, boundary(5, compactMetadata=ABSENT, compact_metadata={"preserved_segment": {
            "head_uuid": uuid(3), "anchor_uuid": uuid(6), "tail_uuid": uuid(4)}}), *AFTER],
    "the note stands on the summary": [*TALK, boundary(5), summary(6, 5, compactMetadata=SEGMENT), *end(7, 6)],
    "the note stands on a row of another subtype": [
        *TALK, system(5, 4, "informational", compactMetadata=SEGMENT), *end(7, 5)],
    "the boundary is an attachment": [*TALK, attachment(5, 4, subtype="compact_boundary"), *end(7, 5)],
    "the boundary is a prompt": [*TALK, user(5, 4, subtype="compact_boundary"), answer(8, 5)],
    "the boundary has no uuid": [*TALK, boundary(5, uuid=ABSENT), summary(6, None), *end(7, 6)],
    "the boundary has no time": [*TALK, boundary(5, timestamp=ABSENT), *AFTER],
    "the boundary comes twice": [*TALK, boundary(5), *AFTER, boundary(5), *end(9, 8)],
    "the boundary comes twice, with a note at last": [*TALK, boundary(5), *AFTER, boundary(5, note=SEGMENT)],
    "the boundary comes twice, with a note at first": [*TALK, boundary(5, note=SEGMENT), *AFTER, boundary(5)],
    "the uuid of a boundary comes again as a prompt": [*TALK, boundary(5), *AFTER, user(5, 4, "U5")],
    "the uuid of a boundary with a note comes again as a prompt": [
        *TALK, boundary(5, note=SEGMENT), *AFTER, user(5, 4, "U5")],
    "the uuid of a prompt comes again as a boundary": [*TALK, *end(5, 4), boundary(3), *end(7, 6)],
})  # fmt: skip

ELSEWHERE = {("the summary", "no note"), ("the summary", "kept rows"), ("the boundary", "kept rows")}
"""These are cases of `compaction.py`."""
LAST_ROWS = files({
    f"{what} is the last row, {where}": [*TALK, *rows]
    for where, (note, parent, at) in {
        "no note": (None, None, 5.0),
        "kept rows": (SEGMENT, None, 5.0),
        "kept rows whose first is missing": (segment(LOST, 4, anchor=6), None, 5.0),
        "a boundary with a lost parent": (None, LOST, 5.0),
        "a boundary with a lost parent, long after": (None, LOST, 50.0),
        "a boundary with a lost parent and a broken note": (segment(LOST, 4, anchor=6), LOST, 5.0),
    }.items()
    for what, rows in {
        "the boundary": [boundary(5, parent, note, at=at)],
        "an attachment on the boundary": [boundary(5, parent, note, at=at), attachment(7, 5, at=at + 1)],
        "the summary": [boundary(5, parent, note, at=at), summary(6, 5, at=at + 1)],
        "a local command on the summary": [
            boundary(5, parent, note, at=at), summary(6, 5, at=at + 1), local_command(7, 6, "LC", at=at + 2)],
    }.items()
    if (what, where) not in ELSEWHERE
} | {
    "an attachment that has lost its parent is the last row": [*TALK, attachment(9, LOST, at=5)],
    "an attachment that has lost its parent is the last row, with branches": [
        *TALK, *end(5, 2), attachment(9, LOST, at=4.5)],
    "a system row that has lost its parent is the last row": [*TALK, *end(5, 2), system(9, LOST, at=4.5)],
    "an attachment on an attachment that has lost its parent is the last row": [
        *TALK, *end(5, 2), attachment(9, LOST, at=4.5), attachment(10, 9, at=4.6)],
    "a head record names an attachment that has lost its parent": [
        *TALK, *end(5, 2), attachment(9, LOST, at=4.5), head(9)],
    "an attachment that names itself is the last row": [*TALK, *end(5, 2), attachment(9, 9, at=4.5)],
    "two attachments that name each other are the last rows": [
        *TALK, *end(5, 2), attachment(9, 10, at=4.5), attachment(10, 9, at=4.6)],
    "a boundary that names itself is the last row": [*TALK, *end(5, 2), boundary(9, 9, at=4.5)],
    "an attachment under a user row without a message is the last row": [
        *TALK, user(9, None, message=ABSENT), attachment(10, 9)],
})  # fmt: skip

POINTED = files({
    f"{how}, and {what}": [*TALK, boundary(5, note=note), summary(6, 5), *pieces]
    for how, note in {"kept rows": SEGMENT, "a list of kept rows": LIST, "no note": None}.items()
    for what, pieces in {
        "a head record of zeros at the end": [*end(7, 6), head(8), exact(NOBODY)],
        "a head record on the turn, then one on a kept row": [*end(7, 6), head(8), head(4)],
        "a head record on a kept row, then a turn": [head(4), *end(7, 6)],
        "an explicit head record on a kept row, then a turn on it": [exact(4), *end(7, 4)],
        "an explicit head record on a kept row, then a turn on the summary": [exact(4), *end(7, 6)],
        "a clearing, then a turn on the summary": [exact(None), *end(7, 6)],
        "a clearing after a turn": [*end(7, 6), exact(None)],
        "two branches on the summary": [*end(7, 6), *end(9, 6)],
        "two branches on the summary, the older pointed at": [*end(7, 6), *end(9, 6), head(8)],
        "a sidechain row on the summary": [*end(7, 6), user(9, 6, isSidechain=True)],
        "a progress row between the summary and the turn": [row(9, 6, "progress", at=6.5), *end(7, 9)],
    }.items()
})  # fmt: skip

TWICE = files({
    "two compactions one behind the other": [*TALK, boundary(5), boundary(9, 5), summary(10, 9), *end(11, 10)],
    "two compactions, the second on the summary of the first": [
        *TALK, boundary(5), summary(6, 5), boundary(9, 6), summary(10, 9), *end(11, 10)],
    "two compactions, the older pointed at by the last row": [
        *TALK, boundary(5), *AFTER, boundary(9), summary(10, 9), *end(11, 8)],
    "two compactions, the second note keeps the first summary": [
        *TALK, boundary(5), *AFTER, boundary(9, note=segment(6, 8, anchor=10)), summary(10, 9), *end(11, 10)],
    "two compactions with notes, the second keeps the first boundary": [
        *TALK, boundary(5, note=SEGMENT), *AFTER, boundary(9, note=segment(5, 8, anchor=10)), summary(10, 9),
        *end(11, 10)],
    "two compactions with notes, the second broken": [
        *TALK, boundary(5, note=SEGMENT), *AFTER, boundary(9, note=segment(LOST, 8, anchor=10)), summary(10, 9),
        *end(11, 10)],
    "two compactions with notes, the second broken, the last row on the first": [
        *TALK, boundary(5, note=SEGMENT), *AFTER, boundary(9, note=segment(LOST, 8, anchor=10)), summary(10, 9),
        *end(11, 8)],
    "two compactions with lists, the second keeps rows the first kept": [
        *TALK, boundary(5, note=LIST), *AFTER, boundary(9, note=kept(3, 4, 7, 8, anchor=10)), summary(10, 9),
        *end(11, 10)],
    "two compactions on two branches": [
        *TALK, boundary(5, 2), summary(6, 5), *end(7, 6), boundary(9, 4), summary(10, 9), *end(11, 10)],
    "two compactions on two branches with notes, the older pointed at": [
        *TALK, boundary(5, 2, note=segment(1, 2, anchor=6)), summary(6, 5), *end(7, 6),
        boundary(9, 4, note=segment(3, 4, anchor=10)), summary(10, 9), *end(11, 10), head(8)],
    "a microcompaction behind a compaction": [
        *TALK, boundary(5), *AFTER, row(9, 8, "system", subtype="microcompact_boundary", content="m"), *end(10, 9)],
    "a microcompaction with a note": [
        *TALK, system(5, 4, "microcompact_boundary", microcompactMetadata={"trigger": "auto"},
                      compactMetadata=SEGMENT), *end(7, 5)],
    "a microcompaction without a parent": [*TALK, system(5, None, "microcompact_boundary"), *end(7, 5)],
})  # fmt: skip

CALLS: list[Piece] = [
    user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m"), user(4, 3, [result(2)]),
    user(14, 2, [result(1)], at=4.5)]  # fmt: skip


def over_calls(note: Row | None, *more: Piece) -> list[Piece]:
    """Parallel calls, then a compaction with this note and a turn."""
    return [*CALLS, boundary(5, note=note), *(more or AFTER)]


WITH_CALLS = files({
    "parallel calls before a compaction, all kept": over_calls(segment(1, 14, anchor=6)),
    "parallel calls before a compaction, listed": over_calls(kept(2, 3, 4, 14, anchor=6)),
    "parallel calls before a compaction, a result alone kept": over_calls(segment(14, 14, anchor=6)),
    "parallel calls before a compaction, a call alone kept": over_calls(segment(3, 3, anchor=6)),
    "parallel calls before a compaction, a call and another's result listed": over_calls(kept(2, 4, anchor=6)),
    "parallel calls before a compaction, none kept, the turn on a result": over_calls(
        None, summary(6, 5), *end(7, 14)),
    "parallel calls before a compaction, the result comes after it": [
        *CALLS[:4], boundary(5, note=segment(2, 3, anchor=6)), summary(6, 5), user(14, 2, [result(1)], at=6.5),
        *end(7, 6)],
    "a call before a compaction, its result after it": [
        user(1), answer(2, 1, [call(1)]), boundary(5), summary(6, 5), user(7, 6, [result(1)]), answer(8, 7)],
    "a call kept over a compaction, its result after it": [
        user(1), answer(2, 1, [call(1)]), boundary(5, note=segment(2, 2, anchor=6)), summary(6, 5),
        user(7, 2, [result(1)]), answer(8, 7)],
    "an answer whose rows stand on both sides of a compaction": [
        user(1), answer(2, 1, "X", of="m"), boundary(5), summary(6, 5), answer(7, 6, "Y", of="m"), *end(8, 7)],
    "an answer whose kept row has a thought before the boundary": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 2, "Y", of="m"),
        boundary(5, note=segment(3, 3, anchor=6)), *AFTER],
    "a kept prompt with its attachments": [
        user(1), answer(2, 1), user(3, 2), attachment(4, 3), boundary(5, note=SEGMENT), *AFTER],
    "a kept row that comes again after the compaction": [
        *TALK, boundary(5, note=SEGMENT), *AFTER, answer(4, 3, "A4b", at=9)],
    "a kept row that comes again on the turn": [*TALK, boundary(5, note=SEGMENT), *AFTER, answer(4, 8, "A4b", at=9)],
    "a kept row that is a sidechain row": [
        user(1), answer(2, 1), user(3, 2, isSidechain=True), answer(4, 3), boundary(5, note=SEGMENT), *AFTER],
    "a kept row whose parent was lost": [
        user(1), answer(2, 1), user(3, LOST), answer(4, 3), boundary(5, note=SEGMENT), *AFTER],
    "kept rows with a lost parent between": [
        user(1), answer(2, 1), user(3, 2), answer(4, LOST), boundary(5, note=SEGMENT), *AFTER],
    "kept rows over a progress row": [
        user(1), answer(2, 1), user(3, 2), row(9, 3, "progress", at=3.5), answer(4, 9), boundary(5, note=SEGMENT),
        *AFTER],
    "a kept row is a progress row": [
        user(1), answer(2, 1), user(3, 2), row(9, 3, "progress", at=3.5), answer(4, 9),
        boundary(5, note=segment(9, 4, anchor=6)), *AFTER],
    "kept rows, and a later row has lost its parent": [*TALK, boundary(5, note=SEGMENT), *AFTER, *end(9, LOST)],
    "kept rows, and a later row has lost its parent soon after a gone one": [
        *TALK, boundary(5, note=SEGMENT, at=20), summary(6, 5, at=21), user(7, LOST, at=4.5), answer(8, 7, at=22)],
})  # fmt: skip

CASES = ODD_NOTES | NOT_AN_OBJECT | LAST_ROWS | POINTED | TWICE | WITH_CALLS
