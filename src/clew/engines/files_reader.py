"""Logs as files that another program owns: Claude Code's own sessions, read in place. `files` adds the writing.

Nothing here locks, creates or changes anything. The client may append at any moment, so a read ends where the file
ended when it was opened. What cannot be read while looking around is left out and stands in `problems`; what was asked
for by name raises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from clew.engines.contract import (
    SORTS,
    BlobKey,
    BlobStat,
    Engine,
    LogKey,
    LogStat,
    Order,
    Problem,
)
from clew.engines.filesystem import (
    DirEntry,
    FileSystem,
    NotRegular,
    OsFileSystem,
    failures_of,
    read_small,
    reason_of,
    shown_path,
    translated,
    what_it_is,
)
from clew.engines.lines import chunks_of, lines_backward, lines_forward
from clew.engines.peek import first_cwd, first_session_id, newest_relocated_cwd
from clew.engines.whole import is_temporary
from clew.errors import ClewError, Conflict, NotFound, UsageError
from clew.layouts.claude import (
    LOG_SUFFIX,
    SUBPATH_NAMES_MAX,
    ClaudeLayout,
    Kind,
    Place,
    checked,
    config_root_of,
    flat_meta,
    is_flat,
    is_safe,
    place_in_project,
    place_in_session,
)
from clew.layouts.keys import KeyStrategy
from clew.records.line import LINE_BYTES_MAX, Line
from clew.records.record import body_of

CHUNK_BYTES = 1024 * 1024
RETENTION_DAYS = 30
"""After so many days without a change the client deletes a session, unless its settings say otherwise."""
RETENTION_DAYS_MAX = 1_000_000
"""A larger number in the settings is taken for a mistake; the calendar ends not far behind it."""
PEEK_CHUNK_BYTES = 16 * 1024
"""For questions that the first row answers. A folder may hold 100,000 old sublogs that are asked one after the other.
"""

T = TypeVar("T")
_OPENED = Line(b"", 0, 0, 0)


class _Owner(msgspec.Struct, frozen=True, gc=False):
    """Which session an old sublog belongs to, as of a file; `size` is where it was looked for in vain."""

    inode: int
    size: int
    session: str | None


class FilesReader(Engine):
    """The logs below `root`, a config directory of the client.

    `problems` holds what the newest look at each folder left out. All answers come from the disk each time; kept in
    memory is only which session an old sublog belongs to, for as long as the file stays the same. Threads may share
    an engine.
    """

    def __init__(
        self,
        root: Path,
        *,
        layout: ClaudeLayout | None = None,
        fs: FileSystem | None = None,
        line_bytes_max: int = LINE_BYTES_MAX,
        chunk_bytes: int = CHUNK_BYTES,
        retention_days: float | None = None,
    ) -> None:
        if "\0" in str(root):
            raise UsageError(f"{shown_path(str(root))} is no path of a directory", hint="give one without NUL bytes")
        if line_bytes_max < 1 or chunk_bytes < 1:
            raise UsageError(
                "line_bytes_max and chunk_bytes must be at least 1", hint="leave them out for the defaults"
            )
        self.root = root
        self.layout = layout or ClaudeLayout()
        self._base = str(root)
        self._fs = fs or OsFileSystem()
        self._line_bytes_max = line_bytes_max
        self._chunk_bytes = chunk_bytes
        self._retention_days = retention_days
        self.url = f"{'files' if self.layout.loose else 'claude'}:{os.path.abspath(root)}"
        self._problems: dict[str, Problem] = {}
        self._owners: dict[str, _Owner] = {}

    @property
    def problems(self) -> Sequence[Problem]:
        return tuple(self._problems.values())

    # Names.

    def where(self, key: LogKey) -> str:
        return self._path(key)

    def path_of(self, key: LogKey) -> Path:
        """Where the log is or would be. Raises `UsageError` for a key whose names are not safe."""
        return Path(self._path(key))

    def _path(self, key: LogKey) -> str:
        return self._at(self.layout.log(key.project, key.session, key.subpath))

    def _at(self, relative: str) -> str:
        return f"{self._base}/{relative}" if relative else self._base

    # Reading one log.

    def read(self, key: LogKey, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """As the contract says; the file is open when this returns, and closed when the iterator ends or is dropped.

        To go on after an earlier read, start behind its last line, or at that line if it had no terminator. Raises
        `Conflict` when no line begins at `start` any more, because the file was cut or replaced.
        """
        if start < 0 or (end is not None and end < 0):
            raise UsageError(f"a log has no position {min(start, end or 0)}", hint="use the position of a line, or 0")
        return _started(self._read(self._path(key), start, end, self._chunk_bytes))

    def _read(self, path: str, start: int, end: int | None, chunk_bytes: int) -> Iterator[Line]:
        with failures_of(path), self._fs.open(path) as file:
            size = self._fs.size_and_time(file).st_size
            if start and (start > size or b"".join(chunks_of(file, start - 1, 1)) != b"\n"):
                raise Conflict(
                    f"{shown_path(path)} has no line that begins at byte {start} any more: it was cut or replaced",
                    hint="read it again from the beginning",
                )
            yield _OPENED
            yield from lines_forward(
                file,
                start=start,
                end=size if end is None else min(end, size),
                size=size,
                line_bytes_max=self._line_bytes_max,
                chunk_bytes=chunk_bytes,
            )

    def read_back(self, key: LogKey) -> Iterator[Line]:
        """The same lines, newest first, each with `number` 0."""
        return _started(self._read_back(self._path(key), self._chunk_bytes))

    def _read_back(self, path: str, chunk_bytes: int) -> Iterator[Line]:
        with failures_of(path), self._fs.open(path) as file:
            size = self._fs.size_and_time(file).st_size
            yield _OPENED
            yield from lines_backward(file, end=size, line_bytes_max=self._line_bytes_max, chunk_bytes=chunk_bytes)

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        """The bytes of a range in chunks. Raises `Conflict` when the file does not hold all of them any more: at the
        call, or at the end if it is cut while it is read.
        """
        if position < 0 or size < 0:
            raise UsageError(f"a log has no range {position}+{size}", hint="use the position and the size of a line")
        return _started(self._read_range(self._path(key), position, size))

    def _read_range(self, path: str, position: int, size: int) -> Iterator[bytes]:
        with failures_of(path), self._fs.open(path) as file:
            missing = position + size - self._fs.size_and_time(file).st_size
            if missing > 0:
                raise _too_short(path, missing)
            yield b""
            for chunk in chunks_of(file, position, size, self._chunk_bytes):
                yield chunk
                size -= len(chunk)
            if size:
                raise _too_short(path, size)

    def stat(self, key: LogKey) -> LogStat | None:
        path = self._path(key)
        try:
            stat = self._fs.stat(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translated(error, path) from error
        what = what_it_is(stat.st_mode)
        if what is not None:
            raise translated(NotRegular(path, what), path)
        return _log_stat(key, stat)

    # Looking around.

    def list(
        self, project: str | None = None, *, order: Order = Order.NEWEST_FIRST, limit: int | None = None
    ) -> Iterator[LogStat]:
        """Main logs; 0-byte files count, and so do those whose name is no session id, which the client does not show.

        Raises `NotFound` when the root does not exist; a root without sessions gives nothing.
        """
        if limit is not None and limit < 0:
            raise UsageError(f"a limit of {limit} sessions cannot be", hint="use 0 or more, or none for all")
        if project is None:
            projects = self.projects()
        else:
            self._must_have_root()
            projects = (project,)
        found = [stat for each in projects for stat in self._main_logs(each)]
        found.sort(key=SORTS[order])
        return iter(found[:limit])

    def _main_logs(self, project: str) -> Iterator[LogStat]:
        self._forget(self._at(self.layout.project_folder(project)))
        for entry, place in self._scan_project(project):
            if place.kind in (Kind.MAIN_LOG, Kind.STRAY_LOG):
                yield from self._looked(entry, LogKey(project, place.session))

    def list_sub(self, key: LogKey) -> Iterator[LogStat]:
        """The other logs of the session, by key: those in its folder, and old ones beside it whose rows name it."""
        found = [*self._sublogs_below(key.project, checked(key.session, "session"))]
        for entry, place, owner in self._flat_sublogs(key.project):
            if owner == key.session:
                found += self._looked(entry, LogKey(key.project, owner, place.name))
        return iter(sorted(found, key=SORTS[Order.BY_KEY]))

    def list_subs(self, project: str) -> Mapping[str, Sequence[LogStat]]:
        """What `list_sub` gives for every session of a project that has any, in one look at the project's folder.

        For many sessions it is the one to call: `list_sub` looks at the whole folder each time.
        """
        found: dict[str, list[LogStat]] = {}
        for entry, place in self._scan_project(project):
            if place.kind is Kind.SESSION_FOLDER:
                stats = [*self._sublogs_below(project, place.session)]
            elif place.kind is Kind.FLAT_SUBLOG and (owner := self._owner_of(entry)) is not None:
                stats = [*self._looked(entry, LogKey(project, owner, place.name))]
            else:
                continue
            for stat in stats:
                found.setdefault(stat.key.session, []).append(stat)
        return {session: sorted(stats, key=SORTS[Order.BY_KEY]) for session, stats in sorted(found.items())}

    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        """Every file of the session that is no log, by kind and name: with `list_sub`, all there is of it.

        Links are left out and stand in `problems`: they could lead anywhere, and a copy must not take that along.
        """
        project, session = key.project, key.session
        found: list[BlobStat] = []
        for entry, names in self._walk(self.layout.own_blobs_folder(project, session)):
            if len(names) > 1:
                found += self._blob(entry, BlobKey(project, session, names[0], "/".join(names[1:])))
        if not session:
            return sorted(found, key=lambda blob: blob.key)
        for entry, names in self._walk(self.layout.session_folder(project, session)):
            place = place_in_session(project, session, names)
            if place.kind is not Kind.SUBLOG:
                found += self._blob(entry, BlobKey(project, session, place.kind.value, place.name))
        backups = self.layout.backups_folder(session)
        for entry, names in self._walk(backups) if backups is not None else ():
            found += self._blob(entry, BlobKey(project, session, Kind.BACKUP.value, "/".join(names)))
        beside = [*self._beside(project)]
        logs = [(entry, place) for entry, place in beside if place.kind is Kind.FLAT_SUBLOG]
        metas = {flat_meta(place.name) for entry, place in logs if self._owner_of(entry) == session}
        for entry, place in beside:
            if place.kind is Kind.META and place.name in metas:
                found += self._blob(entry, BlobKey(project, session, Kind.META.value, place.name))
        return sorted(found, key=lambda blob: blob.key)

    def open(self, key: BlobKey) -> Iterator[bytes]:
        return _started(self._open(key))

    def _open(self, key: BlobKey) -> Iterator[bytes]:
        path = self._blob_path(key)
        with failures_of(path), self._fs.open(path) as file:
            yield b""
            while chunk := file.read(self._chunk_bytes):
                yield chunk

    def blob_stat(self, key: BlobKey) -> BlobStat | None:
        path = self._blob_path(key)
        try:
            return _blob_stat(key, self._fs.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise translated(error, path) from error

    def _blob_path(self, key: BlobKey) -> str:
        path = self.layout.blob(key.project, key.session, key.kind, key.name)
        if path is None:
            raise NotFound(f"a folder of copied sessions keeps no {key.kind}", hint="name the client's directory")
        return self._at(path)

    # Finding.

    def projects(self) -> Sequence[str]:
        """The keys of all projects, sorted. A link to a directory counts as one.

        Raises `NotFound` when the root does not exist.
        """
        self._must_have_root()
        if self.layout.loose:
            return ("",)
        folder = self._at(self.layout.projects_folder())
        try:
            entries = self._fs.scan(folder)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise translated(error, folder) from error
        found = []
        for entry in entries:
            if _is_dir(entry):
                found.append(entry.name)
            elif entry.is_symlink():
                self._report(entry.path, "its link does not lead to a directory")
        return sorted(found)

    def find_sessions(self, id_or_prefix: str) -> Sequence[LogStat]:
        """Sessions of all projects whose id begins so, in any case, newest first; an id that is given whole, as it is
        written, excludes all others. The same id may stand in several projects.

        Raises `UsageError` for what is no safe name.
        """
        wanted = checked(id_or_prefix, "session")
        found: list[LogStat] = []
        for project in self.projects():
            for entry, place in self._scan_project(project):
                if place.kind in (Kind.MAIN_LOG, Kind.STRAY_LOG) and place.session.lower().startswith(wanted.lower()):
                    found += self._looked(entry, LogKey(project, place.session))
        exact = [stat for stat in found if stat.key.session == wanted]
        return sorted(exact or found, key=SORTS[Order.NEWEST_FIRST])

    def cwd_of(self, project: str) -> str | None:
        """The directory of a project by its newest session that names one: where it was moved to last, else where it
        began. Reads the first and the last rows only. None when no session says it.
        """
        for stat in self.list(project):
            path = self._path(stat.key)
            try:
                lines_back = _started(self._read_back(path, PEEK_CHUNK_BYTES))
                lines = _started(self._read(path, 0, None, PEEK_CHUNK_BYTES))
                cwd = newest_relocated_cwd(lines_back) or first_cwd(lines)
            except ClewError as error:
                self._report(path, error.message)
                continue
            if cwd is not None:
                return cwd
        return None

    def projects_for(self, cwd: str, keys: KeyStrategy) -> Sequence[str]:
        """The project folders of a directory, its own key first, then those of another name that its rows vouch for."""
        own = keys.key(cwd)
        found: list[str] = []
        for folder in self.projects():
            if folder == own:
                found.insert(0, folder)
            elif keys.matches(folder, cwd) and (there := self.cwd_of(folder)) is not None and keys.is_same(there, cwd):
                found.append(folder)
        return found

    @classmethod
    def for_file(cls, path: Path, *, fs: FileSystem | None = None) -> tuple[Self, LogKey]:
        """An engine and a key for a log that was named by its path, wherever it lies.

        In a `projects` folder it is read with all that belongs to it; elsewhere its neighbours are taken for a project.
        Any name will do. Raises `UsageError` for a path that does not end in `.jsonl`.
        """
        if not path.name.endswith(LOG_SUFFIX) or path.name == LOG_SUFFIX:
            raise UsageError(
                f"{shown_path(str(path))} is no session file: its name does not end in {LOG_SUFFIX}",
                hint="give the path of a .jsonl file, or an id",
            )
        inside = config_root_of(path.parts)
        if inside is None:
            engine = cls(path.parent, layout=ClaudeLayout(loose=True), fs=fs)
            return engine, LogKey("", path.name.removesuffix(LOG_SUFFIX))
        depth, place = inside
        engine = cls(Path(*path.parts[:depth]), fs=fs)
        if place.kind is Kind.FLAT_SUBLOG:
            return engine, LogKey(place.project, place.name)
        return engine, LogKey(place.project, place.session, place.name)

    def retention_days(self) -> float | None:
        """`cleanupPeriodDays` of the client's settings. Anything but a sensible number counts as not set, and is
        a problem.
        """
        settings = self.layout.settings()
        if settings is None or self._retention_days is not None:
            return self._retention_days
        path = self._at(settings)
        self._problems.pop(path, None)
        try:
            self._fs.stat(path)
        except OSError:
            return RETENTION_DAYS
        data = read_small(self._fs, path)
        found = {} if data is None else body_of(data)
        value = found.get("cleanupPeriodDays")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= RETENTION_DAYS_MAX:
            return value
        if value is not None:
            self._report(path, f"its cleanupPeriodDays is no number of days, {RETENTION_DAYS} are taken")
        elif data is None or (not found and b"".join(data.split()) not in (b"", b"{}")):
            self._report(path, f"no JSON object can be read there, {RETENTION_DAYS} days are taken")
        return RETENTION_DAYS

    # How looking around treats what it meets.

    def _must_have_root(self) -> None:
        try:
            self._fs.stat(self._base)
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no directory {shown_path(self._base)}",
                hint="name the client's config directory: clew --config-dir DIR ls",
            ) from error
        except OSError as error:
            raise translated(error, self._base) from error

    def _scan_project(self, project: str) -> Iterator[tuple[DirEntry, Place]]:
        for entry in self._entries(project):
            yield entry, place_in_project(project, (entry.name,))

    def _entries(self, project: str) -> Sequence[DirEntry]:
        folder = self._at(self.layout.project_folder(project))
        try:
            return self._fs.scan(folder)
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._report(folder, reason_of(error))
            return ()

    def _walk(self, relative: str) -> Iterator[tuple[DirEntry, tuple[str, ...]]]:
        """Every file below a folder with its names from there. Links to directories are not followed."""
        base = self._at(relative)
        self._forget(base)
        waiting: list[tuple[str, tuple[str, ...]]] = [(base, ())]
        while waiting:
            folder, names = waiting.pop()
            try:
                entries = self._fs.scan(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._report(folder, reason_of(error))
                continue
            for entry in entries:
                below = (*names, entry.name)
                if is_temporary(entry.name):
                    continue
                if not _is_dir(entry):
                    yield entry, below
                elif entry.is_symlink():
                    self._report(entry.path, "a link to a directory is not followed")
                elif len(below) < SUBPATH_NAMES_MAX:
                    waiting.append((entry.path, below))
                else:
                    self._report(entry.path, f"it lies {len(below)} directories deep in its session")

    def _sublogs_below(self, project: str, session: str) -> Iterator[LogStat]:
        for entry, names in self._walk(self.layout.session_folder(project, session)):
            place = place_in_session(project, session, names)
            if place.kind is Kind.SUBLOG:
                yield from self._looked(entry, LogKey(project, session, place.name))

    def _flat_sublogs(self, project: str) -> Iterator[tuple[DirEntry, Place, str]]:
        for entry, place in self._beside(project):
            if place.kind is Kind.FLAT_SUBLOG:
                owner = self._owner_of(entry)
                if owner is not None:
                    yield entry, place, owner

    def _beside(self, project: str) -> Iterator[tuple[DirEntry, Place]]:
        """What older clients put beside the sessions. Asked for each session, so names are passed over quickly."""
        for entry in self._entries(project):
            if is_flat(entry.name):
                yield entry, place_in_project(project, (entry.name,))

    def _owner_of(self, entry: DirEntry) -> str | None:
        """The session of an old sublog. Rows are only appended, so the first one is read once for each file."""
        known, inode = self._owners.get(entry.path), entry.inode()
        if known is not None and known.inode == inode and known.session is not None:
            return known.session
        try:
            size = entry.stat().st_size
            if known is None or known.inode != inode or known.size != size:
                lines = _started(self._read(entry.path, 0, None, PEEK_CHUNK_BYTES))
                session = first_session_id(lines)
                if session is not None and not is_safe(session, LOG_SUFFIX):
                    session = None
                known = self._owners[entry.path] = _Owner(inode, size, session)
        except OSError as error:
            self._report(entry.path, reason_of(error))
            return None
        except ClewError as error:
            self._report(entry.path, error.message)
            return None
        if known.session is None:
            self._report(entry.path, "its first rows name no session, so it belongs to none")
        return known.session

    def _looked(self, entry: DirEntry, key: LogKey) -> Iterator[LogStat]:
        """The log behind the name, or nothing and a problem."""
        stat = self._regular(entry)
        if stat is None:
            return
        if self._fs.may_read(entry.path, stat):
            yield _log_stat(key, stat)
        else:
            self._report(entry.path, "this user may not read it")

    def _blob(self, entry: DirEntry, key: BlobKey) -> Iterator[BlobStat]:
        if entry.is_symlink():
            self._report(entry.path, "a link is not taken for a file of the session")
            return
        stat = self._regular(entry)
        if stat is not None:
            yield _blob_stat(key, stat)

    def _regular(self, entry: DirEntry) -> os.stat_result | None:
        try:
            stat = entry.stat()
        except FileNotFoundError:
            # Without a link in between it was deleted since its name was read: then it is simply not there.
            if entry.is_symlink():
                self._report(entry.path, "its link leads nowhere")
            return None
        except OSError as error:
            self._report(entry.path, reason_of(error))
            return None
        what = what_it_is(stat.st_mode)
        if what is not None:
            self._report(entry.path, f"it is {what}, not a regular file")
            return None
        return stat

    def _report(self, path: str, reason: str) -> None:
        self._problems[path] = Problem(path, reason)

    def _forget(self, folder: str) -> None:
        """Drops the problems at and below a folder before it is looked at again."""
        for path in [path for path in (*self._problems,) if path == folder or path.startswith(folder + "/")]:
            self._problems.pop(path, None)


def _is_dir(entry: DirEntry) -> bool:
    """Links followed. What cannot be told, as in a circle of links, is no directory."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _too_short(path: str, missing: int) -> Conflict:
    return Conflict(
        f"{shown_path(path)} ends {missing} bytes too early: it was cut or replaced",
        hint="read it again from the beginning",
    )


def _log_stat(key: LogKey, stat: os.stat_result) -> LogStat:
    # The inode tells a file that was replaced by rename, as the client does after a compaction, from one that grew.
    revision = f"{stat.st_ino:x}-{stat.st_size:x}-{stat.st_mtime_ns:x}"
    return LogStat(key, revision, stat.st_size, stat.st_mtime_ns)


def _blob_stat(key: BlobKey, stat: os.stat_result) -> BlobStat:
    return BlobStat(key, stat.st_size, stat.st_mtime_ns, mode=stat.st_mode & 0o777)


def _started(generator: Iterator[T]) -> Iterator[T]:
    """Lets the generator open its file, and drops the mark that it gives then. So a missing log shows at the call, and
    an iterator that is dropped unread closes its file.
    """
    next(generator)
    return generator
