"""What a prompt is: the one place that says which rows a person wrote, and in which words.

    a prompt    what a person typed, a picture sent without words, `! command`, a slash command that the model answers,
                and a message sent while the model worked (a `queued_command` attachment: it has no user row)
    none        results of tools, notes of the client (`isMeta`), summaries of compactions, and texts that the client or
                a hook put into a user row

A slash command that the client runs by itself begins with `<command-name>` and has no turn position (measured on
2.1.327); one that the model answers begins with `<command-message>` or has one.
"""

from __future__ import annotations

import re

import msgspec

from clew.records.attachment import Attachment, QueuedCommand
from clew.records.messages import User
from clew.records.record import Record, sendable_text
from clew.records.views import Content, JsonObject, JsonValue

PREVIEW_CHARACTERS_MAX = 200
"""A preview of a prompt is cut after so many characters and ends with `…`."""

_CLIENT_TAGS = (
    "local-command-stdout|local-command-stderr|local-command-caveat|session-start-hook|tick|goal"
    "|ide_opened_file|ide_selection|bash-stdout|bash-stderr|system-reminder|task-notification"
)
_CLIENT_START = re.compile(rf"(?:<(?:{_CLIENT_TAGS})[>\s]|\[Request interrupted by user)")
# What an editor says about itself may stand in front of what the person typed, in the same text.
_EDITOR_NOTE = re.compile(r"\s*<(ide_opened_file|ide_selection|system-reminder)>.*?</\1>", re.DOTALL)
_COMMAND_START = re.compile(r"<command-(?:name|message)>")
_SHELL_INPUT = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_WORDLESS = {"image": "Image", "document": "Document"}
_QUEUED_MODES = (None, "prompt", "bash")
_RESULT_MARK = b'"tool_result"'
_QUEUED_MARK = b'"queued_command"'


class Prompt(msgspec.Struct, frozen=True):
    """The words of a row that a person caused.

    `is_turn` is False for a command that the client answers by itself. `is_fallback` says that there are no words of
    the person: a slash command, or a picture alone; lists show such a prompt only when there is no other.
    """

    text: str
    is_turn: bool = True
    is_fallback: bool = False


class _Block(msgspec.Struct, gc=False):
    type: str | None = None


class _Blocks(msgspec.Struct, gc=False):
    content: str | tuple[_Block, ...] | None = None


class _Shape(msgspec.Struct, gc=False):
    message: _Blocks | None = None


_shape_of = msgspec.json.Decoder(_Shape).decode


def prompt_of(record: Record) -> Prompt | None:
    """What the person wrote in this row; None for a row that is neither prompt nor command.

    Most rows are told from prompts without decoding them.
    """
    if record.type == "user":
        if record.is_meta or record.is_compact_summary or record.source_tool_assistant_uuid:
            return None
        if _RESULT_MARK in record.raw and _has_result(record):
            return None
        prompt = _prompt_in(record.content())
        if prompt is None or prompt.is_turn or not _has_turn_position(record):
            return prompt
        return Prompt(prompt.text, is_turn=True, is_fallback=True)
    if record.type == "attachment" and _QUEUED_MARK in record.raw:
        view = record.view()
        payload = view.payload if isinstance(view, Attachment) else None
        if isinstance(payload, QueuedCommand) and payload.command_mode in _QUEUED_MODES:
            return _prompt_in(_listed(payload.prompt))
    return None


def is_prompt(record: Record) -> bool:
    """Whether a turn begins with this row."""
    prompt = prompt_of(record)
    return prompt is not None and prompt.is_turn


def prompt_text(record: Record) -> str:
    """What the person wrote, or "" for a row that is no prompt and no command.

    A slash command reads `/name arguments`, a shell command `! command`, a prompt without words "Image" or "Document".
    """
    prompt = prompt_of(record)
    return prompt.text if prompt else ""


def is_client_text(text: str) -> bool:
    """Whether the client, an editor or a hook put this text where prompts stand."""
    return _CLIENT_START.match(text.lstrip()[:100]) is not None


def preview(text: str) -> str:
    """The text on one line: every run of blanks is one space, and what is too long ends with `…`."""
    folded = " ".join(text.split())
    if len(folded) <= PREVIEW_CHARACTERS_MAX:
        return folded
    return folded[:PREVIEW_CHARACTERS_MAX].rstrip() + "…"


def _has_result(record: Record) -> bool:
    """Whether a block of the row is a result of a tool; a prompt may also just speak of one."""
    try:
        message = _shape_of(record.raw).message
        content = message.content if message else None
        return isinstance(content, tuple) and any(block.type == "tool_result" for block in content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return any(block.get("type") == "tool_result" for block in _blocks(record.content()))


def _has_turn_position(record: Record) -> bool:
    view = record.view()
    return isinstance(view, User) and view.turn_position is not None


def _listed(content: Content) -> JsonValue:
    return list(content) if isinstance(content, tuple) else content


def _prompt_in(content: JsonValue) -> Prompt | None:
    """The prompt in the content of a message, without what the client put there."""
    texts = [content] if isinstance(content, str) else _texts(content)
    kept = [words for text in texts if (words := _words(text))]
    if kept:
        first = kept[0]
        if _COMMAND_START.match(first) and (command := _command(first)):
            return Prompt(sendable_text(command), is_turn=not first.startswith("<command-name>"), is_fallback=True)
        return Prompt(sendable_text("\n".join(kept)))
    kinds = [block.get("type") for block in _blocks(content)]
    word = next((word for kind, word in _WORDLESS.items() if kind in kinds), None)
    return Prompt(word, is_fallback=True) if word else None


def _words(text: str) -> str:
    at = 0
    while note := _EDITOR_NOTE.match(text, at):
        at = note.end()
    text = text[at:].strip()
    if _CLIENT_START.match(text):
        return ""
    if shell := _SHELL_INPUT.match(text):
        return f"! {shell[1].strip()}"
    return text


def _command(text: str) -> str:
    name = _between(text, "<command-name>", "</command-name>").lstrip("/")
    return f"/{name} {_between(text, '<command-args>', '</command-args>')}".rstrip() if name else ""


def _between(text: str, opening: str, closing: str) -> str:
    start = text.find(opening)
    end = text.find(closing, start)
    return text[start + len(opening) : end].strip() if 0 <= start < end else ""


def _texts(content: JsonValue) -> list[str]:
    texts = (block.get("text") for block in _blocks(content) if block.get("type") == "text")
    return [text for text in texts if isinstance(text, str)]


def _blocks(content: JsonValue) -> list[JsonObject]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
