"""The file system as a parameter: the few calls that engines on disk make, and what their failures mean.

`OsFileSystem` is the real one. A test hands in one that fails, and sees what a person would see on a broken disk.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shlex
import signal
import stat as modes
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
    errno.ELOOP: "it is a link, which is not written through, or its links lead in a circle: ls -l {path}",
    errno.ENOTDIR: "one of the names on the way is no directory: ls -ld {path}",
    errno.EIO: "the disk or the network failed: copy the directory to a safe place, then try again",
    errno.EMFILE: "too many files are open in this process: close some and try again",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ENOSPC: "make room on that disk, then do it again: df -h {path}",
    errno.EDQUOT: "make room in your quota there, then do it again",
    errno.EROFS: "the disk can only be read: look at how it is mounted, or use another directory",
}


class DirEntry(Protocol):
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
    """What engines on disk need. Every method raises `OSError` as the system does; `failures_of` makes our errors of
    them. Each method that changes something is one step: a crash happens before or after it, and `write` may stop in
    the middle.
    """

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

    def scan(self, path: str) -> list[DirEntry]:
        """The names in a directory, in no order."""
        ...

    def may_read(self, path: str, stat: os.stat_result) -> bool:
        """Whether opening the file for reading would be allowed."""
        ...

    def real_path(self, path: str) -> str:
        """The absolute path without links. What does not exist, or leads in a circle, stays as it is written."""
        ...

    # Changing. No path is followed where it ends in a link, except by `make_dir` and `lock`, which stop there.

    def open_append(self, path: str, *, make: bool) -> io.RawIOBase:
        """A regular file for reading and appending; with `make`, a new one of mode 0600 where there is none."""
        ...

    def create(self, path: str, *, mode: int = 0o600) -> io.RawIOBase:
        """A new file for writing. Raises `FileExistsError` for a name that is taken, by a link too."""
        ...

    def write(self, file: io.RawIOBase, data: bytes) -> int:
        """One system call. Returns how many bytes were taken, which may be fewer than there are."""
        ...

    def sync(self, file: io.RawIOBase) -> None:
        """Returns when the bytes and the size of the file are on the disk."""
        ...

    def sync_dir(self, path: str) -> None:
        """Returns when the names in the directory are on the disk."""
        ...

    def set_times(self, file: io.RawIOBase, modified_ns: int) -> None:
        """Says when the open file was changed last."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Puts a file or directory in the place of the target, at once."""
        ...

    def link(self, source: str, target: str) -> None:
        """A second name for a file. Raises `FileExistsError` for a name that is taken."""
        ...

    def unlink(self, path: str) -> None: ...

    def make_dir(self, path: str) -> None:
        """A directory of mode 0700. Raises `FileExistsError` where there is something."""
        ...

    def remove_dir(self, path: str) -> None:
        """Removes an empty directory."""
        ...

    def lock(self, path: str) -> AbstractContextManager[io.RawIOBase]:
        """Holds the file, made where missing, against every other thread and process that locks it; waits for them."""
        ...

    def lease(self, file: io.RawIOBase) -> AbstractContextManager[bool | None]:
        """Keeps every other program from opening the file: False where another has it open already, None where the
        system has no such thing. Whoever opens it meanwhile waits, so it must be held for microseconds only.
        """
        ...

    def now_ns(self, file: io.RawIOBase) -> int:
        """Marks the file as changed now, and says when that is by the clock of its disk."""
        ...


class NotRegular(OSError):
    """The path leads to something that is no regular file; `what` says to what."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EINVAL, f"it is {what}, not a regular file", path)
        self.what = what


class OsFileSystem:
    """The file system of this machine. Without `is_synced` nothing waits for the disk."""

    def __init__(self, *, is_synced: bool = True) -> None:
        self._is_synced = is_synced

    def open(self, path: str) -> io.RawIOBase:
        # Looking first keeps us from opening a FIFO or a device at all, which alone can wake its other end. The file
        # may be another one by the time it is open, so what counts is the second look; O_NONBLOCK makes that open
        # harmless.
        _must_be_regular(path, self.stat(path))
        handle = _opened(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            _must_be_regular(path, os.fstat(handle))
            return io.FileIO(handle, "rb", closefd=True)
        except BaseException:
            os.close(handle)
            raise

    def size_and_time(self, file: io.RawIOBase) -> os.stat_result:
        return os.fstat(file.fileno())

    def stat(self, path: str) -> os.stat_result:
        return os.stat(path)

    def scan(self, path: str) -> list[DirEntry]:
        with os.scandir(path) as entries:
            return [*entries]

    def may_read(self, path: str, stat: os.stat_result) -> bool:
        # Asking costs a call for each file; one of our own that its owner may read needs no asking.
        if stat.st_mode & modes.S_IRUSR and stat.st_uid == os.geteuid():
            return True
        # By the user and the rights that opening it would go by, where the system can be asked so.
        return os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)

    def real_path(self, path: str) -> str:
        try:
            return os.path.realpath(path)
        except ValueError:
            # A NUL, or a character that no name on this disk can have: nothing of that name exists.
            return path

    def open_append(self, path: str, *, make: bool) -> io.RawIOBase:
        flags = os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
        handle = _opened(path, flags | (os.O_CREAT if make else 0), 0o600)
        try:
            _must_be_regular(path, os.fstat(handle))
            return io.FileIO(handle, "r+b", closefd=True)
        except BaseException:
            os.close(handle)
            raise

    def create(self, path: str, *, mode: int = 0o600) -> io.RawIOBase:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        if mode != 0o600:
            os.fchmod(handle, mode)
        return io.FileIO(handle, "wb", closefd=True)

    def write(self, file: io.RawIOBase, data: bytes) -> int:
        return os.write(file.fileno(), data)

    def sync(self, file: io.RawIOBase) -> None:
        if not self._is_synced:
            return
        if hasattr(fcntl, "F_FULLFSYNC"):
            # On macOS fsync leaves the bytes in the cache of the drive.
            fcntl.fcntl(file.fileno(), fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(file.fileno())

    def sync_dir(self, path: str) -> None:
        if not self._is_synced:
            return
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def set_times(self, file: io.RawIOBase, modified_ns: int) -> None:
        os.utime(file.fileno(), ns=(modified_ns, modified_ns))

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_dir(self, path: str) -> None:
        os.mkdir(path, 0o700)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    @contextmanager
    def lock(self, path: str) -> Iterator[io.RawIOBase]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with io.FileIO(os.open(path, flags, 0o600), "r+b", closefd=True) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    @contextmanager
    def lease(self, file: io.RawIOBase) -> Iterator[bool | None]:
        held = _lease(file)
        try:
            yield held
        finally:
            if held:
                fcntl.fcntl(file.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def now_ns(self, file: io.RawIOBase) -> int:
        os.utime(file.fileno())
        return os.fstat(file.fileno()).st_mtime_ns


_F_SETSIG = 10
_LEASED_TRIES_MAX = 1_000
_LEASED_SECONDS = 0.0005


def _lease(file: io.RawIOBase) -> bool | None:
    """A write lease of Linux: the kernel lets nobody open the file before it is given back, whoever they are."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # Who waits for the file is announced by a signal; this one does nothing unless a program asks for it, where
        # the usual one, SIGIO, would end the process.
        fcntl.fcntl(file.fileno(), _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file.fileno(), fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        # Not our file, or a file system that has no leases, says another thing than "try again".
        return False if error.errno == errno.EAGAIN else None
    return True


def _opened(path: str, flags: int, mode: int = 0) -> int:
    """Opens without blocking; where another process of ours holds the file for an append, a moment later."""
    for _ in range(_LEASED_TRIES_MAX):
        try:
            return os.open(path, flags, mode)
        except BlockingIOError:
            time.sleep(_LEASED_SECONDS)
    return os.open(path, flags, mode)


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
def failures_of(path: str, done: str = "read") -> Iterator[None]:
    """Turns every `OSError` of the block into an error of clew that names the path."""
    try:
        yield
    except OSError as error:
        raise translated(error, path, done) from error


def translated(error: OSError, path: str, done: str = "read") -> ClewError:
    """What a failure of the file system means to the caller; `done` is what was to be done with the file."""
    shown = shown_path(path)
    if isinstance(error, NotRegular):
        return StorageError(
            f"{shown} cannot be {done}: {reason_of(error)}", hint=f"look at what it is: ls -ld {shlex.quote(shown)}"
        )
    if isinstance(error, FileNotFoundError):
        return NotFound(f"there is no {shown}", hint="list what there is with `clew ls --all`")
    code = error.errno or 0
    return StorageError(
        f"{shown} cannot be {done}: {reason_of(error)}",
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
