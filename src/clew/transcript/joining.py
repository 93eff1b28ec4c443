"""Rows into messages: prompts in a row become one, and so do the rows of one answer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from clew.records.views import JsonObject
from clew.transcript.message import (
    NO_CONTENT,
    THOUGHTS,
    Message,
    is_blank_text,
    is_client_text,
    placeholder,
    text_block,
    text_of,
)
from clew.transcript.rows import Row

CALLS_MOVED_MAX = 1_000
"""In an answer of more blocks than this, calls are moved once, at the end: the client moves them with each row it
joins.
"""


def joined(rows: Iterable[Row]) -> list[Message]:
    """The messages of the rows, in order; none is empty unless its row was, and the calls of an answer stand last."""
    joiner = _Joiner()
    for row in rows:
        if row.role == "user":
            joiner.prompt(row)
        else:
            joiner.answer(row)
    for message in joiner.messages:
        _fill(message)
    return joiner.messages


class _Joiner:
    """Joins row by row. An answer is found again by its id over results and other answers, but not over a prompt."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._answers: dict[str, int] = {}
        self._prompts: list[int] = []
        """Places of user messages without results, of which the last is as far back as an answer may be found."""
        self._mixable: list[int] = []
        """Places of user messages that no row with a call was joined across yet."""
        self._with_results: set[int] = set()
        self._with_others: set[int] = set()
        """Places of user messages that hold results, and of those that hold anything else."""

    def prompt(self, row: Row) -> None:
        place = len(self.messages) - 1
        last = self.messages[place] if self.messages and self.messages[place].role == "user" else None
        # Results will stand first in a mixed message: what is behind one now need not be then.
        is_open = last is not None and not (last.is_mixed and place in self._with_others)
        if row.is_glued and (
            (last is not None and is_open and _glue(last, row)) or all(map(is_client_text, row.blocks))
        ):
            return
        if last is None:
            place += 1
        if any(block["type"] != "tool_result" for block in row.blocks):
            self._with_others.add(place)
        if last is None:
            self.messages.append(_message(row))
            self._mixable.append(place)
            if row.results:
                self._with_results.add(place)
            else:
                self._prompts.append(place)
            return
        if last.content and row.blocks and last.content[-1]["type"] == "text" and row.blocks[0]["type"] == "text":
            last.content[-1] = {**last.content[-1], "text": text_of(last.content[-1]) + "\n"}
        last.content.extend(row.blocks)
        last.is_bare, last.is_mixed = False, True
        _add_row(last, row)
        if row.results and place not in self._with_results:
            self._with_results.add(place)
            self._prompts.pop()

    def answer(self, row: Row) -> None:
        place = self._answers.get(row.message_id) if row.message_id is not None else None
        if place is None or (self._prompts and self._prompts[-1] > place):
            if row.message_id is not None:
                self._answers[row.message_id] = len(self.messages)
            self.messages.append(_message(row))
            return
        message = self.messages[place]
        _extend(message, row)
        while row.calls and self._mixable and self._mixable[-1] > place:
            self.messages[self._mixable.pop()].is_mixed = True


def _message(row: Row) -> Message:
    record = row.record
    # The blocks are the message's own from now on: nobody looks at those of a row that was joined.
    return Message(
        row.role, row.blocks, [record.uuid] if record.uuid else [], record.timestamp, row.message_id, row.is_bare
    )


def _add_row(message: Message, row: Row) -> None:
    if row.record.uuid:
        message.uuids.append(row.record.uuid)
    message.timestamp = message.timestamp or row.record.timestamp


def _extend(message: Message, row: Row) -> None:
    """Adds a row to its answer. Blank texts of a joined answer are dropped."""
    if not message.is_mixed:
        message.content = [block for block in message.content if not is_blank_text(block)]
        message.is_mixed = True
    moved = bool(message.content) and message.content[-1]["type"] == "tool_use"
    added = [block for block in row.blocks if not is_blank_text(block)]
    message.content.extend(added)
    if len(message.content) <= CALLS_MOVED_MAX and (moved or row.calls) and _has_call_before_end(message.content):
        message.content = calls_last(message.content)
    _add_row(message, row)


def _has_call_before_end(blocks: list[JsonObject]) -> bool:
    is_after_call = False
    for block in blocks:
        is_call = block["type"] == "tool_use"
        if is_after_call and not is_call:
            return True
        is_after_call = is_call
    return False


def _glue(message: Message, row: Row) -> bool:
    """Puts the text of an attachment at the end of the result right before it; False where none stands there."""
    last = message.content[-1] if message.content else None
    if last is None or last["type"] != "tool_result":
        return False
    content = last.get("content", "")
    if isinstance(content, list):
        message.content[-1] = {**last, "content": [*content, *row.blocks]}
    elif isinstance(content, str):
        texts = [text_of(part) for part in row.blocks if part["type"] == "text"]
        message.content[-1] = {**last, "content": "\n\n".join([content, *texts] if content else texts)}
    return True


def _fill(message: Message) -> None:
    """No text is empty and no message is; results stand before, and calls behind everything else."""
    content = message.content
    if message.role == "user":
        if not message.is_bare and content:
            kept = [block for block in content if not is_blank_text(block)]
            message.had_blanks = len(kept) < len(content)
            message.content = kept or [text_block(NO_CONTENT)]
        if message.is_mixed:
            message.content.sort(key=lambda block: block["type"] != "tool_result")
        return
    kept = [
        _as_sent(block) if block["type"] == "tool_use" else block
        for block in content
        if block["type"] != "text" or block.get("text") != ""
    ]
    message.content = (calls_last(kept) if _has_call_before_end(kept) else kept) or [placeholder(NO_CONTENT)]


def calls_last(blocks: list[JsonObject]) -> list[JsonObject]:
    """Calls behind everything else, unless that would join two runs of thoughts that a call keeps apart."""
    moved = sorted(blocks, key=lambda block: block["type"] == "tool_use")
    return blocks if _thoughts_joined(moved) > _thoughts_joined(blocks) else moved


def _thoughts_joined(blocks: list[JsonObject]) -> int:
    return sum(one["type"] in THOUGHTS and two["type"] in THOUGHTS for one, two in pairwise(blocks))


def _as_sent(block: JsonObject) -> JsonObject:
    """A call as the client sends it."""
    # The tool that starts a subagent is called Task on disk and Agent on the wire.
    return {**block, "name": "Agent"} if block.get("name") == "Task" else block
