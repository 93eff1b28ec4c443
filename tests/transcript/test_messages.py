"""The messages: what of a chain is sent, and in what form."""

from __future__ import annotations

from typing import Any

import pytest

from clew.transcript.chain import chain_to
from clew.transcript.head import find_head
from clew.transcript.messages import Conversation, State, conversation
from odd_files.answers import ours, packed, tree_of
from odd_files.rows import (
    START,
    TALK,
    Piece,
    answer,
    api_error,
    attachment,
    call,
    encoded,
    end,
    local_command,
    result,
    system,
    text,
    thought,
    user,
    uuid,
)

CALLED = [user(1), answer(2, 1, [call(1)])]


def said(*pieces: Piece) -> list[list[Any]]:
    messages = ours(encoded(*pieces)).messages
    assert messages is not None
    return packed(messages)


def state(*pieces: Piece) -> State | None:
    return ours(encoded(*pieces)).state


def whole(*pieces: Piece, reminders: bool = False) -> Conversation:
    tree = tree_of(encoded(*pieces))
    return conversation(chain_to(tree, find_head(tree).uuid).records, reminders=reminders)


def test_prompts_and_answers_alternate_as_written() -> None:
    assert said(*TALK) == [["user", "U1"], ["assistant", "A2"], ["user", "U3"], ["assistant", "A4"]]


def test_prompts_in_a_row_become_one_message_with_results_first() -> None:
    found = said(*CALLED, user(3, 2), user(4, 3, [result(1)]), answer(5, 4))
    assert found[2] == ["user", result(1), "U3"]


def test_rows_of_one_answer_become_one_message_and_say_which_rows_they_were() -> None:
    found = whole(user(1), answer(2, 1, [thought()], of="m"), answer(3, 2, [text("A")], of="m"), *end(4, 3)).messages
    assert [block["type"] for block in found[1].content] == ["thinking", "text"]
    assert found[1].uuids == [uuid(2), uuid(3)]


def test_a_call_nobody_answered_is_left_out_in_the_middle() -> None:
    assert said(*CALLED, *end(3, 2)) == [["user", "U1", "U3"], ["assistant", "A4"]]


def test_a_result_without_a_call_leaves_a_placeholder() -> None:
    assert said(*START, user(3, 2, [result(1)]), answer(4, 3))[2] == ["user", "(no content)"]


def test_a_lone_thought_in_the_middle_is_left_out() -> None:
    assert len(said(user(1), answer(2, 1, [thought()]), *end(3, 2))) == 2


def test_errors_of_the_api_are_left_out() -> None:
    assert ["assistant", "API Error: 400"] not in said(user(1), api_error(2, 1), *end(3, 2))


def test_a_local_command_is_sent_as_a_prompt_and_other_system_rows_are_not() -> None:
    assert said(*START, local_command(3, 2), *end(4, 3))[2] == ["user", "SYS", "U4"]
    assert said(*START, system(3, 2), *end(4, 3))[2] == ["user", "U4"]


def test_attachments_are_sent_only_where_the_client_wrote_down_their_text() -> None:
    shown: dict[str, Any] = {"rendered": [{"content": "SHOWN"}], "renderedRole": "user"}
    assert said(*START, attachment(7, 2), *end(3, 7)) == said(*TALK)
    assert "SHOWN" in said(*START, attachment(7, 2, **shown), *end(3, 7))[2][1]


def test_reminders_are_cut_out_unless_asked_for() -> None:
    glued = result(1, "r\n\n<system-reminder>\nbe kind\n</system-reminder>")
    pieces = [*CALLED, user(3, 2, [glued]), answer(4, 3)]
    assert whole(*pieces).messages[2].content == [result(1)]
    assert whole(*pieces, reminders=True).messages[2].content == [glued]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("a <system-reminder>1</system-reminder> b\n<system-reminder>2</system-reminder>", "a b"),
        ("a\u2003\n<system-reminder>\n<system-reminder>1</system-reminder>", "a"),
        ("a <system-reminder>1", "a <system-reminder>1"),
        ("a <system-reminder>1</system-reminder> <system-reminder>2", "a <system-reminder>2"),
        ("a </system-reminder> <system-reminder> b", "a </system-reminder> <system-reminder> b"),
    ],
)
def test_a_reminder_goes_with_the_blanks_before_it_and_a_mark_that_is_not_closed_stays(told: str, kept: str) -> None:
    pieces = [*CALLED, user(3, 2, [result(1, told)]), answer(4, 3)]
    assert whole(*pieces).messages[2].content == [result(1, kept)]


def test_the_state_says_how_a_conversation_ends() -> None:
    assert state(*TALK) is State.COMPLETE
    assert state(*CALLED) is State.INTERRUPTED
    assert state(*START, user(3, 2)) is State.UNANSWERED


def test_nothing_that_was_made_up_is_in_the_messages() -> None:
    assert said(*CALLED) == [["user", "U1"], ["assistant", call(1)]]
    assert said(*START, user(3, 2)) == [["user", "U1"], ["assistant", "A2"], ["user", "U3"]]
