"""What a prompt is: the one place that says which rows a person wrote, and in which words.

    a prompt        what a person typed, a picture sent without words, `! command`, a slash command that the model answers,
                    and a message sent while the model worked (a `queued_command` attachment: it has no user row)
    none            results of tools, notes of the client (`isMeta`), summaries of compactions, and texts that the client or
                    a hook put into a user row

The client tells commands that it runs by itself from those that the model answers: the former begin with
`<command-name>`, the latter with `<command-message>` or have a turn position (2.1.327).
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
    "local-command-stdout|local-command-stderr|local-command-caveat|session-start-hook|tick|goal|ide_opened_file|ide_selection"
    "|bash-stdout|bash-stderr|system-reminder|task-notification"
)
_CLIENT_START = re.compile(rf"\s*(?:<(?:{_CLIENT_TAGS})[>\s]|\[Request interrupted by user)")
# What an editor says about itself may stand in front of what the person typed, in the same text.
_EDITOR_NOTE = re.compile(r"\s*<(ide_opened_file|ide_selection|system-reminder)>.*?</\1>", re.DOTALL)
_COMMAND_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_COMMAND_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_COMMAND_START = re.compile(r"\s*<command-(?:name|message)>")
_LOCAL_COMMAND_START = re.compile(r"\s*<command-name>")
_SHELL_INPUT = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_WORDLESS = {"image": "Image", "document": "Document"}
_QUEUED_MODES = (None, "prompt", "bash")
_RESULT_MARK = b'"tool_result"'
_QUEUED_MARK = b'"queued_command"'


class _Block(msgspec.Struct, gc=False):
    type: str | None = None


class _Blocks(msgspec.Struct, gc=False):
    content: str | tuple[_Block, ...] | None = None


class _Shape(msgspec.Struct, gc=False):
    message: _Blocks | None = None


_shape_of = msgspec.json.Decoder(_Shape).decode


def is_prompt(record: Record) -> bool:
    """Whether a turn begins with this row. Decides most rows without decoding them."""
    if record.type == "user":
        return _is_plain_user(record) and _has_words(record)
    return record.type == "attachment" and _QUEUED_MARK in record.raw and bool(prompt_text(record))


def prompt_text(record: Record) -> str:
    """What the person wrote, or "" for a row that is no prompt and no command.

    A slash command reads `/name arguments`, also where the client answers it by itself and no turn begins; a shell command
    `! command`; a prompt without words "Image" or "Document".
    """
    if record.type == "user":
        return _typed(record.content()) if _is_plain_user(record) else ""
    if record.type == "attachment" and _QUEUED_MARK in record.raw:
        view = record.view()
        payload = view.payload if isinstance(view, Attachment) else None
        if isinstance(payload, QueuedCommand) and payload.command_mode in _QUEUED_MODES:
            return _typed(_listed(payload.prompt))
    return ""


def is_command(text: str) -> bool:
    """Whether a prompt's text is a slash command as `prompt_text` writes it."""
    return text.startswith("/") and not text.startswith("//")


def preview(text: str) -> str:
    """The text on one line: every run of blanks is one space, and what is too long ends with `…`."""
    # A megabyte of prompt is not folded for a line of 200 characters.
    folded = " ".join(text[: PREVIEW_CHARACTERS_MAX * 20].split())
    if len(folded) <= PREVIEW_CHARACTERS_MAX and len(text) > PREVIEW_CHARACTERS_MAX * 20:
        folded = " ".join(text.split())
    if len(folded) <= PREVIEW_CHARACTERS_MAX:
        return folded
    return folded[:PREVIEW_CHARACTERS_MAX].rstrip() + "…"


def _is_plain_user(record: Record) -> bool:
    """A user row that is no result, no note and no summary."""
    if record.is_meta or record.is_compact_summary or record.source_tool_assistant_uuid:
        return False
    return _RESULT_MARK not in record.raw or not _has_result(record)


def _has_result(record: Record) -> bool:
    """Whether a block of the row is a result of a tool; a prompt may also just speak of one."""
    try:
        message = _shape_of(record.raw).message
        content = message.content if message else None
        return isinstance(content, tuple) and any(block.type == "tool_result" for block in content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = record.content()
        return isinstance(found, list) and any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in found
        )


def _has_words(record: Record) -> bool:
    content = record.content()
    text = content if isinstance(content, str) else next(iter(_texts(content)), "")
    if _LOCAL_COMMAND_START.match(text):
        view = record.view()
        return isinstance(view, User) and view.turn_position is not None
    return bool(_typed(content))


def _listed(content: Content) -> JsonValue:
    return list(content) if isinstance(content, tuple) else content


def _typed(content: JsonValue) -> str:
    """The words in the content of a message, without what the client put there."""
    if isinstance(content, str):
        return sendable_text(_words(content))
    kept = [words for text in _texts(content) if (words := _words(text))]
    if kept:
        return sendable_text("\n".join(kept))
    kinds = [block.get("type") for block in _blocks(content)]
    return next((word for kind, word in _WORDLESS.items() if kind in kinds), "")


def _words(text: str) -> str:
    while note := _EDITOR_NOTE.match(text):
        text = text[note.end() :]
    if _CLIENT_START.match(text):
        return ""
    if "<command-name>" in text and _COMMAND_START.match(text):
        return _command(text)
    if shell := _SHELL_INPUT.match(text):
        return f"! {shell[1].strip()}"
    return text.strip()


def _command(text: str) -> str:
    name = _COMMAND_NAME.search(text)
    arguments = _COMMAND_ARGS.search(text)
    command = name[1].strip().lstrip("/") if name else ""
    return f"/{command} {arguments[1].strip() if arguments else ''}".rstrip() if command else text.strip()


def _texts(content: JsonValue) -> list[str]:
    return [text for block in _blocks(content) if block.get("type") == "text" and isinstance(text := block.get("text"), str)]


def _blocks(content: JsonValue) -> list[JsonObject]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
