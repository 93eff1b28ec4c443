"""From what a caller has to say to a row as the client writes it: the envelope, the order of keys, what must be there.

Pure: ids, times and parents are passed in. Three kinds of things come in: a message `{"role", "content"}`, which gets a
whole envelope; a row `{"type", …}`, which gets what it lacks; and a `Record`, whose bytes stay as they are.

    rows of a conversation    parentUuid isSidechain agentId payload uuid timestamp userType entrypoint cwd … gitBranch
    all other rows            type first, since other programs look for `{"type":"tag"` as text
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import msgspec

from clew.errors import UsageError
from clew.records.identity import WRITTEN_ONCE
from clew.records.record import Record
from clew.records.views import JsonObject

Given: TypeAlias = Mapping[str, object]
"""An object of JSON as a caller has it; that its values are JSON is found when it is written."""
Said: TypeAlias = Given | Record
"""What can be appended to a session: a plain message, a row, or a record that was read somewhere."""

ENTRYPOINT = "clew"
"""Says in each row that gets its envelope here which program wrote it."""
RESERVED_PREFIX = "clew-"
"""Types of rows that only clew itself writes."""
ROLES = ("user", "assistant")

_NEEDED = {
    "custom-title": ("customTitle",),
    "ai-title": ("aiTitle",),
    "agent-name": ("agentName",),
    "tag": ("tag",),
    "summary": ("summary", "leafUuid"),
    "file-history-snapshot": ("messageId",),
    "file-history-delta": ("snapshotMessageId", "trackingPath"),
}
"""The texts without which a reader can do nothing with a row of that type."""
_WITHOUT_SESSION = frozenset({"summary", "file-history-snapshot", "file-history-delta"})


class Origin(msgspec.Struct, frozen=True):
    """What a row says about where it was written; what is None is left out."""

    session: str
    cwd: str | None = None
    git_branch: str | None = None
    agent: str | None = None
    """The id of the subagent whose log the row is for."""


class Place(msgspec.Struct, frozen=True):
    """Where a row of a conversation goes, if it does not say so itself."""

    parent: str | None
    uuid: str
    timestamp: str


def is_message(said: Said) -> bool:
    """Whether this is a message of the API, not yet a row. Such an object may have `"type": "message"` or no type."""
    return not isinstance(said, Record) and "role" in said and said.get("type", "message") == "message"


def is_written_once(said: Said) -> bool:
    """Whether it is, or becomes, a row of a conversation."""
    return is_message(said) or type_of(said) in WRITTEN_ONCE


def type_of(said: Said) -> str | None:
    """The type of a row; None for a message and for a row without one."""
    kind = said.type if isinstance(said, Record) else said.get("type")
    return kind if isinstance(kind, str) and not is_message(said) else None


def row_of_message(message: Given, origin: Origin, place: Place) -> JsonObject:
    """The row for a message. An answer without an id gets one of its own: the client joins rows that share one."""
    said = cast(JsonObject, message)
    role, content = said["role"], said.get("content")
    body: JsonObject = {"role": role, "content": content}
    if role == "assistant":
        body = {"id": f"msg_{place.uuid.replace('-', '')}", "type": "message", **body}
        if isinstance(content, str):
            body["content"] = [{"type": "text", "text": content}]
    body |= {name: value for name, value in said.items() if name not in ("role", "content", "type")}
    return _enveloped({"type": role, "message": body}, origin, place)


def row_completed(row: Given, origin: Origin, place: Place | None) -> JsonObject:
    """A row with what it lacked. `place` is None for a row that is no part of a conversation."""
    if place is not None:
        return _enveloped(row, origin, place)
    done = cast(JsonObject, {"type": row["type"], **row})
    if row["type"] not in _WITHOUT_SESSION:
        done.setdefault("sessionId", origin.session)
    return done


def _enveloped(row: Given, origin: Origin, place: Place) -> JsonObject:
    sidechain: JsonObject = {"isSidechain": origin.agent is not None}
    if origin.agent is not None:
        sidechain["agentId"] = origin.agent
    around = {"cwd": origin.cwd, "sessionId": origin.session, "gitBranch": origin.git_branch}
    told = {name: value for name, value in around.items() if value is not None}
    before: JsonObject = {"parentUuid": place.parent, **sidechain}
    after: JsonObject = {
        "uuid": place.uuid, "timestamp": place.timestamp, "userType": "external", "entrypoint": ENTRYPOINT, **told,
    }  # fmt: skip
    return {**before, **cast(JsonObject, row), **{name: value for name, value in after.items() if name not in row}}


def check(said: Said, at: int, session: str) -> None:
    """Raises `UsageError` for what would be no row that a reader can use. `at` is its number in the call."""
    if isinstance(said, Record):
        _check_record(said, at, session)
    elif is_message(said):
        _check_message(said, at)
    else:
        _check_row(said, at, session)


def _check_message(message: Given, at: int) -> None:
    role = message["role"]
    if role not in ROLES:
        raise UsageError(
            f"message {at} has the role {role!a:.60}: a session holds those of {' and '.join(ROLES)}",
            hint="pass the system prompt to the model, not to the session",
        )
    _check_content(message.get("content"), at)


def _check_content(content: object, at: int) -> None:
    is_blocks = isinstance(content, list | tuple) and all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in content
    )
    if not is_blocks and not isinstance(content, str):
        raise UsageError(
            f"message {at} has a content of type {type(content).__name__} that is neither text nor a list of blocks",
            hint='a block is an object with a type: {"type": "text", "text": "…"}',
        )


def _check_row(row: Given, at: int, session: str) -> None:
    kind = row.get("type")
    if not isinstance(kind, str) or not kind:
        raise UsageError(
            f"row {at} has no type", hint='append a message {"role": "user", "content": "…"}, or a row with a type'
        )
    _check_type(kind, at)
    for name in _NEEDED.get(kind, ()):
        if not isinstance(row.get(name), str):
            raise UsageError(f"row {at} of type {kind} needs a text {name}", hint=f"add {name} to it")
    for name in ("uuid", "timestamp", "sessionId", "agentId"):
        if name in row and (not isinstance(row[name], str) or not row[name]):
            raise UsageError(f"row {at} has a {name} that is no text: {row[name]!a:.60}", hint="leave it out")
    if not isinstance(row.get("parentUuid"), str | None):
        raise UsageError(f"row {at} has a parentUuid that is no text: {row['parentUuid']!a:.60}", hint="leave it out")
    _check_session(row.get("sessionId"), at, session)
    if kind in ROLES:
        message = row.get("message")
        if not isinstance(message, dict):
            raise UsageError(
                f"row {at} of type {kind} has no message", hint='add "message": {"role": …, "content": …} to it'
            )
        _check_content(message.get("content"), at)


def _check_record(record: Record, at: int, session: str) -> None:
    """A record says everything itself, since its bytes are not changed."""
    kind = record.type
    if not kind:
        raise UsageError(f"record {at} has no type", hint="append it as a row instead: record.body() with a type")
    _check_type(kind, at)
    _check_session(record.session_id, at, session)
    if kind in WRITTEN_ONCE and not (record.uuid and record.timestamp):
        lacks = "uuid" if not record.uuid else "timestamp"
        raise UsageError(
            f"record {at} of type {kind} has no {lacks}", hint="append record.body() instead: a row gets what it lacks"
        )
    if kind in ROLES and record.message is None:
        raise UsageError(f"record {at} of type {kind} has no message", hint="leave it out")


def _check_type(kind: str, at: int) -> None:
    if kind.startswith(RESERVED_PREFIX):
        raise UsageError(
            f"row {at} has the type {kind!a:.60}, which only clew itself writes", hint="give it another type"
        )


def _check_session(named: object, at: int, session: str) -> None:
    if isinstance(named, str) and named and named != session:
        raise UsageError(
            f"row {at} belongs to the session {named!a:.60}, and this one is {session}",
            hint="leave its sessionId out to write it anew here; copy a whole session with Store.copy",
        )
