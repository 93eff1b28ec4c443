"""Rows whose parent was lost, stands in a cycle, or is written in an odd way; rows that come twice."""

from __future__ import annotations

from typing import Any

from odd_files.rows import (
    ABSENT,
    LOST,
    START,
    TALK,
    Piece,
    Row,
    answer,
    attachment,
    end,
    exact,
    files,
    head,
    row,
    system,
    user,
    uuid,
)


def plain(*rows: Row) -> list[Piece]:
    """Rows with nothing but the fields the client needs."""
    needed = ("type", "uuid", "parentUuid", "message", "timestamp")
    return [{name: piece[name] for name in needed if name in piece} for piece in rows]


def four(**fields: Any) -> list[Piece]:
    """U1, A2, U3, A4 with the same odd field in each row."""
    return [user(1, **fields), answer(2, 1, **fields), user(3, 2, **fields), answer(4, 3, **fields)]


def progress(number: int, parent: int | None, at: float) -> Piece:
    return row(number, parent, "progress", at=at)


FAR = [user(3, 7, at=30), answer(4, 3, at=31)]
"""U3 on row 7, too late for a repair."""
NEAR = [user(3, 7, at=3), answer(4, 3, at=31)]
ORPHANS = [user(3, LOST, at=3), answer(4, 3, at=4)]

LOST_PARENTS = files({
    "a lost parent, another row one second older": [*START, *ORPHANS],
    "a lost parent, every other row six seconds older": [*START, user(3, LOST, at=8.5), answer(4, 3, at=9)],
    "a lost parent, another row five seconds older": [*START, user(3, LOST, at=7), answer(4, 3, at=8)],
    "a lost parent, another row a millisecond more than five seconds older": [
        *START, user(3, LOST, at=7.001), answer(4, 3, at=8)],
    "a lost parent, the newest row on another branch": [*START, user(5, 1, at=2.5), *ORPHANS],
    "a lost parent, the newest row later in the file": [*START, *ORPHANS, user(5, 2, at=2.9), head(4)],
    "a lost parent, a row of the same time before it": [*START, user(5, 2, at=3), *ORPHANS],
    "a lost parent, a row of the same time after it": [*START, *ORPHANS, user(5, 2, at=3), head(4)],
    "a lost parent, two rows of one time before it": [*START, user(5, 1, at=2.5), user(6, 1, at=2.5), *ORPHANS],
    "a lost parent, two rows of one time before it, the other way": [
        *START, user(6, 1, at=2.5), user(5, 1, at=2.5), *ORPHANS],
    "a lost parent, every other row newer": [user(1, at=10), answer(2, 1, at=11), *ORPHANS],
    "a lost parent, its own child the newest row": [*START, user(3, LOST, at=3), answer(4, 3, at=2.9)],
    "a lost parent, a sidechain row the newest": [*START, user(7, 1, at=2.5, isSidechain=True), *ORPHANS],
    "a lost parent, an attachment the newest row": [*START, attachment(7, 1, at=2.5), *ORPHANS],
    "a lost parent, a system row the newest": [*START, system(7, 1, at=2.5), *ORPHANS],
    "a lost parent, a progress row the newest": [*START, progress(7, 1, 2.5), *ORPHANS],
    "a lost parent of a row without a time": [*START, user(3, LOST, timestamp=ABSENT), answer(4, 3)],
    "three lost parents": [*START, user(3, LOST), answer(4, 98), user(5, 97), answer(6, 5)],
    "three lost parents, the first long after": [
        *START, user(3, LOST, at=20), answer(4, 98, at=21), user(5, 97, at=22), answer(6, 5, at=23)],
    "the first row has lost its parent": [user(1, LOST), answer(2, 1), *end(3, 2)],
    "the first row has lost its parent and a later one is older": [
        user(1, LOST, at=3), answer(2, 1, at=4), user(3, 2, at=2.5), answer(4, 3, at=5)],
    "the root is missing": [answer(2, 1), *end(3, 2)],
})  # fmt: skip

WALKED_THROUGH = files({
    "a progress row in the chain": [*START, progress(7, 2, 2.2), *FAR],
    "two progress rows in the chain": [
        *START, progress(7, 2, 2.2), progress(8, 7, 2.3), user(3, 8, at=30), answer(4, 3, at=31)],
    "a progress row in the chain stands after its child": [
        *START, user(3, 7, at=30), progress(7, 2, 29), answer(4, 3, at=31)],
    "a progress row in the chain has lost its parent": [*START, progress(7, LOST, 2.2), *FAR],
    "a progress row in the chain has no parent": [*START, progress(7, None, 2.2), *NEAR],
    "a row of an unknown type in the chain": [*START, row(7, 2, "zzz", at=2.2), *NEAR],
    "a row of an unknown type in the chain, long before its child": [*START, row(7, 2, "zzz", at=2.2), *FAR],
    "a row of an unknown type in the chain, with a branch beside it": [
        *START, user(5, 2, at=2.1), row(7, 2, "zzz", at=2.2), *NEAR],
    "a row of an unknown type without a uuid": [*START, {"type": "zzz", "x": 1}, *end(3, 2)],
    "a sidechain row in the chain": [*START, user(7, 2, "S7", at=2.5, isSidechain=True), *FAR],
    "a user row without a message in the chain": [*START, user(3, 2, at=60, message=ABSENT), answer(4, 3, at=120)],
    "a user row with a null message in the chain": [*START, user(3, 2, at=60, message=None), answer(4, 3, at=120)],
    "a user row with a string for a message in the chain": [
        *START, user(3, 2, at=60, message="str"), answer(4, 3, at=120)],
    "a user row with null content in the chain": [*START, user(3, 2, None, at=60), answer(4, 3, at=120)],
    "a user row with empty content in the chain": [*START, user(3, 2, [], at=60), answer(4, 3, at=120)],
    "an answer with null content in the chain": [
        *START, row(3, 2, "assistant", at=60, message={"role": "assistant", "content": None}), user(4, 3, at=120),
        answer(5, 4, at=121)],
    "a system row without content in the chain": [
        *START, row(3, 2, "system", at=60, subtype="informational"), answer(4, 3, at=120)],
    "a system row without a subtype in the chain": [*START, row(3, 2, "system", at=60), answer(4, 3, at=120)],
    "an attachment with nothing attached in the chain": [*START, row(3, 2, "attachment", at=60), answer(4, 3, at=120)],
})  # fmt: skip

CYCLES = files({
    "two rows name each other": [user(1), answer(2, 3), user(3, 2), answer(4, 3)],
    "two rows name each other, long after the first": [
        user(1), answer(2, 3, at=20), user(3, 2, at=30), answer(4, 3, at=40)],
    "the last two rows name each other": [*START, user(3, 4), answer(4, 3)],
    "the last two rows name each other, long after the rest": [*START, user(3, 4, at=30), answer(4, 3, at=40)],
    "all rows stand in one cycle": [user(1, 4), answer(2, 1), *end(3, 2)],
    "all rows stand in one cycle, far apart": [
        user(1, 4, at=10), answer(2, 1, at=20), user(3, 2, at=30), answer(4, 3, at=40)],
    "the root names itself": [user(1, 1), answer(2, 1), *end(3, 2)],
    "a row in the middle names itself": [*START, user(3, 3), answer(4, 3, at=40)],
    "a row in the middle names itself, long after the rest": [*START, user(3, 3, at=30), answer(4, 3, at=40)],
    "the last row names itself": [*START, user(3, 2), answer(4, 4)],
    "a cycle beside the chain": [*TALK, user(5, 6), answer(6, 5), head(4)],
    "a cycle with a row that hangs on it": [*START, user(3, 5), answer(4, 3), user(5, 4), answer(6, 5)],
})  # fmt: skip

TWICE = files({
    "a uuid comes twice with other content": [user(1), answer(2, 1), answer(2, 1, "A2b"), *end(3, 2)],
    "a uuid comes twice, the second with another parent": [*TALK, user(3, 1, "U3b", at=9)],
    "the uuid of the leaf comes twice, as another answer": [*TALK, answer(4, 3, "A4b", at=9, of="other")],
    "the uuid of the leaf comes twice, as the same answer": [*TALK, answer(4, 3, "A4b", at=9)],
    "a uuid comes twice, the second a progress row": [*TALK, progress(3, 2, 9)],
    "a uuid of the older branch comes again at the end": [*TALK, *end(5, 2), user(3, 2, "U3b", at=9)],
})  # fmt: skip

ODD_IDS = files({
    f"the parent is {what}": [*START, user(3, 2, parentUuid=parent), answer(4, 3)]
    for what, parent in {
        "an empty string": "", "zero": 0, "a number": 5, "false": False, "an object": {}, "null": None,
    }.items()
} | {
    "every parent is missing": four(parentUuid=ABSENT),
    "uuid and parent are one number": [*START, user(3, 2, uuid=5), answer(4, 3, parentUuid=5)],
    "uuid and parent are empty strings": [*START, user(3, 2, uuid=""), answer(4, 3, parentUuid="")],
    "a uuid is missing": [*START, user(3, 2, uuid=ABSENT), answer(4, 2)],
    "a uuid is null": [*START, user(3, 2, uuid=None), answer(4, 2)],
    "every uuid is missing": four(uuid=ABSENT),
    "uuids in another form": [
        user(1, uuid="r1"), answer(2, uuid="r2", parentUuid="r1"), user(3, uuid="r3", parentUuid="r2"),
        answer(4, uuid="r4", parentUuid="r3")],
    "rows of another session than the file": four(sessionId=uuid(77)),
    "rows with nothing but what is needed": plain(user(1), answer(2, 1), user(3, 2), answer(4, 3)),
    "times without milliseconds": [
        user(1, timestamp="2026-11-18T10:00:01Z"), answer(2, 1, timestamp="2026-11-18T10:00:02+00:00")],
    "an explicit head record on a row that lost its parent": [*START, *ORPHANS, exact(3)],
})  # fmt: skip

CASES = LOST_PARENTS | WALKED_THROUGH | CYCLES | TWICE | ODD_IDS
