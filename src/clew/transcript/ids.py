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
ID_FIELDS = {
    "uuid": "uuid",
    "parentUuid": "parent_uuid",
    "sourceToolAssistantUUID": "source_tool_assistant_uuid",
    "logicalParentUuid": "logical_parent_uuid",
}
"""Those that are decoded with every row, and where."""
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


def names_more(record: Record) -> bool:
    """Whether a row names ids in fields that have to be decoded first."""
    return bool(record.type in _ODD_TYPES or record.subtype == "compact_boundary" or record.is_compact_summary)


def id_changes(record: Record, new_id: IdMap) -> list[Change]:
    """What is different in this row once its ids and all that it names are new."""
    changes = []
    for name, field in ID_FIELDS.items():
        old: str | None = getattr(record, field)
        if old:
            changes.append(Change(name, old, quoted(new_id(old))))
    if names_more(record):
        changes += _odd_changes(record.body(), new_id)
    return changes


def _odd_changes(body: JsonObject, new_id: IdMap) -> Iterator[Change]:
    """Those in rows of which more has to be decoded."""
    for name in PLACES:
        old = body.get(name)
        if name not in ID_FIELDS and isinstance(old, str) and old:
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
