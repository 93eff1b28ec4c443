"""Claude Code's own sessions: what `files_reader` reads, and writing beside a client that may write too.

Appends go as `shared_log` and `appending` say. Everything else makes whole files: under another name, flushed, renamed.
One lock for a session, below clew's own folder, orders all of that among our own processes; the client knows no lock.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain
from pathlib import Path
from typing import Literal

from clew.engines.contract import Appended, Aside, BlobKey, Capabilities, Entry, LogKey, checked_entries
from clew.engines.dedupe import DedupeStore, MemoryDedupe
from clew.engines.files_live import live_sessions
from clew.engines.files_reader import CHUNK_BYTES, FilesReader
from clew.engines.files_trash import Trash
from clew.engines.filesystem import FileSystem, OsFileSystem, failures_of, shown_path
from clew.engines.scan import lines_with
from clew.engines.shared_log import Names, SharedLog, Want, alone_at, held, revision_of
from clew.engines.whole import Digested, link_whole, make_dirs, remove_if_empty, write_all, write_whole
from clew.errors import Busy, ClewError, Conflict, NotFound, UsageError
from clew.layouts.claude import ClaudeLayout, Kind, flat_meta, is_flat
from clew.records.line import LINE_BYTES_MAX, Line

Durability = Literal["fsync", "flush", "none"]
"""When what was written is on the disk: when the call returns, when `flush` returns, or when the system sees fit."""


class FilesEngine(FilesReader):
    """The logs and blobs below a config directory of the client."""

    def __init__(
        self,
        root: Path,
        *,
        layout: ClaudeLayout | None = None,
        fs: FileSystem | None = None,
        line_bytes_max: int = LINE_BYTES_MAX,
        chunk_bytes: int = CHUNK_BYTES,
        retention_days: float | None = None,
        durability: Durability = "fsync",
        dedupe: DedupeStore | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        fs = fs or OsFileSystem(is_synced=durability != "none")
        super().__init__(
            root, layout=layout, fs=fs, line_bytes_max=line_bytes_max, chunk_bytes=chunk_bytes,
            retention_days=retention_days,
        )  # fmt: skip
        self.capabilities = Capabilities(
            cas="cooperative", is_durable=durability == "fsync", atomic_batch=False, atomic_summary=False,
            dedupes_sublogs=False, is_clients=True,
        )  # fmt: skip
        self._durability = durability
        self._dedupe = dedupe or MemoryDedupe()
        self._pause = pause
        self._shared: dict[LogKey, SharedLog] = {}
        self._guard = threading.Lock()

    # Logs.

    def append(
        self,
        key: LogKey,
        entries: Sequence[Entry],
        *,
        batch_id: str | None = None,
        expect: str | None = None,
        summary: bytes | None = None,  # noqa: ARG002 - The client's files have no place for it; whoever asks folds anew.
        keep_time: bool = False,
    ) -> Appended:
        """As the contract says. Waits a bounded time for a line that another program is writing, then raises `Busy`."""
        checked_entries(entries)
        log = self._log(key)
        if not entries:
            stat = self.stat(key)
            return Appended("" if stat is None else stat.revision, 0)
        if is_flat(key.subpath) and key not in {stat.key for stat in self.list_sub(key)}:
            # All sessions of a project share that place, and what stands there belongs to whom its first row names.
            raise UsageError(
                f"{key.subpath!a} is no place for a new log of a session",
                hint=f"append to subagents/{key.subpath} instead",
            )
        return log.append(Want(entries, batch_id, expect, keep_time))

    def lines_with(self, keys: Sequence[LogKey], needle: bytes) -> Iterator[tuple[LogKey, Sequence[Line] | ClewError]]:
        """All of them are searched before the first is given, by more than one thread where there are many."""
        paths = [self._path(key) for key in keys]
        return zip(keys, lines_with(self._fs, paths, needle, line_bytes_max=self._line_bytes_max), strict=True)

    def _log(self, key: LogKey) -> SharedLog:
        with self._guard:
            log = self._shared.get(key)
            if log is None:
                log = self._shared[key] = self._new_log(key)
            return log

    def _new_log(self, key: LogKey) -> SharedLog:
        if not key.subpath and is_flat(key.session):
            raise UsageError(
                f"{key.session!a} is no id of a session here: a file of that name is taken for a subagent's",
                hint="give the session another id",
            )
        names = Names(
            self._path(key), self._at(self.layout.journal(key.project, key.session, key.subpath)), self._lock_path(key)
        )
        return SharedLog(
            self._fs, key, names, dedupe=self._dedupe, pause=self._pause, has_ids=not key.subpath,
            is_synced=self._durability == "fsync",
        )  # fmt: skip

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        path = self._path(key)
        with failures_of(path, "written"), self._session_lock(key):
            stat = self.stat(key)
            size = 0 if stat is None else stat.size_bytes
            if start != size:
                raise Conflict(
                    f"{shown_path(path)} has {size} bytes, not {start}: nothing was added",
                    hint="compare both logs, then go on at its end",
                )
            if stat is not None:
                return self._go_on(path, chunks, size, modified_ns)
            pieces = iter(chunks)
            first = next((piece for piece in pieces if piece), None)
            if first is None and not make:
                return 0
            # A journal that is still there is of another log, which some other program took away.
            self._forget_notes(key)
            count = _Counted(first, pieces)
            try:
                write_whole(self._fs, path, count, modified_ns=modified_ns, replaces=False, avoid=self._log(key).gone)
            except FileExistsError as error:
                raise Conflict(f"{shown_path(path)} was made by another program meanwhile") from error
            return count.size

    def _go_on(self, path: str, chunks: Iterable[bytes], size: int, modified_ns: int | None) -> int:
        with self._fs.open_append(path, make=False) as file:
            for chunk in chunks:
                if not chunk:
                    continue
                write_all(self._fs, file, chunk)
                size += len(chunk)
                if file.tell() != size:
                    raise Conflict(
                        f"{shown_path(path)} was appended to by another program during the copy",
                        hint="copy again when that program is done",
                    )
            if modified_ns is not None:
                self._fs.set_times(file, modified_ns)
            self._fs.sync(file)
        return size

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        """As the contract says. Raises `Busy` for a session that a running client holds: it would not notice."""
        path = self._path(key)
        with failures_of(path, "replaced"), self._session_lock(key):
            if key.session in self.live_sessions():
                raise Busy(f"a running client holds the session {key.session}", hint="end it there, then do it again")
            self._must_be_at(key, expect)
            # What is noted there was in the old bytes. It must not be taken for rows that another program lost.
            self._forget_notes(key)
            write_whole(self._fs, path, _checked(lines, lambda: self._must_be_at(key, expect)))
            return revision_of(self._fs.stat(path))

    def _must_be_at(self, key: LogKey, expect: str) -> None:
        stat = self.stat(key)
        path = shown_path(self._path(key))
        if stat is None:
            raise NotFound(f"there is no {path}", hint="list what there is with `clew ls --all`")
        if stat.revision != expect:
            raise Conflict(f"{path} is at revision {stat.revision}, not at {expect} as expected", hint="read it again")

    def delete(self, key: LogKey) -> bool:
        keys = [key] if key.subpath else [key, *(stat.key for stat in self.list_sub(key))]
        was_there = False
        with failures_of(self._path(key), "deleted"), self._session_lock(key):
            for each in keys:
                path = self._path(each)
                self._log(each).gone = self._inode_of(path) or self._log(each).gone
                self._forget_notes(each)
                was_there |= self._unlinked(path)
            if not key.subpath:
                self._remove_empty_folders(key)
        return was_there

    def _inode_of(self, path: str) -> int | None:
        try:
            return self._fs.stat(path).st_ino
        except FileNotFoundError:
            return None

    def _unlinked(self, path: str) -> bool:
        try:
            self._fs.unlink(path)
        except FileNotFoundError:
            return False
        self._fs.sync_dir(os.path.dirname(path))
        return True

    def _remove_empty_folders(self, key: LogKey) -> None:
        """The folders of a session go with the last file in them; blobs stay."""
        waiting = [self._at(self.layout.session_folder(key.project, key.session))]
        folders: list[str] = []
        while waiting:
            folders.append(waiting.pop())
            with suppress(OSError):
                waiting += [entry.path for entry in self._fs.scan(folders[-1]) if entry.is_dir(follow_symlinks=False)]
        for folder in reversed(folders):
            remove_if_empty(self._fs, folder)

    def flush(self) -> None:
        if self._durability != "flush":
            return
        with self._guard:
            logs = [*self._shared.values()]
        for log in logs:
            log.flush()

    # Blobs.

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        path = self._blob_path(key)
        with failures_of(path, "written"), self._blob_lock(key):
            content = Digested(chunks)
            write_whole(self._fs, path, content, mode=mode, modified_ns=modified_ns)
        return content.hex

    def link(self, key: BlobKey, name: BlobKey) -> None:
        """Backups of files become hard links, as in the client's own forks: nobody writes into one. All else, and
        where the disk has no links, is copied.
        """
        source, target = self._blob_path(key), self._blob_path(name)
        if key.kind != Kind.BACKUP.value or name.kind != key.kind:
            super().link(key, name)
            return
        with failures_of(source, "linked"), self._blob_lock(name):
            make_dirs(self._fs, os.path.dirname(target))
            try:
                link_whole(self._fs, source, target)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV):
                    raise
            else:
                return
        super().link(key, name)

    def delete_blob(self, key: BlobKey) -> bool:
        path = self._blob_path(key)
        with failures_of(path, "deleted"), self._blob_lock(key):
            return self._unlinked(path)

    # Setting aside.

    def alone(self) -> AbstractContextManager[None]:
        return alone_at(self._fs, self._at(self.layout.operations_lock()))

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        trash = self._trash(operation)
        with failures_of(self._path(key), "moved"), self._session_lock(key):
            for each in (key, *(stat.key for stat in self.list_sub(key))):
                # Before the log goes: what is noted of it must not be taken for rows that another log lost.
                self._log(each).gone = self._inode_of(self._path(each)) or self._log(each).gone
                self._forget_notes(each)
            return trash.take(self._relatives(key))

    def _forget_notes(self, key: LogKey) -> None:
        self._log(key).known.forget()
        self._unlinked(self._at(self.layout.journal(key.project, key.session, key.subpath)))

    def bring_back(self, operation: str) -> Aside:
        with failures_of(self._base, "changed"), self._session_lock(LogKey("", "")):
            return self._trash(operation).bring_back()

    def free_aside(self, operation: str) -> Aside:
        with failures_of(self._base, "changed"), self._session_lock(LogKey("", "")):
            return self._trash(operation).free()

    def _trash(self, operation: str) -> Trash:
        return Trash(self._fs, self._base, self.layout, operation)

    def _relatives(self, key: LogKey) -> list[str]:
        """Everything of a session that is moved as one, its main log first."""
        project, session, layout = key.project, key.session, self.layout
        found = [layout.log(project, session), layout.session_folder(project, session)]
        flat = [place.name for _, place, owner in self._flat_sublogs(project) if owner == session]
        for name in flat:
            found.append(layout.log(project, session, name))
            beside = layout.blob(project, session, Kind.META.value, flat_meta(name))
            found += [beside] if beside is not None else []
        backups = layout.backups_folder(session)
        if backups is not None and not self._has_twin(key):
            found.append(backups)
        return [*found, layout.own_blobs_folder(project, session)]

    def _has_twin(self, key: LogKey) -> bool:
        """Whether another project has a session of this id: the backups belong to both."""
        return any(stat.key.project != key.project for stat in self.find_sessions(key.session))

    # Who else is there.

    def live_sessions(self) -> frozenset[str]:
        folder = self.layout.live_folder()
        return frozenset() if folder is None else live_sessions(self._fs, self._at(folder))

    # Locks.

    def _session_lock(self, key: LogKey) -> AbstractContextManager[object]:
        return held(self._fs, self._lock_path(key))

    def _blob_lock(self, key: BlobKey) -> AbstractContextManager[object]:
        return self._session_lock(LogKey(key.project, key.session))

    def _lock_path(self, key: LogKey) -> str:
        return self._at(self.layout.lock(key.project, key.session))


class _Counted:
    """Chunks, the first of which was read already; `size` is how many bytes went through."""

    def __init__(self, first: bytes | None, rest: Iterable[bytes]) -> None:
        self._first = first
        self._rest = rest
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in chain([self._first or b""], self._rest):
            self.size += len(chunk)
            yield chunk


def _checked(lines: Iterable[bytes], check: Callable[[], None]) -> Iterator[bytes]:
    """The lines; when they are at an end, and before the new file gets its name, what was expected must still hold."""
    yield from lines
    check()
