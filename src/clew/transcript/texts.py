"""The searchable text of a record: everything in it that a person could remember, as decoded strings.

    what                                                              kind
    prompts, also those that waited while the model worked            prompt
    answers and thoughts of the model                                 answer, thinking
    calls: the name of the tool and every string of its input         tool_input
    results, as sent and, where it says more, as the tool gave them   tool_result
    summaries, of compactions too                                     summary
    titles, tags, the last prompt for lists                           title
    what the client told the model beside the prompt                  attachment
    rows and notes of the client inside the conversation              system
    every other string, in rows of unknown types too, paths of        other
    checkpointed files among them

Not text: ids and the envelope of a row, the client's switches and totals, the replay log of requests (it repeats the
conversation), picture and file data in base64, and signatures. No string comes twice from one record.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.records.record import Record, sendable_text
from clew.records.views import JsonObject, JsonValue
from clew.transcript.prompts import is_client_text

REQUEST_LOG_TYPES = frozenset({"api-request", "api-request-blob", "api-request-shape"})
"""Rows that repeat what was sent: most bytes of a session, and no text of their own."""

_SWITCHES = frozenset({"mode", "permission-mode", "tools-used", "cost-state", "atis-latch"})
_TITLES = frozenset({"custom-title", "agent-name", "ai-title", "tag", "last-prompt"})
_ENVELOPE = frozenset({
    "type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "session_id", "requestSessionId",
    "timestamp", "userType", "entrypoint", "cwd", "version", "gitBranch", "slug", "promptId", "agentId", "requestId",
    "requestRef", "requestedModel", "madeBy", "sourceToolAssistantUUID", "sourceToolUseID", "interruptedMessageId",
    "leafUuid", "cutUuid", "messageId", "snapshotMessageId", "forkedFrom", "level", "permissionMode", "promptSource",
    "turnOrigin", "turnPosition", "turnAttributionKey", "origin", "renderedRole", "summarizedTurnPromptUuids",
    "compactMetadata", "commandUuid", "deliveryId", "operation", "promptCacheRequested", "thinkingDisplay",
    "permissionDecision", "sessionKind", "effort", "perTurnEffort",
})  # fmt: skip
_BLOCK_FRAME = frozenset({"type", "id", "tool_use_id", "cache_control", "signature"})
_QUEUE_FRAME = frozenset({"type", "prompt", "source_uuid", "delivery_id", "timestamp", "commandMode"})
_KIND_OF_BLOCK = frozenset({"type", "media_type"})
COMPARED_CHARACTERS_MAX = 50_000_000
"""So much is compared to tell what a tool gave beside what was sent; then parts of sent strings come too."""


class Text(msgspec.Struct, frozen=True, gc=False):
    """One string of a record, and what it is."""

    kind: str
    text: str


def texts(record: Record) -> Iterator[Text]:
    """Every text of the record, in the order of the row. Never raises; depth costs no recursion."""
    if record.type in REQUEST_LOG_TYPES or record.type in _SWITCHES:
        return
    seen: set[str] = set()
    for kind, text in _found(record):
        if text not in seen and not text.isspace():
            seen.add(text)
            yield Text(kind, text if text.isascii() else sendable_text(text))


Found = Iterator[tuple[str, str]]


def _found(record: Record) -> Found:
    body = record.body()
    kind = record.type
    if kind == "user" or kind == "assistant":
        yield from _spoken(record, body)
    elif kind == "attachment":
        yield from _attachment(body)
    elif kind == "system":
        yield from _rest(body, "system", _ENVELOPE)
    elif kind == "summary":
        yield from _rest(body, "summary", _ENVELOPE)
    elif kind == "file-history-snapshot":
        snapshot = body.get("snapshot")
        tracked = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
        yield from (("other", path) for path in (tracked if isinstance(tracked, dict) else ()) if path)
    elif kind == "file-history-delta":
        yield from (("other", text) for text in leaves(body.get("trackingPath")))
    elif kind in _TITLES:
        yield from _rest(body, "title", _ENVELOPE)
    else:
        yield from _rest(body, "other", _ENVELOPE)


def _spoken(record: Record, body: JsonObject) -> Found:
    message = body.get("message")
    results: list[str] = []
    if isinstance(message, dict):
        own = _own_kind(record)
        content = message.get("content")
        for block in content if isinstance(content, list) else [content]:
            for kind, text in _block(block, own):
                if kind == "tool_result":
                    results.append(text)
                yield kind, text
    yield from _given(body.get("toolUseResult"), results)
    yield from _rest(body, "other", _ENVELOPE | {"message", "toolUseResult"})


def _own_kind(record: Record) -> str:
    """What plain text of this row is."""
    if record.type == "assistant":
        return "answer"
    if record.is_compact_summary:
        return "summary"
    return "system" if record.is_meta else "prompt"


def _block(block: JsonValue, own: str) -> Found:
    if not isinstance(block, dict):
        yield from _plain(block, own)
        return
    kind = block.get("type")
    if kind == "text":
        yield from _plain(block.get("text"), own)
        yield from _rest(block, "other", _BLOCK_FRAME | {"text"})
    elif kind == "thinking":
        yield from ((kind, text) for text in leaves(block.get("thinking")))
    elif kind == "redacted_thinking":
        return
    elif isinstance(kind, str) and kind.endswith("tool_use"):
        yield from _rest(block, "tool_input", _BLOCK_FRAME)
    elif isinstance(kind, str) and kind.endswith("tool_result"):
        for name, value in block.items():
            if name not in _BLOCK_FRAME:
                yield from (("tool_result", text) for text in leaves(value, _KIND_OF_BLOCK))
    else:
        yield from _rest(block, own, _BLOCK_FRAME)


def _plain(value: JsonValue, own: str) -> Found:
    for text in leaves(value):
        yield ("system" if own == "prompt" and is_client_text(text) else own), text


def _given(result: JsonValue, sent: list[str]) -> Found:
    """What the tool itself gave, where that is not in what was sent to the model."""
    whole = "\n".join(sent)
    budget = COMPARED_CHARACTERS_MAX
    for text in leaves(result, _KIND_OF_BLOCK):
        if len(text) <= len(whole) and budget > 0:
            budget -= len(whole)
            if text in whole:
                continue
        yield "tool_result", text


def _attachment(body: JsonObject) -> Found:
    payload = body.get("attachment")
    if isinstance(payload, dict) and payload.get("type") == "queued_command":
        prompt = payload.get("prompt")
        for block in prompt if isinstance(prompt, list) else [prompt]:
            yield from _block(block, "prompt")
        yield from _rest(payload, "attachment", _QUEUE_FRAME)
    elif isinstance(payload, dict):
        yield from _rest(payload, "attachment", frozenset({"type"}))
    else:
        yield from (("attachment", text) for text in leaves(payload))
    yield from _rest(body, "attachment", _ENVELOPE | {"attachment"})


def _rest(fields: JsonObject, kind: str, without: frozenset[str]) -> Found:
    """Every string in the fields that are not left out."""
    for name, value in fields.items():
        if name not in without:
            for text in leaves(value):
                yield kind, text


def leaves(value: JsonValue, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every string in a value, in order; no keys, no empty strings, no base64, nothing under names in `without`."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if item:
                yield item
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            data = "data" if item.get("type") == "base64" else "base64"
            waiting.extend(inner for name, inner in reversed(item.items()) if name != data and name not in without)
