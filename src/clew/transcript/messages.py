"""The messages: a chain as the model would be sent it, joined and repaired exactly as the client does.

    rows       prompts and answers of the chain; answers that came to nothing are left out
    made up    a result for a call that is open at the end, an answer for a prompt without one
    joined     prompts in a row become one message, rows of one answer become one
    paired     every call has one result right behind it, no result is without a call, nothing is empty
    given      the messages without what was made up, and without the client's reminders

What the client makes up takes part in joining and pairing, so that the rest stands as it sends it, and is then left out:
`State` says instead how the conversation ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from itertools import pairwise

import msgspec

from clew.records.attachment import Attachment
from clew.records.record import Record, sendable, sendable_text
from clew.records.system import System
from clew.records.views import JsonObject, JsonValue
from clew.transcript.message import NO_CONTENT, Message, is_blank_text, placeholder, text_block, text_of
from clew.transcript.pairing import join_contents, pair_calls, results_first

_MADE_UP = "\x00made up"
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
_CLIENT_TEXT = re.compile(r"\s*<(?:system-reminder|local-command-caveat)>")
_COMMAND_PARTS = ("<command-name>", "<local-command-stdout>", "<local-command-stderr>")


class State(Enum):
    """How a conversation ends: with an answer, with an open call, or with a prompt that has no answer."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    UNANSWERED = "unanswered"


class Conversation(msgspec.Struct, frozen=True):
    """What would be sent, and how it ends."""

    messages: list[Message]
    state: State


def conversation(chain: Iterable[Record], *, reminders: bool = False) -> Conversation:
    """The messages of a chain.

    Reminders that the client wrote into texts are cut out unless asked for: they are not the conversation.
    """
    rows = _without_idle(_rows(chain))
    state, rows = _closed(rows)
    messages: list[Message] = []
    for row in rows:
        if row.role == "user":
            _join_prompt(messages, row)
        else:
            _join_answer(messages, row)
    for message in messages:
        _fill(message)
    pair_calls(messages)
    given = [message for message in messages if _given(message, reminders=reminders)]
    return Conversation(given, state)


class Row(msgspec.Struct):
    """A row that becomes part of a message."""

    record: Record
    role: str
    blocks: list[JsonObject]
    calls: list[str]
    results: list[str]
    is_bare: bool = False
    is_beside: bool = False
    """A system row or an attachment: it may be sent, but says nothing about how the conversation ends."""
    is_glued: bool = False
    """Text of an attachment, which the client glues to the result before it."""


def _rows(chain: Iterable[Record]) -> list[Row]:
    rows = []
    for record in chain:
        if record.type == "user" or record.type == "assistant":
            content = record.content()
            blocks = blocks_of(content, record.type)
            if blocks is not None:
                rows.append(_row(record, record.type, blocks, is_bare=isinstance(content, str)))
        elif record.type == "system" and record.subtype == "local_command":
            rows.append(_row(record, "user", [text_block(_local_command(record) or NO_CONTENT)], is_beside=True))
        elif record.type == "attachment":
            texts = _rendered(record)
            if texts:
                rows.append(_row(record, "user", texts, is_beside=True, is_glued=True))
    return rows


def _row(
    record: Record, role: str, blocks: list[JsonObject], *, is_bare: bool = False, is_beside: bool = False, is_glued: bool = False
) -> Row:
    calls = [text_of(block, "id") for block in blocks if block.get("type") == "tool_use"]
    results = [text_of(block, "tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    return Row(record, role, blocks, calls, results, is_bare, is_beside, is_glued)


def blocks_of(content: JsonValue, role: str) -> list[JsonObject] | None:
    """The content of a row as blocks, or None when it has none that could be sent."""
    if isinstance(content, str):
        return [text_block(content)]
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict) and isinstance(block.get("type"), str)]
    return blocks if blocks or (role == "assistant" and not content) else None


def _local_command(record: Record) -> str:
    view = record.view()
    return sendable_text(view.content) if isinstance(view, System) and isinstance(view.content, str) else ""


def _rendered(record: Record) -> list[JsonObject]:
    """The texts an attachment was sent as, where the client wrote them down and they are no reminders."""
    if b'"rendered"' not in record.raw:
        return []
    view = record.view()
    blocks: list[JsonObject] = []
    for part in view.rendered if isinstance(view, Attachment) else ():
        content = part.content
        if isinstance(content, str):
            blocks.append(text_block(sendable_text(content)))
        elif content:
            blocks.extend(block for item in content if isinstance(block := sendable(item), dict))
    return [block for block in blocks if not _is_client_text(block)]


def _is_client_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and _CLIENT_TEXT.match(text_of(block, "text")) is not None


# ---- rows that came to nothing ----


def _without_idle(rows: list[Row]) -> list[Row]:
    """Leaves out answers without effect: calls nobody answered, blank texts, thoughts that led to nothing."""
    answered = {result for row in rows for result in row.results}
    end = _end(rows)
    rows = [row for row in rows if not row.calls or any(call in answered for call in row.calls) or _stands_in(row, end)]
    rows = [row for row in rows if row.role == "user" or not _is_blank_answer(row)]
    spoken = {_message_id(row) for row in rows if row.role == "assistant" and not _is_thought(row)}
    return [row for row in rows if row.role == "user" or not _is_thought(row) or _message_id(row) in spoken - {None}]


def _end(rows: list[Row]) -> list[Row]:
    """The rows of the answer that the conversation ends with; calls in them may be open. Their results may stand behind them."""
    found: list[Row] = []
    for row in reversed(rows):
        if row.is_beside or (row.role == "user" and row.results):
            continue
        if row.role == "user" or (found and (_message_id(row) is None or _message_id(row) != _message_id(found[0]))):
            break
        found.append(row)
    return found[::-1]


def _stands_in(row: Row, rows: list[Row]) -> bool:
    return any(row is other for other in rows)


def _message_id(row: Row) -> str | None:
    return row.record.message.id if row.record.message else None


def _is_blank_answer(row: Row) -> bool:
    return bool(row.blocks) and all(is_blank_text(block) for block in row.blocks)


def _is_thought(row: Row) -> bool:
    return bool(row.blocks) and all(
        block.get("type") in ("thinking", "redacted_thinking") or is_blank_text(block) for block in row.blocks
    )


# ---- what the client makes up at the end ----


def _closed(rows: list[Row]) -> tuple[State, list[Row]]:
    """How the conversation ends, and the rows with a made-up result and answer where the client makes them up."""
    state = State.COMPLETE
    answered = {result for row in rows for result in row.results}
    calls = [call for row in _end(rows) for call in row.calls if call not in answered]
    if calls:
        state = State.INTERRUPTED
        results: list[JsonObject] = [
            {"type": "tool_result", "tool_use_id": call, "content": "", _MADE_UP: True} for call in calls
        ]
        rows = [*rows, _row(Record(), "user", results)]
    place = next((at for at in range(len(rows) - 1, -1, -1) if not rows[at].is_beside), None)
    if place is None or rows[place].role == "assistant" or _is_local_command([r for r in rows if not r.is_beside]):
        return state, _sent(rows)
    answer: list[JsonObject] = [{"type": "text", "text": "-", _MADE_UP: True}]
    rows = [*rows[: place + 1], _row(Record(), "assistant", answer), *rows[place + 1 :]]
    return (State.UNANSWERED if state is State.COMPLETE else state), _sent(rows)


def _sent(rows: list[Row]) -> list[Row]:
    """Leaves out what is shown to the person only: errors of the API that the client wrote as answers."""
    return [row for row in rows if not (row.record.is_api_error_message and _is_synthetic(row.record))]


def _is_synthetic(record: Record) -> bool:
    message = record.body().get("message")
    return isinstance(message, dict) and message.get("model") == "<synthetic>"


def _is_local_command(rows: list[Row]) -> bool:
    """Whether the rows end with a command of the client's own: a caveat, the command, its output. Nobody answers that."""
    at = len(rows) - 1
    for part in (_COMMAND_PARTS[1:], _COMMAND_PARTS[:1]):
        if at >= 0 and rows[at].role == "user" and _plain(rows[at]).startswith(part):
            at -= 1
    return at >= 0 and rows[at].record.is_meta is True and _plain(rows[at]).startswith("<local-command-caveat>")


def _plain(row: Row) -> str:
    return text_of(row.blocks[0], "text") if row.blocks else ""


# ---- joining ----


def _join_prompt(messages: list[Message], row: Row) -> None:
    """Prompts in a row become one message: results first, a line break between two texts."""
    last = messages[-1] if messages and messages[-1].role == "user" else None
    if last is None:
        messages.append(_message(row))
        return
    if row.is_glued and _glue(last, row):
        return
    last.content = join_contents(last.content, row.blocks)
    last.is_bare = False
    _add_rows(last, row)


def _join_answer(messages: list[Message], row: Row) -> None:
    """Rows of one answer become one message, also over the results of its calls and over other answers, but not over a prompt."""
    message_id = _message_id(row)
    crossed: list[Message] = []
    for message in reversed(messages) if message_id is not None else ():
        if message.role == "assistant":
            if message.id == message_id:
                message.content = [*message.content, *row.blocks]
                _add_rows(message, row)
                for prompt in crossed:
                    prompt.content = results_first(prompt.content)
                return
        elif any(block.get("type") == "tool_result" for block in message.content):
            crossed.append(message)
        else:
            break
    messages.append(_message(row))


def _glue(message: Message, row: Row) -> bool:
    """Puts text of an attachment at the end of the last result of a message."""
    for at in range(len(message.content) - 1, -1, -1):
        block = message.content[at]
        content = block.get("content")
        if block.get("type") == "tool_result" and isinstance(content, str):
            texts = [text_of(part, "text") for part in row.blocks if part.get("type") == "text"]
            message.content[at] = {**block, "content": "\n\n".join([content, *texts])}
            _add_rows(message, row)
            return True
    return False


def _message(row: Row) -> Message:
    uuids = [row.record.uuid] if row.record.uuid else []
    return Message(row.role, list(row.blocks), uuids, row.record.timestamp, _message_id(row), row.is_bare)


def _add_rows(message: Message, row: Row) -> None:
    if row.record.uuid:
        message.uuids.append(row.record.uuid)
    message.timestamp = message.timestamp or row.record.timestamp


def _fill(message: Message) -> None:
    """No text is empty and no message is, and the calls of an answer stand behind everything else."""
    if message.role == "user":
        if not message.is_bare:
            message.content = [block for block in message.content if not is_blank_text(block)] or [text_block(NO_CONTENT)]
        return
    content = [block for block in message.content if block.get("type") != "text" or block.get("text") != ""]
    message.content = [_as_sent(block) for block in _calls_last(content)] or [placeholder(NO_CONTENT)]


def _calls_last(blocks: list[JsonObject]) -> list[JsonObject]:
    """Calls behind everything else, unless that would join two runs of thoughts that a call keeps apart."""
    moved = sorted(blocks, key=lambda block: block.get("type") == "tool_use")
    return blocks if _thoughts_joined(moved) > _thoughts_joined(blocks) else moved


def _thoughts_joined(blocks: list[JsonObject]) -> int:
    thoughts = [block.get("type") in ("thinking", "redacted_thinking") for block in blocks]
    return sum(one and two for one, two in pairwise(thoughts))


def _as_sent(block: JsonObject) -> JsonObject:
    # The tool that starts a subagent is called Task on disk and Agent on the wire.
    if block.get("type") == "tool_use" and block.get("name") == "Task":
        return {**block, "name": "Agent"}
    return block


# ---- giving ----


def _given(message: Message, *, reminders: bool) -> bool:
    """Takes what was made up, and the reminders, out of a message. Returns whether anything is left of it."""
    content = [block for block in message.content if _MADE_UP not in block]
    if not reminders:
        content = [_cut_reminders(block) for block in content if not _is_client_text(block)]
    message.content = content
    return bool(content)


def _cut_reminders(block: JsonObject) -> JsonObject:
    kind = block.get("type")
    if kind == "text":
        text = text_of(block, "text")
        return {**block, "text": _REMINDER.sub("", text)} if "<system-reminder>" in text else block
    content = block.get("content")
    if kind != "tool_result":
        return block
    if isinstance(content, str):
        return {**block, "content": _REMINDER.sub("", content)} if "<system-reminder>" in content else block
    if isinstance(content, list):
        return {**block, "content": [_cut_reminders(part) if isinstance(part, dict) else part for part in content]}
    return block
