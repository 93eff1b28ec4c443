"""New ids for the rows of a session, and every place of a row that names one.

The ids of messages of the API, of tool calls and of requests are no ids of rows and stay. So does every field that is
not named here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache

from clew.records.record import Record
from clew.records.splice import Change, quoted, value_of
from clew.records.views import JsonObject, JsonValue

IdMap = Callable[[str], str]
"""Gives the new id of an old one, each time the same."""

PLACES = (
    "uuid", "parentUuid", "logicalParentUuid", "sourceToolAssistantUUID", "leafUuid", "messageId",
    "snapshotMessageId",
)  # fmt: skip
"""The fields of a row that hold the id of a row."""
INSIDE = {
    "snapshot": ("messageId",),
    "compactMetadata": ("preservedSegment", "preservedMessages"),
    "preservedSegment": ("headUuid", "anchorUuid", "tailUuid"),
    "preservedMessages": ("anchorUuid", "uuids", "allUuids"),
    "summarizedTurnPromptUuids": (),
}
"""The objects and lists of a row that hold some, and where in them."""
_DECODED = frozenset(PLACES[:4])
_ODD_TYPES = frozenset({"file-history-snapshot", "file-history-delta", "last-prompt", "summary"})


def ids_from(name: str) -> IdMap:
    """Ids that follow from a name and the old id, such as the id of a new session: made again, they are the same."""
    salt = hashlib.sha1(name.encode("utf-8", "backslashreplace"), usedforsecurity=False)

    # Nearly every id is asked for twice in a row: of the row itself, and of the one that hangs on it.
    @lru_cache(maxsize=64)
    def new_id(old: str) -> str:
        made = salt.copy()
        made.update(old.encode("utf-8", "backslashreplace"))
        digest = made.hexdigest()
        # A UUID of version 5, whose variant is in the first digit of its fourth part.
        variant = "89ab"[int(digest[16], 16) & 3]
        return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"

    return new_id


def id_changes(record: Record, new_id: IdMap) -> list[Change]:
    """What is different in this row once its ids and all that it names are new."""
    changes = []
    if record.uuid:
        changes.append(Change("uuid", record.uuid, quoted(new_id(record.uuid))))
    if record.parent_uuid:
        changes.append(Change("parentUuid", record.parent_uuid, quoted(new_id(record.parent_uuid))))
    if record.source_tool_assistant_uuid:
        source = record.source_tool_assistant_uuid
        changes.append(Change("sourceToolAssistantUUID", source, quoted(new_id(source))))
    if record.logical_parent_uuid:
        above = record.logical_parent_uuid
        changes.append(Change("logicalParentUuid", above, quoted(new_id(above))))
    if record.type in _ODD_TYPES or record.subtype == "compact_boundary" or record.is_compact_summary:
        changes += _odd_changes(record.body(), new_id)
    return changes


def _odd_changes(body: JsonObject, new_id: IdMap) -> Iterator[Change]:
    """Those in rows of which more has to be decoded."""
    for name in PLACES:
        old = body.get(name)
        if name not in _DECODED and isinstance(old, str) and old:
            yield Change(name, old, quoted(new_id(old)))
    for name in INSIDE:
        if isinstance(body.get(name), dict | list):
            yield Change(name, None, value_of(_inside(name, body[name], new_id)))


def _inside(name: str, value: JsonValue, new_id: IdMap) -> JsonValue:
    """The value of a field with new ids in it; it nests no deeper than the table of places."""
    if isinstance(value, str):
        return new_id(value) if value else value
    if isinstance(value, list):
        return [new_id(each) if isinstance(each, str) and each else each for each in value]
    if isinstance(value, dict) and name in INSIDE:
        changed: JsonObject = {}
        for key, inner in value.items():
            changed[key] = _inside(key, inner, new_id) if key in INSIDE[name] else inner
        return changed
    return value
