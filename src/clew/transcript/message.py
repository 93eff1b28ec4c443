"""A message of the API, and the small questions asked of its blocks."""

from __future__ import annotations

import re

import msgspec

from clew.records.views import JsonObject, JsonValue

NO_CONTENT = "(no content)"
THOUGHTS = ("thinking", "redacted_thinking")
MADE_UP = "\x00made up"
"""Marks a block that the client makes up when it loads a session; no JSON of a session can hold this key unescaped."""


_CLIENT_TEXT = re.compile(r"\s*<(?:system-reminder|local-command-caveat)>")


class Message(msgspec.Struct):
    """One message of the API. `uuids` are the rows it was made of, `timestamp` is that of the first."""

    role: str
    content: list[JsonObject]
    uuids: list[str]
    timestamp: str | None = None
    id: str | None = None
    is_bare: bool = False
    """Whether the content was one plain string, which the client sends even when it is blank."""
    had_blanks: bool = False
    """Whether blank texts were dropped from it."""
    is_mixed: bool = False
    """Whether prompts were joined in it, so that results have to go before everything else."""


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def placeholder(text: str) -> JsonObject:
    """What the client writes in place of an answer that has nothing in it."""
    return {"type": "text", "text": text, "citations": []}


def text_of(block: JsonObject, field: str = "text") -> str:
    """A field of a block that should be a string; "" when it is none."""
    value = block.get(field)
    return value if isinstance(value, str) else ""


def blocks_of(content: JsonValue) -> list[JsonObject] | None:
    """The content of a row as blocks, or None when it has none that could be sent."""
    if isinstance(content, str):
        return [text_block(content)]
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict) and isinstance(block.get("type"), str)]
    return blocks if blocks or not content else None


def is_blank_text(block: JsonObject) -> bool:
    if block.get("type") != "text":
        return False
    text = block.get("text")
    # `isspace` stops at the first letter; `strip` would copy the text.
    return not text or text.isspace() if isinstance(text, str) else True


def is_client_text(block: JsonObject) -> bool:
    """Whether the block is a reminder or a caveat of the client, and no part of the conversation."""
    if block.get("type") != "text":
        return False
    text = text_of(block)
    return _CLIENT_TEXT.match(text) is not None
