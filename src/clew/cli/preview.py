"""One line for what may be a page: a record for the tree, a call of a tool for the conversation."""

from __future__ import annotations

from collections.abc import Iterator

from clew.records.record import Record
from clew.records.views import JsonObject, JsonValue
from clew.transcript.message import text_of
from clew.transcript.prompts import preview, prompt_of

TELLING = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "prompt", "skill",
    "subject",
)  # fmt: skip
"""Names of arguments that say most of what a call does, the first that is there wins; else the first text is taken."""


def preview_of(record: Record) -> str:
    """What a record says, on one line: a prompt, an answer, a call, a result. It may hold any characters."""
    if record.type == "user" or record.type == "attachment":
        prompt = prompt_of(record)
        if prompt is not None:
            return preview(prompt.text)
    if record.type == "user" or record.type == "assistant":
        found = next(_told(record.content()), None)
        return preview(found) if found else ""
    return f"({record.subtype or record.type})"


def _told(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and (text := block_line(block)):
            yield text


def block_line(block: JsonObject) -> str:
    """A block of a message on one line."""
    kind = text_of(block, "type")
    if kind == "text":
        return text_of(block)
    if kind in ("tool_use", "server_tool_use"):
        return f"{text_of(block, 'name') or 'a tool'}: {argument(block.get('input'))}".removesuffix(": ")
    if kind == "tool_result":
        return f"result: {result_text(block.get('content'))}"
    if kind == "thinking":
        return f"thinking: {text_of(block, 'thinking')}"
    return media(block)


def argument(given: JsonValue) -> str:
    """The argument of a call that tells most."""
    if not isinstance(given, dict):
        return ""
    for name in TELLING:
        value = given.get(name)
        if isinstance(value, str) and value:
            return value
    return next((value for value in given.values() if isinstance(value, str) and value), "")


def result_text(content: JsonValue) -> str:
    """The text of a result, with a word for each picture in it."""
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return "\n".join(text_of(block) if block.get("type") == "text" else media(block) for block in blocks)


def media(block: JsonObject) -> str:
    """A name for what is no text: its kind, its media type and its size."""
    kind = text_of(block, "type") or "block"
    source = block.get("source")
    if not isinstance(source, dict):
        return f"[{kind}]"
    what = text_of(source, "media_type") or text_of(source, "url") or text_of(source, "type")
    data = text_of(source, "data") if source.get("type") == "base64" else ""
    # Base64 holds three bytes in four characters.
    return f"[{kind}: {what}{f', {len(data) * 3 // 4:,} bytes' if data else ''}]"
