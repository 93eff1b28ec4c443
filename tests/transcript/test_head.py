"""The head: where the client goes on."""

from __future__ import annotations

from clew.transcript.head import Head, find_head
from odd_files.answers import tree_of
from odd_files.rows import (
    ABSENT,
    LOST,
    OTHER,
    START,
    TALK,
    Piece,
    answer,
    attachment,
    encoded,
    end,
    exact,
    head,
    user,
)

OLD = end(3, 2)


def found(*pieces: Piece) -> Head:
    return find_head(tree_of(encoded(*pieces)))


def number(*pieces: Piece) -> int | None:
    uuid = found(*pieces).uuid
    return None if uuid is None else int(uuid[:8])


def test_without_a_head_record_it_is_the_last_row_of_the_file() -> None:
    assert number(*TALK, *OTHER) == 6
    assert number(*START, *OTHER, *OLD) == 4


def test_without_a_head_record_a_later_row_below_the_last_one_is_preferred() -> None:
    assert number(user(1), *OLD, answer(2, 1)) == 4


def test_a_head_record_keeps_the_older_branch() -> None:
    assert number(*TALK, *OTHER, head(4)) == 4
    assert number(*TALK, head(4), *OTHER) == 4


def test_rows_below_a_head_record_are_followed() -> None:
    assert number(*TALK, head(2)) == 4
    assert number(*TALK, head(4), *end(5, 4)) == 6


def test_an_explicit_head_record_cuts_off_what_was_there_and_follows_what_comes() -> None:
    assert number(*TALK, exact(2)) == 2
    assert number(*TALK, exact(2), *OTHER) == 6


def test_a_head_record_nobody_knows_counts_as_none() -> None:
    assert number(*TALK, *OTHER, head(LOST)) == 6


def test_an_explicit_null_is_an_empty_conversation_and_no_refusal() -> None:
    cleared = found(*TALK, exact(None))
    assert (cleared.uuid, cleared.refused) == (None, False)
    assert number(*TALK, exact(None), user(5), answer(6, 5)) == 6


def test_when_nothing_is_said_above_the_last_row_it_is_the_newest_leaf() -> None:
    assert number(*TALK, attachment(9, None)) == 4


def test_a_log_without_rows_of_a_conversation_is_refused() -> None:
    assert found().refused
    assert found(head(2)).refused


def test_a_sidechain_and_a_row_without_a_time_are_refused_and_say_why() -> None:
    beside = found(*TALK, user(9, 4, isSidechain=True), head(9))
    assert beside.refused
    assert "sidechain" in beside.why
    timeless = found(*TALK, user(5, 4), answer(6, 5, timestamp=ABSENT))
    assert timeless.refused
    assert "timestamp" in timeless.why


def test_every_head_says_why() -> None:
    for pieces in (TALK, [*TALK, head(2)], [*TALK, exact(None)], [], [*TALK, attachment(9, None)]):
        assert found(*pieces).why
