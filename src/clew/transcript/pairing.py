"""Calls and their results: the API takes a call only with one result right behind it, and no result without a call."""

from __future__ import annotations

from clew.records.views import JsonObject
from clew.transcript.message import MADE_UP, NO_CONTENT, Message, placeholder, text_block, text_of

MISSING_RESULT = "[Tool result missing due to internal error]"
FIRST_ORPHAN = "[Orphaned tool result removed due to conversation resume]"
INTERRUPTED_USE = "[Tool use interrupted]"


def paired(messages: list[Message]) -> list[Message]:
    """The messages, repaired in place, with one added wherever an answer with calls has no message of results behind
    it.
    """
    used: set[str] = set()
    found: list[Message] = []
    calls: list[str] = []
    for at, message in enumerate(messages):
        if message.role == "user":
            _pair(message, calls, is_first=at == 0, is_last=at == len(messages) - 1)
            calls = []
        else:
            if calls:
                found.append(_results_of(calls))
            calls = _first_uses(message, used)
            used.update(calls)
        found.append(message)
    if calls:
        found.append(_results_of(calls))
    return found


def _results_of(calls: list[str]) -> Message:
    message = Message("user", [], [])
    _pair(message, calls)
    return message


def _first_uses(message: Message, used: set[str]) -> list[str]:
    """The calls of an answer; a call whose id was used before is taken out."""
    calls: dict[str, None] = {}
    kept: list[JsonObject] = []
    for block in message.content:
        if block["type"] == "tool_use":
            call = text_of(block, "id")
            if call in used or call in calls:
                continue
            calls[call] = None
        kept.append(block)
    message.content = kept or [placeholder(INTERRUPTED_USE)]
    return list(calls)


def _pair(message: Message, calls: list[str], *, is_first: bool = False, is_last: bool = False) -> None:
    """Keeps the first result of each call and no other, and puts one in front where a call has none.

    A message that is empty then gets a placeholder, but not at the end, where the next prompt would take its place.
    """
    waiting = dict.fromkeys(calls)
    kept: list[JsonObject] = []
    for block in message.content:
        if block["type"] == "tool_result":
            call = text_of(block, "tool_use_id")
            if call not in waiting:
                continue
            del waiting[call]
            block = _sendable_error(block)
        kept.append(block)
    missing: list[JsonObject] = [
        {"type": "tool_result", "tool_use_id": call, "content": MISSING_RESULT, "is_error": True} for call in waiting
    ]
    if not kept and not missing and not is_last and any(MADE_UP not in block for block in message.content):
        kept = [text_block(FIRST_ORPHAN if is_first and not message.had_blanks else NO_CONTENT)]
    message.content = [*missing, *kept]


def _sendable_error(block: JsonObject) -> JsonObject:
    """The API takes nothing but text in the result of a call that failed."""
    content = block.get("content")
    if block.get("is_error") is True and isinstance(content, list):
        return {**block, "content": [part for part in content if isinstance(part, dict) and part.get("type") == "text"]}
    return block
