"""The store: what holds sessions, and what a user of the library has in hand.

    sessions    what a list says of each, newest first
    session     one of them, by id, prefix or path
    create      a new one, which appears with what is appended to it first
    load        the records of many sessions at once, in maps by what they are known by

Everything from outside is a parameter; `clew.open` (in `clew.defaults`) fills in what a person's machine says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias
from uuid import uuid4

import msgspec

from clew.engines.contract import Engine, LogKey, LogStat, Problem
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem, shown_path
from clew.engines.worktrees import worktrees
from clew.errors import Ambiguous, ClewError, NotFound, StorageError, UsageError
from clew.forks.kind import must_be_free
from clew.layouts.claude import LOG_SUFFIX, is_part_of_session_id, is_session_id
from clew.layouts.keys import ClaudeKeys, KeyStrategy
from clew.loading import ClientIndex, IndexBuilder, Loaded, Loader, revision_of
from clew.marks import beside, text_checked
from clew.records.envelope import Origin
from clew.records.titles import title_rows
from clew.session import Session, is_agent_log
from clew.session_info import SessionInfo, Transcript
from clew.session_writer import Makers
from clew.transcript.digest import Digest

if TYPE_CHECKING:
    from clew.adapters.claude_agent_sdk import ClaudeSessionStore
    from clew.copying import Copied, Progress
    from clew.operations.log import Operations
    from clew.operations.operation import Operation
    from clew.resume.answers import Ingress, Resolved
    from clew.resume.choosing import Choice

CANDIDATES_MAX = 20
"""An error names no more candidates than this."""

Clock: TypeAlias = Callable[[], datetime]
Scope: TypeAlias = str | PurePath | None
"""None for every project, a directory, or the key of a project as a list shows it."""


_DAY_NS = 86_400 * 1_000_000_000


class _Known(msgspec.Struct, frozen=True):
    """What rows alone say of a session; it holds for one revision of its log."""

    revision: str
    digest: Digest
    message_count: int


class Store:
    """The sessions of one engine.

    What it learns of a log is remembered until the log changes. `problems` lists what looking around left out. `clock`
    is needed only by what asks for the time, as appending does; `new_id` makes the ids of sessions and rows; `wrapped`
    gets the engine of a file that lies elsewhere and was asked for by its path. Not meant to be shared by threads: give
    each a session, or a store on the same engine.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        keys: KeyStrategy | None = None,
        index_builder: IndexBuilder | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        fs: FileSystem | None = None,
        wrapped: Callable[[Engine], Engine] | None = None,
    ) -> None:
        self.engine = engine
        self._wrapped = wrapped or (lambda other: other)
        self._new_id = new_id or (lambda: str(uuid4()))
        self.keys = keys or ClaudeKeys()
        self._clock = clock
        self._fs = fs or OsFileSystem()
        self._retention: dict[str, float | None] = {}
        self._known: dict[LogKey, _Known] = {}
        self._loader = Loader(engine, index_builder or ClientIndex())
        self._loads: dict[tuple[int | None, Sequence[str] | None], Loaded] = {}
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read while listing, and why."""
        return (*self.engine.problems, *self._problems.values())

    @property
    def place(self) -> str:
        """What a person calls this store: the client's directory, else the URL."""
        return self.engine.url.removeprefix("claude:")

    def note_problem(self, path: str, reason: str) -> None:
        """Something that looking around left out."""
        self._problems[path] = Problem(path, reason)

    def now(self) -> datetime:
        """The time by the clock that was passed in."""
        if self._clock is None:
            raise UsageError("this store has no clock", hint="pass clock= to Store, or use clew.open()")
        return self._clock()

    def claude(self) -> ClaudeSessionStore:
        """The store as agents of the Claude Agent SDK take it: `ClaudeAgentOptions(session_store=store.claude())`."""
        from clew.adapters.claude_agent_sdk import ClaudeSessionStore

        return ClaudeSessionStore(self.engine, take_away=self._take_away)

    def close(self) -> None:
        """Flushes, and lets go of files and connections. Calling it again does nothing."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Looking around.

    def projects_of(self, directory: str | PurePath) -> Sequence[str]:
        """The projects of a directory and of the worktrees of its repository, as far as they exist; its own first."""
        real = self._fs.real_path(str(directory))
        places = dict.fromkeys([real, *worktrees(self._fs, real)])
        return list(dict.fromkeys(key for place in places for key in self.engine.projects_for(place, self.keys)))

    def own_projects(self, directory: str | PurePath) -> Sequence[str]:
        """The projects of the directory itself, without those of other worktrees."""
        return self.engine.projects_for(self._fs.real_path(str(directory)), self.keys)

    def logs(self, project: Scope = None, *, limit: int | None = None) -> list[LogStat]:
        """The main logs of a scope, newest change first, without reading any of them."""
        keys = self._keys_in(project)
        found = [stat for key in keys for stat in self.engine.list(key)] if keys is not None else self.engine.list()
        shown = [*self._shown(found)]
        if keys is not None:
            shown.sort(key=lambda stat: (-stat.modified_ns, stat.key))
        return shown[:limit]

    def _shown(self, stats: Iterable[LogStat]) -> Iterator[LogStat]:
        """Without logs that the client does not show, since their name is no session id; those are problems."""
        is_clients = self.engine.capabilities.is_clients
        for stat in stats:
            if not is_clients or is_session_id(stat.key.session):
                yield stat
            else:
                where = self.engine.where(stat.key)
                says = "its name is no session id, so the client does not show it either"
                self._problems[where] = Problem(where, says)

    def _keys_in(self, project: Scope) -> Sequence[str] | None:
        if project is None:
            return None
        if isinstance(project, str) and project in self.engine.projects():
            return [project]
        return self.projects_of(project)

    def sessions(self, project: Scope = None, *, limit: int | None = None) -> Iterator[SessionInfo]:
        """What a list says of each session, newest change first; every main log is in it, 0-byte ones too.

        Reads each log once and remembers what it says; with a limit, only those shown. A log that goes away or cannot
        be read meanwhile is left out and stands in `problems`.
        """
        return self.describe(self.logs(project, limit=limit))

    def describe(self, stats: Iterable[LogStat]) -> Iterator[SessionInfo]:
        """The same for logs that were listed before, in their order."""
        agents: dict[str, dict[str, int]] = {}
        for stat in stats:
            session, project = self._session(stat.key), stat.key.project
            if project not in agents:
                subs = self.engine.list_subs(project)
                agents[project] = {id_: sum(is_agent_log(s.key) for s in logs) for id_, logs in subs.items()}
            try:
                known = self._look(session, stat)
            except ClewError as error:
                self._problems[session.where] = Problem(session.where, error.message)
                continue
            self._problems.pop(session.where, None)
            yield _info(session, stat, known, agents[project].get(session.id, 0), self._days(self.engine))

    def _look(self, session: Session, stat: LogStat) -> _Known:
        """What the rows say, from memory while the log is as it was."""
        known = self._known.get(stat.key) if session.engine is self.engine else None
        if known is None or known.revision != stat.revision:
            known = _Known(stat.revision, session.digest, len(session.messages()))
            if session.engine is self.engine:
                self._known[stat.key] = known
        return known

    def describe_session(self, session: Session) -> SessionInfo:
        """What a list says of one session."""
        stat, agents = session.stat(), 0
        if not session.is_agent:
            agents = sum(is_agent_log(sub.key) for sub in session.engine.list_sub(session.key))
        return _info(session, stat, self._look(session, stat), agents, self._days(session.engine))

    def _days(self, engine: Engine) -> float | None:
        """After how many days the client cleans up there; None where no client does."""
        if engine.url not in self._retention:
            self._retention[engine.url] = engine.retention_days()
        return self._retention[engine.url]

    # One session.

    def session(self, name: str | PurePath) -> Session:
        """The session of that full id, unique beginning of an id, or path of a `.jsonl`, over all projects.

        Raises `NotFound` when there is none, and `Ambiguous` with the candidates when there are several.
        """
        text = str(name)
        if text.endswith(LOG_SUFFIX) or isinstance(name, PurePath):
            return self._at_path(Path(os.path.abspath(text)))
        if not is_part_of_session_id(text):
            hint = "the path of a session ends in .jsonl" if "/" in text else "list the sessions with `clew ls --all`"
            raise NotFound(f"no session has an id that begins with {_shown(text)}", hint=hint)
        found = [*self._shown(self.engine.find_sessions(text))]
        if not found:
            raise self._missing(text)
        if len(found) > 1:
            raise self._ambiguous(text, found)
        return self._session(found[0].key)

    def resolve(
        self, text: str, *, scope: Scope | Callable[[], Scope] = None, ingress: Ingress | None = None
    ) -> Resolved:
        """What a text names: an id or its beginning, a path, `latest`, `title:…`, `tag:…`, `branch:…`, `pr:…`,
        `project:DIR#ID`, a title; see `clew.resume`. `scope` is where all but ids and paths are looked for, or a
        function that gives it when it is needed. Of a URL `ingress` says what session it is.

        What names no one session gives an answer of the kind `picker` with candidates. Raises `NotFound` where a form
        such as `tag:…` has no answer, and `UsageError` for what can name nothing.
        """
        from clew.resume.look import Look
        from clew.resume.resolving import resolve

        return resolve(text, Look(self, scope, ingress=ingress))

    def resume(self, text: str, *, scope: Scope | Callable[[], Scope] = None) -> Session:
        """The session that a text names, as `resolve` finds it. Raises `NotFound` and `Ambiguous`, with candidates."""
        from clew.resume.resolving import only

        return only(self.resolve(text, scope=scope))

    def latest(self, project: Scope = None) -> Session:
        """The session whose log changed last. Raises `NotFound` when the scope has none."""
        found = self.logs(project, limit=1)
        if not found:
            where = "this store" if project is None else shown_path(str(project))
            raise NotFound(f"there is no session in {where}", hint="look in every project with `clew ls --all`")
        return self._session(found[0].key)

    def continued(
        self, directory: str | PurePath | None = ".", *, policy: str = "newest", cwd: str | PurePath | None = None
    ) -> Choice:
        """The session of a directory, or of all for None, that policies choose to continue, and why that one.

        The default is the client's own rule. Several are written `skip-errors,prefer-tag:active`; see
        `clew.resume.policies`. `cwd` is the directory that they take for the present one. Raises `NotFound`, naming
        what was passed over, when none is left, and `UsageError` for a policy that there is not.
        """
        from clew.resume.choosing import choose
        from clew.resume.look import Look

        if directory is None:
            keys = None
        else:
            is_key = isinstance(directory, str) and directory in self.engine.projects()
            keys = [str(directory)] if is_key else self.own_projects(directory)
        here = directory if cwd is None else cwd
        return choose(Look(self), policy, projects=keys, cwd=None if here is None else self._fs.real_path(str(here)))

    def is_link(self, path: str) -> bool:
        """Whether the last name of a path is a link."""
        folder, name = os.path.split(path)
        return self._fs.real_path(path) != os.path.join(self._fs.real_path(folder), name)

    def create(
        self,
        directory: str | PurePath = ".",
        *,
        id: str | None = None,  # noqa: A002 - What it is called everywhere else too.
        title: str | None = None,
        git_branch: str | None = None,
    ) -> Session:
        """A new session of a directory. Its log appears with what is appended first, whole or not at all.

        With a title that is the title. Raises `Conflict` for an id that is taken in any project, and `UsageError` for
        one that the engine cannot hold, or that the client would not show.
        """
        cwd = self._fs.real_path(str(directory))
        name = self._new_id() if id is None else id
        must_be_free(self.engine, name)
        project = self.keys.key(cwd)
        with suppress(NotFound):  # The place itself is made with the first session in it.
            project = next(iter(self.engine.projects_for(cwd, self.keys)), project)
        session = self._session(LogKey(project, name), Origin(name, cwd, git_branch))
        self.engine.stat(session.key)
        if title is not None:
            session.append_many(title_rows(text_checked(title, "the title")))
        return session

    def session_on(self, engine: Engine, key: LogKey, origin: Origin | None = None) -> Session:
        """The session of that key in a place, which need not be the store's own. Looks at nothing."""
        return Session(engine, key, home=self, origin=origin)

    def _session(self, key: LogKey, origin: Origin | None = None) -> Session:
        return self.session_on(self.engine, key, origin)

    def makers(self) -> Makers:
        """What rows that are written here are made with."""
        return Makers(self._new_id, lambda: iso_time(self.now()))

    def _at_path(self, path: Path) -> Session:
        found, key = FilesEngine.for_file(path, fs=self._fs)
        engine = self.engine if found.url == self.engine.url else self._wrapped(found)
        session = self.session_on(engine, key)
        session.stat()
        return session

    def _missing(self, text: str) -> ClewError:
        """Why there is no session of that id: none at all, or one that looking around had to leave out."""
        for problem in self.engine.problems:
            name = os.path.basename(problem.path)
            if text and name.endswith(LOG_SUFFIX) and name.lower().startswith(text.lower()):
                path = shown_path(problem.path)
                return StorageError(f"{path} cannot be read: {problem.reason}", hint=f"look at it: ls -ld {path}")
        return NotFound(f"no session has an id that begins with {text!r}", hint="list them with `clew ls --all`")

    def _ambiguous(self, text: str, found: Sequence[LogStat]) -> Ambiguous:
        ids = [stat.key.session for stat in found]
        is_one_id = len(set(ids)) < len(ids)
        names = [self.engine.where(stat.key) for stat in found] if is_one_id else ids
        what = "sessions of that id lie in several projects" if len(set(ids)) == 1 else "ids begin so"
        hint = "give the path of one" if is_one_id else "give more of the id"
        return Ambiguous(f"{text} is ambiguous: {len(found)} {what}", hint=hint, candidates=names[:CANDIDATES_MAX])

    # What is changed beyond appending.

    def delete(
        self, *sessions: Session | str | PurePath, even_live: bool = False, materialises: bool = False
    ) -> Operation:
        """Takes sessions away with all that belongs to them, as one operation; `undo` brings them back.

        All of them are found first. Raises `Busy`, and deletes nothing, where a running client holds one of them,
        unless `even_live`: it would go on writing under the same name. Raises `Conflict`, naming them, where attached
        forks go on from one of them, unless `materialises`: then these get the rows that they inherit first.
        """
        from clew.operations.delete import planned

        found = [each if isinstance(each, Session) else self.session(each) for each in sessions]
        named = [(self._own(each).key, _title_of(each)) for each in found]
        return self.operation_log.run(
            "delete", lambda: planned(self.engine, named, even_live=even_live, materialises=materialises)
        )

    def _take_away(self, key: LogKey) -> None:
        self.delete(self._session(key), even_live=True)

    def _own(self, session: Session) -> Session:
        where = shown_path(session.where)
        if session.engine.url != self.engine.url:
            raise UsageError(f"{where} is not in this store: {shown_path(self.place)}", hint="open the store it is in")
        if session.is_agent:
            raise UsageError(f"{where} is the log of a subagent", hint="it goes with its session: name that one")
        return session

    def undo(self, operation: str = "") -> Operation:
        """Undoes the operation of that id, or unique beginning of one; without, the newest that can be undone.

        Raises `NotFound` when there is none, or nothing is kept any more, and `Conflict`, with nothing changed, where
        something stands in the way.
        """
        return self.operation_log.undo(operation)

    def operations(self) -> Sequence[Operation]:
        """Every operation, newest first. A record that cannot be read stands in `problems`."""
        log = self.operation_log
        found = log.all()
        self._problems.update((problem.path, problem) for problem in log.problems)
        return found

    @property
    def operation_log(self) -> Operations:
        """The log of operations: for unfinished ones, and for emptying the trash."""
        return self.operations_on(self.engine)

    def operations_on(self, engine: Engine) -> Operations:
        """The log of operations of another place: that of a session which was asked for by its path."""
        from clew.operations.log import Operations

        return Operations(engine, now=lambda: iso_time(self.now()), new_id=self._new_id)

    def copy_to(
        self,
        target: Store,
        *,
        project: Scope = None,
        is_verified: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Copied:
        """Copies the sessions of a scope to another store, byte for byte; see `clew.copying.copy`."""
        from clew.copying import copy

        projects = self._keys_in(project)
        return copy(self.engine, target.engine, projects=projects, is_verified=is_verified, on_progress=on_progress)

    # Many sessions at once.

    def load(self, limit: int | None = None, *, project: Scope = None) -> Loaded:
        """The newest `limit` sessions by their last change, in one set of maps.

        They are loaded oldest first, so that where two have the same name in a map the newer one's value stands there;
        every such case is in `collisions`. Main logs only. Reads once: the next call gives the same answer from memory
        until `refresh`. All rows of the conversations are held in memory, so mind the limit.
        """
        keys = self._keys_in(project)
        scope = (limit, None if keys is None else tuple(keys))
        if scope not in self._loads:
            self._loads[scope] = self._loader.merged(self.logs(project, limit=limit))
        return self._loads[scope]

    def refresh(self) -> Sequence[LogKey]:
        """Forgets what changed, so that the next answers are new. Returns the keys of logs that changed or went away.

        Logs that stayed as they were are not read again.
        """
        known = {key: entry.revision for key, entry in self._known.items()}
        known.update(self._loader.revisions)
        changed = [key for key, revision in known.items() if revision_of(self.engine, key) != revision]
        for key in changed:
            self._known.pop(key, None)
            self._loader.forget(key)
        self._loads.clear()
        self._retention.clear()
        return sorted(changed)

    def transcripts(self, limit: int | None = None, *, project: Scope = None) -> Iterator[Transcript]:
        """One transcript for every leaf of the newest `limit` sessions, newest session first, one session in memory."""
        for stat in self.logs(project, limit=limit):
            yield from self._session(stat.key).transcripts()

    def last(self, limit: int | None = None, *, project: Scope = None) -> Transcript | None:
        """The newest conversation that the client would go on with, among the newest `limit` sessions.

        Sessions in which it finds none (metadata only, sidechains only) are passed over. None when nothing is left.
        """
        for stat in self.logs(project, limit=limit):
            found = self._session(stat.key).last()
            if found is not None and found.records:
                return found
        return None


def _info(session: Session, stat: LogStat, known: _Known, agents: int, retention_days: float | None) -> SessionInfo:
    digest, title, marks = known.digest, known.digest.title, known.digest.marks
    said = beside(session.engine, session.key, is_titled=digest.custom_title is not None or session.is_agent)
    title = said.title or title
    if title is None and session.is_agent and (meta := session.meta) is not None:
        title = meta.description
    return SessionInfo(
        id=session.id,
        project=session.project,
        cwd=digest.cwd,
        title=title,
        first_prompt=digest.first_prompt,
        tag=digest.tag,
        git_branch=digest.git_branch,
        model=digest.model,
        created_at=digest.created_at,
        updated_at=iso_time_of(stat.modified_ns),
        message_count=known.message_count,
        size_bytes=stat.size_bytes,
        agents=agents,
        version=digest.version,
        pinned=marks.pinned,
        archived=bool(said.archived) and not session.is_agent,
        parent_id=digest.parent_id,
        path=session.where,
        owner=marks.owner,
        workspace=marks.workspace,
        labels=marks.labels,
        turn_count=digest.turn_count,
        total_tokens=digest.total_tokens,
        exit_reason=marks.exit_reason,
        agent_name=digest.agent_name,
        expires_at=None if retention_days is None else iso_time_of(stat.modified_ns + int(retention_days * _DAY_NS)),
    )


def _title_of(session: Session) -> str | None:
    """None also where the session cannot be read, which is no reason not to delete it."""
    with suppress(ClewError):
        return session.digest.title
    return None


def iso_time(moment: datetime) -> str:
    """A point in time as the client writes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_time_of(nanoseconds: int) -> str | None:
    """A point in time as ISO text with milliseconds, or None outside the calendar."""
    try:
        moment = datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return iso_time(moment.replace(microsecond=nanoseconds // 1000 % 1_000_000))


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:80] + "...")
