"""Calls and their results: the API takes a call only with one result right behind it, and no result without a call."""

from __future__ import annotations

from collections.abc import Collection

from clew.records.views import JsonObject
from clew.transcript.message import NO_CONTENT, Message, placeholder, text_block, text_of

MISSING_RESULT = "[Tool result missing due to internal error]"
FIRST_ORPHAN = "[Orphaned tool result removed due to conversation resume]"
INTERRUPTED_USE = "[Tool use interrupted]"


def join_contents(first: list[JsonObject], second: list[JsonObject]) -> list[JsonObject]:
    """Two user contents as one: results before everything else, a line break where two texts meet."""
    if first and second and first[-1].get("type") == "text" and second[0].get("type") == "text":
        first = [*first[:-1], {**first[-1], "text": f"{text_of(first[-1])}\n"}]
    return results_first([*first, *second])


def results_first(blocks: list[JsonObject]) -> list[JsonObject]:
    return sorted(blocks, key=lambda block: block.get("type") != "tool_result")


def pair_calls(messages: list[Message]) -> None:
    """Repairs the messages in place, and adds one where an answer with calls has no message of results behind it."""
    used: set[str] = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        if message.role == "user":
            # Results that belong to an answer were taken care of with it; these stand behind no call.
            _drop_results(message, set(), is_first=at == 0)
            at += 1
            continue
        calls = _first_uses(message, used)
        used.update(calls)
        behind = messages[at + 1] if at + 1 < len(messages) else None
        if behind is not None and behind.role == "user":
            _drop_results(behind, calls, is_first=False)
        elif calls:
            behind = Message("user", [], [])
            messages.insert(at + 1, behind)
        if behind is not None and calls:
            _add_missing(behind, calls)
        at += 1 if behind is None or behind.role == "assistant" else 2


def _first_uses(message: Message, used: set[str]) -> list[str]:
    """The calls of an answer; a call whose id was used before is taken out."""
    calls: list[str] = []
    kept: list[JsonObject] = []
    for block in message.content:
        if block.get("type") == "tool_use":
            call = text_of(block, "id")
            if call in used or call in calls:
                continue
            calls.append(call)
        kept.append(block)
    message.content = kept or [placeholder(INTERRUPTED_USE)]
    return calls


def _drop_results(message: Message, calls: Collection[str], *, is_first: bool) -> None:
    """Keeps the first result of each call and no other."""
    waiting = set(calls)
    kept: list[JsonObject] = []
    for block in message.content:
        if block.get("type") == "tool_result":
            call = text_of(block, "tool_use_id")
            if call not in waiting:
                continue
            waiting.discard(call)
            block = _sendable_error(block)
        kept.append(block)
    message.content = kept or [text_block(FIRST_ORPHAN if is_first else NO_CONTENT)]


def _add_missing(message: Message, calls: list[str]) -> None:
    answered = {text_of(block, "tool_use_id") for block in message.content if block.get("type") == "tool_result"}
    missing: list[JsonObject] = [
        {"type": "tool_result", "tool_use_id": call, "content": MISSING_RESULT, "is_error": True}
        for call in calls
        if call not in answered
    ]
    message.content = [*missing, *message.content]


def _sendable_error(block: JsonObject) -> JsonObject:
    """The API takes nothing but text in the result of a call that failed."""
    content = block.get("content")
    if block.get("is_error") is True and isinstance(content, list):
        return {**block, "content": [part for part in content if isinstance(part, dict) and part.get("type") == "text"]}
    return block
