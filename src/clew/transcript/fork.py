"""What a fork by copy holds: which rows of a log, in which order, on which parents. Pure.

    Carried      beside the conversation: names, and the states of files at its prompts
    fork_plan    the rows of a chain as the client writes them when it forks

Measured on the client's own forks (docs/format.md): the rows of the chain come in the order in which they are sent,
each on the one before. A tool result hangs on the row of its call, a compaction begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from clew.errors import UsageError
from clew.records.line import Line
from clew.records.own import NOTE_TYPE
from clew.records.record import Record, body_of
from clew.records.splice import Change, spliced, value_of
from clew.records.views import JsonObject, JsonValue
from clew.transcript.beside import result_ids
from clew.transcript.chain import Chain
from clew.transcript.head import find_head
from clew.transcript.times import milliseconds
from clew.transcript.tree import MESSAGE_TYPES, Tree

CARRIED_BEFORE = (
    "history-suppression", "custom-title", "ai-title", "tag", "agent-name", "agent-color", "agent-setting", "mode",
    "permission-mode", "atis-latch", "tools-used",
)  # fmt: skip
"""Of each of these types the last row goes along, before the conversation and in this order."""
CARRIED_BEHIND = ("pr-link",)
"""The same, behind the states of files."""
CARRIED_ALL = "content-replacement"
"""Every row of this type goes along: each says what is sent in place of something else."""
NOTES_CARRIED = ("owner", "workspace", "labels")
"""What was noted of a session and is true of its fork too. That it is pinned, put away or closed is not."""
STATES_BYTES_MAX = 1024 * 1024
"""So much of the states of files is held; of the others only the places."""
_LAST_OF = frozenset((*CARRIED_BEFORE, *CARRIED_BEHIND))
_SNAPSHOT, _DELTA = "file-history-snapshot", "file-history-delta"


class _Ids(msgspec.Struct, gc=False, rename="camel"):
    message_id: str | None = None
    snapshot_message_id: str | None = None


class _Backup(msgspec.Struct, gc=False, rename="camel"):
    backup_file_name: str | None = None


class _Tracked(msgspec.Struct, gc=False, rename="camel"):
    tracked_file_backups: dict[str, _Backup]


class _State(msgspec.Struct, gc=False):
    snapshot: _Tracked


_decode_ids = msgspec.json.Decoder(_Ids).decode
_decode_state = msgspec.json.Decoder(_State).decode
_IS_UPDATE = b'"isSnapshotUpdate"'
_IS_NO_UPDATE = b'"isSnapshotUpdate":false'


class Carried:
    """What stands beside the conversation, folded from all records of a log.

    Of the states of files there may be many, and most belong to no prompt of the chain: of a long log only the places
    are kept.
    """

    def __init__(self) -> None:
        self.names: dict[str, Record] = {}
        self.replacements: list[Record] = []
        self.notes: JsonObject = {}
        self.snapshots: dict[str, Line] = {}
        """By the uuid of the prompt: the last row of it."""
        self.deltas: dict[str, list[Line]] = {}
        self._held = 0

    def add(self, record: Record) -> None:
        kind = record.type
        if kind in (_SNAPSHOT, _DELTA):
            self._add_state(record)
        elif kind in _LAST_OF:
            self.names[kind or ""] = record
        elif kind == CARRIED_ALL:
            self.replacements.append(record)
        elif kind == NOTE_TYPE:
            body = record.body()
            self.notes.update({name: body[name] for name in NOTES_CARRIED if name in body})

    def _add_state(self, record: Record) -> None:
        try:
            ids = _decode_ids(record.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = record.body()
            texts = [value if isinstance(value, str) else None for value in map(found.get, _STATE_IDS)]
            ids = _Ids(*texts)
        line = record.line
        self._held += line.size
        if self._held > STATES_BYTES_MAX:
            line = Line(b"", line.position, line.number, line.size)
        if record.type == _SNAPSHOT and ids.message_id:
            self.snapshots[ids.message_id] = line
        elif record.type == _DELTA and ids.snapshot_message_id:
            self.deltas.setdefault(ids.snapshot_message_id, []).append(line)


_STATE_IDS = ("messageId", "snapshotMessageId")


def snapshot_folded(prompt: str, snapshot: bytes | None, deltas: Sequence[bytes]) -> bytes:
    """The state of files at a prompt in one row: what was first touched afterwards is folded in, as the client does.

    Without a row for the prompt itself, one is made of what was touched. A row that needs no change stays as it is.
    """
    if snapshot is not None:
        if not deltas and snapshot.count(_IS_UPDATE) == snapshot.count(_IS_NO_UPDATE) == 1:
            return snapshot
        row = body_of(snapshot)
        known = row.get("snapshot")
        state: JsonObject = dict(known) if isinstance(known, dict) else {"messageId": prompt}
    else:
        row, state = (
            {},
            {"messageId": prompt, "trackedFileBackups": {}, "timestamp": body_of(deltas[0]).get("timestamp")},
        )
    tracked = state.get("trackedFileBackups")
    files: JsonObject = dict(tracked) if isinstance(tracked, dict) else {}
    for delta in deltas:
        body = body_of(delta)
        path = body.get("trackingPath")
        if isinstance(path, str) and isinstance(body.get("backup"), dict):
            files[path] = body["backup"]
    state["trackedFileBackups"] = files
    if snapshot is None:
        made: JsonObject = {"type": _SNAPSHOT, "messageId": prompt, "snapshot": state, "isSnapshotUpdate": False}
        return value_of(made)
    changes = [Change("snapshot", None, value_of(state))] if deltas else []
    if row.get("isSnapshotUpdate") is True:
        changes.append(Change("isSnapshotUpdate", None, b"false"))
    return spliced(snapshot, changes)


def backups_of(snapshot: bytes) -> set[str]:
    """The names of the backups that a state of files speaks of."""
    try:
        known = _decode_state(snapshot).snapshot.tracked_file_backups
        return {backup.backup_file_name for backup in known.values() if backup.backup_file_name is not None}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    state = body_of(snapshot).get("snapshot")
    files = state.get("trackedFileBackups") if isinstance(state, dict) else None
    backups: list[JsonValue] = list(files.values()) if isinstance(files, dict) else []
    names = [backup.get("backupFileName") for backup in backups if isinstance(backup, dict)]
    return {name for name in names if isinstance(name, str)}


class ForkPlan(msgspec.Struct, frozen=True):
    """The rows of the fork, root first, and what is different in them."""

    rows: Sequence[Record]
    parents: Mapping[int, str | None]
    """New parents by the place of the row, where it is another one than the row says."""
    leaf: str
    """Where the conversation goes on."""
    needs_head: bool
    """Whether a head record has to say so, since the rows alone would lead elsewhere."""


def fork_plan(chain: Chain, leaf: str) -> ForkPlan:
    """The plan for a chain that is not empty.

    Raises `UsageError` where the client would find no conversation: it asks the last prompt or answer for its time.
    """
    rows = chain.records
    said = next((record for record in reversed(rows) if record.type in MESSAGE_TYPES), None)
    if said is not None and (said.is_sidechain or milliseconds(said.timestamp) is None):
        what = "a sidechain row" if said.is_sidechain else "a row without a time"
        raise UsageError(
            f"Claude Code would find no conversation up to the row {leaf!a:.60}: its last prompt or answer is {what}",
            hint="name an earlier row; `clew show SESSION --json` has the uuids of the messages",
        )
    parents: dict[int, str | None] = {}
    written: set[str] = set()
    above: str | None = None
    for place, record in enumerate(rows):
        parent, own = above, record.parent_uuid or None
        if record.subtype == "compact_boundary" and record.type == "system":
            parent = None
        elif own != above and own in written and _is_parallel(record):
            parent = own
        if parent != own:
            parents[place] = parent
        if record.uuid:
            above = record.uuid
            written.add(above)
    return ForkPlan(rows, parents, leaf, _needs_head(rows, parents, leaf))


def _is_parallel(record: Record) -> bool:
    """Whether this is the result of a call, on the row of that call: those of parallel calls are not put in a line."""
    call = record.source_tool_assistant_uuid
    return record.type == "user" and (call == record.parent_uuid if call else bool(result_ids(record)))


def _needs_head(rows: Sequence[Record], parents: Mapping[int, str | None], leaf: str) -> bool:
    """Whether the client would not go on from the leaf if these rows were all there is."""
    last = rows[-1]
    is_plain = last.uuid == leaf and not any(record.subtype == "compact_boundary" for record in rows)
    if is_plain and not last.is_sidechain and not _is_above(leaf, rows, parents):
        return False
    changed = (
        msgspec.structs.replace(record, parent_uuid=parents[place]) if place in parents else record
        for place, record in enumerate(rows)
    )
    return find_head(Tree(changed)).uuid != leaf


def _is_above(leaf: str, rows: Sequence[Record], parents: Mapping[int, str | None]) -> bool:
    return any(parents.get(place, record.parent_uuid) == leaf for place, record in enumerate(rows))
