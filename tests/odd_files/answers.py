"""What a conversation is, ours and the client's, in one form that can be compared.

Two things of the client are no part of the conversation and are taken out: its reminders, and what it makes up when it
loads a conversation that has no end - a result for an open call, an answer to a prompt without one. Blanks at the
ends of texts do not count, for the client trims some of them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from clew.records.codec import decode_lines
from clew.records.line import Line
from clew.records.record import records_in
from clew.transcript.chain import chain_to
from clew.transcript.head import Head, find_head
from clew.transcript.links import links_of
from clew.transcript.messages import State, conversation
from clew.transcript.tree import Tree

Messages = list[dict[str, Any]]

MADE_UP_RESULT = "[Tool call interrupted: the session ended"
MADE_UP_ANSWER = "No response requested."
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)


class Ours(msgspec.Struct, frozen=True):
    """What we say about a file; no messages when the client would find no conversation in it."""

    head: Head
    messages: Messages | None
    state: State | None


def lines_of(content: bytes) -> list[Line]:
    found: list[Line] = []
    position = 0
    # A newline ends a line and nothing else does; `splitlines` would also end one at a carriage return.
    for number, data in enumerate(filter(None, re.split(rb"(?<=\n)", content)), 1):
        found.append(Line(data, position, number, len(data)))
        position += len(data)
    return found


def tree_of(content: bytes) -> Tree:
    return Tree(records_in(decode_lines(lines_of(content))))


def ours(content: bytes) -> Ours:
    """Head, chain and messages of a file, through every part that has a say in it."""
    tree = tree_of(content)
    links = links_of(tree)
    head = find_head(tree, links)
    if head.refused:
        return Ours(head, None, None)
    said = conversation(chain_to(tree, head.uuid, links).records)
    return Ours(head, plain([{"role": m.role, "content": m.content} for m in said.messages]), said.state)


def clients(messages: Messages | None, content: bytes) -> Messages | None:
    """What the client sent for a file with this content, without what it made up; None stays None: it sent nothing."""
    if messages is None:
        return None
    kept = []
    for message in messages:
        blocks = [block for block in message["content"] if not _is_made_up(block)]
        if blocks and not _is_made_up_answer(message, content):
            kept.append({"role": message["role"], "content": blocks})
    return plain(kept)


def _is_made_up(block: dict[str, Any]) -> bool:
    content = block.get("content")
    return block.get("type") == "tool_result" and isinstance(content, str) and content.startswith(MADE_UP_RESULT)


def _is_made_up_answer(message: dict[str, Any], content: bytes) -> bool:
    """The words count as the conversation's own where they stand in the file."""
    texts = [block.get("text") for block in message["content"]]
    return message["role"] == "assistant" and texts == [MADE_UP_ANSWER] and MADE_UP_ANSWER.encode() not in content


def plain(messages: Messages) -> Messages:
    """Without reminders, wherever they were glued to, and without blanks at the ends of texts."""
    return [message | {"content": [_plain(block) for block in message["content"]]} for message in messages]


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return block | {"text": _REMINDER.sub("", block["text"]).strip()}
    content = block.get("content")
    if block.get("type") == "tool_result" and isinstance(content, str):
        return block | {"content": _REMINDER.sub("", content).rstrip()}
    if block.get("type") == "tool_result" and isinstance(content, list):
        parts = [_plain(part) if isinstance(part, dict) else part for part in content]
        # A part that was a reminder and nothing else is left empty by us and taken out of what the client sent.
        return block | {"content": [part for part in parts if part != {"type": "text", "text": ""}]}
    return block


def packed(messages: Messages) -> list[list[Any]]:
    """Short to store and to read: `[role, block, …]`, a block that is a text and nothing else as that text."""
    return [[m["role"], *(b["text"] if set(b) == {"type", "text"} else b for b in m["content"])] for m in messages]


def unpacked(stored: list[list[Any]]) -> Messages:
    return [
        {"role": role, "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}
        for role, *blocks in stored
    ]
