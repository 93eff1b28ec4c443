"""The records of many sessions at once, in maps by what they are known by: what `Store.load` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from clew.engines.contract import Engine, LogKey, LogStat
from clew.errors import ClewError
from clew.records.codec import decode_lines
from clew.records.file_history import FileHistoryDelta, FileHistorySnapshot
from clew.records.own import FORK_TYPE, NOTE_TYPE, ForkNote, SessionNote
from clew.records.record import Record, records_in
from clew.records.titles import CustomTitle, Summary, Tag
from clew.records.views import JsonValue
from clew.transcript.marks import UNMARKED, Marks
from clew.transcript.tree import CHAIN_TYPES

V = TypeVar("V")

_VIEWED = frozenset(
    {"summary", "custom-title", "tag", "file-history-snapshot", "file-history-delta", NOTE_TYPE, FORK_TYPE}
)


class Collision(msgspec.Struct, frozen=True):
    """Two sessions have something under one name in a map; `kept` was loaded later, and its value is the one there.

    This is common: a session that the client forked from another keeps the uuids of its records.
    """

    map: str
    name: str
    kept: LogKey
    dropped: LogKey


class Maps(msgspec.Struct):
    """What a builder keeps of records, by what they are known by. Of one session, the last value wins."""

    messages: dict[str, Record] = {}
    """Rows of conversations by uuid."""
    summaries: dict[str, str] = {}
    """By the uuid of the leaf they are about."""
    custom_titles: dict[str, str] = {}
    """By session id; a title that was taken off is not there."""
    tags: dict[str, str] = {}
    """By session id; a tag that was taken off is not there."""
    marks: dict[str, Marks] = {}
    """What clew noted, by session id: pinned, owner, workspace, labels."""
    parents: dict[str, str] = {}
    """What a session was forked from, as our own row says; both by session id."""
    file_history_snapshots: dict[str, Record] = {}
    """By the uuid of the prompt, which these rows call messageId."""
    file_history_deltas: dict[str, list[Record]] = {}
    """By the same uuid: what was touched first after the snapshot."""
    more: dict[str, dict[str, JsonValue]] = {}
    """What other builders keep, by a name of theirs."""


class Loaded(Maps):
    """The maps of many sessions in one. `sessions` were loaded in this order, oldest change first."""

    sessions: list[LogKey] = []
    collisions: list[Collision] = []


class IndexBuilder(Protocol):
    """Decides what of a record goes into which map. It sees every record of every main log once, in order."""

    def add(self, maps: Maps, record: Record, session: str) -> None:
        """MUST change nothing but `maps`, which belong to one session; `session` is its id."""
        ...


class ClientIndex:
    """The maps as the client has them. A builder for further types calls this one first and puts its own in `more`."""

    def add(self, maps: Maps, record: Record, session: str) -> None:
        kind = record.type
        if kind in CHAIN_TYPES:
            if record.uuid:
                maps.messages[record.uuid] = record
        elif kind in _VIEWED:
            self._add_view(maps, record, record.session_id or session)

    def _add_view(self, maps: Maps, record: Record, session: str) -> None:
        match record.view():
            case Summary(summary=str(text), leaf_uuid=str(leaf)):
                maps.summaries[leaf] = text
            case CustomTitle(custom_title=str(title)):
                _name(maps.custom_titles, session, title)
            case Tag(tag=str(tag)):
                _name(maps.tags, session, tag)
            case SessionNote():
                maps.marks[session] = maps.marks.get(session, UNMARKED).after(record.body())
            case ForkNote(parent_session_id=str(parent)):
                maps.parents[session] = parent
            case FileHistorySnapshot(message_id=str(message)):
                maps.file_history_snapshots[message] = record
            case FileHistoryDelta(snapshot_message_id=str(message)):
                maps.file_history_deltas.setdefault(message, []).append(record)
            case _:
                pass


def _name(names: dict[str, str], session: str, name: str) -> None:
    """Keeps the name of a session; an empty one takes off what it had."""
    if name:
        names[session] = name
    else:
        names.pop(session, None)


class Loader:
    """Loads maps, each log once: what it holds is remembered until the log changes."""

    def __init__(self, engine: Engine, builder: IndexBuilder) -> None:
        self._engine = engine
        self._builder = builder
        self._known: dict[LogKey, tuple[str, Maps]] = {}

    @property
    def revisions(self) -> dict[LogKey, str]:
        """The logs that are remembered, at the revision for which that holds."""
        return {key: revision for key, (revision, _) in self._known.items()}

    def forget(self, key: LogKey) -> None:
        """Lets go of what is remembered of a log."""
        self._known.pop(key, None)

    def merged(self, stats: Sequence[LogStat]) -> Loaded:
        """The maps of these logs in one. The first of them counts where two have the same name."""
        loaded = Loaded()
        owners: dict[tuple[str, str], LogKey] = {}
        for stat in reversed(stats):
            loaded.sessions.append(stat.key)
            maps = self._of(stat)
            for name in _MAPS:
                _merge(getattr(loaded, name), getattr(maps, name), name, stat.key, owners, loaded.collisions)
            for name, values in maps.more.items():
                _merge(loaded.more.setdefault(name, {}), values, name, stat.key, owners, loaded.collisions)
        return loaded

    def _of(self, stat: LogStat) -> Maps:
        known = self._known.get(stat.key)
        if known is not None and known[0] == stat.revision:
            return known[1]
        maps, add = Maps(), self._builder.add
        for record in records_in(decode_lines(self._engine.read(stat.key))):
            add(maps, record, stat.key.session)
        self._known[stat.key] = (stat.revision, maps)
        return maps


_MAPS = (
    "messages", "summaries", "custom_titles", "tags", "marks", "parents", "file_history_snapshots",
    "file_history_deltas",
)  # fmt: skip


def _merge(
    into: dict[str, V],
    values: dict[str, V],
    name: str,
    key: LogKey,
    owners: dict[tuple[str, str], LogKey],
    collisions: list[Collision],
) -> None:
    for each, value in values.items():
        before = owners.get((name, each))
        if before is not None:
            collisions.append(Collision(name, each, kept=key, dropped=before))
        owners[name, each] = key
        into[each] = value


def revision_of(engine: Engine, key: LogKey) -> str | None:
    """The revision of a log now; None where it is gone or cannot be looked at."""
    try:
        stat = engine.stat(key)
    except ClewError:
        return None
    return None if stat is None else stat.revision
