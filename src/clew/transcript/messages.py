"""The messages: a chain as the model would be sent it, joined and repaired exactly as the client does.

    rows       prompts and answers of the chain; answers that came to nothing are left out       rows.py
    made up    a result for a call open at the end, an answer for a prompt without one           rows.py
    joined     prompts in a row become one message, rows of one answer become one                joining.py
    paired     every call has one result right behind it, no result is without a call            pairing.py
    given      the messages without what was made up, and without the client's reminders

What the client makes up takes part in joining and pairing, so that the rest stands as it sends it; then it is left out,
and `State` says instead how the conversation ends. All steps take linear time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from clew.records.record import Record
from clew.records.views import JsonObject
from clew.transcript.joining import joined
from clew.transcript.message import MADE_UP, Message, is_client_text, text_of
from clew.transcript.pairing import paired
from clew.transcript.rows import State, closed, rows_of

__all__ = ["Conversation", "State", "conversation"]

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


class Conversation(msgspec.Struct, frozen=True):
    """What would be sent, and how it ends."""

    messages: list[Message]
    state: State


def conversation(chain: Iterable[Record], *, reminders: bool = False) -> Conversation:
    """The messages of a chain.

    Reminders that the client wrote into texts are cut out unless asked for: they are not the conversation.
    """
    state, rows = closed(rows_of(chain))
    messages = paired(joined(rows))
    return Conversation([message for message in messages if _given(message, reminders=reminders)], state)


def _given(message: Message, *, reminders: bool) -> bool:
    """Takes what was made up, and the reminders, out of a message. Returns whether anything is left of it."""
    kept = []
    for block in message.content:
        if MADE_UP in block:
            continue
        if not reminders:
            kind = block["type"]
            if kind == "text" and is_client_text(block):
                continue
            if kind == "text" or kind == "tool_result":
                block = _cut_reminders(block)
        kept.append(block)
    message.content = kept
    return bool(kept)


def _cut_reminders(block: JsonObject) -> JsonObject:
    content = block.get("content")
    if block.get("type") != "tool_result":
        return _cut_text(block)
    if isinstance(content, str):
        return {**block, "content": _without_reminders(content)} if _REMINDER in content else block
    if isinstance(content, list):
        # Of texts alone: results in results, which no client writes, may nest to any depth.
        return {**block, "content": [_cut_text(part) if isinstance(part, dict) else part for part in content]}
    return block


def _cut_text(block: JsonObject) -> JsonObject:
    text = text_of(block) if block.get("type") == "text" else ""
    return {**block, "text": _without_reminders(text)} if _REMINDER in text else block


def _without_reminders(text: str) -> str:
    """Leaves out what stands between the marks, and the blanks before it. A mark that is not closed is text."""
    pieces: list[str] = []
    at = 0
    while (start := text.find(_REMINDER, at)) >= 0:
        end = text.find(_REMINDER_END, start)
        if end < 0:
            break
        pieces.append(text[at:start].rstrip())
        at = end + len(_REMINDER_END)
    return "".join([*pieces, text[at:]])
