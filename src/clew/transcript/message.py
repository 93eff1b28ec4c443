"""A message of the API, and the small questions asked of its blocks."""

from __future__ import annotations

import msgspec

from clew.records.views import JsonObject

NO_CONTENT = "(no content)"


class Message(msgspec.Struct):
    """One message of the API. `uuids` are the rows it was made of, `timestamp` is that of the first."""

    role: str
    content: list[JsonObject]
    uuids: list[str]
    timestamp: str | None = None
    id: str | None = None
    is_bare: bool = False
    """Whether the content was one plain string, which the client sends even when it is blank."""


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def placeholder(text: str) -> JsonObject:
    """What the client writes in place of an answer that has nothing in it."""
    return {"type": "text", "text": text, "citations": []}


def text_of(block: JsonObject, field: str = "text") -> str:
    """A field of a block that should be a string; "" when it is none."""
    value = block.get(field)
    return value if isinstance(value, str) else ""


def is_blank_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and not text_of(block).strip()
