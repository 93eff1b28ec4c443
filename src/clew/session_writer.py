"""Appending to one session: the one way by which its life is written.

    look     what the log holds now, and where it goes on; after our own append that is known without looking
    plan     rows with their envelopes (`writing`), refused as a whole before anything is written
    append   the subagents' rows, then the main log's, each log in one write of the engine
    settle   titles and tags that would fall out of the window in which the client looks for them are said again

A row that hangs on the head is appended only if the log is still as it was looked at; else it is planned anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, cast
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import UNSET, UnsetType

from clew.engines.contract import Appended, BlobKey, Entry, LogKey
from clew.engines.filesystem import shown_path
from clew.engines.rounds import Rounds
from clew.errors import ClewError, Conflict, NotFound, StorageError, UsageError
from clew.layouts.claude import Kind, flat_meta
from clew.records.compact import compact
from clew.records.envelope import Given, Origin, Said, is_message
from clew.records.heads import head_record
from clew.records.own import FORK_TYPE, NOTE_TYPE
from clew.records.record import body_of
from clew.records.views import JsonObject
from clew.transcript.marks import Marks
from clew.writing import Planned, Stamps, Standing, parted, planned, written

if TYPE_CHECKING:
    from clew.session import Session

TRIES_MAX = 1_000
"""So often rows are planned anew because somebody else appended meanwhile. Each time somebody else got on."""
WINDOW_BYTES = 60 * 1024
"""The client looks for titles and tags in the last 64 KiB of a log; one that lies further back is said again."""
SAID_AGAIN = ("custom-title", "agent-name", "ai-title", "tag", NOTE_TYPE, FORK_TYPE, "last-prompt")
IS_LIVE = "a running client holds this session and goes on from its own head"


class Makers(msgspec.Struct, frozen=True):
    """What rows are made with: new ids, and the time as the client writes it."""

    new_id: Callable[[], str]
    timestamp: Callable[[], str]


class Written(msgspec.Struct, frozen=True):
    """What came of an append. `uuids` are those of the things passed in, None for what has none.

    `duplicates` are rows that were there already. `is_live` says that a running client holds the session: it goes on
    from its own head, and from ours when it is started anew. `notes` is what a person should know.
    """

    uuids: tuple[str | None, ...]
    written: int
    duplicates: int = 0
    is_live: bool = False
    notes: tuple[str, ...] = ()


class _Known(msgspec.Struct):
    """How the log was when it was looked at, or as our last append left it."""

    revision: str
    head: str | None
    origin: Origin
    ours: set[str]
    """Rows that were appended here since the log was read."""
    behind: dict[str, tuple[bytes, int]]
    """Of each type in `SAID_AGAIN` the last row, and how many bytes from its beginning to the end of the log."""
    marks: Marks


class _Ask(msgspec.Struct, eq=False):
    """Messages that a thread wants to append at the head, and what came of it."""

    said: Sequence[Said]
    written: Written | None = None
    error: ClewError | None = None


class SessionWriter:
    """Appends to a log and to those of its subagents. Threads may share it: messages that come together are appended
    together.
    """

    def __init__(self, session: Session, makers: Makers, origin: Origin) -> None:
        self._session = session
        self._makers = makers
        self._origin = origin
        self._lock = RLock()
        self._rounds = Rounds(self._serve, gathers=session.engine.capabilities.is_durable)
        self._known: _Known | None = None
        self._was_there = False
        self._agents: dict[str, SessionWriter] = {}

    def append(
        self, said: Sequence[Said], *, parent: str | UnsetType | None = UNSET, batch_id: str | None = None
    ) -> Written:
        """Appends the things in order. See `Session.append_many`."""
        if batch_id is None and isinstance(parent, UnsetType) and said and all(map(is_message, said)):
            ask = _Ask(said)
            self._rounds.take(ask)
            if ask.written is None:
                raise ask.error or StorageError("the append was interrupted", is_permanent=False)
            return ask.written
        return self._append_all(said, parent, batch_id)

    def _serve(self, asks: Sequence[_Ask]) -> None:
        """Messages of several threads, one after the other in one append, so that one flush of the disk serves all."""
        with self._lock:
            if len(asks) > 1 and self._append_together(asks):
                return
            for ask in asks:
                try:
                    ask.written = self._append_all(ask.said, UNSET, None)
                except ClewError as error:
                    ask.error = error

    def _append_together(self, asks: Sequence[_Ask]) -> bool:
        """False, and nothing is done, where one of them is to be refused."""
        said = [each for ask in asks for each in ask.said]
        try:
            done = self._append_all(said, UNSET, None)
        except UsageError:
            return False
        except ClewError as error:
            for ask in asks:
                ask.error = error
            return True
        uuids, left = iter(done.uuids), done.written - len(said)
        for ask in asks:
            own = tuple(islice(uuids, len(ask.said)))
            # The head record behind them all counts as the last one's.
            count = len(own) + (left if ask is asks[-1] else 0)
            ask.written = msgspec.structs.replace(done, uuids=own, written=count)
        return True

    def _append_all(self, said: Sequence[Said], parent: str | UnsetType | None, batch_id: str | None) -> Written:
        with self._lock:
            parts, notes = parted(said)
            if len(parts) > 1:
                self.check(said, parent=parent, batch_id=batch_id)
            uuids: list[str | None] = [None] * len(said)
            count = duplicates = 0
            # What a row of the main log speaks of is there before it.
            for agent in sorted(parts, key=lambda name: (name is None, name or "")):
                numbers = parts[agent]
                writer = self if agent is None else self.agent(agent)
                given = parent if agent is None else UNSET
                plan, appended = writer._append([said[at] for at in numbers], given, _batch_of(batch_id, agent))
                for at, uuid in zip(numbers, plan.uuids, strict=True):
                    uuids[at] = uuid
                count, duplicates = count + appended.written, duplicates + appended.duplicates
                notes += appended.notes
            is_live = self._session.is_live
            return Written(tuple(uuids), count, duplicates, is_live, (*notes, *((IS_LIVE,) if is_live else ())))

    def check(
        self, said: Sequence[Said], *, parent: str | UnsetType | None = UNSET, batch_id: str | None = None
    ) -> None:
        """Raises what appending these things would be refused with, in whichever log, before any is written."""
        with self._lock:
            for agent, numbers in parted(said)[0].items():
                writer = self if agent is None else self.agent(agent)
                given = parent if agent is None else UNSET
                writer._plan(writer._look(), [said[at] for at in numbers], given, _batch_of(batch_id, agent))

    def agent(self, agent: str) -> SessionWriter:
        """What writes the log of a subagent."""
        if agent not in self._agents:
            session = self._session.agent(agent)
            origin = msgspec.structs.replace(self._origin, agent=agent)
            self._agents[agent] = SessionWriter(session, self._makers, origin)
        return self._agents[agent]

    def note_agent(self, agent: str, meta: Given) -> None:
        """Puts the note about a subagent where the client looks for it, before its rows are written."""
        key = self._session.key
        name = flat_meta(self._session.agent(agent).key.subpath)
        blob = BlobKey(key.project, key.session, Kind.META.value, name)
        self._session.engine.put(blob, [written(cast(JsonObject, meta), f"the note about the subagent {agent}")])

    def note(self, rows: Callable[[], Sequence[JsonObject]]) -> Appended | None:
        """Appends rows beside the conversation, in one write; the time of a client's file stays. None: nothing to do.

        `rows` is asked once the log was looked at, and again whenever somebody else appended meanwhile, so what it
        gives may follow from what stands there.
        """
        engine, key = self._session.engine, self._session.key
        with self._lock:
            for _ in range(TRIES_MAX):
                known = self._look()
                entries = [Entry(compact({**row, "sessionId": key.session})) for row in rows()]
                if not entries:
                    return None
                try:
                    appended = engine.append(key, entries, expect=known.revision, keep_time=True)
                except Conflict:
                    self._known = None
                    continue
                self._take(known, entries, appended, known.head)
                return appended
            raise self._never_still()

    # One log.

    def _append(
        self, said: Sequence[Said], parent: str | UnsetType | None, batch_id: str | None
    ) -> tuple[Planned, Appended]:
        engine, key = self._session.engine, self._session.key
        for _ in range(TRIES_MAX):
            known = self._look()
            plan = self._plan(known, said, parent, batch_id)
            # Metadata waits for the log as it was seen, too: what was deleted meanwhile must not begin anew with it.
            expect = known.revision if plan.stands_on_head or plan.is_metadata else None
            own = [entry for entry in plan.entries if not self._session.inherits(entry.dedupe_id)]
            try:
                appended = engine.append(key, own, batch_id=batch_id, expect=expect, keep_time=plan.is_metadata)
            except Conflict:
                if expect is None:
                    raise
                self._known = None
                continue
            if len(own) < len(plan.entries):
                count = appended.duplicates + len(plan.entries) - len(own)
                appended = msgspec.structs.replace(appended, duplicates=count)
            self._take(known, plan.entries, appended, plan.head)
            self._say_again(known, plan)
            return plan, appended
        raise self._never_still()

    def _never_still(self) -> Conflict:
        session = self._session.key.session
        return Conflict(
            f"the session {session} is appended to without a pause: {TRIES_MAX} tries found another head each time",
            hint="append again when the others are done",
        )

    def _plan(
        self, known: _Known, said: Sequence[Said], parent: str | UnsetType | None, batch_id: str | None
    ) -> Planned:
        stamps = Stamps(self._ids(batch_id), self._makers.timestamp())
        return planned(said, self._standing(known), stamps, parent=parent)

    def _ids(self, batch_id: str | None) -> Callable[[], str]:
        """New ids. Those of a batch follow from its name, so that doing it again makes the same rows."""
        if batch_id is None:
            return self._makers.new_id
        key, count = self._session.key, iter(range(1_000_000_000))
        # Names may be any text, and a lone surrogate has no UTF-8.
        name = f"{key.session}/{key.subpath}/{batch_id}".encode("utf-8", "backslashreplace").decode()
        return lambda: str(uuid5(NAMESPACE_OID, f"{name}/{next(count)}"))

    def _look(self) -> _Known:
        session = self._session
        stat = session.engine.stat(session.key)
        revision = "" if stat is None else stat.revision
        if stat is None and self._was_there:
            raise NotFound(
                f"{shown_path(session.where)} was taken away while it was open, so nothing was appended to it",
                hint="bring it back: clew undo; or begin a new one",
            )
        self._was_there |= stat is not None
        if self._known is not None and self._known.revision == revision:
            return self._known
        session.refresh()
        # Somebody may have appended since the look at the revision: what was read is what counts.
        seen = session.seen
        head = session.head.uuid
        behind = {
            kind: (record.raw.rstrip(b"\r\n"), seen.size_bytes - record.line.position)
            for kind, record in session.names.items()
        }
        self._known = _Known(seen.revision, head, self._origin_at(head), set(), behind, session.marks)
        return self._known

    def _origin_at(self, head: str | None) -> Origin:
        """Where rows of this session are written: as the caller says, else as the head says."""
        row = self._session.tree.records.get(head or "")
        body = {} if row is None else row.body()
        cwd, branch = body.get("cwd"), body.get("gitBranch")
        return msgspec.structs.replace(
            self._origin,
            cwd=self._origin.cwd or (cwd if isinstance(cwd, str) else None),
            git_branch=self._origin.git_branch or (branch if isinstance(branch, str) else None),
        )

    def _standing(self, known: _Known) -> Standing:
        session = self._session
        return Standing(
            known.origin, known.head, lambda uuid: uuid in known.ours or session.has_read(uuid), session.is_agent
        )

    def _take(self, known: _Known, entries: Sequence[Entry], appended: Appended, head: str | None) -> None:
        """Notes what our append did to the log."""
        self._session.fall_behind()
        self._was_there = True
        if appended.duplicates:
            # Some of it was there before, and rows of others may stand behind it: the next append looks again.
            self._known = None
            return
        known.revision, known.head = appended.revision, head
        size = sum(len(entry.data) + 1 for entry in entries)
        for kind, (row, distance) in known.behind.items():
            known.behind[kind] = (row, distance + size)
        for entry in entries:
            if entry.dedupe_id is not None:
                known.ours.add(entry.dedupe_id)
                continue
            for kind in SAID_AGAIN:
                if entry.data.startswith(b'{"type":"%s"' % kind.encode()):
                    known.behind[kind] = (entry.data, 0)
                    if kind == NOTE_TYPE:
                        known.marks = known.marks.after(body_of(entry.data))

    def _say_again(self, known: _Known, plan: Planned) -> None:
        """Appends the last title, tag, note and head record once more when they are about to leave the window in which
        the client looks for its own.

        Only if nobody appended meanwhile, so that what is said again is the last of its type. Otherwise the next append
        sees to it.
        """
        session = self._session
        if not session.engine.capabilities.is_clients or session.is_agent or plan.is_metadata:
            return
        if not known.marks.row():
            known.behind.pop(NOTE_TYPE, None)
        late = [kind for kind, (_, distance) in known.behind.items() if distance > WINDOW_BYTES]
        if not late:
            return
        rows = [self._again(known, kind) for kind in sorted(late, key=SAID_AGAIN.index)]
        entries = [Entry(row) for row in rows if row is not None]
        if not entries:
            return
        try:
            appended = session.engine.append(session.key, entries, expect=known.revision, keep_time=True)
        except Conflict:
            return
        self._take(known, entries, appended, known.head)

    def _again(self, known: _Known, kind: str) -> bytes | None:
        row = known.behind[kind][0]
        if kind == NOTE_TYPE:
            # Each row says only what it changed; said again is all of it.
            return compact({"type": NOTE_TYPE, **known.marks.row(), "sessionId": self._session.key.session})
        if kind != "last-prompt":
            return row
        said = msgspec.json.decode(row, type=_HeadSaid, strict=False)
        # An explicit one cuts off what stands below it. Said again it would cut off what came since, too, and a plain
        # one would bring back what is cut off. The client finds it wherever it stands.
        if said.explicit:
            return None
        return compact(head_record(known.head, said.prompt, self._session.key.session))


class _HeadSaid(msgspec.Struct):
    prompt: str | None = msgspec.field(default=None, name="lastPrompt")
    explicit: bool | None = None


def _batch_of(batch_id: str | None, agent: str | None) -> str | None:
    """The name of that part of a batch which goes to the log of the agent."""
    return batch_id if batch_id is None or agent is None else f"{batch_id}/{agent}"


def agent_key(key: LogKey, agent: str) -> LogKey:
    """The log of a subagent. Raises `UsageError` for an id that is no name."""
    if not agent or "/" in agent:
        raise UsageError(f"{agent!a:.60} is no id of a subagent", hint="the client's are an a and 16 hex digits")
    return LogKey(key.project, key.session, f"subagents/agent-{agent}")
