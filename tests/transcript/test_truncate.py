"""What moving the head does is known before it is done, and a second head record brings everything back."""

from __future__ import annotations

import pytest

from clew.errors import NotFound, UsageError
from clew.records.compact import compact
from clew.records.heads import head_record
from clew.testing.corpus import SESSION, SessionDraft
from clew.transcript.chain import chain_to
from clew.transcript.links import links_of
from clew.transcript.points import Point, chain_at, parse_point
from clew.transcript.selectors.record import AtRecord
from clew.transcript.truncate import Cut, cut_at
from odd_files import CASES, compaction
from odd_files.answers import ours, tree_of
from odd_files.rows import START, TALK, answer, attachment, boundary, call, encoded, exact, result, summary, user, uuid


def cut(content: bytes, point: Point | str) -> Cut:
    return cut_at(links_of(tree_of(content)), parse_point(point) if isinstance(point, str) else point)


def with_head(content: bytes, leaf: str | None) -> bytes:
    """The file once the head record stands in it."""
    end = b"" if content.endswith(b"\n") else b"\n"
    return content + end + compact(head_record(leaf, None, SESSION, is_explicit=True)) + b"\n"


@pytest.fixture
def three() -> SessionDraft:
    draft = SessionDraft()
    for number in (1, 2, 3):
        draft.user(f"q{number}")
        draft.assistant(f"a{number}")
    draft.head()
    return draft


def test_messages_behind_the_point_are_dropped_and_counted(three: SessionDraft) -> None:
    found = cut(three.to_bytes(), "turn:1")
    assert (found.dropped, found.first_dropped, found.last_prompt, found.prompt_before) == (4, "q2", "q1", "q3")
    assert found.leaf == found.head == three.rows[1]["uuid"]
    assert found.before == three.rows[5]["uuid"]
    assert found.is_moved
    assert found.notes == ()


def test_where_the_conversation_ends_already_nothing_is_moved(three: SessionDraft) -> None:
    for point in ("turn:-1", "turn:3", str(three.rows[5]["uuid"]), "time:2099-01-01"):
        found = cut(three.to_bytes(), point)
        assert (found.is_moved, found.dropped, found.first_dropped) == (False, 0, None)


def test_going_on_to_what_was_cut_off_drops_nothing(three: SessionDraft) -> None:
    content = with_head(three.to_bytes(), str(three.rows[1]["uuid"]))
    found = cut(content, str(three.rows[3]["uuid"]))
    assert (found.is_moved, found.dropped, found.prompt_before, found.last_prompt) == (True, 0, "q1", "q2")


def test_a_point_that_is_not_there_is_not_found(three: SessionDraft) -> None:
    for point in ("turn:4", "msg:nowhere", "nowhere-at-all", "time:1999-01-01"):
        with pytest.raises(NotFound):
            cut(three.to_bytes(), point)


def test_in_the_middle_of_an_answer_the_client_keeps_the_answer_whole_and_that_is_said() -> None:
    content = encoded(
        user(1),
        answer(2, 1, [call(1)], of="m"),
        answer(3, 2, [call(2)], of="m"),
        user(4, 3, [result(2)]),
        user(5, 2, [result(1)]),
        answer(6, 5),
    )
    found = cut(content, AtRecord(uuid(2)))
    assert found.dropped == 1
    assert found.notes == (
        "3 rows behind the point stay: the client keeps an answer whole, with the results of its calls",
    )
    said = ours(with_head(content, found.leaf)).messages
    assert said == (ours(content).messages or [])[:-1]


def test_a_prompt_keeps_what_the_client_told_the_model_with_it() -> None:
    content = encoded(user(1), attachment(2, 1), attachment(3, 2), answer(4, 3))
    found = cut(content, AtRecord(uuid(1)))
    assert (found.leaf, found.head) == (uuid(1), uuid(3))


def test_the_last_prompt_of_a_row_is_that_of_its_branch() -> None:
    content = encoded(*START, user(3, 2, "older"), answer(4, 3), user(5, 2, "newer"), answer(6, 5))
    found = cut(content, AtRecord(uuid(4)))
    assert (found.last_prompt, found.first_dropped, found.dropped) == ("older", "newer", 2)


@pytest.mark.parametrize("has_note", [False, True])
def test_what_a_compaction_took_away_is_refused_and_a_fork_is_offered(has_note: bool) -> None:
    note = compaction.kept(4, anchor=6) if has_note else None
    content = encoded(*TALK, boundary(5, note=note), summary(6, 5), answer(7, 6), user(8, 7), answer(9, 8))
    with pytest.raises(UsageError, match="before a compaction") as error:
        cut(content, AtRecord(uuid(2)))
    assert f"clew fork SESSION --at {uuid(2)}" in error.value.hint
    for number in (6, 7, 8):
        assert cut(content, AtRecord(uuid(number))).leaf == uuid(number)
    if has_note:
        assert cut(content, AtRecord(uuid(4))).dropped == 3


def test_a_conversation_that_went_back_before_a_compaction_can_be_cut_there() -> None:
    content = encoded(*TALK, boundary(5), summary(6, 5), answer(7, 6), exact(4), user(8, 4), answer(9, 8))
    assert cut(content, AtRecord(uuid(2))).dropped == 4


def test_where_nothing_is_said_the_client_would_go_on_elsewhere_so_it_is_refused() -> None:
    content = encoded(*TALK, boundary(5), summary(6, 5), answer(7, 6))
    with pytest.raises(UsageError, match="nothing is said") as error:
        cut(content, AtRecord(uuid(5)))
    assert error.value.hint


def test_where_the_client_would_find_no_conversation_it_is_refused() -> None:
    content = encoded(user(1), answer(2, 1, timestamp="zz"), user(3, 2), answer(4, 3))
    with pytest.raises(UsageError, match="no readable timestamp"):
        cut(content, AtRecord(uuid(2)))


def test_a_result_that_hangs_elsewhere_does_not_lose_its_conversation() -> None:
    """Named by itself, such a row would be a conversation of its own."""
    content = encoded(user(1), answer(2, 1, [call(1)]), user(9, None, [result(1)]), answer(3, 2))
    found = cut(content, AtRecord(uuid(9)))
    assert found.leaf == uuid(2)
    assert [m["role"] for m in ours(with_head(content, found.leaf)).messages or []] == ["user", "assistant", "user"]


def test_a_session_that_the_client_does_not_find_is_found_again_up_to_an_earlier_point() -> None:
    content = encoded(*START, user(3, 2), answer(4, 3, timestamp="zz"))
    assert ours(content).messages is None
    found = cut(content, AtRecord(uuid(2)))
    assert (found.is_moved, found.dropped) == (True, 0)
    assert len(ours(with_head(content, found.leaf)).messages or []) == 2
    assert ours(with_head(with_head(content, found.leaf), found.before)).messages is None


def test_a_cleared_conversation_comes_back_and_can_be_cleared_again() -> None:
    content = encoded(*TALK, exact(None))
    found = cut(content, AtRecord(uuid(4)))
    assert (found.is_moved, found.before, found.dropped) == (True, None, 0)
    moved = with_head(content, found.leaf)
    assert len(ours(moved).messages or []) == 4
    assert ours(with_head(moved, found.before)).messages == []


def test_rows_without_ids_cannot_be_named() -> None:
    content = encoded(user(1, uuid=...), answer(2, None, uuid=...))
    with pytest.raises(UsageError, match="no uuid"):
        cut(content, "time:2099-01-01")


BACK_ELSEWHERE = {
    "kept rows and one turn, and a sidechain row below it, and the last kept row comes again",
}
"""The client finds no conversation in these, and no explicit head record brings that about."""
SOME = [*CASES.items()][::6]


@pytest.mark.parametrize("cases", [SOME, pytest.param([*CASES.items()], marks=pytest.mark.slow)], ids=["some", "all"])
def test_what_is_told_is_what_is_read_afterwards_and_the_way_back_leads_back(cases: list[tuple[str, bytes]]) -> None:
    tried = 0
    for name, content in cases:
        tree = tree_of(content)
        links = links_of(tree)
        was = ours(content)
        for row in filter(None, tree.records):
            try:
                found = cut_at(links, AtRecord(row))
            except UsageError:
                continue
            tried += 1
            moved = with_head(content, found.leaf)
            now = ours(moved)
            assert now.head.uuid == found.head, (name, row)
            kept = {record.uuid for record in chain_to(tree_of(moved), now.head.uuid).records}
            wanted = {record.uuid for record in chain_at(tree, links, AtRecord(row)).records}
            assert found.notes or kept == wanted, (name, row)
            if name not in BACK_ELSEWHERE:
                assert ours(with_head(moved, found.before)).messages == was.messages, (name, row)
    assert tried > 500
