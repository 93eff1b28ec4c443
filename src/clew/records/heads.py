"""Rows that say where the conversation goes on."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from clew.records.views import JsonObject, View


class LastPrompt(View, frozen=True):
    """The head record, and the last prompt for lists.

    `leaf_uuid` is UNSET when the row does not speak of the head, and None when it says that there is no row before it:
    with `explicit` that is an empty conversation.
    """

    last_prompt: str | None = None
    leaf_uuid: str | UnsetType | None = UNSET
    explicit: bool | None = None
    rewound: bool | None = None
    cut_uuid: str | None = None


def head_record(leaf: str | None, prompt: str | None, session: str, *, is_explicit: bool = False) -> JsonObject:
    """The row that says where the conversation goes on, with the prompt that lists show.

    An explicit one is exact: what hangs below its leaf already is cut off. Without a leaf it empties the conversation.
    """
    said: JsonObject = {} if prompt is None else {"lastPrompt": prompt}
    exact: JsonObject = {"explicit": True} if is_explicit else {}
    return {"type": "last-prompt", **said, "leafUuid": leaf, **exact, "sessionId": session}
