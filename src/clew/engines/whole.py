"""Files that appear whole or not at all, directories that come when they are needed, and moves of both.

A new file is written under another name, brought to the disk and then given its name; a crash leaves the file that was
there before, or the new one, and at most the other name. Two that write the same file at once must hold a lock.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat as modes
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from clew.engines.filesystem import FileSystem, NotRegular
from clew.engines.lines import chunks_of
from clew.errors import ClewError

CHUNK_BYTES = 1024 * 1024
TEMPORARY_SUFFIX = ".clew.tmp"
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.clew\.tmp")


def make_dirs(fs: FileSystem, path: str) -> None:
    """The directory, and those above it that are missing. Their names are on the disk when it returns."""
    waiting = [path]
    while waiting:
        above = os.path.dirname(waiting[-1]) or "."
        try:
            fs.make_dir(waiting[-1])
        except FileNotFoundError:
            if above == waiting[-1]:
                raise
            waiting.append(above)
        except FileExistsError:
            waiting.pop()
        else:
            waiting.pop()
            fs.sync_dir(above)


def write_all(fs: FileSystem, file: io.RawIOBase, data: bytes) -> None:
    """Goes on after short writes until everything is written."""
    view = memoryview(data)
    while view:
        view = view[fs.write(file, bytes(view) if len(view) < len(data) else data) :]


def write_whole(
    fs: FileSystem,
    path: str,
    chunks: Iterable[bytes],
    *,
    mode: int = 0o600,
    modified_ns: int | None = None,
    replaces: bool = True,
    begun: Callable[[os.stat_result], None] | None = None,
    avoid: int | None = None,
    is_synced: bool = True,
) -> None:
    """A file with this content; it and its name are on the disk when it returns.

    Raises `FileExistsError` for a name that is taken, unless it `replaces` what is there. `begun` is told of the file
    before anything is in it. The file gets another inode than `avoid`. Without `is_synced` a failure of the power may
    leave any part of it: for what is not missed then.
    """
    folder = os.path.dirname(path)
    make_dirs(fs, folder)
    temporary = temporary_of(path)
    file = _new(fs, temporary, mode)
    if avoid is not None and fs.size_and_time(file).st_ino == avoid:
        # The first file keeps the inode in use until there is another one.
        spare = f"{temporary}.spare"
        with file:
            fs.rename(temporary, spare)
            file = _new(fs, temporary, mode)
        fs.unlink(spare)
    try:
        with file:
            if begun is not None:
                begun(fs.size_and_time(file))
            for chunk in chunks:
                write_all(fs, file, chunk)
            if modified_ns is not None:
                fs.set_times(file, modified_ns)
            if is_synced:
                fs.sync(file)
        if replaces:
            fs.rename(temporary, path)
        else:
            give_name(fs, temporary, path)
    except (OSError, ClewError):
        _drop(fs, temporary)
        raise
    if is_synced:
        fs.sync_dir(folder)


class Digested:
    """The same chunks, of which the SHA-256 is known once they were taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._hash.update(chunk)
            yield chunk

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()


def _new(fs: FileSystem, temporary: str, mode: int) -> io.RawIOBase:
    try:
        return fs.create(temporary, mode=mode)
    except FileExistsError:
        # A crash left it: whoever writes this file holds its lock, so nobody is at it now.
        fs.unlink(temporary)
        return fs.create(temporary, mode=mode)


def temporary_of(path: str) -> str:
    """The other name of a file while it is written. No program takes it for a session."""
    folder, name = os.path.split(path)
    return f"{folder}/.{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}{TEMPORARY_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that is being written, or that a crash left so."""
    return _TEMPORARY.fullmatch(name) is not None


def give_name(fs: FileSystem, temporary: str, path: str) -> None:
    """Gives a file its name. Raises `FileExistsError` for one that is taken; the file then has none."""
    try:
        fs.link(temporary, path)
    except FileExistsError:
        fs.unlink(temporary)
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        # A disk without hard links: there is no way to be sure, so look first.
        if exists(fs, path):
            fs.unlink(temporary)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
        fs.rename(temporary, path)
        return
    fs.unlink(temporary)


def link_whole(fs: FileSystem, source: str, target: str) -> None:
    """A second name for a file, in the place of what had that name. It is on the disk when it returns."""
    temporary = temporary_of(target)
    with suppress(FileNotFoundError):
        fs.unlink(temporary)
    fs.link(source, temporary)
    fs.rename(temporary, target)
    with suppress(FileNotFoundError):
        # Where the target was that very file already, renaming does nothing.
        fs.unlink(temporary)
    fs.sync_dir(os.path.dirname(target))


def exists(fs: FileSystem, path: str) -> bool:
    """Whether there is anything at the path that can be looked at."""
    try:
        fs.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def move(fs: FileSystem, source: str, target: str) -> None:
    """Moves a file or directory to a name that is free; both ends are on the disk when it returns.

    Raises `FileExistsError` for a name that is taken. To another disk everything is copied first, so that a crash
    leaves the source whole.
    """
    if exists(fs, target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    make_dirs(fs, os.path.dirname(target))
    try:
        fs.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_far(fs, source, target)
    fs.sync_dir(os.path.dirname(target))
    fs.sync_dir(os.path.dirname(source))


def _move_far(fs: FileSystem, source: str, target: str) -> None:
    temporary = temporary_of(target)
    if exists(fs, temporary):
        remove(fs, temporary)
    waiting = [(source, temporary)]
    while waiting:
        one, other = waiting.pop()
        stat = fs.stat(one)
        if modes.S_ISDIR(stat.st_mode):
            fs.make_dir(other)
            for entry in fs.scan(one):
                if entry.is_symlink():
                    raise OSError(errno.EXDEV, "a link cannot be moved to another disk", entry.path)
                waiting.append((entry.path, f"{other}/{entry.name}"))
            continue
        with fs.open(one) as file:
            content = chunks_of(file, 0, stat.st_size, CHUNK_BYTES)
            write_whole(fs, other, content, mode=stat.st_mode & 0o777, modified_ns=stat.st_mtime_ns)
    fs.rename(temporary, target)
    fs.sync_dir(os.path.dirname(target))
    remove(fs, source)


def is_rest_of(fs: FileSystem, path: str, other: str) -> bool:
    """Whether every file at and below a path stands, with the same bytes and time, in the same place of the other one.

    A crash between the two halves of a far move leaves this: the target whole, the source whole or partly removed.
    """
    waiting = [(path, other)]
    while waiting:
        one, two = waiting.pop()
        try:
            entries = fs.scan(one)
        except NotADirectoryError:
            if not _has_same_bytes(fs, one, two):
                return False
            continue
        if any(entry.is_symlink() for entry in entries):
            return False
        waiting += [(entry.path, f"{two}/{entry.name}") for entry in entries]
    return True


def _has_same_bytes(fs: FileSystem, path: str, other: str) -> bool:
    try:
        here, there = fs.stat(path), fs.stat(other)
        size = here.st_size
        if (there.st_size, there.st_mtime_ns) != (size, here.st_mtime_ns):
            return False
        with fs.open(path) as one, fs.open(other) as two:
            pairs = zip(chunks_of(one, 0, size, CHUNK_BYTES), chunks_of(two, 0, size, CHUNK_BYTES), strict=True)
            return all(left == right for left, right in pairs)
    except (FileNotFoundError, NotADirectoryError, NotRegular):
        return False


def remove(fs: FileSystem, path: str) -> None:
    """Removes a file, or a directory with all that is in it; links in it are removed and not followed."""
    waiting, folders = [path], []
    while waiting:
        folder = waiting.pop()
        try:
            entries = fs.scan(folder)
        except NotADirectoryError:
            fs.unlink(folder)
            continue
        except FileNotFoundError:
            continue
        folders.append(folder)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                fs.unlink(entry.path)
    for folder in reversed(folders):
        fs.remove_dir(folder)


def remove_if_empty(fs: FileSystem, path: str) -> None:
    """Removes a directory that nothing is in; anything else stays."""
    try:
        fs.remove_dir(path)
    except OSError:
        return


def _drop(fs: FileSystem, path: str) -> None:
    try:
        fs.unlink(path)
    except OSError:
        return
