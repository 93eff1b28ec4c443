"""What clew notes of a session beside the conversation, folded from its rows of the type `clew-session`.

Each row says only what was changed, so that two programs which change different things at once do not undo each other:
of each field the last row that has it counts, and null takes it off.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from clew.records.record import sendable_text
from clew.records.views import JsonObject, JsonValue


class Marks(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The fields of all such rows. `labels` are sorted, and each stands there once."""

    pinned: bool = False
    owner: str | None = None
    workspace: str | None = None
    labels: tuple[str, ...] = ()
    exit_reason: str | None = None

    def after(self, row: JsonObject) -> Marks:
        """With what a later row says. A value that is none for its field is passed over."""
        said: dict[str, object] = {}
        for field, (name, read) in _FIELDS.items():
            if name not in row:
                continue
            value = row[name]
            if value is None:
                said[field] = getattr(UNMARKED, field)
            elif (found := read(value)) is not None:
                said[field] = found
        return msgspec.structs.replace(self, **said) if said else self

    def row(self) -> JsonObject:
        """All that is noted, as the fields of one row; empty when nothing is."""
        found: JsonObject = msgspec.to_builtins(self)
        return found


def labels_of(names: object) -> tuple[str, ...]:
    """Words sorted, each once."""
    return tuple(sorted({*names})) if isinstance(names, list | tuple | set | frozenset) else ()


def _truth(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: JsonValue) -> str | None:
    return sendable_text(value) if isinstance(value, str) and value.strip() else None


def _labels(value: JsonValue) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return labels_of([sendable_text(each) for each in value if isinstance(each, str) and each.strip()])


UNMARKED = Marks()
_FIELDS: dict[str, tuple[str, Callable[[JsonValue], object]]] = {
    "pinned": ("pinned", _truth),
    "owner": ("owner", _text),
    "workspace": ("workspace", _text),
    "labels": ("labels", _labels),
    "exit_reason": ("exitReason", _text),
}
"""The field, its name in a row, and how a value of it is read; None for one that is no value."""
