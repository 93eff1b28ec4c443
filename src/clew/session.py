"""One session: its lines, its tree, the conversation it is, and what is appended to it.

`lines`, `rows` and `records` stream and hold one row at a time. All other questions are answered from one reading of
the log, which is kept until `refresh` is called, or something is appended here. How an append goes is in
`session_writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import msgspec
from msgspec import UNSET, UnsetType

from clew.engines.contract import BlobKey, BlobStat, Engine, LogKey, LogStat, small_blob
from clew.engines.filesystem import shown_path
from clew.errors import NotFound, UsageError
from clew.forks.kind import Forked, Wanted, kind_of, must_be_free
from clew.layouts.claude import Kind, flat_meta, is_flat
from clew.lineage import ForkPoint, fork_point_of, inherited
from clew.marks import Change, Marked, Text, Truth, apply, labelled, text_checked, wanted
from clew.records.codec import decode_lines
from clew.records.envelope import Given, Origin, Said
from clew.records.line import Line
from clew.records.own import NOTE_TYPE
from clew.records.record import Malformed, Record, Row, body_of, records_in
from clew.records.views import view_of
from clew.records.workflow import AgentMetadata
from clew.session_info import SessionInfo, Transcript
from clew.session_reader import Loaded, grown, read
from clew.session_writer import Makers, SessionWriter, Written, agent_key
from clew.transcript.chain import Chain, chain_to
from clew.transcript.digest import Digest, DigestFold
from clew.transcript.head import Head, find_head
from clew.transcript.links import Links, links_of
from clew.transcript.marks import Marks
from clew.transcript.message import Message
from clew.transcript.messages import Conversation, State, conversation
from clew.transcript.points import Point, chain_at, cut, parse_point
from clew.transcript.tree import Tree
from clew.watching import new_records

if TYPE_CHECKING:
    from clew.operations.log import Operations
    from clew.truncating import Truncated


class Home(Protocol):
    """What a session asks of the store that it came from."""

    def describe_session(self, session: Session) -> SessionInfo:
        """The row of a list."""

    def makers(self) -> Makers:
        """What new rows are made with."""

    def operations_on(self, engine: Engine) -> Operations:
        """The log of operations of the place that a session is in."""


class Session:
    """A main log, or the log of one of its subagents, with what belongs to it.

    The log is read on first use and kept; another program may append meanwhile, and `refresh` takes that in. Threads
    may share it to append and flush, and must not share it to read. `home` makes the row of a list; a store passes
    its own, which remembers. `makers` is what new rows are made with, and `origin` what they say of a new session.
    """

    def __init__(
        self,
        engine: Engine,
        key: LogKey,
        *,
        home: Home | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.engine = engine
        self.key = key
        self._home = home
        self._origin = origin
        self._writer: SessionWriter | None = None
        self._is_behind = False
        self._is_closed = False
        self._loaded: Loaded | None = None
        self._links: Links | None = None
        self._head: Head | None = None
        self._conversation: Conversation | None = None
        self.forked: Forked | None = None
        """What came of the fork, of a session that `fork` gave."""

    def __repr__(self) -> str:
        return f"<Session {shown_path(self.id)} at {shown_path(self.where)}>"

    # What it is.

    @property
    def id(self) -> str:
        """The id of the session; of a subagent the name of its log, `agent-…`."""
        return self.key.subpath.rpartition("/")[2] or self.key.session

    @property
    def project(self) -> str:
        """The key of its project; "" for a file that lies in none."""
        return self.key.project

    @property
    def where(self) -> str:
        """The place of the log: its path, or the store and the names in it."""
        return self.engine.where(self.key)

    @property
    def is_agent(self) -> bool:
        """Whether this is the log of a subagent, whose rows are all sidechain rows and name no head."""
        return bool(self.key.subpath) or is_flat(self.key.session)

    def stat(self) -> LogStat:
        """Size and time of the log now. Raises `NotFound` when it is gone."""
        found = self.engine.stat(self.key)
        if found is None:
            raise NotFound(f"there is no {shown_path(self.where)}", hint="list what there is with `clew ls --all`")
        return found

    def info(self) -> SessionInfo:
        """Its row of a list."""
        return self._at_home().describe_session(self)

    # Streaming.

    def lines(self) -> Iterator[Line]:
        """The lines of the log, in order. Together they are its bytes, except those of lines over the limit."""
        return self.engine.read(self.key)

    def rows(self) -> Iterator[Row]:
        """Every row: records, malformed and blank ones."""
        return decode_lines(self.lines())

    def records(self) -> Iterator[Record]:
        """The records that belong to the session, those saved out of malformed lines included; of an attached fork
        first those of its ancestors, each up to its point.
        """
        point = self.fork_point
        before = () if point is None else inherited(self.engine, self.key, point)
        return chain(before, records_in(self.rows()))

    # The conversation.

    @property
    def tree(self) -> Tree:
        return self._load().tree

    @property
    def malformed(self) -> Sequence[Malformed]:
        """The lines that are no records, in order."""
        return tuple(self._load().malformed)

    @property
    def digest(self) -> Digest:
        """What the rows say for a list: titles, the first prompt, counts.

        Asked for first, it comes with the one reading of the log; later, the log is read once more.
        """
        if self._is_behind:
            self.refresh()
        if self._loaded is None or self._loaded.fold is None:
            self._forget()
            self._loaded = self._read(DigestFold())
        fold = self._loaded.fold
        return Digest() if fold is None else fold.digest()

    @property
    def links(self) -> Links:
        """Who hangs on whom once compactions are applied."""
        tree = self.tree
        if self._links is None:
            self._links = links_of(tree)
        return self._links

    @property
    def head(self) -> Head:
        """Where the conversation goes on. The log of a subagent has no head records: its last row it is."""
        links = self.links
        if self._head is None:
            self._head = _head_of_agent(links) if self.is_agent else find_head(links.tree, links)
        return self._head

    def chain(self, up_to: Point | str | None = None) -> Chain:
        """The records from the root to the head, or to a point, which is included.

        Raises `NotFound` for a point that is not in this session and `UsageError` for a text that is no point.
        """
        if up_to is None:
            return chain_to(self.tree, self.head.uuid, self.links)
        point = parse_point(up_to) if isinstance(up_to, str) else up_to
        if self.is_agent:
            whole = self.chain()
            return Chain(cut(whole.records, point), whole.repairs, whole.put_back)
        return chain_at(self.tree, self.links, point)

    def messages(self, up_to: Point | str | None = None, *, reminders: bool = False) -> list[Message]:
        """What the client would send the model, with its own reminders only when asked for them.

        Empty when the client finds no conversation here; `head.refused` and `head.why` say so.
        """
        return list(self.conversation(up_to, reminders=reminders).messages)

    def conversation(self, up_to: Point | str | None = None, *, reminders: bool = False) -> Conversation:
        """The messages together with how they end."""
        if up_to is not None or reminders:
            return conversation(self.chain(up_to).records, reminders=reminders)
        self._load()
        if self._conversation is None:
            self._conversation = conversation(self.chain().records)
        return self._conversation

    @property
    def state(self) -> State:
        """How the conversation ends."""
        return self.conversation().state

    def transcripts(self) -> Iterator[Transcript]:
        """One for every leaf, in file order, also for branches the client left and for what a compaction took out."""
        tree, head = self.tree, self.head.uuid
        plain = Links(tree, tree.parents)
        for leaf in tree.leaves():
            chain = chain_to(tree, leaf, self.links if leaf in self.links else plain)
            yield Transcript(self, leaf, chain, leaf == head)

    def last(self) -> Transcript | None:
        """The one that the client would go on with, or None when it finds no conversation."""
        head = self.head.uuid
        return None if head is None else Transcript(self, head, self.chain(), is_head=True)

    # Writing.

    def append(self, said: Said, *, parent: str | UnsetType | None = UNSET, batch_id: str | None = None) -> Written:
        """Appends one message, row or record. See `append_many`."""
        return self.append_many([said], parent=parent, batch_id=batch_id)

    def append_many(
        self, said: Sequence[Said], *, parent: str | UnsetType | None = UNSET, batch_id: str | None = None
    ) -> Written:
        """Appends messages `{"role", "content"}`, rows `{"type", …}` or records, in order, in one write for each log.

        A message becomes a row that hangs on the one before; the first hangs on the head, or on `parent` (None begins
        anew), which makes a branch that the session goes on from. A row gets what it lacks; a record is written as it
        is. Rows of subagents go to the log of their agent. All is checked first: `UsageError` means that nothing was
        written. When it returns, the rows are as durable as the engine was opened for.

        A row whose uuid the log has is not written again. With a `batch_id` the same call can be made again after a
        failure without an answer, and adds only what the first one did not.
        """
        return self._open_writer().append(said, parent=parent, batch_id=batch_id)

    def append_subagent(
        self,
        agent: str,
        said: Sequence[Said],
        *,
        meta: Given | None = None,
        batch_id: str | None = None,
    ) -> Written:
        """Appends to the log of a subagent, each row on the one before. `meta` is noted first, where the client looks
        for it: `toolUseId` links the subagent to the call that started it.
        """
        writer = self._open_writer()
        if meta is not None:
            writer.agent(agent).check(said, batch_id=batch_id)
            writer.note_agent(agent, meta)
        return writer.agent(agent).append(said, batch_id=batch_id)

    def flush(self) -> None:
        """Returns when every append of any thread that returned before is durable, and a mirror has it or has told
        that it does not.
        """
        self.engine.flush()

    def close(self, *, exit_reason: str | None = None) -> None:
        """Flushes; nothing can be appended here afterwards. The reason is noted in the session, for lists."""
        if not self._is_closed and exit_reason is not None and self.engine.stat(self.key) is not None:
            self._open_writer().note(lambda: [{"type": NOTE_TYPE, "exitReason": exit_reason}])
        self._is_closed = True
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio  # It takes four times as long to import as clew.

        await asyncio.to_thread(self.close)

    def watch(self, stop: Event) -> Iterator[Record]:
        """Records that are appended from now on, by anybody, each when its line is whole, until `stop` is set.

        Where the log is replaced by another program, it goes on behind the record that was given last, or from the
        beginning where the new log does not hold it.
        """
        return new_records(self.engine, self.key, stop)

    @property
    def is_live(self) -> bool:
        """Whether a running client holds the session: what is appended here it sees only when it is started anew."""
        return self.engine.capabilities.is_clients and self.key.session in self.engine.live_sessions()

    def _open_writer(self) -> SessionWriter:
        if self._is_closed:
            raise UsageError(f"the session {self.id} was closed", hint="get it from the store once more")
        if self._writer is None:
            self._writer = SessionWriter(self, self._at_home().makers(), self._writes_as())
        return self._writer

    def _writes_as(self) -> Origin:
        """What rows say that are appended here. Those of a subagent name it, however the session was found."""
        if is_flat(self.key.session):
            raise UsageError(
                f"{shown_path(self.where)} is the log of a subagent in the layout of older clients, which none writes",
                hint="append to the session that started it",
            )
        origin = Origin(self.key.session) if self._origin is None else self._origin
        name = self.id.removeprefix("agent-") if is_agent_log(self.key) else None
        return msgspec.structs.replace(origin, agent=name)

    def _at_home(self) -> Home:
        if self._home is None:
            raise UsageError("this session was made for reading only", hint="get it from a Store")
        return self._home

    # Names and marks.

    def set(
        self,
        *,
        title: Text = UNSET,
        tag: Text = UNSET,
        pinned: Truth = UNSET,
        archived: Truth = UNSET,
        owner: Text = UNSET,
        workspace: Text = UNSET,
        labels: Collection[str] | UnsetType | None = UNSET,
    ) -> Marked:
        """Sets what is named; None, an empty text and False take it off. What is so already is not written again.

        All is checked first. The rows are one append beside the conversation, which leaves the time of a client's file
        as it is: `--continue` there still means what was spoken in last. Of two programs that set different things at
        once both are kept; of the same thing the last one counts.
        """
        return self._mark(wanted(title, tag, pinned, archived, owner, workspace, labels))

    def label(self, *names: str, off: bool = False) -> Marked:
        """Adds labels, or takes these off, and leaves the others, also those that another program adds at once."""
        return self._mark(labelled(names, off=off))

    def _mark(self, change: Change) -> Marked:
        return apply(self, self._open_writer(), change, self._at_home().makers().timestamp)

    # Branches.

    @property
    def fork_point(self) -> ForkPoint | None:
        """Where an attached fork left its parent, and every session that it inherits from; None for all others.

        Subagents and blobs are not inherited: they are found at the session that has them.
        """
        return fork_point_of(self.engine, self.key)

    @property
    def is_read(self) -> bool:
        """Whether the log was read already, so that questions cost only what was appended since."""
        return self._loaded is not None

    def fork(
        self,
        at: Point | str | None = None,
        *,
        kind: str | None = None,
        new_ids: bool = False,
        id: str | None = None,  # noqa: A002 - What it is called everywhere else too.
        title: str | None = None,
        rewrite_paths: bool = False,
    ) -> Session:
        """A new session that begins with this conversation, up to its head or to a point, which is included.

        Nothing here is changed. The `kind` is one of `clew.forks.table`; without one it is a copy, as the client's own
        forks are, with subagents, tool results and sidecars, whole or not at all. With `new_ids` its rows are other
        rows; `rewrite_paths` lets texts name its own folder. What came of it is in `forked` of the new session.

        Raises `NotFound` for a point that is not in this session, `Conflict` for an id that is taken, and `UsageError`
        where there is no conversation, for a subagent, for a title of several lines, and for a kind that cannot be
        made here.
        """
        if self.is_agent:
            raise UsageError(f"{self.id} is the log of a subagent", hint="fork the session that started it")
        makers = self._at_home().makers()
        name = makers.new_id() if id is None else id
        must_be_free(self.engine, name)
        said = None if title is None else text_checked(title, "the title") or None
        asked = Wanted(name, at, makers.timestamp(), makers.new_id, said, new_ids, rewrite_paths)
        forked = kind_of(kind or "copy").make(self, asked)
        session = Session(self.engine, forked.key, home=self._home, origin=self._origin_of(name))
        session.forked = forked
        return session

    def _origin_of(self, session: str) -> Origin | None:
        return None if self._origin is None else msgspec.structs.replace(self._origin, session=session, agent=None)

    def truncate(self, at: Point | str, *, dry_run: bool = False) -> Truncated:
        """Moves the head to a point, which stays: the conversation goes on from there. Nothing is deleted.

        An explicit head record is appended, as an operation that `Store.undo` takes back; what is cut off stays in
        `tree` and `transcripts`. Where the conversation ends there already, nothing is written. Rows that others append
        meanwhile are looked at first, so that a turn counts in the conversation as it is when the record is written.
        With `dry_run` it only says what it would do.

        Raises `NotFound` for a point that is not in this session, and `UsageError` for a text that is no point, for one
        where the client would not go on (before a compaction, where nothing was said), and for a subagent.
        """
        from clew.truncating import truncate

        if self._is_closed:
            raise UsageError(f"the session {self.id} was closed", hint="get it from the store once more")
        point = parse_point(at) if isinstance(at, str) else at
        return truncate(self, self._at_home().operations_on(self.engine), point, is_dry=dry_run)

    # What the writer asks.

    @property
    def names(self) -> Mapping[str, Record]:
        """The last row of each type that names the session or its head, as of the last reading."""
        return self._load().names

    @property
    def marks(self) -> Marks:
        """What clew noted of it, as of the last reading."""
        return self._load().marks

    @property
    def seen(self) -> LogStat:
        """The log as it was read last. Its revision is "" where there is no log yet."""
        return self._load().stat

    def has_read(self, uuid: str) -> bool:
        """Whether the log held this row when it was read last."""
        return self._loaded is not None and uuid in self._loaded.tree.records

    def inherits(self, uuid: str | None) -> bool:
        """Whether this row stands in the log of an ancestor, as of the last reading."""
        return self._loaded is not None and uuid in self._loaded.inherited

    def fall_behind(self) -> None:
        """Says that the log has grown: the next question reads on first."""
        self._is_behind = True

    # What belongs to it.

    def agent(self, agent: str) -> Session:
        """The subagent of that id, whether it has a log already or not."""
        key = agent_key(self.key.main, agent)
        origin = Origin(self.key.session) if self._origin is None else self._origin
        return Session(self.engine, key, home=self._home, origin=origin)

    def agents(self) -> list[Session]:
        """Its subagents, by key: those in its folder, and those of older clients beside it. A subagent has none."""
        if self.is_agent:
            return []
        keys = [stat.key for stat in self.engine.list_sub(self.key)]
        return [Session(self.engine, key, home=self._home) for key in keys if is_agent_log(key)]

    @property
    def meta(self) -> AgentMetadata | None:
        """What the client noted about a subagent; None for a main log, and where there is no such note."""
        if not self.is_agent:
            return None
        name = flat_meta(self.key.subpath or self.key.session)
        data = small_blob(self.engine, BlobKey(self.key.project, self.key.session, Kind.META.value, name))
        view = None if data is None else view_of(data, "agent_metadata", lambda: body_of(data or b""))
        return view if isinstance(view, AgentMetadata) else None

    def blobs(self) -> Sequence[BlobStat]:
        """Every file of the session that is no log: backups, tool results, sidecars."""
        return self.engine.blobs(self.key.main)

    # Reading.

    def refresh(self) -> bool:
        """Takes in what another program wrote since. Returns whether anything changed.

        Of a log that only grew, only the new bytes are read. Raises `NotFound` when it is gone; what was read before
        is then let go.
        """
        self._is_behind = False
        known = self._loaded
        if known is None:
            return False
        try:
            now = self._stat_or_new()
        except NotFound:
            self._forget()
            raise
        if now.revision == known.stat.revision:
            return False
        self._forget()
        self._loaded = grown(self.engine, known, now) or self._read(None if known.fold is None else DigestFold())
        return True

    def _load(self) -> Loaded:
        if self._is_behind:
            self.refresh()
        if self._loaded is None:
            self._loaded = self._read()
        return self._loaded

    def _stat_or_new(self) -> LogStat:
        """Of a session that was made here and has no log yet, one of no bytes."""
        found = None if self._origin is None else self.engine.stat(self.key)
        return LogStat(self.key, "", 0, 0) if found is None and self._origin is not None else found or self.stat()

    def _forget(self) -> None:
        self._loaded = self._links = self._head = self._conversation = None

    def _read(self, fold: DigestFold | None = None) -> Loaded:
        return read(self.engine, self._stat_or_new(), fold)


def is_agent_log(key: LogKey) -> bool:
    """Whether a sublog holds what a subagent said; journals and the like do not."""
    return key.subpath.rpartition("/")[2].startswith("agent-")


def _head_of_agent(links: Links) -> Head:
    ordinals = links.tree.ordinals
    last = max(links.parents, key=ordinals.__getitem__, default=None)
    if last is None:
        return Head(None, "no prompt or answer", refused=True)
    return Head(last, "the last row of a subagent's log")
