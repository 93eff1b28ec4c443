"""Rows that say where the conversation goes on."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from clew.records.views import View


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
