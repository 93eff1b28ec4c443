"""What a row becomes when it is sent: joined, dropped, repaired or passed on."""

from __future__ import annotations

from odd_files.rows import (
    ABSENT,
    START,
    Piece,
    answer,
    api_error,
    attachment,
    bare_answer,
    call,
    end,
    files,
    image,
    local_command,
    result,
    row,
    source,
    system,
    text,
    thought,
    user,
)

REDACTED = {"type": "redacted_thinking", "data": "zz"}
OUTPUT = "<local-command-stdout>x</local-command-stdout>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
CALLED: list[Piece] = [user(1), answer(2, 1, [call(1)])]


def asked(content: object) -> list[Piece]:
    """U1, A2, a prompt with this content, A4."""
    return [*START, user(3, 2, content), answer(4, 3)]


def answered(*content: object) -> list[Piece]:
    """U1, an answer with this content, U3, A4."""
    return [user(1), answer(2, 1, list(content)), *end(3, 2)]


def returned(*content: object) -> list[Piece]:
    """A call, a user row with this content, A4."""
    return [*CALLED, user(3, 2, list(content)), answer(4, 3)]


def silent(**message: object) -> list[Piece]:
    """U1, an answer with nothing but these fields, U3, A4."""
    return [user(1), bare_answer(2, 1, **message), *end(3, 2)]


PROMPTS = files({
    "a prompt is an empty string": asked(""),
    "a prompt is a blank string": asked("  "),
    "a prompt is an empty array": asked([]),
    "a prompt is one empty text": asked([text("")]),
    "a prompt is one blank text": asked([text("  ")]),
    "a prompt is a text and an empty text": asked([text("x"), text("")]),
    "a prompt is a blank text and a text": asked([text("  "), text("x")]),
    "a prompt is null": asked(None),
    "a prompt is a number": asked(5),
    "a prompt is an object": asked(text("o")),
    "a prompt is an array of a string and a text": asked(["abc", text("d")]),
    "a prompt has no content": [*START, row(3, 2, "user", message={"role": "user"}), answer(4, 3)],
    "a prompt has no message": [*START, user(3, 2, message=ABSENT), answer(4, 3)],
    "a prompt has a null message": [*START, user(3, 2, message=None), answer(4, 3)],
    "no row has a message": [user(1, message=ABSENT), answer(2, 1, message=ABSENT)],
    "a prompt with the role of an answer": [
        *START, user(3, 2, message={"role": "assistant", "content": "RM"}), answer(4, 3)],
    "a prompt without a role": [*START, user(3, 2, message={"content": "NR"}), answer(4, 3)],
    "a prompt with an image": [user(1, None, [image(PIXEL), text("w")]), answer(2, 1)],
    "a prompt with a broken image": [user(1, None, [image(), text("w")]), answer(2, 1)],
    "a prompt with a document": [
        user(1, None, [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "AAAA"}},
                       text("w")]), answer(2, 1)],
    "blocks of unknown types": [
        user(1, None, [{"type": "zzz", "x": 1}, text("w")]), answer(2, 1, [{"type": "yyy", "q": 2}, text("A2")]),
        *end(3, 2)],
    "blocks without a type": [user(1, None, [{"text": "q"}]), answer(2, 1, [{"text": "A"}]), *end(3, 2)],
    "texts with more fields": [
        user(1, None, [text("q", foo=1, citations=None)]), answer(2, 1, [text("A", citations=[], foo=2)]), *end(3, 2)],
    "a meta prompt": [*START, user(3, 2, "META", isMeta=True), *end(4, 3)],
    "a prompt that only the transcript shows": [*START, user(3, 2, "VIS", isVisibleInTranscriptOnly=True), *end(4, 3)],
})  # fmt: skip

PROMPTS_IN_A_ROW = files({
    "two prompts in a row": [user(1), user(2, 1), answer(3, 2)],
    "an empty prompt before a prompt": [*START, user(3, 2, ""), *end(4, 3)],
    "a blank prompt before a prompt": [*START, user(3, 2, "  "), *end(4, 3)],
    "a blank prompt behind a prompt": [*START, user(3, 2), user(4, 3, "  "), answer(5, 4)],
    "an empty text behind a prompt": [*START, user(3, 2), user(4, 3, [text("")]), answer(5, 4)],
    "two prompts of two texts each": [
        *START, user(3, 2, [text("a"), text("b")]), user(4, 3, [text("c"), text("d")]), answer(5, 4)],
    "a prompt that ends with an unknown block before another": [
        *START, user(3, 2, [text("a"), {"type": "zz"}]), user(4, 3, [text("c")]), answer(5, 4)],
    "a prompt behind a result": [*CALLED, user(3, 2, [result(1)]), user(4, 3), answer(5, 4)],
    "a prompt between a call and its result": [*CALLED, user(3, 2), user(4, 3, [result(1)]), answer(5, 4)],
})  # fmt: skip

SYSTEM_ROWS = files({
    "a local command": [*START, local_command(3, 2, OUTPUT), *end(4, 3)],
    "a local command that is meta": [*START, local_command(3, 2, "LC", isMeta=True), *end(4, 3)],
    "a local command behind a prompt": [user(1), local_command(3, 1, "LC"), answer(4, 3), *end(5, 4)],
    "a local command that says what was run": [
        *START, local_command(3, 2, OUTPUT, isMeta=False, commandRun={"command": "rename", "args": "x"}), *end(4, 3)],
    "a local command behind its own prompt": [
        *START, user(7, 2, "<command-name>/rename</command-name>"), local_command(3, 7, OUTPUT), *end(4, 3)],
    "a local command with an array for content": [*START, local_command(3, 2, [text("arr")]), *end(4, 3)],
    "a local command without content": [*START, local_command(3, 2, ""), *end(4, 3)],
} | {
    f"a system row of the kind {kind}": [*START, system(3, 2, kind), *end(4, 3)]
    for kind in ("api_error", "away_summary", "informational", "never_seen_before")
})  # fmt: skip

ANSWERS = files({
    "the conversation begins with an answer": [answer(1), user(2, 1), answer(3, 2)],
    "the conversation begins with a blank answer": [answer(1, None, " "), user(2, 1), answer(3, 2)],
    "an answer is a string": silent(id="x", role="assistant", content="STR"),
    "an answer is a blank string": silent(id="x", role="assistant", content="  "),
    "an answer is an empty string": silent(id="x", role="assistant", content=""),
    "an answer is blank": answered(text("  \n ")),
    "an answer is an empty text": answered(text("")),
    "an answer is an empty array": answered(),
    "an answer is a blank text and a text": answered(text("  "), text("x")),
    "an answer is an empty text and a text": answered(text(""), text("x")),
    "an answer is a blank text and a call": [
        user(1), answer(2, 1, [text("\n\n"), call(1)]), user(3, 2, [result(1)]), answer(4, 3)],
    "an answer is a blank row and a row with a call": [
        user(1), answer(2, 1, [text("\n\n")], of="m"), answer(3, 2, [call(1)], of="m"), user(4, 3, [result(1)]),
        answer(5, 4)],
    "an answer is an empty row and a row with a call": [
        user(1), answer(2, 1, [], of="m"), answer(3, 2, [call(1)], of="m"), user(4, 3, [result(1)]), answer(5, 4)],
    "an answer with the role of a prompt": silent(id="x", role="user", content=[text("RM")]),
    "an answer without a message": [user(1), answer(2, 1, message=ABSENT), *end(3, 2)],
    "two answers without an id": [
        user(1), bare_answer(2, 1, role="assistant", content=[text("A2")]),
        bare_answer(3, 2, role="assistant", content=[text("A3")]), *end(4, 3)],
    "an error of the API": [user(1), api_error(2, 1), *end(3, 2)],
    "an error of the API that names a real model": [user(1), answer(2, 1, isApiErrorMessage=True), *end(3, 2)],
    "an answer the client made up": silent(
        id="x", role="assistant", model="<synthetic>", content=[text("No response requested.")]),
    "an answer the client made up in other words": silent(
        id="x", role="assistant", model="<synthetic>", content=[text("blah")]),
    "a search that the API ran": answered(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}, text("A2")),
})  # fmt: skip

THOUGHTS = files({
    "an answer is a thought": answered(thought()),
    "an answer is a hidden thought": answered(REDACTED),
    "an answer is a hidden thought and a text": answered(REDACTED, text("A")),
    "an answer is an empty thought and a text": answered(
        {"type": "thinking", "thinking": "", "signature": ""}, text("A")),
    "an answer is a thought without a signature and a text": answered({"type": "thinking", "thinking": "x"}, text("A")),
    "an answer is a thought and a blank text": answered(thought(), text(" ")),
    "an answer ends with a thought": answered(text("A"), thought()),
    "an answer is a row with a thought and a row with a text": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 2, [text("A")], of="m"), *end(4, 3)],
    "an answer is a row with a thought and a blank row": [
        user(1), answer(2, 1, [thought()], of="m"), answer(3, 2, " ", of="m"), *end(4, 3)],
    "a thought and a text without an id": [
        user(1), bare_answer(2, 1, role="assistant", content=[thought()]),
        bare_answer(3, 2, role="assistant", content=[text("w")]), *end(4, 3)],
})  # fmt: skip

CALLS = files({
    "a call nobody answered": [user(1), answer(2, 1, [call(1)]), *end(3, 2)],
    "a text and a call nobody answered": answered(text("A2"), call(1)),
    "two calls, one answered": [
        user(1), answer(2, 1, [call(1), call(2)]), user(3, 2, [result(1)]), answer(4, 3), *end(5, 4)],
    "two rows with a call each, one answered": [
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m"), user(4, 3, [result(2)], **source(3)),
        answer(5, 4), *end(6, 5)],
    "a row with a text and one with a call nobody answered": [
        user(1), answer(2, 1, "TT", of="m"), answer(3, 2, [call(1)], of="m"), *end(4, 3)],
    "a call used twice": [
        *CALLED, user(3, 2, [result(1)]), answer(4, 3, [call(1)]), user(5, 4, [result(1, "again")]), answer(6, 5)],
    "a call used twice in one row": [user(1), answer(2, 1, [call(1), call(1)]), user(3, 2, [result(1)]), answer(4, 3)],
    "a call whose input is a string": [
        user(1), answer(2, 1, [call(1) | {"input": '{"a":1}'}]), user(3, 2, [result(1)]), answer(4, 3)],
    "a call without input": [
        user(1), answer(2, 1, [{"type": "tool_use", "id": "toolu_1", "name": "Bash"}]), user(3, 2, [result(1)]),
        answer(4, 3)],
    "a call without an id": [
        user(1), answer(2, 1, [{"type": "tool_use", "name": "Bash", "input": {}}]), user(3, 2, [result(1)]),
        answer(4, 3)],
    "a call and a result with more fields": [
        user(1), answer(2, 1, [call(1) | {"caller": {"type": "direct"}, "foo": 1}]), user(3, 2, [result(1, foo=2)]),
        answer(4, 3)],
    "a call of the tool that starts a subagent": [
        user(1), answer(2, 1, [call(1, "Task", prompt="p")]), user(3, 2, [result(1)]), answer(4, 3)],
})  # fmt: skip

RESULTS = files({
    "a result and a text": returned(result(1), text("more")),
    "a text and a result": returned(text("more"), result(1)),
    "a result whose call is a number": returned({"type": "tool_result", "tool_use_id": 5, "content": "x"}),
    "a result of a text and an image": returned(result(1, [text("a"), image()])),
    "an empty result": returned(result(1, "")),
    "a result of an empty array": returned(result(1, [])),
    "a result without content": returned({"type": "tool_result", "tool_use_id": "toolu_1"}),
    "a result that is an error": returned(result(1, [text("e")], is_error=True)),
    "a result that is an error with an image": returned(result(1, [text("e"), image()], is_error=True)),
    "a result that comes after another turn": [
        *CALLED, user(3, 2), answer(4, 3), user(5, 4, [result(1)]), answer(6, 5)],
    "a result without a call": asked([result(1)]),
    "a result without a call, and a text": asked([result(1), text("T")]),
    "a result without a call at the beginning": [user(1, None, [result(1)]), answer(2, 1), *end(3, 2)],
    "a result without a call, then a prompt": [*START, user(3, 2, [result(1)]), *end(4, 3)],
    "two results of one call in two rows": [
        *CALLED, user(3, 2, [result(1)]), user(4, 3, [result(1, "again")]), answer(5, 4)],
    "two results of one call in one row": returned(result(1), result(1, "again")),
    "two results of one call with an answer between": [
        *CALLED, user(3, 2, [result(1)]), answer(4, 3), user(5, 4, [result(1, "again")]), answer(6, 5)],
    "a reminder glued to a result": returned(result(1, "r\n\n<system-reminder>\nbe kind\n</system-reminder>")),
    "an attachment between a call and its result": [*CALLED, attachment(7, 2), user(3, 7, [result(1)]), answer(4, 3)],
})  # fmt: skip

CASES = PROMPTS | PROMPTS_IN_A_ROW | SYSTEM_ROWS | ANSWERS | THOUGHTS | CALLS | RESULTS
