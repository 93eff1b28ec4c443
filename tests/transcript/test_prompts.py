"""Which rows a person wrote, and in which words."""

from __future__ import annotations

import pytest
from hypothesis import given

from clew.records.codec import decode
from clew.records.record import Record
from clew.records.views import JsonObject, JsonValue
from clew.testing.corpus import (
    assistant,
    attachment,
    lines_of,
    queued_prompt,
    text,
    to_bytes,
    tool_result,
    user,
)
from clew.testing.strategies import records
from clew.transcript.prompts import PREVIEW_CHARACTERS_MAX, is_prompt, preview, prompt_of, prompt_text

IMAGE: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}}
DOCUMENT: JsonObject = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
}
COMMAND = (
    "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n<command-args></command-args>"
)
ANSWERED = "<command-message>init is running…</command-message>\n<command-name>/init</command-name>"


def of(row: JsonObject) -> Record:
    found = decode(next(lines_of(to_bytes([row]))))
    assert isinstance(found, Record)
    return found


def said(content: str | list[JsonObject], **fields: JsonValue) -> Record:
    return of(user(content, uuid="u", parent=None, **fields))


def test_what_a_person_typed_is_a_prompt_in_its_own_words() -> None:
    for typed in ("Fix the login", "  two\nlines ", "<div> is broken", "/tmp/x is full", '"tool_result" is missing'):
        assert is_prompt(said(typed))
        assert prompt_text(said(typed)) == typed.strip()
    assert prompt_text(said([text("first"), IMAGE, text("second")])) == "first\nsecond"


@pytest.mark.parametrize("opening", [
    "<local-command-stdout>Compacted</local-command-stdout>", "<local-command-stderr>x</local-command-stderr>",
    "<local-command-caveat>Caveat</local-command-caveat>", "<session-start-hook>x</session-start-hook>", "<tick>",
    "<goal>x</goal>", "[Request interrupted by user]", "[Request interrupted by user for tool use]",
    "<ide_opened_file>a.py</ide_opened_file>", "<ide_selection>a</ide_selection>", "<bash-stdout>x</bash-stdout>",
    "", " \n",
])  # fmt: skip
def test_what_the_client_put_there_is_no_prompt(opening: str) -> None:
    for content in (opening, [text(opening)], f"\n {opening}"):
        row = said(content)
        assert not is_prompt(row)
        assert prompt_text(row) == ""


def test_results_notes_summaries_and_answers_are_no_prompts() -> None:
    rows = [
        said([tool_result("toolu_1", "words")]),
        said([tool_result("toolu_1", "words")], sourceToolAssistantUUID="a"),
        said([text("words"), tool_result("toolu_1", "words")]),
        said("words", isMeta=True),
        said("words", isCompactSummary=True),
        of(assistant("words", uuid="a", parent="u", message_id="m")),
        of(attachment({"type": "date", "date": "queued_command"}, uuid="a", parent="u")),
        of({"type": "user", "uuid": "u"}),
        of({"type": "user", "uuid": "u", "message": {"content": {"type": "text"}}}),
    ]
    assert [prompt_of(row) for row in rows] == [None] * len(rows)


def test_what_an_editor_put_in_front_is_cut_off() -> None:
    opened = "<ide_opened_file>The user opened a.py</ide_opened_file>"
    assert prompt_text(said(f"{opened}\n<ide_selection>x\ny</ide_selection> why?")) == "why?"
    assert prompt_text(said([text(opened), text("why?")])) == "why?"
    assert is_prompt(said([text(opened), text("why?")]))


def test_a_command_of_the_client_has_words_but_begins_no_turn() -> None:
    assert prompt_text(said(COMMAND)) == "/compact"
    assert not is_prompt(said(COMMAND))
    assert prompt_text(said(COMMAND.replace("args><", "args>keep it<"))) == "/compact keep it"


def test_a_command_that_the_model_answers_begins_a_turn() -> None:
    for row in (said(ANSWERED), said(COMMAND, turnPosition={"promptIndex": 0, "turnIndex": 2})):
        prompt = prompt_of(row)
        assert prompt is not None
        assert prompt.is_turn
        assert prompt.is_fallback
    assert prompt_text(said(ANSWERED)) == "/init"


def test_a_shell_command_reads_as_it_was_typed() -> None:
    row = said("<bash-input>git status</bash-input>")
    assert is_prompt(row)
    assert prompt_text(row) == "! git status"


def test_a_picture_without_words_is_a_prompt_with_a_word_for_it() -> None:
    assert prompt_text(said([IMAGE])) == "Image"
    assert prompt_text(said([DOCUMENT])) == "Document"
    assert is_prompt(said([IMAGE]))
    assert prompt_text(said([IMAGE, text("what is this")])) == "what is this"
    assert "iVBORw0=" not in prompt_text(said([IMAGE]))


def test_a_message_sent_while_the_model_worked_is_a_prompt() -> None:
    row = of(queued_prompt("and the tests too", uuid="q", parent="u"))
    assert is_prompt(row)
    assert prompt_text(row) == "and the tests too"
    blocks: JsonObject = {"type": "queued_command", "prompt": [text("with"), IMAGE], "commandMode": "prompt"}
    assert prompt_text(of(attachment(blocks, uuid="q", parent="u"))) == "with"
    note: JsonObject = {"type": "queued_command", "prompt": "agent done", "commandMode": "task-notification"}
    assert not is_prompt(of(attachment(note, uuid="q", parent="u")))


def test_a_lone_surrogate_in_a_prompt_can_be_encoded() -> None:
    assert prompt_text(said("a \ud800 b")) == "a \ufffd b"


@given(records())
def test_any_row_is_asked_without_an_error(row: JsonObject) -> None:
    found = decode(next(lines_of(to_bytes([row]))))
    assert isinstance(found, Record)
    assert not is_prompt(found) or prompt_text(found)


def test_a_preview_is_one_line_that_ends_with_an_ellipsis_when_it_is_cut() -> None:
    assert preview(" a\n\n b\t\u2028c ") == "a b c"
    assert preview("x" * PREVIEW_CHARACTERS_MAX) == "x" * PREVIEW_CHARACTERS_MAX
    assert preview("x" * (PREVIEW_CHARACTERS_MAX + 1)) == "x" * PREVIEW_CHARACTERS_MAX + "…"
    assert preview("x" * (PREVIEW_CHARACTERS_MAX - 1) + " y") == "x" * (PREVIEW_CHARACTERS_MAX - 1) + "…"
