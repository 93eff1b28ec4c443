"""Disks that fail on purpose, and processes that end in the middle.

    fs = FaultyFileSystem(Fault("fail", step=3, code=errno.EIO))
    engine = FilesEngine(place, fs=fs)

Every call that changes something is a step, counted from 0. What happens at a step is a `Fault`:

    fail        it is not done, and the caller gets an OSError; a `lasting` one stays, as a full disk does
    short       a write takes only a part, as the system may at any time; other steps are done
    lost        it is done, and the caller gets an OSError all the same
    crash       it is not done, and neither is any later one: every call raises `Crash`
    torn        a write takes a part, then as `crash`; other steps are done before it
    kill        as `crash`, by a real SIGKILL of the process, for `killed_at`

What a crash leaves is looked at by opening the place again with the real file system. `drawn` makes a fault of a seed,
and `replayable` puts the fault into whatever fails, so that a run can be done again.
"""

from __future__ import annotations

import errno
import io
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from clew.engines.filesystem import DirEntry, FileSystem, OsFileSystem
from clew.testing.forks import forked

Answer = TypeVar("Answer")
FaultKind = Literal["fail", "short", "lost", "crash", "torn", "kill"]

KINDS: tuple[FaultKind, ...] = ("fail", "short", "lost", "crash", "torn")
"""What `drawn` draws from; `kill` is for processes of their own."""
CODES = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_ROOM = frozenset({"open_append", "create", "write", "make_dir", "link", "rename", "lock"})
"""The steps that a full disk refuses."""


class Crash(BaseException):
    """The process has ended: no handler of an error may go on from here, and nothing later reaches the disk."""


class Fault(msgspec.Struct, frozen=True):
    """What goes wrong, and at which step. `taken` is how much a short or torn write takes, of 1000 parts."""

    kind: FaultKind
    step: int
    code: int = errno.EIO
    taken: int = 500
    lasting: bool = False


class Step(msgspec.Struct, frozen=True):
    """One call that changes something: the method, and the path that it was for, or both with a space between."""

    method: str
    what: str


class FaultyFileSystem:
    """A file system that does what another one does, apart from one fault. Threads may share it.

    With `counts_looks` the calls that only look are steps too. `meanwhile` is what another program does right before a
    step, by its number.
    """

    def __init__(
        self,
        fault: Fault | None = None,
        inner: FileSystem | None = None,
        *,
        counts_looks: bool = False,
        meanwhile: Mapping[int, Callable[[], object]] | None = None,
    ) -> None:
        self.fault = fault
        self.steps: list[Step] = []
        """The steps so far, the one with the fault included."""
        self.is_hit = False
        """Whether the fault has come."""
        self._inner = inner or OsFileSystem()
        self._counts_looks = counts_looks
        self._meanwhile = dict(meanwhile or {})
        self._paths: WeakKeyDictionary[io.RawIOBase, str] = WeakKeyDictionary()
        self._lock = Lock()
        self._has_ended = False

    # Looking: nothing is seen after a crash.

    def open(self, path: str) -> io.RawIOBase:
        return self._look("open", path, lambda: self._inner.open(path))

    def size_and_time(self, file: io.RawIOBase) -> os.stat_result:
        return self._look("size_and_time", self._path(file), lambda: self._inner.size_and_time(file))

    def stat(self, path: str) -> os.stat_result:
        return self._look("stat", path, lambda: self._inner.stat(path))

    def scan(self, path: str) -> list[DirEntry]:
        return self._look("scan", path, lambda: self._inner.scan(path))

    def may_read(self, path: str, stat: os.stat_result) -> bool:
        self._must_live()
        return self._inner.may_read(path, stat)

    def real_path(self, path: str) -> str:
        self._must_live()
        return self._inner.real_path(path)

    def lease(self, file: io.RawIOBase) -> AbstractContextManager[bool | None]:
        self._must_live()
        return self._inner.lease(file)

    # Changing.

    def open_append(self, path: str, *, make: bool) -> io.RawIOBase:
        if not make:
            return self._named(path, self._look("open_append", path, lambda: self._inner.open_append(path, make=False)))
        return self._named(path, self._step("open_append", path, lambda: self._inner.open_append(path, make=True)))

    def create(self, path: str, *, mode: int = 0o600) -> io.RawIOBase:
        return self._named(path, self._step("create", path, lambda: self._inner.create(path, mode=mode)))

    def write(self, file: io.RawIOBase, data: bytes) -> int:
        def part(taken: int) -> int:
            return self._inner.write(file, data[: max(1, min(len(data) - 1, len(data) * taken // 1000))])

        return self._step(
            "write", self._path(file), lambda: self._inner.write(file, data), part if len(data) > 1 else None
        )

    def sync(self, file: io.RawIOBase) -> None:
        self._step("sync", self._path(file), lambda: self._inner.sync(file))

    def sync_dir(self, path: str) -> None:
        self._step("sync_dir", path, lambda: self._inner.sync_dir(path))

    def set_times(self, file: io.RawIOBase, modified_ns: int) -> None:
        self._step("set_times", self._path(file), lambda: self._inner.set_times(file, modified_ns))

    def rename(self, source: str, target: str) -> None:
        self._step("rename", f"{source} {target}", lambda: self._inner.rename(source, target))

    def link(self, source: str, target: str) -> None:
        self._step("link", f"{source} {target}", lambda: self._inner.link(source, target))

    def unlink(self, path: str) -> None:
        self._step("unlink", path, lambda: self._inner.unlink(path))

    def make_dir(self, path: str) -> None:
        self._step("make_dir", path, lambda: self._inner.make_dir(path))

    def remove_dir(self, path: str) -> None:
        self._step("remove_dir", path, lambda: self._inner.remove_dir(path))

    @contextmanager
    def lock(self, path: str) -> Iterator[io.RawIOBase]:
        held: AbstractContextManager[io.RawIOBase] = self._step("lock", path, lambda: self._inner.lock(path))
        # The system lets go of a lock when its process ends, so a crash does too.
        with held as file:
            yield file

    def now_ns(self, file: io.RawIOBase) -> int:
        return self._step("now_ns", self._path(file), lambda: self._inner.now_ns(file))

    def _named(self, path: str, file: io.RawIOBase) -> io.RawIOBase:
        self._paths[file] = path
        return file

    def _path(self, file: io.RawIOBase) -> str:
        return self._paths.get(file, "")

    # What happens at a step.

    def _must_live(self) -> None:
        if self._has_ended:
            raise Crash(f"after {self.fault}")

    def _look(self, method: str, what: str, do: Callable[[], Answer]) -> Answer:
        if self._counts_looks:
            return self._step(method, what, do)
        self._must_live()
        return do()

    def _step(
        self, method: str, what: str, do: Callable[[], Answer], part: Callable[[int], Answer] | None = None
    ) -> Answer:
        self._must_live()
        with self._lock:
            number = len(self.steps)
            self.steps.append(Step(method, what))
            meanwhile = self._meanwhile.pop(number, None)
        if meanwhile is not None:
            meanwhile()
        fault = self.fault
        if fault is None or number < fault.step or (number > fault.step and not fault.lasting):
            return do()
        if number > fault.step and fault.code in (errno.ENOSPC, errno.EDQUOT) and method not in _ROOM:
            return do()
        self.is_hit = True
        return self._faulty(fault, do, part)

    def _faulty(self, fault: Fault, do: Callable[[], Answer], part: Callable[[int], Answer] | None) -> Answer:
        if fault.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.kind == "crash":
            self._end()
        if fault.kind == "fail":
            raise OSError(fault.code, os.strerror(fault.code))
        try:
            answer = part(fault.taken) if part is not None and fault.kind in ("short", "torn") else do()
        except OSError:
            # What fails by itself is done as far as it can be.
            if fault.kind == "torn":
                self._end()
            raise
        if fault.kind in ("torn", "lost") and isinstance(answer, io.RawIOBase):
            answer.close()
        if fault.kind == "torn":
            self._end()
        if fault.kind == "lost":
            raise OSError(fault.code, os.strerror(fault.code))
        return answer

    def _end(self) -> None:
        self._has_ended = True
        raise Crash(str(self.fault))


def drawn(seed: int, steps: int) -> Fault:
    """The fault of this seed, at one of so many steps; the same one in every run."""
    dice = random.Random(seed)
    kind = dice.choice(KINDS)
    return Fault(
        kind, dice.randrange(max(1, steps)), code=dice.choice(CODES), taken=dice.randrange(1001),
        lasting=kind == "fail" and dice.random() < 0.3,
    )  # fmt: skip


@contextmanager
def replayable(fault: Fault, *, seed: int | None = None) -> Iterator[None]:
    """Adds to any error of the block how it can be made to happen again."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"replay with {fault!r}" + ("" if seed is None else f", drawn({seed}, ...)"))
        raise


def steps_of(work: Callable[[FileSystem], object]) -> list[Step]:
    """The steps that some work takes when nothing fails. It is done for real."""
    fs = FaultyFileSystem()
    work(fs)
    return fs.steps


def killed_at(step: int, work: Callable[[FileSystem], object], *, seconds: int = 60) -> bool:
    """Does some work in a child process that SIGKILL ends at this step. False when it was done before.

    The child is a copy of this process, so no other thread should run in it meanwhile. Raises `AssertionError` when the
    work fails, or takes longer than so many seconds.
    """
    child = forked(lambda: work(FaultyFileSystem(Fault("kill", step))), seconds=seconds)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert status == 0, f"the child ended with status {status}; what it said stands above"
    return False
