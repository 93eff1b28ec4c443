"""What an append to a session writes: rows with their envelopes, in order, each hanging on the right one. Pure.

    parted      which of the things go to the main log, which to the log of a subagent
    planned     the rows for one log, and where its conversation goes on afterwards

What is in the log already is passed over by the engine; here it only must not become what the next row hangs on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from clew.engines.contract import Entry
from clew.errors import UsageError
from clew.records.codec import decode
from clew.records.compact import compact
from clew.records.envelope import (
    Origin,
    Place,
    Said,
    check,
    is_message,
    is_written_once,
    row_completed,
    row_of_message,
)
from clew.records.heads import head_record
from clew.records.identity import dedupe_id
from clew.records.line import LINE_BYTES_MAX, Line
from clew.records.record import Record
from clew.records.views import JsonObject
from clew.transcript.prompts import preview, prompt_of
from clew.transcript.times import milliseconds

LOST_SIDECHAIN = "a sidechain row names no agent: it went to the main log, where the client shows no such row"


class Standing(msgspec.Struct, frozen=True):
    """What is known of a log before something is added: where it goes on, which rows it has."""

    origin: Origin
    head: str | None
    has: Callable[[str], bool]
    is_agents: bool = False
    """Whether it is the log of a subagent, which has no head records."""


class Stamps(msgspec.Struct, frozen=True):
    """Where new ids and the time come from."""

    new_id: Callable[[], str]
    timestamp: str


class Planned(msgspec.Struct, frozen=True):
    """The lines to append to one log. `head` is where the conversation goes on once they are there.

    `is_metadata` says that no line is part of the conversation. `uuids` has a place for each thing that was passed in.
    """

    entries: tuple[Entry, ...]
    uuids: tuple[str | None, ...]
    head: str | None
    is_metadata: bool
    stands_on_head: bool
    """Whether a row was hung on the head, so that a head which has moved makes the plan void."""


def parted(said: Sequence[Said]) -> tuple[dict[str | None, list[int]], tuple[str, ...]]:
    """The numbers of the things by the agent whose log they belong to, None for the main log; and what to tell."""
    parts: dict[str | None, list[int]] = {}
    notes: tuple[str, ...] = ()
    for at, each in enumerate(said):
        agent, is_sidechain = _agent_of(each)
        if is_sidechain and agent is None:
            notes = (LOST_SIDECHAIN,)
        parts.setdefault(agent if is_sidechain else None, []).append(at)
    return parts, notes


def _agent_of(said: Said) -> tuple[str | None, bool]:
    if isinstance(said, Record):
        agent, is_sidechain = said.agent_id, said.is_sidechain is True
    else:
        named = said.get("agentId")
        agent, is_sidechain = (named if isinstance(named, str) else None), said.get("isSidechain") is True
    return agent or None, is_sidechain and is_written_once(said) and not is_message(said)


def planned(
    said: Sequence[Said], standing: Standing, stamps: Stamps, *, parent: str | UnsetType | None = UNSET
) -> Planned:
    """The lines for these things. `parent` is what the first of them hangs on; without one it is the head.

    A branch ends with a head record, and so does what brings a prompt: lists of other programs show it. Raises
    `UsageError`, naming the thing by its number, for what would be no row, or would hang on a row that is not there.
    """
    for at, each in enumerate(said):
        check(each, at, standing.origin.session)
    plan = _Plan(standing, stamps, standing.head if isinstance(parent, UnsetType) else parent)
    if isinstance(parent, str):
        plan.must_be_there(parent, "the parent")
    for at, each in enumerate(said):
        plan.add(each, at)
    return plan.done(is_at_head=isinstance(parent, UnsetType))


class _Plan:
    def __init__(self, standing: Standing, stamps: Stamps, parent: str | None) -> None:
        self._standing = standing
        self._stamps = stamps
        self._at = parent
        self._entries: list[Entry] = []
        self._uuids: list[str | None] = []
        self._new: set[str] = set()
        self._is_branch = False
        self._has_moved = False
        self._prompt: str | None = None
        self._used_parent = False

    def must_be_there(self, uuid: str, what: str) -> None:
        if uuid not in self._new and not self._standing.has(uuid):
            raise UsageError(
                f"{what} {uuid!a:.60} is no row of this log: what hangs on it would be cut off",
                hint="append the rows in order, or leave the parent out to go on at the head",
            )

    def add(self, said: Said, at: int) -> None:
        if isinstance(said, Record):
            data, row = said.raw.removesuffix(b"\n"), said
            _check_size(data, at)
        else:
            data = written(self._row(said), f"row {at}")
            _check_size(data, at)
            row = _read(data, at)
        if is_written_once(said):
            self._place(row, at)
            if is_message(said) and (prompt := prompt_of(row)) is not None and prompt.is_turn:
                self._prompt = preview(prompt.text)
        self._entries.append(Entry(data, dedupe_id(row)))
        self._uuids.append(row.uuid)

    def _row(self, said: Said) -> JsonObject:
        assert not isinstance(said, Record)
        origin = self._standing.origin
        if not is_written_once(said):
            return row_completed(said, origin, None)
        uuid, timestamp = said.get("uuid"), said.get("timestamp")
        place = Place(
            self._at,
            uuid if isinstance(uuid, str) else self._stamps.new_id(),
            timestamp if isinstance(timestamp, str) else self._stamps.timestamp,
        )
        self._used_parent |= "parentUuid" not in said
        return row_of_message(said, origin, place) if is_message(said) else row_completed(said, origin, place)

    def _place(self, row: Record, at: int) -> None:
        """Checks where a row hangs, and hangs the next one on it."""
        if milliseconds(row.timestamp) is None:
            raise UsageError(
                f"row {at} has a time that cannot be read: {row.timestamp!a:.60}",
                hint="write it as 2026-11-18T12:00:00.000Z, or leave it out",
            )
        if row.parent_uuid:
            self.must_be_there(row.parent_uuid, f"row {at}: its parent")
        uuid = row.uuid or ""
        if row.is_sidechain and not self._standing.is_agents:
            self._new.add(uuid)
            return
        if uuid in self._new or self._standing.has(uuid):
            return
        is_boundary = row.type == "system" and row.subtype == "compact_boundary"
        if not self._has_moved and (row.parent_uuid or None) != self._standing.head and not is_boundary:
            self._is_branch = self._standing.head is not None
        self._new.add(uuid)
        self._has_moved = True
        self._at = uuid

    def done(self, *, is_at_head: bool) -> Planned:
        head = self._at if self._has_moved else self._standing.head
        prompt = self._prompt
        is_metadata = not any(entry.dedupe_id for entry in self._entries)
        if self._has_moved and not self._standing.is_agents and (self._is_branch or prompt is not None):
            self._entries.append(Entry(compact(head_record(head, prompt, self._standing.origin.session))))
        stands_on_head = is_at_head and self._used_parent
        return Planned(tuple(self._entries), tuple(self._uuids), head, is_metadata, stands_on_head)


def _check_size(data: bytes, at: int) -> None:
    if len(data) + 1 > LINE_BYTES_MAX:
        raise UsageError(
            f"row {at} has {len(data):,} bytes, and no line over {LINE_BYTES_MAX:,} is read as a record",
            hint="say it in several messages, or keep what is large in a file and name that",
        )


def written(row: JsonObject, what: str) -> bytes:
    """The object as JSON that the client reads. Raises `UsageError`, naming `what` it is, where that cannot be."""
    try:
        return compact(row, is_strict=True)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "append texts, numbers, lists and dicts"
        raise UsageError(f"{what} cannot be written as JSON: {error}", hint=hint) from None


def _read(data: bytes, at: int) -> Record:
    row = decode(Line(data, 0, 1, len(data)))
    if not isinstance(row, Record):
        raise UsageError(f"row {at} would not be read back as it is", hint="look for odd values in it")
    return row
