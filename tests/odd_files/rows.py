"""Rows of session files, written short.

A row has a number, and hangs on the row of another number. Its uuid, its text and its time follow from its number:
`user(3, 2)` is a prompt with the text "U3", on row 2, three seconds after ten o'clock. So the usual conversation,

    TALK = user(1), answer(2, 1), user(3, 2), answer(4, 3)

is U1, A2, U3, A4. Number 99 is a row that is in no file. Any field can be given by its name; `ABSENT` leaves it out.
"""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]
Block = dict[str, Any]
Piece = Row | bytes
"""Part of a file: a row, or bytes that stand there as they are."""

SESSION = "0a0a0a0a-0000-4000-8000-000000000001"
ABSENT = ...
LOST = 99
"""The number of a row that is in no file."""
NOBODY = "00000000-0000-0000-0000-000000000000"
"""What the interactive client writes as the leaf after a rewind."""


def uuid(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"2026-11-18T10:{whole // 60:02d}:{whole % 60:02d}.{round(seconds % 1 * 1000):03d}Z"


def row(number: int, parent: int | None, kind: str, *, at: float | None = None, **fields: Any) -> Row:
    """A row of any type with the envelope the client gives it."""
    whole = {
        "parentUuid": None if parent is None else uuid(parent),
        "isSidechain": False,
        "type": kind,
        "uuid": uuid(number),
        "timestamp": clock(number if at is None else at),
        "userType": "external",
        "cwd": "/home/user/project",
        "sessionId": SESSION,
        "version": "2.1.327",
        "gitBranch": "HEAD",
    } | fields
    return {name: value for name, value in whole.items() if value is not ABSENT}


def user(
    number: int, parent: int | None = None, content: Any = ABSENT, *, at: float | None = None, **fields: Any
) -> Row:
    """A prompt, or the results of calls."""
    message = {"role": "user", "content": f"U{number}" if content is ABSENT else content}
    return row(number, parent, "user", at=at, **({"message": message} | fields))


def answer(
    number: int,
    parent: int | None = None,
    content: Any = ABSENT,
    *,
    of: str | None = None,
    at: float | None = None,
    **fields: Any,
) -> Row:
    """A row of an answer; rows with the same `of` are one answer of the model."""
    if content is ABSENT:
        content = f"A{number}"
    message = {
        "id": of or f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": content if isinstance(content, list) else [text(content)],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return row(number, parent, "assistant", at=at, **({"message": message} | fields))


def bare_answer(number: int, parent: int | None, **message: Any) -> Row:
    """An answer whose message has nothing but what is given."""
    return row(number, parent, "assistant", message=message)


def api_error(number: int, parent: int | None) -> Row:
    """What the client writes as an answer when the API refuses."""
    message = {"id": "x", "role": "assistant", "model": "<synthetic>", "content": [text("API Error: 400")]}
    return row(number, parent, "assistant", isApiErrorMessage=True, message=message)


def attachment(number: int, parent: int | None, payload: Any = None, *, at: float | None = None, **fields: Any) -> Row:
    return row(number, parent, "attachment", at=at, attachment=payload or {"type": "never_seen_before"}, **fields)


def system(
    number: int,
    parent: int | None = None,
    subtype: str = "informational",
    content: Any = "SYS",
    *,
    at: float | None = None,
    **fields: Any,
) -> Row:
    return row(number, parent, "system", at=at, subtype=subtype, content=content, level="info", **fields)


def local_command(number: int, parent: int | None, content: Any = "SYS", **fields: Any) -> Row:
    """The output of a command of the client's own, as newer clients write it."""
    return system(number, parent, "local_command", content, **fields)


def boundary(number: int, parent: int | None = None, note: Row | None = None, **fields: Any) -> Row:
    """The mark of a compaction; `note` says which older rows stay."""
    metadata = {"trigger": "manual", "preTokens": 1} if note is None else note
    return system(number, parent, "compact_boundary", ABSENT, **({"compactMetadata": metadata} | fields))


def summary(number: int, parent: int | None, **fields: Any) -> Row:
    return user(number, parent, f"SUM{number}", isCompactSummary=True, isVisibleInTranscriptOnly=True, **fields)


def segment(head: int, tail: int, *, anchor: int) -> Row:
    """The note that the rows from `head` to `tail` stay in the conversation, behind the row `anchor`."""
    return {"preservedSegment": {"headUuid": uuid(head), "anchorUuid": uuid(anchor), "tailUuid": uuid(tail)}}


def kept(*numbers: int, anchor: int, whole: tuple[int, ...] | None = None) -> Row:
    """The same as a list; `whole` are the rows that the client counts as kept, unless given these."""
    uuids = [uuid(number) for number in numbers]
    every = uuids if whole is None else [uuid(number) for number in whole]
    return {"preservedMessages": {"anchorUuid": uuid(anchor), "uuids": uuids, "allUuids": every}}


def head(leaf: int | str | None = None, **fields: Any) -> Row:
    """A head record: the client goes on from row `leaf`."""
    named = uuid(leaf) if isinstance(leaf, int) else leaf
    record = {"type": "last-prompt", "lastPrompt": "x", "leafUuid": named, "sessionId": SESSION} | fields
    return {name: value for name, value in record.items() if value is not ABSENT}


def exact(leaf: int | str | None, **fields: Any) -> Row:
    """An explicit head record: what already hangs below the row is cut off."""
    return head(leaf, explicit=True, **fields)


def text(words: str, **fields: Any) -> Block:
    return {"type": "text", "text": words, **fields}


def thought(words: str = "hm") -> Block:
    return {"type": "thinking", "thinking": words, "signature": "s"}


def call(number: int, name: str = "Bash", **arguments: Any) -> Block:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments or {"command": "x"}}


def result(number: int, content: Any = "r", **fields: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content, **fields}


def image(data: str = "AAAA") -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def source(number: int) -> Row:
    """The field by which a row of results names the row of the call."""
    return {"sourceToolAssistantUUID": uuid(number)}


def line(piece: Row) -> bytes:
    """A row as JSON without its newline. Lone surrogates become the bytes that a careless writer makes of them."""
    return json.dumps(piece, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def encoded(*pieces: Piece) -> bytes:
    """A file of these rows, one a line."""
    return b"".join(piece if isinstance(piece, bytes) else line(piece) + b"\n" for piece in pieces)


def files(cases: dict[str, list[Piece]]) -> dict[str, bytes]:
    return {name: encoded(*pieces) for name, pieces in cases.items()}


def end(number: int, parent: int) -> list[Piece]:
    """A prompt and its answer."""
    return [user(number, parent), answer(number + 1, number)]


START: list[Piece] = [user(1), answer(2, 1)]
"""U1, A2"""
TALK: list[Piece] = [*START, *end(3, 2)]
"""U1, A2, U3, A4"""
OTHER: list[Piece] = end(5, 2)
"""A second branch on A2: U5, A6"""
