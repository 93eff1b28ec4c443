"""How a conversation ends: open calls, prompts without an answer, commands of the client's own."""

from __future__ import annotations

from odd_files.rows import (
    ABSENT,
    START,
    Piece,
    Row,
    answer,
    api_error,
    attachment,
    call,
    files,
    local_command,
    result,
    system,
    text,
    thought,
    user,
)

CALLED: list[Piece] = [user(1), answer(2, 1, [call(1)])]
TWO_CALLS: list[Piece] = [user(1), answer(2, 1, [call(1), call(2)])]
TWO_ROWS: list[Piece] = [user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m")]
RETURNED: list[Piece] = [*CALLED, user(3, 2, [result(1)])]

CAVEAT = "<local-command-caveat>zz</local-command-caveat>"
COMMAND = "<command-name>/x</command-name>"
OUTPUT = "<local-command-stdout>x</local-command-stdout>"
QUEUED = {"type": "queued_command", "prompt": "qq", "commandMode": "prompt"}


def meta(number: int, parent: int | None, words: str) -> Row:
    return user(number, parent, words, isMeta=True)


def ran(number: int, parent: int | None) -> list[Piece]:
    """A caveat, a command and its output, as rows `number` and the next two."""
    return [meta(number, parent, CAVEAT), user(number + 1, number, COMMAND), user(number + 2, number + 1, OUTPUT)]


def started(number: int, parent: int | None) -> list[Piece]:
    """A caveat and a command."""
    return [meta(number, parent, CAVEAT), user(number + 1, number, COMMAND)]


TEXTS = files({
    f"the last prompt is {words}": [*START, user(3, 2, words)]
    for words in (
        OUTPUT, COMMAND, "<local-command-stderr>x</local-command-stderr>", "<bash-stdout>x</bash-stdout>",
        "<bash-input>x</bash-input>", "[Request interrupted by user]", "[Request interrupted by user for tool use]",
        "<local-command-caveat>x</local-command-caveat>", "<system-reminder>x</system-reminder>", "/foo",
        "<task-notification>x</task-notification>", "<tick>x</tick>", "<user-prompt-submit-hook>x",
        "<command-message>x</command-message><command-name>/x</command-name>", f" {OUTPUT}", f"x {OUTPUT}",
    )
} | {"the last prompt is the output of a command as a block": [*START, user(3, 2, [text(OUTPUT)])]})  # fmt: skip

UNANSWERED = files({
    "ends with a prompt": [*START, user(3, 2)],
    "ends with a single prompt": [user(1)],
    "ends with a prompt and an attachment": [*START, user(3, 2), attachment(4, 3)],
    "ends with a prompt and a queued prompt": [*START, user(3, 2), attachment(4, 3, QUEUED)],
    "ends with an answer and a queued prompt": [*START, attachment(4, 2, QUEUED)],
    "ends with a prompt and a system row": [*START, user(3, 2), system(4, 3)],
    "ends with a prompt and a local command": [*START, user(3, 2), local_command(4, 3)],
    "ends with a meta prompt": [*START, meta(3, 2, "U3")],
    "ends with a prompt and a meta prompt": [*START, user(3, 2), meta(4, 3, "U4")],
    "ends with a summary": [*START, user(3, 2, isCompactSummary=True, isVisibleInTranscriptOnly=True)],
    "ends with a null prompt": [*START, user(3, 2, None)],
    "ends with an empty array for a prompt": [*START, user(3, 2, [])],
    "ends with an empty prompt": [*START, user(3, 2, "")],
    "ends with a user row without a message, long after": [*START, user(3, 2, at=60, message=ABSENT)],
    "ends with a user row without a message and an attachment": [
        *START, user(3, 2, at=60, message=ABSENT), attachment(4, 3, at=61)],
    "ends with an error of the API": [*START, api_error(3, 2)],
    "ends with a prompt and an error of the API": [*START, user(3, 2), api_error(4, 3)],
    "ends with a prompt and an error that names a real model": [
        *START, user(3, 2), answer(4, 3, isApiErrorMessage=True)],
    "ends with an error of the API and a prompt": [*START, user(3, 2), api_error(4, 3), user(5, 4)],
    "ends with a blank answer": [*START, user(3, 2), answer(4, 3, "  ")],
    "ends with an empty array for an answer": [*START, user(3, 2), answer(4, 3, [])],
    "ends with a thought": [*START, user(3, 2), answer(4, 3, [thought()])],
    "ends with a thought for a single answer": [user(1), answer(2, 1, [thought()])],
    "ends with a text and a thought in one answer": [user(1), answer(2, 1, [text("A"), thought()])],
    "ends with a thought and a text of one answer, and a thought of another": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 2, [text("T")], of="m"),
        answer(4, 3, [thought()], of="n")],
})  # fmt: skip

RESULTS = files({
    "ends with a result": RETURNED,
    "ends with a result without a call": [*START, user(3, 2, [result(1)])],
    "ends with a result and a text": [*CALLED, user(3, 2, [result(1), text("x")])],
    "ends with a result and a prompt": [*RETURNED, user(4, 3)],
    "ends with a result and a local command": [*RETURNED, local_command(4, 3)],
    "ends with one of two results": [*TWO_CALLS, user(3, 2, [result(1)])],
    "ends with one of two results and a text": [*TWO_CALLS, user(3, 2, [result(1), text("x")])],
    "ends with one of two results and a prompt": [*TWO_CALLS, user(3, 2, [result(1)]), user(4, 3)],
    "ends with one of two results of parallel calls": [*TWO_ROWS, user(4, 2, [result(1)])],
    "ends with one of two results of parallel calls and a prompt": [*TWO_ROWS, user(4, 3, [result(1)]), user(5, 4)],
    "ends with one of two results of parallel calls and an interruption": [
        *TWO_ROWS, user(4, 3, [result(1)]), user(5, 4, [text("[Request interrupted by user for tool use]")])],
})  # fmt: skip

OPEN_CALLS = files({
    "ends with an open call": CALLED,
    "ends with a thought and an open call": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 2, [call(1)], of="m")],
    "ends with an open call and an attachment": [*CALLED, attachment(3, 2)],
    "ends with an open call and a system row": [*CALLED, system(3, 2)],
    "ends with an open call and a local command": [*CALLED, local_command(4, 2)],
    "ends with an open call and the output of a command": [*CALLED, user(4, 2, OUTPUT)],
    "ends with an open call and a meta prompt": [*CALLED, meta(3, 2, "M")],
    "ends with an open call and a prompt": [*CALLED, user(3, 2)],
    "ends with an open call and a text of another answer": [*CALLED, answer(3, 2)],
    "ends with an open call and a text of the same answer": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, of="m")],
    "ends with open calls of two answers": [*CALLED, answer(3, 2, [call(2)])],
    "ends with open calls of one answer": TWO_ROWS,
    "ends with an open call and a result of another": [*CALLED, user(3, 2, [result(2)])],
    "ends with a result, an open call and a text of other answers before": [
        *CALLED, answer(3, 2), answer(4, 3, [call(2)]), user(5, 4, [result(2)])],
    "ends with a result, an open call before results and a text": [
        *CALLED, answer(3, 2, [call(3)]), user(4, 3, [result(3)]), answer(5, 4), answer(6, 5, [call(2)]),
        user(7, 6, [result(2)])],
    "ends with a text, an open call, a text and a result before": [
        *CALLED, answer(3, 2), answer(4, 3, [call(2)]), user(5, 4, [result(2)]), answer(6, 5)],
    "ends with an open call, another and a text before": [*CALLED, answer(3, 2), answer(4, 3, [call(2)])],
    "ends with an open call, another open before a prompt": [*CALLED, user(3, 2), answer(4, 3, [call(2)])],
    "ends with an open call and an error of the API": [*CALLED, api_error(3, 2)],
    "ends with an open call and an interruption": [
        *CALLED, user(3, 2, [text("[Request interrupted by user for tool use]")])],
    "ends with an open call of an answer whose other call was answered": [
        user(1), answer(2, 1, [call(1)], of="m"), user(3, 2, [result(1)]), answer(4, 3, [call(2)], of="m")],
    "ends with an open call of an answer with another open call before a prompt": [
        user(1), answer(2, 1, [call(1)], of="m"), user(3, 2), answer(4, 3, [call(2)], of="m")],
})  # fmt: skip

COMMANDS = files({
    "ends with a caveat": [*START, meta(3, 2, CAVEAT)],
    "ends with a caveat and a command": [*START, *started(3, 2)],
    "ends with a caveat, a command and its output": [*START, *ran(3, 2)],
    "ends with a caveat and an output": [*START, meta(3, 2, CAVEAT), user(4, 3, OUTPUT)],
    "ends with a caveat and a prompt": [*START, meta(3, 2, CAVEAT), user(4, 3)],
    "ends with a caveat and two prompts": [*START, meta(3, 2, CAVEAT), user(4, 3), user(5, 4)],
    "ends with a caveat that is not meta and a command": [*START, user(3, 2, CAVEAT), user(4, 3, COMMAND)],
    "ends with another meta row and a command": [*START, meta(3, 2, "zz"), user(4, 3, COMMAND)],
    "ends with another meta row, a command and its output": [
        *START, meta(3, 2, "zz"), user(4, 3, COMMAND), user(5, 4, OUTPUT)],
    "ends with a command and its output": [*START, user(3, 2, COMMAND), user(4, 3, OUTPUT)],
    "ends with a command and a local command": [*START, user(3, 2, COMMAND), local_command(4, 3)],
    "ends with a caveat, a command and a local command": [*START, *started(3, 2), local_command(5, 4)],
    "ends with a local command": [*START, local_command(3, 2)],
    "ends with a prompt and an output": [*START, user(3, 2), user(4, 3, OUTPUT)],
    "ends with an output and a prompt": [*START, user(4, 2, OUTPUT), user(5, 4)],
    "ends with an output and an attachment": [*START, user(3, 2, OUTPUT), attachment(4, 3)],
    "ends with a command that ran and a prompt": [*START, *ran(3, 2), user(6, 5)],
    "ends with a command that ran and an attachment": [*START, *ran(3, 2), attachment(6, 5)],
    "ends with a prompt and a command that ran": [*START, user(7, 2), *ran(3, 7)],
    "ends with a prompt, a command and a local command": [*START, user(7, 2), *started(3, 7), local_command(5, 4)],
    "ends with a command that ran, and nothing before it": ran(3, None),
    "ends with a result and a command that ran": [*CALLED, user(7, 2, [result(1)]), *ran(3, 7)],
    "ends with an open call and a command that ran": [*CALLED, *ran(3, 2)],
    "ends with an open call, a command and a local command": [*CALLED, *started(3, 2), local_command(5, 4)],
    "ends with one of two results, a command and a local command": [
        *TWO_CALLS, user(8, 2, [result(1)]), *started(3, 8), local_command(5, 4)],
    "ends with a summary and a command that ran": [user(1, isCompactSummary=True), *ran(3, 1)],
    "ends with an error of the API and a command that ran": [*START, user(7, 2), api_error(8, 7), *ran(3, 8)],
    "ends with a command and a meta row": [*START, *started(3, 2), meta(5, 4, "skill text")],
    "ends with a command as a block": [*START, meta(3, 2, CAVEAT), user(4, 3, [text(COMMAND)])],
    "ends with two commands": [*START, *started(3, 2), user(5, 4, COMMAND)],
    "ends with two commands that ran": [*START, *ran(3, 2), *ran(6, 5)],
    "ends with a shell command": [
        *START, meta(3, 2, CAVEAT), user(4, 3, "<bash-input>ls</bash-input>"),
        user(5, 4, "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>")],
})  # fmt: skip

CASES = TEXTS | UNANSWERED | RESULTS | OPEN_CALLS | COMMANDS
