"""What an attached fork stands on: the sessions whose rows it inherits, and whether they are still the ones they were.

The first row of its log is of the type `clew-fork` and names every ancestor, the root first, each with the row up to
which it is read. So the whole conversation is one round of reads, however deep, and a fork costs one row. What it says
is checked before anything is read by it: docs/design/0013-attached-forks.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain

import msgspec

from clew.engines.contract import Engine, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import Conflict, DamagedData, NotFound, UsageError
from clew.records.codec import decode, decode_lines
from clew.records.compact import compact
from clew.records.line import Line
from clew.records.own import ATTACHED, FORK_TYPE, NOTE_TYPE, is_attached
from clew.records.record import Record, body_of, records_in
from clew.records.splice import Change, quoted, spliced
from clew.records.views import JsonObject

ANCESTORS_MAX = 1_000
"""A fork is no further from its root than this. Its first row has some 250 bytes for each of them."""
TRIES_MAX = 100
LOOK_BYTES = 256
"""So far into a log its first bytes are looked at for the type of a fork; the row itself may be as long as it likes. A
row that says its type later, or writes it with escapes, is none: whoever deletes a parent would not see that child.
"""


class Ancestor(msgspec.Struct, frozen=True):
    """A session whose log is read up to a row: `position` and `size` are where that stands, without its newline, which
    may come later, and `digest` is the SHA-256 of these bytes.

    `at` is the uuid of the point. Nearly always it is that row; else the conversation at the point needs later rows.
    """

    session: str
    at: str
    position: int
    size: int
    digest: str

    @property
    def end(self) -> int:
        """All lines that begin before this are inherited."""
        return self.position + self.size


class ForkPoint(msgspec.Struct, frozen=True):
    """Where a fork left its parent. `at` is the uuid of the row; None, without a lineage, where nothing is inherited.

    The last of the lineage need not be the parent: a fork at a row that the parent inherited stands on what that stood
    on.
    """

    parent: str
    at: str | None
    lineage: tuple[Ancestor, ...] = ()


class _Row(msgspec.Struct, rename="camel"):
    parent_session_id: str
    parent_project: str
    lineage: tuple[Ancestor, ...]
    at: str | None = None


def fork_row(kind: str, parent: LogKey, child: LogKey, point: ForkPoint, timestamp: str) -> bytes:
    """The first row of a fork. Only an attached one has a lineage."""
    row: JsonObject = {
        "type": FORK_TYPE, "kind": kind, "parentSessionId": parent.session, "parentProject": parent.project,
        "at": point.at, "forkedAt": timestamp,
    }  # fmt: skip
    if kind == ATTACHED:
        if len(point.lineage) > ANCESTORS_MAX:
            raise UsageError(
                f"{parent.session} stands on {len(point.lineage) - 1:,} others already, and a fork on at most"
                f" {ANCESTORS_MAX:,}",
                hint=f"fork it with what it inherited: clew fork {parent.session} --kind copy",
            )
        row["lineage"] = [msgspec.to_builtins(each) for each in point.lineage]
    return compact({**row, "sessionId": child.session})


def fork_point_in(engine: Engine, key: LogKey, record: Record) -> ForkPoint | None:
    """What the first row of a log says, or None where it is not that of an attached fork: nor can a subagent be one,
    or a file that the client reads, which knows nothing of ancestors.

    Raises `DamagedData` for one that says what cannot be: another project, itself as its ancestor, one twice, too many.
    """
    if not _may_have_forks(engine, key) or not _may_be_fork(record.raw) or not is_attached(record):
        return None
    where, body = engine.where(key), record.body()
    try:
        row = msgspec.convert(body, _Row)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _damaged(where, f"its first row cannot be read: {error}") from error
    sessions = [each.session for each in row.lineage]
    if row.parent_project != key.project:
        raise _damaged(where, f"its parent is in another project: {row.parent_project!a:.80}")
    if len(sessions) > ANCESTORS_MAX:
        raise _damaged(where, f"it stands on {len(sessions):,} others, which is more than {ANCESTORS_MAX:,}")
    if key.session in sessions or len(set(sessions)) < len(sessions):
        raise _damaged(where, "it is its own ancestor, or one stands in its lineage twice")
    if not all(each.session and each.at and each.position >= 0 and each.size > 0 for each in row.lineage):
        raise _damaged(where, "one of its ancestors has no name, or no place")
    if body.get("kind") != ATTACHED or (row.at is None) != (not row.lineage):
        raise _damaged(where, "its first row contradicts itself")
    if row.lineage and row.lineage[-1].at != row.at:
        raise _damaged(where, "its first row names two points")
    return ForkPoint(row.parent_session_id, row.at, row.lineage)


def fork_point_of(engine: Engine, key: LogKey) -> ForkPoint | None:
    """The same for a log that nobody reads otherwise: only its first line is. None also where there is no log."""
    if not _may_have_forks(engine, key):
        return None
    try:
        stat = engine.stat(key)
        size = 0 if stat is None else min(stat.size_bytes, LOOK_BYTES)
        first = b"".join(engine.read_range(key, position=0, size=size)) if size else b""
        if not _may_be_fork(first):
            return None
        row = decode(next(engine.read(key, end=1)))
    except (NotFound, Conflict, StopIteration):
        return None
    return fork_point_in(engine, key, row) if isinstance(row, Record) else None


def _may_have_forks(engine: Engine, key: LogKey) -> bool:
    return not engine.capabilities.is_clients and not key.subpath


def _may_be_fork(first: bytes) -> bool:
    """Whether a log that begins so can be a fork."""
    return FORK_TYPE.encode() in first[:LOOK_BYTES]


def inherited(engine: Engine, key: LogKey, point: ForkPoint) -> Iterator[Record]:
    """The records of the ancestors up to their points, in order. Each ancestor is checked before it is read."""
    found = point.at is None
    for each in point.lineage:
        must_be_there(engine, key, each)
        for record in records_in(decode_lines(engine.read(LogKey(key.project, each.session), end=each.end))):
            found |= record.uuid == point.at
            yield record
    if not found:
        raise _changed(engine, key, point.lineage[-1])


def head_at(point: ForkPoint) -> list[Record]:
    """What the point is for everything before it: an explicit head record. None where nothing is inherited."""
    return [] if point.at is None else [Record(type="last-prompt", leaf_uuid=point.at, explicit=True)]


NAMING = frozenset({
    "custom-title", "agent-name", "ai-title", "tag", "summary", "last-prompt", "relocated", "continued-in", NOTE_TYPE,
})  # fmt: skip
"""Rows that say what a session is called, where it is and where it goes on: they are about that one session."""


def materialised(engine: Engine, key: LogKey, point: ForkPoint, first: bytes, *, names_of: str = "") -> Iterator[bytes]:
    """What a log begins with that has the inherited rows itself, in chunks: `first`, the rows of every ancestor, each
    as it stands but for the session that it names, and a head record at the point. Rows that name a session are those
    of `names_of` alone.
    """
    yield first + b"\n"
    session = quoted(key.session)
    for each in point.lineage:
        must_be_there(engine, key, each)
        log = LogKey(key.project, each.session)
        for row in decode_lines(engine.read(log, end=each.end)):
            line = row.line
            if not line.is_held:
                yield from engine.read_range(log, position=line.position, size=line.size)
            elif not isinstance(row, Record):
                yield line.data
            elif row.type == FORK_TYPE or (row.type in NAMING and each.session != names_of):
                continue
            elif row.session_id is None:
                yield line.data
            else:
                yield spliced(line.data, [Change("sessionId", row.session_id, session)])
            if line.is_held and not line.is_terminated:
                yield b"\n"
    if point.at is not None:
        head: JsonObject = {"type": "last-prompt", "leafUuid": point.at, "explicit": True, "sessionId": key.session}
        yield compact(head) + b"\n"


def materialise(engine: Engine, key: LogKey) -> bool:
    """Gives an attached fork rows of its own in the place of those that it inherits. Returns False where it was none.

    Whoever calls it holds the store alone. Forks of this very fork must have had their turn before: their places are
    those of the log as it was.
    """
    for _ in range(TRIES_MAX):
        stat, point = engine.stat(key), fork_point_of(engine, key)
        if stat is None or point is None:
            return False
        lines = engine.read(key)
        note = {name: value for name, value in body_of(next(lines).data).items() if name != "lineage"}
        before = materialised(engine, key, point, compact({**note, "kind": "copy"}))
        try:
            engine.replace(key, chain(before, _bytes_of(engine, key, lines)), expect=stat.revision)
        except Conflict:
            continue  # Somebody appended meanwhile.
        return True
    raise Conflict(f"{key.session} is appended to without a pause", hint="try again when the others are done")


def _bytes_of(engine: Engine, key: LogKey, lines: Iterator[Line]) -> Iterator[bytes]:
    for line in lines:
        if line.is_held:
            yield line.data
        else:
            yield from engine.read_range(key, position=line.position, size=line.size)


def must_be_there(engine: Engine, key: LogKey, ancestor: Ancestor) -> None:
    """Raises `DamagedData` where a log, of which one inherits, is gone, or has other bytes at the point."""
    log = LogKey(key.project, ancestor.session)
    try:
        found = digest_of(engine, log, ancestor.position, ancestor.size)
    except NotFound:
        raise DamagedData(
            f"{shown_path(engine.where(key))} goes on from the session {ancestor.session!a:.80}, which is not there",
            hint="bring it back: clew undo, by its operation in clew operations; or from a backup",
        ) from None
    except Conflict:
        found = ""
    if found != ancestor.digest:
        raise _changed(engine, key, ancestor)


def digest_of(engine: Engine, key: LogKey, position: int, size: int) -> str:
    """What tells that a row is still the one it was."""
    digest = hashlib.sha256()
    for chunk in engine.read_range(key, position=position, size=size):
        digest.update(chunk)
    return digest.hexdigest()


def ancestor_at(engine: Engine, key: LogKey, uuid: str, line: Line) -> Ancestor:
    """The ancestor that a log is for a fork at that row, which needs the log up to this line."""
    size = max(1, line.size - (len(line.data) - len(line.data.rstrip(b"\r\n"))))
    return Ancestor(key.session, uuid, line.position, size, digest_of(engine, key, line.position, size))


def forks_in(engine: Engine, project: str) -> dict[str, ForkPoint]:
    """The attached forks of a project, by their ids. Reads the first bytes of each log."""
    found: dict[str, ForkPoint] = {}
    for stat in () if engine.capabilities.is_clients else engine.list(project):
        # One that is damaged can be read by nobody, whether its ancestors are there or not.
        with suppress(DamagedData):
            point = fork_point_of(engine, stat.key)
            if point is not None:
                found[stat.key.session] = point
    return found


def children_of(engine: Engine, keys: Collection[LogKey]) -> list[LogKey]:
    """The attached forks that go on from one of these sessions and are not among them, the deepest first."""
    found: list[tuple[int, LogKey]] = []
    for project in {key.project for key in keys}:
        gone = {key.session for key in keys if key.project == project}
        for session, point in forks_in(engine, project).items():
            if session not in gone and not gone.isdisjoint(each.session for each in point.lineage):
                found.append((-len(point.lineage), LogKey(project, session)))
    return [key for _, key in sorted(found)]


def _damaged(where: str, what: str) -> DamagedData:
    return DamagedData(
        f"{shown_path(where)} is an attached fork that cannot be read: {what}",
        hint="restore it from a backup, or delete it: clew delete SESSION",
    )


def _changed(engine: Engine, key: LogKey, ancestor: Ancestor) -> DamagedData:
    return DamagedData(
        f"{shown_path(engine.where(key))} goes on from the session {ancestor.session!a:.80} at the row"
        f" {ancestor.at!a:.60}, which does not stand there any more: that session was replaced",
        hint=f"restore the session {ancestor.session!a:.80} from a backup, or delete the fork: clew delete SESSION",
    )
