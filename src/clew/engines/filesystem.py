"""The file system as a parameter: the few calls that engines on disk make, and what their failures mean.

`OsFileSystem` is the real one. A test hands in one that fails, and sees what a person would see on a broken disk.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from clew.errors import ClewError, NotFound, StorageError

SMALL_FILE_BYTES_MAX = 64 * 1024
"""`read_small` reads no more: titles, pointers of a repository and the like are a few hundred bytes."""

# What may be over when the call is made again: a busy or full table of the kernel, a network file system that stalls,
# and a read that failed on the way. A retry of a broken sector costs little, and on USB and network disks it often
# works.
_PASSING = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOBUFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETUNREACH,
    }
)
_HINTS = {
    errno.EACCES: "look at who may read it: ls -ld {path}",
    errno.EPERM: "look at who may read it: ls -ld {path}",
    errno.ELOOP: "its links lead in a circle: ls -l {path}",
    errno.ENOTDIR: "one of the names on the way is no directory: ls -ld {path}",
    errno.EIO: "the disk or the network failed: copy the directory to a safe place, then try again",
    errno.EMFILE: "too many files are open in this process: close some and try again",
    errno.ENAMETOOLONG: "give a shorter path",
}


class Entry(Protocol):
    """One name in a directory; `os.DirEntry` is one. `inode` and the kind cost no call on most file systems."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...

    def inode(self) -> int: ...

    def is_dir(self, *, follow_symlinks: bool = True) -> bool: ...

    def is_symlink(self) -> bool: ...

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result: ...


class FileSystem(Protocol):
    """What reading needs. Every method raises `OSError` as the system does; `failures_of` makes our errors of them."""

    def open(self, path: str) -> io.RawIOBase:
        """A regular file for reading, unbuffered, able to seek and not inherited by child processes.

        MUST NOT block, and MUST refuse everything that is no regular file: links are followed, their end counts.
        """
        ...

    def size_and_time(self, file: io.RawIOBase) -> os.stat_result:
        """Of the open file itself, whatever its path means by now."""
        ...

    def stat(self, path: str) -> os.stat_result:
        """Of what the path leads to, links followed."""
        ...

    def scan(self, path: str) -> list[Entry]:
        """The names in a directory, in no order."""
        ...

    def may_read(self, path: str, stat: os.stat_result) -> bool:
        """Whether opening the file for reading would be allowed."""
        ...

    def real_path(self, path: str) -> str:
        """The absolute path without links. What does not exist, or leads in a circle, stays as it is written."""
        ...


class NotRegular(OSError):
    """The path leads to something that is no regular file; `what` says to what."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EINVAL, f"it is {what}, not a regular file", path)
        self.what = what


class OsFileSystem:
    """The file system of this machine."""

    def open(self, path: str) -> io.RawIOBase:
        # Looking first keeps us from opening a FIFO or a device at all, which alone can wake its other end. The file
        # may be another one by the time it is open, so what counts is the second look; O_NONBLOCK makes that open
        # harmless.
        _must_be_regular(path, self.stat(path))
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            _must_be_regular(path, os.fstat(handle))
            return io.FileIO(handle, "rb", closefd=True)
        except BaseException:
            os.close(handle)
            raise

    def size_and_time(self, file: io.RawIOBase) -> os.stat_result:
        return os.fstat(file.fileno())

    def stat(self, path: str) -> os.stat_result:
        return Path(path).stat()

    def scan(self, path: str) -> list[Entry]:
        with os.scandir(path) as entries:
            return [*entries]

    def may_read(self, path: str, stat: os.stat_result) -> bool:
        # Asking costs a call for each file; one of our own that its owner may read needs no asking.
        if stat.st_mode & modes.S_IRUSR and stat.st_uid == os.geteuid():
            return True
        return os.access(path, os.R_OK)

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)


def read_small(fs: FileSystem, path: str, limit: int = SMALL_FILE_BYTES_MAX) -> bytes | None:
    """A whole small file, or None when there is none that can be read, or it is longer than the limit."""
    try:
        with fs.open(path) as file:
            pieces, left = [], limit + 1
            while left > 0 and (piece := file.read(left)):
                pieces.append(piece)
                left -= len(piece)
    except OSError:
        return None
    return b"".join(pieces) if left > 0 else None


@contextmanager
def failures_of(path: str) -> Iterator[None]:
    """Turns every `OSError` of the block into an error of clew that names the path."""
    try:
        yield
    except OSError as error:
        raise translated(error, path) from error


def translated(error: OSError, path: str) -> ClewError:
    """What a failure of the file system means to the caller."""
    shown = shown_path(path)
    if isinstance(error, NotRegular):
        return StorageError(
            f"{shown} cannot be read: {reason_of(error)}", hint=f"look at what it is: ls -ld {shlex.quote(shown)}"
        )
    if isinstance(error, FileNotFoundError):
        return NotFound(f"there is no {shown}", hint="list what there is with `clew ls --all`")
    code = error.errno or 0
    return StorageError(
        f"{shown} cannot be read: {reason_of(error)}",
        hint=_HINTS.get(code, "try again, or look at the file: ls -ld {path}").format(path=shlex.quote(shown)),
        is_permanent=code not in _PASSING,
    )


def reason_of(error: OSError) -> str:
    """The failure in a few words, without the path."""
    if isinstance(error, NotRegular):
        return f"it is {error.what}, not a regular file"
    return error.strerror or type(error).__name__


def shown_path(path: str) -> str:
    """A path that may hold anything, in characters that a terminal prints."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)


def what_it_is(mode: int) -> str | None:
    """None for a regular file, else a word for what it is."""
    if modes.S_ISREG(mode):
        return None
    for test, what in (
        (modes.S_ISDIR, "a directory"),
        (modes.S_ISFIFO, "a pipe"),
        (modes.S_ISSOCK, "a socket"),
        (modes.S_ISCHR, "a device"),
        (modes.S_ISBLK, "a device"),
    ):
        if test(mode):
            return what
    return "something else"


def _must_be_regular(path: str, stat: os.stat_result) -> None:
    what = what_it_is(stat.st_mode)
    if what is not None:
        raise NotRegular(path, what)
