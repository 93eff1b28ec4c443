"""Where the conversation goes on: head records, and what happens without one."""

from __future__ import annotations

from odd_files.rows import (
    ABSENT,
    LOST,
    NOBODY,
    OTHER,
    SESSION,
    START,
    TALK,
    Piece,
    answer,
    attachment,
    end,
    exact,
    files,
    head,
    local_command,
    row,
    system,
    user,
    uuid,
)

OLD = end(3, 2)
"""The branch U3, A4, which stands in the file before U5, A6."""


def timed(number: int, parent: int | None, timestamp: object) -> Piece:
    return answer(number, parent, timestamp=timestamp)


def sidechain(number: int, parent: int | None, at: float | None = None) -> Piece:
    return user(number, parent, isSidechain=True, at=at)


POINTED = files({
    "a head record names a row in the middle of a straight chain": [*TALK, head(2)],
    "a head record names the older branch": [*TALK, *OTHER, head(4)],
    "a head record names the older branch, written before the newer one": [*TALK, head(4), *OTHER],
    "a head record names the fork, written before the branches": [*START, head(2), *OLD, *OTHER],
    "a head record names the fork, written after the branches": [*TALK, *OTHER, head(2)],
    "a head record names the fork, then one without a leaf": [*TALK, *OTHER, head(2), head(leafUuid=ABSENT)],
    "a head record names a row nobody knows": [*TALK, *OTHER, head(LOST)],
    "a head record names the older branch, then one names a row nobody knows": [*TALK, *OTHER, head(4), head(LOST)],
    "a head record names the older branch, then one has a null leaf": [*TALK, *OTHER, head(4), head(None)],
    "a head record names the older branch, then one has an empty leaf": [*TALK, *OTHER, head(4), head("")],
    "a head record has a number for a leaf": [*TALK, *OTHER, head(4), head(leafUuid=5)],
    "a head record names a prompt": [*TALK, *OTHER, head(3)],
    "a head record of another session": [*TALK, *OTHER, head(4, sessionId=SESSION.replace("0a", "99"))],
    "a head record without a session": [*TALK, *OTHER, head(4, sessionId=ABSENT)],
    "a head record before all rows": [head(4), *TALK, *OTHER],
    "a head record names an attachment": [*START, attachment(7, 2), head(7), *OLD],
    "a head record names a sidechain row": [*TALK, *OTHER, sidechain(9, 4, 50), head(9)],
    "a head record names a progress row": [*TALK, *OTHER, row(9, 4, "progress", at=50), head(9)],
    "a head record names a row of an unknown type": [*TALK, *OTHER, row(9, 4, "zzz", at=50), head(9)],
    "a head record names a system row": [*TALK, *OTHER, system(9, 4, at=50), head(9)],
    "a head record says it was rewound": [*TALK, *OTHER, head(4, rewound=True, cutUuid=uuid(3))],
    "a head record says what was cut": [*TALK, head(4, cutUuid=uuid(3))],
    "a head record names a uuid that comes twice": [*TALK, user(3, 2, "U3b", at=9), head(3)],
    "a head record names a row that a second row of the same uuid hung elsewhere": [
        *TALK, answer(4, 1, "A4b", at=9), head(4)],
    "a head record names the root, and a second root follows": [*START, head(2), user(3), answer(4, 3)],
    "a head record names the older of two roots": [*START, user(3), answer(4, 3), head(1)],
})  # fmt: skip

BELOW = files({
    "below the head record stand two branches, the later times first": [
        *START, user(3, 2, at=30), answer(4, 3, at=31), *OTHER, head(2)],
    "below the head record stand two branches, the later times last": [
        *START, *OTHER, user(3, 2, at=30), answer(4, 3, at=31), head(2)],
    "below the head record the branches are interleaved": [
        *START, user(5, 2), user(3, 2), answer(4, 3, at=31), answer(6, 5, at=6), head(2)],
    "below the head record the branches are interleaved at one time": [
        *START, user(5, 2, at=9), user(3, 2, at=9), answer(6, 5, at=9), answer(4, 3, at=9), head(2)],
    "below the head record the deeper branch stands last": [*TALK, *OTHER, user(7, 4), answer(8, 7), head(2)],
    "below the head record an attachment stands last": [*TALK, *OTHER, attachment(9, 4, at=40), head(2)],
    "below the head record an attachment with an old time stands last": [
        *TALK, *OTHER, attachment(9, 4, at=1.5), head(2)],
    "below the head record a sidechain row stands last": [*TALK, *OTHER, sidechain(9, 4, 50), head(2)],
    "below the head record a sidechain row stands before its parent": [*TALK, sidechain(9, 6, 50), *OTHER, head(2)],
    "below the head record a progress row stands last": [*TALK, *OTHER, row(9, 4, "progress", at=50), head(2)],
    "below the head record stand three branches": [
        *START, user(3, 2), answer(4, 3, at=5), user(5, 2, at=3), answer(6, 5, at=9), user(7, 2, at=3), answer(8, 7),
        head(2)],
    "below the head record the last row has no time": [*TALK, user(5, 2), timed(6, 5, ABSENT), head(2)],
    "below the head record the last row has no readable time": [*TALK, user(5, 2), timed(6, 5, "zz"), head(2)],
    "beside the head record the last row has no time": [*TALK, user(5, 2), timed(6, 5, ABSENT), head(4)],
})  # fmt: skip

EXACT = files({
    "an explicit head record cuts off what follows": [*TALK, exact(2)],
    "an explicit head record on a prompt": [*TALK, exact(3)],
    "an explicit head record on the older branch": [*TALK, *OTHER, exact(4)],
    "an explicit head record on a row nobody knows": [*TALK, *OTHER, exact(LOST)],
    "an explicit head record at a fork cuts off both branches": [*TALK, *OTHER, exact(2)],
    "an explicit head record, and later a new branch below it": [*TALK, exact(2), *OTHER],
    "an explicit head record, and later rows below what was cut off": [*TALK, exact(2), *end(5, 4)],
    "an explicit head record, then a new branch, then rows below what was cut off": [
        *TALK, exact(2), *end(7, 2), *end(9, 4)],
    "an explicit head record, then rows below what was cut off, then a new branch": [
        *TALK, exact(2), *end(9, 4), *end(7, 2)],
    "an explicit head record, then rows above it": [*TALK, exact(2), user(9, 1, at=50), answer(10, 9, at=51)],
    "an explicit head record, then a sidechain row below it": [*TALK, exact(2), sidechain(9, 2)],
    "an explicit head record, then an attachment below it": [*TALK, exact(2), attachment(9, 2)],
    "an explicit head record, then a plain one for the same row": [*TALK, exact(2), head(2)],
    "an explicit head record, then a plain one further down": [*TALK, exact(2), head(4)],
    "an explicit head record, a plain one further down, then one for the same row": [*TALK, exact(2), head(4), head(2)],
    "an explicit head record, then a plain one further up": [*TALK, exact(2), head(1)],
    "an explicit head record, then a plain one between": [*TALK, exact(2), head(3)],
    "an explicit head record, then a plain one nobody knows": [*TALK, exact(2), head(LOST)],
    "an explicit head record, a plain one nobody knows, then one for the same row": [
        *TALK, exact(2), head(LOST), head(2)],
    "an explicit head record, then a plain one without a leaf": [*TALK, exact(2), head(leafUuid=ABSENT)],
    "an explicit head record, a new branch, then a plain one for the same row": [*TALK, exact(2), *OTHER, head(2)],
    "an explicit head record, a new branch, then a plain one for its end": [*TALK, exact(2), *OTHER, head(6)],
    "an explicit head record, a new branch, then a plain one for the old end": [*TALK, exact(2), *OTHER, head(4)],
    "a plain head record, then an explicit one": [*TALK, head(4), exact(2)],
    "two explicit head records": [*TALK, exact(4), exact(2)],
    "two explicit head records, then a new branch": [*TALK, exact(4), exact(2), *OTHER],
    "an explicit head record before all rows": [exact(2), *TALK],
    "an explicit head record in the middle": [*START, exact(2), *OLD],
    "an explicit head record in the middle, then two branches": [*START, exact(2), *OLD, *OTHER],
    "an explicit head record that was rewound": [*TALK, exact(2, rewound=True, cutUuid=uuid(3))],
    "explicit is false": [*TALK, head(2, explicit=False)],
    "explicit is a string": [*TALK, head(2, explicit="true")],
})  # fmt: skip

CLEARED = files({
    "an explicit null head record empties the conversation": [*TALK, exact(None)],
    "an explicit head record without a leaf": [*TALK, head(leafUuid=ABSENT, explicit=True)],
    "an explicit head record with an empty leaf": [*TALK, exact("")],
    "a clearing, then a new root": [*TALK, exact(None), user(5), answer(6, 5)],
    "a clearing, then a new root and a head record without a leaf": [
        *TALK, exact(None), user(9), answer(10, 9), head(leafUuid=ABSENT)],
    "a clearing, then rows below the old end": [*TALK, exact(None), *end(5, 4)],
    "a clearing, then an attachment below the old end": [*TALK, exact(None), attachment(9, 4)],
    "a clearing, then a plain head record": [*TALK, exact(None), head(4)],
    "a clearing, then a head record without a leaf": [*TALK, exact(None), head(leafUuid=ABSENT)],
    "a clearing, then a head record with a null leaf": [*TALK, exact(None), head(None)],
    "a clearing, then a head record nobody knows": [*TALK, exact(None), head(LOST)],
    "a clearing, then an explicit head record": [*TALK, exact(None), exact(2)],
    "a head record, a branch, then a clearing": [*TALK, head(4), *OTHER, exact(None)],
    "what the interactive client writes at a rewind": [*START, *OLD, user(5, 2), exact(NOBODY), answer(6, 5), head(6)],
    "the mark of a rewind and no head record after it": [*TALK, user(5, 2), exact(NOBODY), answer(6, 5)],
    "the mark of a rewind at the end": [*TALK, exact(NOBODY)],
    "the mark of a rewind, then rows on the other branch": [*START, exact(NOBODY), *OTHER, *OLD, head(6)],
})  # fmt: skip

LAST_ROW = files({
    "no head record and two branches": [*TALK, *OTHER],
    "no head record, the older branch written last": [*START, *OTHER, *OLD],
    "no head record, an attachment on the older branch last": [*TALK, *OTHER, attachment(7, 4)],
    "no head record, a system row on the older branch last": [*TALK, *OTHER, system(7, 4)],
    "no head record, a progress row on the older branch last": [*TALK, *OTHER, row(7, 4, "progress", data={})],
    "no head record, a sidechain row on the older branch last": [*TALK, *OTHER, sidechain(7, 4)],
    "no head record, a row of an unknown type on the older branch last": [*TALK, *OTHER, row(7, 4, "zzz")],
    "no head record and a parent written last": [user(1), *OLD, answer(2, 1)],
    "no head record and the fork written last": [user(1), *OLD, *OTHER, answer(2, 1)],
    "no head record and an attachment on the fork last": [
        *START, *OTHER, *OLD, user(8, 6, "late"), attachment(7, 2)],
    "no head record and three branches": [
        *START, user(3, 2), answer(4, 3, at=5), user(5, 2, at=3), answer(6, 5, at=9), user(7, 2, at=3), answer(8, 7)],
    "no head record and a prompt written after its answer": [*START, answer(4, 3), *OTHER, user(3, 2)],
    "two roots, interleaved": [user(1), user(3), answer(4, 3), answer(2, 1)],
    "all times are equal": [user(1, at=5), answer(2, 1, at=5), user(3, 2, at=5), answer(4, 3, at=5), user(6, 2, at=5)],
    "times fall": [user(1, at=9), answer(2, 1, at=8), user(3, 2, at=7), answer(4, 3, at=6), user(6, 2, at=5)],
    "an older branch of the year 2099": [*START, user(3, 2), timed(4, 3, "2099-01-01T00:00:00.000Z"), *OTHER],
})  # fmt: skip

NOTHING_SAID = files({
    "the last row is an attachment without a parent": [*TALK, attachment(9, None)],
    "the last row is an attachment without a parent, with branches": [*TALK, *OTHER, attachment(9, None)],
    "the last row is an attachment whose parent was lost long ago": [*TALK, attachment(9, LOST, at=60)],
    "the last row is a system row without a parent": [*TALK, system(9)],
    "a head record names a system row without a parent": [*TALK, *OTHER, system(9), head(9)],
    "a head record names an attachment without a parent": [*TALK, *OTHER, attachment(9, None), head(9)],
    "an explicit head record names an attachment without a parent": [*TALK, *OTHER, attachment(9, None), exact(9)],
    "a prompt on an attachment without a parent": [*TALK, attachment(9, None), user(10, 9)],
    "nothing but attachments": [attachment(1, None), attachment(2, 1)],
    "nothing but a system row": [system(1)],
    "nothing but an attachment and a local command": [attachment(1, None), local_command(2, 1)],
    "the newest leaf by time, for want of a last row": [
        user(1, at=1), answer(2, 1, at=20), user(3, 2, at=30), answer(4, 3, at=4), attachment(9, None, at=50)],
    "the newest leaf is a sidechain row, for want of a last row": [
        user(1, at=1), answer(2, 1, at=20), user(3, 2, at=30, isSidechain=True), attachment(9, None, at=50)],
    "the newest leaf is older than its parent, for want of a last row": [
        user(1, at=1), answer(2, 1, at=20), user(3, 2, at=3), attachment(9, None, at=50)],
})  # fmt: skip

TIMES: dict[str, list[Piece]] = {
    f"the time of the row the head record names {what}": [*START, user(3, 2), timed(4, 3, timestamp), *OTHER, head(4)]
    for what, timestamp in {
        "is missing": ABSENT,
        "is null": None,
        "is empty": "",
        "is garbage": "zz",
        "is a number": 1795030275040,
        "is a number in a string": "1795030275040",
        "is a date alone": "2026-11-18",
        "is a year alone": "2026",
        "is that of a mail": "Wed, 18 Nov 2026 10:00:00 GMT",
        "has a blank for the T": "2026-11-18 10:00:00",
        "has no milliseconds": "2026-11-18T10:00:04Z",
        "has an offset": "2026-11-18T10:00:00+02:00",
    }.items()
} | {
    "the time of the row an explicit head record names is missing": [
        *START, user(3, 2), timed(4, 3, ABSENT), *OTHER, exact(4)],
    "the last row has no time": [*TALK, user(5, 2), timed(6, 5, ABSENT)],
    "a row in the middle has no time": [user(1), timed(2, 1, ABSENT), *OLD],
    "an attachment at the end has no time": [*TALK, attachment(9, 4, timestamp=ABSENT)],
    "no row has a time": [user(1, timestamp=ABSENT), timed(2, 1, ABSENT)],
    "no row has a readable time": [user(1, timestamp="zz"), timed(2, 1, "zz")],
}  # fmt: skip

SIDECHAINS = files({
    "all rows are sidechain rows": [user(1, isSidechain=True), answer(2, 1, isSidechain=True)],
    "isSidechain is a string": [*START, user(3, 2, isSidechain="yes"), answer(4, 3)],
    "isSidechain is missing": [user(1, isSidechain=ABSENT), answer(2, 1, isSidechain=ABSENT)],
    "the first row is a sidechain row": [user(1, isSidechain=True), answer(2, 1), *OLD],
    "another sidechain row stands first": [sidechain(9, None), *TALK],
    "rows name a team": [*START, user(3, 2, teamName="t"), answer(4, 3, teamName="t")],
    "rows name an agent and are no sidechain rows": [*START, user(3, 2, agentId="a1"), answer(4, 3, agentId="a1")],
})  # fmt: skip


def _shuffled() -> dict[str, list[Piece]]:
    """Two branches written in other orders than they were said, with and without a head record at the fork."""
    times = {
        "times as they were said": (3, 4, 5, 6),
        "the older branch later": (30, 40, 5, 6),
        "one time for all": (7, 7, 7, 7),
        "one late prompt": (50, 4, 5, 6),
    }
    orders = ("654321", "436521", "143652")
    cases: dict[str, list[Piece]] = {}
    for what, (third, fourth, fifth, sixth) in times.items():
        rows: dict[str, Piece] = {
            "1": user(1), "2": answer(2, 1), "3": user(3, 2, at=third), "4": answer(4, 3, at=fourth),
            "5": user(5, 2, at=fifth), "6": answer(6, 5, at=sixth),
        }  # fmt: skip
        for order in orders:
            pieces = [rows[number] for number in order]
            cases[f"rows in the order {order}, {what}"] = pieces
            cases[f"rows in the order {order}, {what}, a head record at the fork"] = [*pieces, head(2)]
    return cases


CASES = POINTED | BELOW | EXACT | CLEARED | LAST_ROW | NOTHING_SAID | files(TIMES) | SIDECHAINS | files(_shuffled())
