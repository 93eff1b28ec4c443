"""What a view is, and how one is made of a line.

A view is a reading of a record, never its store: it may know fewer fields than the line has, and the line keeps them
all. Each family of record types has a file beside this one; `clew.records.table` says which view reads which type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import TYPE_CHECKING, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo, force_setattr

from clew.plugins import entry_points_of, loaded, unusable
from clew.records.table import VIEWS

if TYPE_CHECKING:
    JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
else:
    # msgspec follows no alias that names itself; its bare list and dict hold the same values.
    JsonValue = bool | int | float | str | list | dict | None

JsonObject: TypeAlias = dict[str, JsonValue]
Content: TypeAlias = str | tuple[JsonObject, ...] | None
"""The content of a message: plain text, or blocks."""
Number: TypeAlias = int | float
"""Durations and sums: the client's language has one kind of number, so 3 may come as 3.0."""

ENTRY_POINTS = "clew.records"
"""The entry point group of outside packages: the name is a record type, the value a subclass of `View`."""


class Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An object inside a row. It follows the same rules as a view; its misfits are told by the view."""


class View(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields that a row of any type may have.

    A field that is absent has its default. One whose value is of another type than here keeps its default too and is
    named in `misfits`, by the keys as they stand on the line, joined by dots; a null where none belongs counts as
    absent. Inside objects this goes field by field, so one bad field costs nothing beside it. Values and misfits are
    text from the line: never trust one as a path, and never print one to a terminal as it is.
    """

    type: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    # Names in angle brackets are never read from a line, whatever a hostile one called its keys.
    misfits: tuple[str, ...] = msgspec.field(default=(), name="<misfits>")

    def derive(self) -> tuple[str, ...]:
        """Sets the fields that are made of other fields. Returns the misfits that this found."""
        return ()


class Opaque(View, frozen=True):
    """A type that is known by name only: nobody has told its fields. `Record.body()` has them."""


class Unknown(View, frozen=True):
    """A type that nobody here has heard of, or a row without one. `fields` is the whole row."""

    fields: JsonObject = msgspec.field(default_factory=dict, name="<fields>")


class ForkedFrom(Part, frozen=True):
    """Where a copied row came from."""

    session_id: str | None = None
    message_uuid: str | None = None


class Envelope(View, frozen=True):
    """What every transcript row has around its payload."""

    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    user_type: str | None = None
    entrypoint: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    slug: str | None = None
    prompt_id: str | None = None
    is_meta: bool | None = None
    request_session_id: str | None = None
    # Stands beside `sessionId` on some rows; a branch rewrites that one and leaves this as it was in the first session.
    first_session_id: str | None = msgspec.field(default=None, name="session_id")
    forked_from: ForkedFrom | None = None
    session_kind: str | None = None
    team_name: str | None = None
    agent_name: str | None = None


V = TypeVar("V", bound=msgspec.Struct)
_REFUSED = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
_NOTHING = object()


def view_of(raw: bytes, kind: str | None, body: Callable[[], dict[str, JsonValue]]) -> View:
    """The view of a row. Never raises because of what the row says.

    `body` is asked for only when the fast decoder refuses `raw`, or when nothing knows `kind`. Raises UsageError when
    an outside package registered `kind` and its view cannot be used.
    """
    cls = view_class(kind)
    if cls is Unknown:
        fields = body()
        unknown, misfits = fit(Unknown, fields)
        force_setattr(unknown, "fields", fields)
        force_setattr(unknown, "misfits", misfits)
        return unknown
    try:
        view, misfits = _decoder(cls)(raw), ()
    except _REFUSED:
        view, misfits = fit(cls, body())
    # Also when there are none: the fast decoder took what a hostile line called "<misfits>".
    force_setattr(view, "misfits", misfits + view.derive())
    return view


def view_class(kind: str | None) -> type[View]:
    """The class that reads rows of this type: one of ours, else that of an outside package, else `Unknown`."""
    if kind is None:
        return Unknown
    where = VIEWS.get(kind)
    if where is not None:
        return _ours(where)
    return _theirs(kind) if kind in entry_points_of(ENTRY_POINTS) else Unknown


@cache
def _ours(where: str) -> type[View]:
    module, _, name = where.partition(":")
    return cast(type[View], getattr(import_module(module), name))


@cache
def _theirs(kind: str) -> type[View]:
    point = entry_points_of(ENTRY_POINTS)[kind]
    what = f"the view {point.value} for records of type {kind}"
    found = loaded(point, what)
    if not (isinstance(found, type) and issubclass(found, View)):
        raise unusable(point, f"{what} is no clew.records.views.View")
    try:
        _decoder(found)
    except TypeError as error:
        raise unusable(point, f"{what} does not load: {error}") from error
    return found


@cache
def _decoder(cls: type[View]) -> Callable[[bytes], View]:
    return msgspec.json.Decoder(cls).decode


def part_of(cls: type[V], fields: Mapping[str, JsonValue]) -> tuple[V, tuple[str, ...]]:
    """The object as a struct, and the keys of its fields that did not fit."""
    try:
        return msgspec.convert(fields, cls), ()
    except _REFUSED:
        return fit(cls, fields)


def fit(cls: type[V], fields: Mapping[str, JsonValue]) -> tuple[V, tuple[str, ...]]:
    """The same, field by field: each one that does not convert keeps its default and is named."""
    misfits: list[str] = []
    return _fitted(cls, fields, "", misfits), tuple(misfits)


def _fitted(cls: type[V], fields: Mapping[str, JsonValue], prefix: str, misfits: list[str]) -> V:
    values: dict[str, object] = {}
    for field in _fields(cls):
        if field.encode_name in fields:
            value = _fitting(fields[field.encode_name], field.type, prefix + field.encode_name, misfits)
            if value is not _NOTHING:
                values[field.name] = value
    return cls(**values)


def _fitting(value: JsonValue, kind: object, name: str, misfits: list[str]) -> object:
    """The value as this type, or `_NOTHING`. Recursion goes as deep as our own structs, however deep the row is."""
    if kind == JsonValue:
        return value
    try:
        return msgspec.convert(value, cast(type[object], kind))
    except _REFUSED:
        pass
    if value is None:
        return _NOTHING
    found = _struct_in(kind)
    if found is not None:
        cls, container = found
        if container is None and isinstance(value, dict):
            return _fitted(cls, value, name + ".", misfits)
        if container is dict and isinstance(value, dict):
            return {key: _element(cls, item, f"{name}.{key}", misfits) for key, item in value.items()}
        if container is tuple and isinstance(value, list):
            return tuple(_element(cls, item, f"{name}.{at}", misfits) for at, item in enumerate(value))
    misfits.append(name)
    return _NOTHING


def _element(cls: type[msgspec.Struct], value: JsonValue, name: str, misfits: list[str]) -> msgspec.Struct:
    """One of several. What is no object stands as one without values, so that the others keep their places."""
    if isinstance(value, dict):
        return _fitted(cls, value, name + ".", misfits)
    misfits.append(name)
    return cls()


@cache
def _fields(cls: type[msgspec.Struct]) -> tuple[FieldInfo, ...]:
    return tuple(field for field in msgspec.structs.fields(cls) if not field.encode_name.startswith("<"))


@cache
def _struct_in(kind: object) -> tuple[type[msgspec.Struct], type | None] | None:
    """The struct that a field holds, alone or as the elements of a dict or tuple; None when it holds none."""
    arms = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    for arm in arms:
        container = get_origin(arm)
        item = arm if container is None else get_args(arm)[1 if container is dict else 0]
        if isinstance(item, type) and item is not NoneType and issubclass(item, msgspec.Struct):
            return item, container
    return None
