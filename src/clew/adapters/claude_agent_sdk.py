"""A store as the `SessionStore` of the Claude Agent SDK: agents keep their sessions in it and resume from it.

    options = ClaudeAgentOptions(session_store=clew.open("sqlite:agents.db").claude())

All six methods of the SDK's protocol, over any engine; the SDK itself is not imported. Entries are rows: each is one
line of a log, as the agent said it. What the protocol asks for and other stores leave out is kept here:

    idempotent    a row with a uuid is written once, whatever its type; a batch that failed and comes again is completed
    in order      appends to one log are written in the order in which they were called, also when none was awaited
    summed up     what a list shows stands beside the log, in the same transaction where the engine has one
    contained     names that lead out of a session are refused before anything is written or read
"""

from __future__ import annotations

import hashlib
import ntpath
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NotRequired, Required, TypedDict, TypeVar, cast
from uuid import uuid4

from clew.adapters.in_order import InOrder
from clew.adapters.summaries import Summaries, Summary, kept_in
from clew.engines.contract import Appended, BlobKey, Engine, Entry, LogKey, LogStat, Problem, small_blob
from clew.errors import ClewError, Conflict, NotFound, UsageError
from clew.layouts.claude import Kind, flat_meta
from clew.lineage import NAMING, fork_point_of, inherited
from clew.operations.delete import must_have_no_children
from clew.records.codec import decode_lines
from clew.records.compact import compact
from clew.records.envelope import RESERVED_PREFIX
from clew.records.line import Line
from clew.records.own import FORK_TYPE
from clew.records.record import Malformed, Record, Row, body_of
from clew.records.views import JsonObject

TRIES_MAX = 1_000
"""So often an append is made anew because another process appended meanwhile. Each time the other one got on."""
FAILED_HELD_MAX = 1_000
"""Of so many logs it is remembered which batch failed last."""
AGENT_METADATA = "agent_metadata"
"""The type under which the SDK sends what the client notes of a subagent in a file of its own."""
GIVEN_BY_HAND = frozenset({"custom-title", "tag"})
"""Rows by which the SDK renames and tags a session. They have a uuid there, those of a running agent have none."""
NAMES = frozenset({"agent-name", "ai-title", "custom-title", "tag"})
"""Rows that leave the time of a client's file as it is: `--continue` there means what was spoken in last."""

T = TypeVar("T")


class SessionKey(TypedDict):
    """The address of a log. Without `subpath` it is the main log of a session."""

    project_key: str
    session_id: str
    subpath: NotRequired[str]


class SessionListSubkeysKey(TypedDict):
    """The address of a session."""

    project_key: str
    session_id: str


class SessionStoreEntry(TypedDict, total=False):
    """One row. More fields may stand in it, all values of JSON."""

    type: Required[str]
    uuid: str
    timestamp: str


class SessionStoreListEntry(TypedDict):
    """A session and when it last changed, in milliseconds since 1970."""

    session_id: str
    mtime: int


class SessionSummaryEntry(TypedDict):
    """What a list shows of a session, for the SDK to read; `mtime` is the same as in a list."""

    session_id: str
    mtime: int
    data: dict[str, Any]


class _Batch:
    """The rows of one append as lines. `id` is that of an earlier try, if this is another one."""

    def __init__(self, rows: Sequence[SessionStoreEntry]) -> None:
        self.entries = [_entry_of(row, at) for at, row in enumerate(rows)]
        self.kinds = [row.get("type") for row in rows]
        self.digest = hashlib.sha256(b"\n".join(entry.data for entry in self.entries)).digest()
        self.id = ""

    @property
    def is_given_by_hand(self) -> bool:
        return len(self.kinds) == 1 and self.kinds[0] in GIVEN_BY_HAND and self.entries[0].dedupe_id is not None

    def lines(self) -> list[Line]:
        return [Line(entry.data + b"\n", 0, 0, len(entry.data) + 1) for entry in self.entries]

    def agent_metadata(self) -> JsonObject | None:
        """The last note about a subagent among the rows."""
        found = [at for at, kind in enumerate(self.kinds) if kind == AGENT_METADATA]
        return body_of(self.entries[found[-1]].data) if found else None

    def transcript(self) -> list[Entry]:
        """The rows without such notes."""
        return [entry for kind, entry in zip(self.kinds, self.entries, strict=True) if kind != AGENT_METADATA]


class ClaudeSessionStore:
    """What `ClaudeAgentOptions(session_store=…)` takes. Tasks, threads and event loops may share it.

    The work is done in threads, so a slow disk holds up no event loop. Errors are those of `clew.errors`; the SDK tries
    a failed append again, and then tells of it in a `MirrorErrorMessage`. `new_id` names batches: no two may have the
    same name, also those of other processes. `take_away` deletes a session so that it can come back; without it a
    session is deleted for good.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        new_id: Callable[[], str] | None = None,
        take_away: Callable[[LogKey], None] | None = None,
    ) -> None:
        self._engine = engine
        self._take_away = take_away
        self._new_id = new_id or (lambda: str(uuid4()))
        self._calls = InOrder()
        self._summaries = Summaries(engine)
        self._failed: dict[LogKey, tuple[bytes, str]] = {}
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> Sequence[Problem]:
        """What loading and listing left out: lines that are no records, and logs that could not be read."""
        return (*self._engine.problems, *self._problems.values())

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Adds rows at the end of a log, in order; they are as durable as the engine promises when it returns.

        The rows are taken as they are at the call. A uuid that is in the log already is not written again. The same
        rows appended again right after an append of theirs failed, or was cancelled, are that same batch: what of it
        was written is not written twice, also rows without a uuid. Raises `NotFound` for a title or a tag that is given
        by hand to a session that is not there.
        """
        log, batch = _log_key(key), _Batch(entries)
        if not batch.entries:
            return
        batch.id = self._batch_id(log, batch)
        call = self._calls.put(log, lambda: self._write(log, batch))
        try:
            await _in_thread(lambda: self._calls.finish(call))
        except BaseException:
            self._calls.give_up(call)
            self._note_failed(log, batch)
            raise

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The rows of a log in order, as they were appended; each call makes them anew. None when it is not there.

        Of an attached fork those that it inherits come first, and its own first row, which is clew's, is left out.
        """
        log = _log_key(key)
        return cast("list[SessionStoreEntry] | None", await _in_thread(lambda: self._load(log)))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, newest change first. Times of one session grow with every append that writes."""
        project = _text(project_key, "project_key")
        return await _in_thread(lambda: [_listed(stat) for stat in self._engine.list(project)])

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What a list shows of each session of a project, newest change first. A log that cannot be read is missing
        here, and stands in `problems`.
        """
        project = _text(project_key, "project_key")
        return await _in_thread(lambda: self._sum_up(project))

    async def delete(self, key: SessionKey) -> None:
        """Removes a log; a main log takes its sublogs and blobs along, and as a session of a `Store` goes to the trash.
        Nothing there: nothing happens.
        """
        log = _log_key(key)
        call = self._calls.put(log, lambda: self._delete(log))
        try:
            await _in_thread(lambda: self._calls.finish(call))
        except BaseException:
            self._calls.give_up(call)
            raise

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session's other logs, sorted."""
        log = LogKey(_text(key["project_key"], "project_key"), _text(key["session_id"], "session_id"))
        return await _in_thread(lambda: [stat.key.subpath for stat in self._engine.list_sub(log)])

    # What runs in threads. Of the calls that write to one log, one at a time.

    def _write(self, log: LogKey, batch: _Batch) -> None:
        if log.subpath:
            self._write_sublog(log, batch)
        elif self._engine.capabilities.atomic_summary:
            self._write_summed_up(log, batch)
        else:
            if batch.is_given_by_hand and self._engine.stat(log) is None:
                raise _no_session(log)
            is_quiet = self._engine.capabilities.is_clients and NAMES.issuperset(batch.kinds)
            self._engine.append(log, batch.entries, batch_id=batch.id, keep_time=is_quiet)

    def _write_sublog(self, log: LogKey, batch: _Batch) -> None:
        """Notes about the subagent go to where the client and `Session.meta` look for them, too. The client has no such
        rows in its files, so there they go nowhere else.
        """
        meta = batch.agent_metadata()
        if meta is not None:
            noted = {name: value for name, value in meta.items() if name != "type"}
            self._engine.put(_meta_key(log), [compact(noted)])
        entries = batch.transcript() if self._engine.capabilities.is_clients else batch.entries
        self._engine.append(log, entries, batch_id=batch.id)

    def _write_summed_up(self, log: LogKey, batch: _Batch) -> None:
        for _ in range(TRIES_MAX):
            stat = self._engine.stat(log)
            if stat is None and batch.is_given_by_hand:
                raise _no_session(log)
            before = Summary() if stat is None else self._summaries.of(stat)
            after = before.after(batch.lines())
            try:
                appended = self._engine.append(
                    log,
                    batch.entries,
                    batch_id=batch.id,
                    expect="" if stat is None else stat.revision,
                    summary=after.kept(),
                )
            except Conflict:
                continue
            self._settle(log, batch, appended, after)
            return
        raise Conflict(
            f"the session {log.session} is appended to without a pause: {TRIES_MAX} tries found it changed each time",
            hint="append again when the others are done",
        )

    def _settle(self, log: LogKey, batch: _Batch, appended: Appended, after: Summary) -> None:
        """Sees to it that the summary is about what was written, which may be less than what was asked for."""
        if appended.written == len(batch.entries) and not appended.notes:
            self._summaries.hold(log, appended.revision, after)
            return
        self._summaries.forget(log)
        known = next((entry for entry in batch.entries if entry.dedupe_id is not None), None)
        stat = self._engine.stat(log)
        if known is None or stat is None or kept_in(stat) is not None:
            return
        # A row that is there already is not written again, but brings its summary along. Where somebody else appended
        # meanwhile there is no need: whoever asks folds what is missing.
        with suppress(Conflict):
            kept = self._summaries.of(stat).kept()
            self._engine.append(log, [known], expect=stat.revision, summary=kept, keep_time=True)

    def _load(self, log: LogKey) -> list[JsonObject] | None:
        try:
            lines = self._engine.read(log)
        except NotFound:
            return None
        rows = [*self._inherited(log)]
        broken: list[Malformed] = []
        for row in decode_lines(self._held(log, line) for line in lines):
            rows += [record.body() for record in _records_of(row) if record.type != FORK_TYPE]
            if isinstance(row, Malformed):
                broken.append(row)
        if broken:
            self._note_broken(log, broken)
        if log.subpath and not any(row.get("type") == AGENT_METADATA for row in rows):
            meta = small_blob(self._engine, _meta_key(log))
            noted = {} if meta is None else body_of(meta)
            rows += [{**noted, "type": AGENT_METADATA}] if noted else []
        return rows

    def _inherited(self, log: LogKey) -> Iterator[JsonObject]:
        """What an attached fork begins with, as a copy would have it: an agent has no other way to read it."""
        point = fork_point_of(self._engine, log)
        if point is None or point.at is None:
            return
        for record in inherited(self._engine, log, point):
            if record.type in NAMING or record.type == FORK_TYPE:
                continue
            row = record.body()
            yield {**row, "sessionId": log.session} if "sessionId" in row else row
        yield {"type": "last-prompt", "leafUuid": point.at, "explicit": True, "sessionId": log.session}

    def _held(self, log: LogKey, line: Line) -> Line:
        """The line with its bytes, however long it is: all of the log is going to be in memory anyway."""
        if line.is_held:
            return line
        data = b"".join(self._engine.read_range(log, position=line.position, size=line.size))
        return Line(data, line.position, line.number, line.size)

    def _sum_up(self, project: str) -> list[SessionSummaryEntry]:
        found: list[SessionSummaryEntry] = []
        for stat in self._engine.list(project):
            try:
                data = self._summaries.of(stat).data()
            except NotFound:
                continue
            except ClewError as error:
                where = self._engine.where(stat.key)
                self._problems[where] = Problem(where, error.message)
                continue
            found.append({**_listed(stat), "data": data})
        return found

    def _delete(self, log: LogKey) -> None:
        if self._take_away is not None and not log.subpath and self._engine.stat(log) is not None:
            self._take_away(log)
            self._summaries.forget(log)
            return
        if log.subpath:
            self._engine.delete(log)
            self._engine.delete_blob(_meta_key(log))
            return
        with self._engine.alone():
            must_have_no_children(self._engine, [log])
            self._engine.delete(log)
        self._summaries.forget(log)
        if self._engine.blobs(log):
            # The engine knows which blobs another session of the same id needs too.
            operation = self._new_id()
            self._engine.set_aside(log, operation)
            self._engine.free_aside(operation)

    # Batches that failed. This runs where the call is made.

    def _batch_id(self, log: LogKey, batch: _Batch) -> str:
        """A new one, or that of the same rows if they failed just now."""
        digest, failed = self._failed.pop(log, (b"", ""))
        return failed if digest == batch.digest else self._new_id()

    def _note_failed(self, log: LogKey, batch: _Batch) -> None:
        self._failed[log] = (batch.digest, batch.id)
        while len(self._failed) > FAILED_HELD_MAX:
            self._failed.pop(next(iter(self._failed), log), None)

    def _note_broken(self, log: LogKey, broken: Sequence[Malformed]) -> None:
        where, first = self._engine.where(log), broken[0]
        says = f"{len(broken)} of its lines are no records; line {first.line.number}: {first.reason}"
        self._problems[where] = Problem(where, says)


async def _in_thread(work: Callable[[], T]) -> T:
    """Runs the work in a thread. On event loops other than asyncio's, anyio knows how; the SDK brings it along."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        result: T = await import_module("anyio.to_thread").run_sync(work, abandon_on_cancel=True)
        return result
    return await asyncio.to_thread(work)


def _log_key(key: SessionKey) -> LogKey:
    """The log that is meant. Raises `UsageError` for a key that is none, and for subpaths that lead elsewhere."""
    project, session = _text(key["project_key"], "project_key"), _text(key["session_id"], "session_id")
    subpath = key.get("subpath")
    if subpath is None:
        return LogKey(project, session)
    names = re.split(r"[\\/]", _text(subpath, "subpath"))
    if not {"", ".", ".."}.isdisjoint(names) or "\0" in subpath or ntpath.splitdrive(subpath)[0]:
        raise UsageError(
            f"{_shown(subpath)} is no subpath: it leads out of the session",
            hint="name a log below the session, as subagents/agent-a1b2",
        )
    return LogKey(project, session, subpath)


def _text(value: object, what: str) -> str:
    if isinstance(value, str) and value:
        return value
    hint = "leave it out for the main log" if what == "subpath" else "give the names that list_sessions() gives"
    raise UsageError(f"{_shown(value)} is no {what}", hint=hint)


def _entry_of(row: SessionStoreEntry, at: int) -> Entry:
    if not isinstance(row, dict):
        raise UsageError(f"entry {at} is no JSON object: {_shown(row)}", hint="append dicts as the SDK gives them")
    kind: object = row.get("type")
    if isinstance(kind, str) and kind.startswith(RESERVED_PREFIX):
        raise UsageError(
            f"entry {at} has the type {_shown(kind)}, which only clew itself writes", hint="give it another type"
        )
    try:
        data = compact(cast(JsonObject, row))
    except (TypeError, ValueError, RecursionError) as error:
        hint = "append texts, numbers, lists and dicts"
        raise UsageError(f"entry {at} cannot be written as JSON: {error}", hint=hint) from None
    uuid = row.get("uuid")
    return Entry(data, uuid if isinstance(uuid, str) and uuid else None)


def _records_of(row: Row) -> Sequence[Record]:
    """The records that belong to the conversation."""
    if isinstance(row, Record):
        return (row,)
    return row.loaded if isinstance(row, Malformed) else ()


def _listed(stat: LogStat) -> SessionStoreListEntry:
    return {"session_id": stat.key.session, "mtime": stat.modified_ns // 1_000_000}


def _meta_key(log: LogKey) -> BlobKey:
    return BlobKey(log.project, log.session, Kind.META.value, flat_meta(log.subpath))


def _no_session(log: LogKey) -> NotFound:
    return NotFound(
        f"there is no session {_shown(log.session)} in project {_shown(log.project)} to be renamed or tagged",
        hint="list the sessions that there are: list_sessions(project_key)",
    )


def _shown(value: object) -> str:
    return f"{value!a:.80}"
