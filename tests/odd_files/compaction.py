"""Compactions: a boundary, a summary, and the rows that stay in the conversation."""

from __future__ import annotations

from typing import Any

from odd_files.rows import (
    LOST,
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
    result,
    row,
    segment,
    source,
    summary,
    user,
    uuid,
)

AFTER: list[Piece] = [summary(6, 5), *end(7, 6)]
"""What follows a boundary 5: its summary and a turn."""
SECOND: list[Piece] = [summary(10, 9), *end(11, 10)]
"""What follows a boundary 9."""


def compacted(note: Row | None = None, *more: Piece, **fields: Any) -> list[Piece]:
    """U1, A2, U3, A4, then a compaction with this note, a turn, and `more`."""
    return [*TALK, boundary(5, note=note, **fields), *AFTER, *more]


def bare(note: Row | None, *more: Piece) -> list[Piece]:
    """The same without a turn after the summary."""
    return [*TALK, boundary(5, note=note), summary(6, 5), *more]


def late(parent: int | None) -> list[Piece]:
    """A turn that hangs on `parent`, after everything."""
    return [user(20, parent, at=30), answer(21, 20, at=31)]


SEGMENT = segment(3, 4, anchor=6)
LIST = kept(3, 4, anchor=6)

PLAIN = files({
    "a compaction": compacted(logicalParentUuid=uuid(4)),
    "a compaction whose boundary has a parent": [*TALK, boundary(5, 4), *AFTER],
    "a compaction whose boundary has lost its parent": [*TALK, boundary(5, LOST), *AFTER],
    "a boundary without metadata": [*TALK, row(5, None, "system", subtype="compact_boundary"), *AFTER],
    "a boundary and no summary": [*TALK, boundary(5), *end(7, 5)],
    "a boundary of a sidechain": [*TALK, boundary(5, 4, isSidechain=True), *end(7, 5)],
    "a boundary of a sidechain beside the chain": [*TALK, boundary(5, None, isSidechain=True), *end(7, 4)],
    "a microcompaction": [*TALK, row(5, 4, "system", subtype="microcompact_boundary", content="x"), *end(7, 5)],
    "a summary without a boundary, as a new root": [*TALK, summary(6, None), *end(7, 6)],
    "a summary without a boundary, in the chain": [*TALK, summary(6, 4), *end(7, 6)],
    "two compactions": [*compacted(), boundary(9), *SECOND],
    "a compaction and a branch before it, written later": compacted(None, user(9, 2, at=30), answer(10, 9, at=31)),
    "a compaction and a head record that names a row before it": compacted(None, head(4)),
    "a compaction and an explicit head record that names a row before it": compacted(None, exact(4)),
    "a head record stands before a compaction, a branch after both": [
        *TALK, head(4), boundary(5), summary(6, 5), user(9, 2, at=30), answer(10, 9, at=31)],
    "a head record stands before a compaction that says nothing more": [
        user(6, None, at=3.5), head(6), boundary(8, at=6.5), user(9, 8, at=12.5), answer(10, 9, at=13)],
    "an explicit head record stands before a compaction": [*TALK, exact(2), boundary(5), summary(6, 5), *end(7, 6)],
    "a compaction on another branch than the head": [
        *TALK, user(9, 2), boundary(5, 9, at=10), summary(6, 5, at=11), head(4)],
    "rows below the old end after a compaction": [*TALK, boundary(5), summary(6, 5), *end(7, 4)],
})  # fmt: skip

AT_THE_END = files({
    "a boundary is the last row": [*TALK, boundary(9)],
    "a boundary with a logical parent is the last row": [*TALK, boundary(5, logicalParentUuid=uuid(4))],
    "a boundary is the last row, with branches": [*TALK, *end(5, 2), boundary(9)],
    "a boundary is the last row, with branches, the older written last": [
        user(1), answer(2, 1), *end(5, 2), *end(3, 2), boundary(9)],
    "a boundary with a logical parent on the older branch is the last row": [
        user(1), answer(2, 1), *end(5, 2), *end(3, 2), boundary(9, logicalParentUuid=uuid(6))],
    "a boundary on the chain is the last row": [*TALK, boundary(9, 4)],
    "an attachment on a boundary is the last row": [*TALK, boundary(9), attachment(10, 9)],
    "an attachment on a boundary on the chain is the last row": [*TALK, boundary(9, 4), attachment(10, 9)],
    "a head record names a boundary at the end": [*TALK, boundary(9), head(9)],
    "a head record names the row before a boundary at the end": [*TALK, boundary(9), head(4)],
    "an explicit head record names a boundary at the end": [*TALK, boundary(9), exact(9)],
    "a summary is the last row": bare(None),
    "a summary is the last row, an explicit head record on its boundary": bare(None, exact(5)),
    "a boundary with kept rows is the last row": [*TALK, boundary(5, note=SEGMENT)],
    "a boundary that is its own anchor is the last row": [*TALK, boundary(5, note=segment(3, 4, anchor=5))],
})  # fmt: skip

KEPT = files({
    "one row is kept": compacted(segment(4, 4, anchor=6)),
    "two rows are kept": compacted(SEGMENT),
    "two rows are kept behind the boundary": compacted(segment(3, 4, anchor=5)),
    "two rows are kept as a list": compacted(LIST),
    "two rows are kept as a list, behind the boundary": compacted(kept(3, 4, anchor=5)),
    "two rows are kept as a list, the later first": compacted(kept(4, 3, anchor=6)),
    "two rows far apart are kept as a list": compacted(kept(1, 4, anchor=6)),
    "a row is kept twice in a list": compacted(kept(3, 3, 4, anchor=6)),
    "a list of kept rows and a longer one of all": compacted(kept(4, anchor=6, whole=(3, 4))),
    "a list and a segment": compacted(kept(1, 4, anchor=6) | SEGMENT),
    "a list that does not hold, and a segment": compacted(kept(LOST, 4, anchor=6) | SEGMENT),
    "an empty list, and a segment": compacted(kept(anchor=6) | SEGMENT),
    "a list with a row from after the boundary": compacted(kept(4, 7, anchor=6)),
    "a segment from after the boundary": compacted(segment(7, 8, anchor=6)),
    "kept rows, and an attachment on the summary before the next prompt": [
        *TALK, boundary(5, note=SEGMENT), summary(6, 5), attachment(30, 6, at=6.5), user(7, 30), answer(8, 7)],
    "kept rows, and an attachment on the summary beside the next prompt": [
        *TALK, boundary(5, note=SEGMENT), summary(6, 5), attachment(30, 6, at=6.5), *end(7, 6)],
    "kept rows, the boundary written before all others": [
        boundary(5, note=SEGMENT), summary(6, 5), *TALK, *end(7, 6)],
    "half of a parallel answer is kept": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m"), user(4, 3, [result(2)], **source(3)),
        user(14, 2, [result(1)], **source(2)), boundary(5, note=segment(2, 14, anchor=6), at=15), summary(6, 5, at=16),
        user(7, 6, at=17), answer(8, 7, at=18)],
    "half of a parallel answer is kept, and all of it counted": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m"), user(4, 3, [result(2)], **source(3)),
        user(14, 2, [result(1)], **source(2)), boundary(5, note=kept(2, 14, anchor=6, whole=(2, 3, 4, 14)), at=15),
        summary(6, 5, at=16), user(7, 6, at=17), answer(8, 7, at=18)],
})  # fmt: skip

BROKEN_NOTES = files({
    "kept rows whose first is missing": compacted(segment(LOST, 4, anchor=6)),
    "kept rows whose last is missing": compacted(segment(3, LOST, anchor=6)),
    "kept rows whose anchor is missing": compacted(segment(3, 4, anchor=LOST)),
    "kept rows whose first is not above the last": [
        *TALK, user(15, 2), answer(16, 15), boundary(5, note=segment(4, 16, anchor=6), at=17), summary(6, 5, at=18),
        user(7, 6, at=19), answer(8, 7, at=20)],
    "kept rows whose first is below the last": compacted(segment(4, 3, anchor=6)),
    "a list of kept rows with one missing": compacted(kept(1, 3, LOST, anchor=6)),
    "a list of kept rows whose anchor is missing": compacted(kept(3, 4, anchor=LOST)),
})  # fmt: skip

KEPT_TWICE = files({
    "two compactions, the first with kept rows": [*compacted(SEGMENT), boundary(9), *SECOND],
    "two compactions, the second with kept rows": [*compacted(), boundary(9, note=segment(7, 8, anchor=10)), *SECOND],
    "two compactions with kept rows": [*compacted(SEGMENT), boundary(9, note=segment(7, 8, anchor=10)), *SECOND],
    "two compactions, the second keeps rows from before the first": [
        *compacted(SEGMENT), boundary(9, note=segment(3, 8, anchor=10)), *SECOND],
    "two compactions, the second keeps rows from over a boundary in the chain": [
        *TALK, boundary(5, 4), *AFTER, boundary(9, note=segment(3, 8, anchor=10)), *SECOND],
    "two compactions, the second lists rows from before the first": [
        *compacted(SEGMENT), boundary(9, note=kept(4, 7, 8, anchor=10)), *SECOND],
    "two compactions, a head record between": [*compacted(), boundary(9), *SECOND, head(8)],
    "two compactions, a head record before both": [*compacted(), boundary(9), *SECOND, head(4)],
    "two compactions, the first with kept rows, a head record between": [
        *compacted(SEGMENT), boundary(9), *SECOND, head(8)],
    "two compactions, the first with kept rows, a head record before both": [
        *compacted(SEGMENT), boundary(9), *SECOND, head(4)],
    "two compactions, the first with a list, a head record between": [
        *compacted(kept(4, anchor=6)), boundary(9), *SECOND, head(8)],
    "two compactions, the first with a broken note, a head record between": [
        *compacted(segment(LOST, 4, anchor=6)), boundary(9), *SECOND, head(8)],
    "two compactions, the first with kept rows, and a late branch between": [
        *compacted(SEGMENT), boundary(9), *SECOND, *late(8)],
})  # fmt: skip

POINTED = files({
    "kept rows and a head record on the last of them": compacted(SEGMENT, head(4)),
    "kept rows and a head record on the summary": compacted(SEGMENT, head(6)),
    "kept rows and a head record on a row that is gone": compacted(SEGMENT, head(2)),
    "kept rows and an explicit head record on a row that is gone": compacted(SEGMENT, exact(2)),
    "a broken note and a head record before the boundary": compacted(segment(LOST, 4, anchor=6), head(2)),
    "a list of kept rows and a head record on a row that is gone": compacted(LIST, head(2)),
    "a broken list of kept rows and a head record before the boundary": compacted(kept(3, LOST, anchor=6), head(2)),
    "a list of kept rows without an anchor and a head record before the boundary": compacted(
        kept(3, 4, anchor=LOST), head(2)),
    "a longer list of all and an explicit head record on a row that is only there": compacted(
        kept(4, anchor=6, whole=(3, 4)), exact(3)),
    "an empty list of kept rows and a head record before the boundary": compacted(kept(anchor=6), head(2)),
    "kept rows, and the summary is the last row": bare(SEGMENT),
    "a list of kept rows, and the summary is the last row": bare(LIST),
    "kept rows that end with a prompt, and the summary is the last row": [
        *TALK[:3], boundary(5, note=segment(3, 3, anchor=6)), summary(6, 5)],
    "kept rows that are newer than the summary, which is the last row": [
        *TALK[:3], answer(4, 3, at=50), boundary(5, note=LIST), summary(6, 5)],
    "kept rows, the summary last, a head record on it": bare(SEGMENT, head(6)),
    "kept rows, the summary last, an explicit head record on it": bare(SEGMENT, exact(6)),
    "kept rows, the summary last, a head record on the last kept row": bare(SEGMENT, head(4)),
    "kept rows, the summary last, a head record on the first kept row": bare(SEGMENT, head(3)),
    "kept rows, the summary last, an explicit head record on the first kept row": bare(SEGMENT, exact(3)),
    "kept rows, and an attachment on the summary is the last row": bare(SEGMENT, attachment(7, 6)),
    "kept rows, a prompt on the summary, a head record on the summary": bare(SEGMENT, user(7, 6), head(6)),
    "kept rows, a prompt on the summary, an explicit head record on the summary": bare(SEGMENT, user(7, 6), exact(6)),
    "kept rows, a prompt on the summary, an explicit head record on the boundary": bare(SEGMENT, user(7, 6), exact(5)),
})  # fmt: skip

LATE_TURNS = files({
    f"kept rows, and a late turn on {where}": compacted(SEGMENT, *late(parent))
    for where, parent in {
        "the first row, which is gone": 1, "a row that is gone": 2, "a row nobody knows": LOST, "the first kept row": 3,
        "the last kept row": 4, "the summary": 6, "the boundary": 5, "nothing": None,
    }.items()
} | {
    "a list of kept rows, and a late turn on a row that is gone": compacted(LIST, *late(2)),
    "a list of rows far apart, and a late turn between them": compacted(kept(1, 4, anchor=6), *late(2)),
    "no kept rows, and a late turn on a row before the boundary": compacted(None, *late(2)),
    "no kept rows but a logical parent, and a late turn before the boundary": compacted(
        None, *late(2), logicalParentUuid=uuid(4)),
    "kept rows, and a late turn on a branch that is gone": [
        *TALK, user(15, 2, at=4.1), answer(16, 15, at=4.2), boundary(5, note=SEGMENT), *AFTER, *late(16)],
    "kept rows, and a turn soon after on a row that is gone": compacted(
        SEGMENT, user(20, 2, at=9), answer(21, 20, at=10)),
    "kept rows, and the next turn on the last of them": [
        *TALK, boundary(5, note=SEGMENT), summary(6, 5), user(7, 4), answer(8, 7)],
})  # fmt: skip

CASES = PLAIN | AT_THE_END | KEPT | BROKEN_NOTES | KEPT_TWICE | POINTED | LATE_TURNS
