"""Disks that are full, fail or take only a part, and files that another program puts in the place of ours: what was
acknowledged is there, and what cannot be helped is said.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from clew.engines.contract import LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.errors import ClewError, Conflict, StorageError
from clew.testing.conformance_base import MAIN, SUB1, blob, bytes_of, content_of, note, row, rows
from clew.testing.faults import Fault, FaultyFileSystem, Step, replayable

SMALL_DISK = "1m"
LONG_AGO_NS = 1_700_000_000_000_000_000
BATCH = [row(10), note(1), row(11, "é" * 300), note(1)]


def engine_on(place: Path, fs: FileSystem | None = None) -> FilesEngine:
    return FilesEngine(place, fs=fs or OsFileSystem(is_synced=False), pause=lambda _: None)


def aged(place: Path) -> None:
    """A last line without an end is being written by nobody any more."""
    for path in place.rglob("*.jsonl"):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def whole_lines(place: Path, key: LogKey = MAIN) -> list[bytes]:
    return [line.data for line in engine_on(place).read(key) if line.is_terminated]


def _assert_says(error: ClewError, what: str) -> None:
    assert what in error.message
    assert error.hint


# A full disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few hundred kilobytes; only root may make one."""
    place, mount = tmp_path / "disk", shutil.which("mount")
    place.mkdir()
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can mount a small disk")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    engine = engine_on(small_disk)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 400_000)
    acknowledged: list[bytes] = []
    refused: list[tuple[str, list[bytes]]] = []
    for number in range(400):
        entries = [row(number, "x" * 3_000), note(number)]
        try:
            engine.append(MAIN, entries, batch_id=f"b{number}")
        except StorageError as error:
            _assert_says(error, "No space left")
            refused.append((f"b{number}", [entry.data + b"\n" for entry in entries]))
        else:
            acknowledged += [entry.data + b"\n" for entry in entries]
        if len(refused) == 3:
            break
    assert refused, "the disk never was full"
    assert [line for line in whole_lines(small_disk) if line in acknowledged] == acknowledged
    with pytest.raises(StorageError):
        engine.put(blob(), [b"y" * 900_000])
    with pytest.raises(StorageError):
        engine.extend(SUB1, [b"y" * 900_000], start=0)
    assert (engine.blob_stat(blob()), engine.stat(SUB1)) == (None, None)
    ballast.unlink()
    aged(small_disk)
    # There is room again: the retries end with every row once.
    again = engine_on(small_disk)
    for number in range(len(acknowledged) // 2, len(acknowledged) // 2 + len(refused)):
        again.append(MAIN, [row(number, "x" * 3_000), note(number)], batch_id=f"b{number}")
    wanted = acknowledged + [line for _, lines in refused for line in lines]
    there = whole_lines(small_disk)
    assert [line for line in there if line in wanted] == wanted
    # What a full disk cut off stays, as a line that is no record.
    assert all(any(line.startswith(left.rstrip(b"\n")) for line in wanted) for left in there if left not in wanted)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_stays_full_changes_nothing_that_was_there(tmp_path: Path, code: int) -> None:
    for step in range(40):
        place = tmp_path / f"{step}"
        place.mkdir()
        engine_on(place).append(MAIN, rows(1, 2))
        engine_on(place).put(blob(), [b"old"])
        fs = FaultyFileSystem(Fault("fail", step, code=code, lasting=True), OsFileSystem(is_synced=False))
        engine = engine_on(place, fs)
        done = []
        for call in (
            lambda: engine.append(MAIN, BATCH, batch_id="b"),  # noqa: B023 - Called in this turn of the loop.
            lambda: engine.put(blob(), [b"new"]),  # noqa: B023
            lambda: engine.extend(SUB1, [bytes_of(rows(5))], start=0),  # noqa: B023
        ):
            try:
                call()
            except StorageError:
                done.append(False)
            else:
                done.append(True)
        now = engine_on(place)
        with replayable(Fault("fail", step, code=code, lasting=True)):
            assert content_of(now, MAIN).startswith(bytes_of(rows(1, 2)))
            assert not done[0] or content_of(now, MAIN) == bytes_of([*rows(1, 2), *BATCH])
            assert b"".join(now.open(blob())) in ((b"new",) if done[1] else (b"old", b"new"))
            assert content_of(now, SUB1) == bytes_of(rows(5)) if now.stat(SUB1) is not None else not done[2]
        if not fs.is_hit:
            return
    pytest.fail("the calls never came to an end")


# A disk that fails.


def test_a_failure_to_look_is_told_and_is_never_taken_for_an_answer(tmp_path: Path) -> None:
    """EIO at every call, of those that look and those that change: an append says so, or it is done."""
    is_hit = True
    for step in count():
        if not is_hit:
            break
        place = tmp_path / f"{step}"
        place.mkdir()
        engine_on(place).append(MAIN, rows(1, 2, 3))
        fs = FaultyFileSystem(Fault("fail", step), OsFileSystem(is_synced=False), counts_looks=True)
        engine = engine_on(place, fs)
        entries = [*rows(2, 3), *BATCH]
        with replayable(Fault("fail", step)):
            try:
                done = engine.append(MAIN, entries, batch_id="b")
            except StorageError as error:
                _assert_says(error, "Input/output error")
            else:
                assert done.written == len(BATCH)
            assert whole_lines(place)[:3] == [entry.data + b"\n" for entry in rows(1, 2, 3)]
            aged(place)
            fs.fault = None
            engine.append(MAIN, entries, batch_id="b")
            expected = [entry.data + b"\n" for entry in [*rows(1, 2, 3), *BATCH]]
            # A flush that failed says nothing of what reached the disk, so the rows are written again on purpose.
            method = fs.steps[step].method if fs.is_hit else ""
            assert whole_lines(place) == expected or (method == "sync" and set(whole_lines(place)) == set(expected))
        is_hit = fs.is_hit


def test_a_failure_while_reading_is_an_error_or_the_whole_answer(tmp_path: Path) -> None:
    engine_on(tmp_path).append(MAIN, rows(1, 2, 3))
    engine_on(tmp_path).append(SUB1, rows(4))
    engine_on(tmp_path).put(blob(), [b"content"])
    for step in range(200):
        fs = FaultyFileSystem(Fault("fail", step), counts_looks=True)
        engine = engine_on(tmp_path, fs)
        with replayable(Fault("fail", step)):
            try:
                assert content_of(engine, MAIN) == bytes_of(rows(1, 2, 3))
                assert b"".join(engine.open(blob())) == b"content"
                stat = engine.stat(SUB1)
                assert stat is not None
            except ClewError as error:
                _assert_says(error, "Input/output error")
            # Looking around leaves out what it cannot see, and says so.
            try:
                listed = [each.key for each in engine.list()], [each.key for each in engine.list_sub(MAIN)]
            except ClewError as error:
                _assert_says(error, "Input/output error")
            else:
                assert listed == ([MAIN], [SUB1]) or engine.problems
        if not fs.is_hit:
            return
    pytest.fail("the reads never came to an end")


@pytest.mark.parametrize("taken", [0, 1, 300, 999])
def test_writes_that_take_only_a_part_are_gone_on_with(tmp_path: Path, taken: int) -> None:
    fs = FaultyFileSystem(Fault("short", 0, taken=taken, lasting=True), OsFileSystem(is_synced=False))
    engine = engine_on(tmp_path, fs)
    engine.append(MAIN, rows(1))
    engine.append(MAIN, BATCH, batch_id="b")
    engine.append(MAIN, BATCH, batch_id="b")
    engine.extend(SUB1, [bytes_of(rows(2))], start=0)
    engine.put(blob(), [b"content" * 9])
    now = engine_on(tmp_path)
    assert content_of(now, MAIN) == bytes_of([*rows(1), *BATCH])
    assert content_of(now, SUB1) == bytes_of(rows(2))
    assert b"".join(now.open(blob())) == b"content" * 9


# Another program that puts a file in the place of ours.


def _steps_of_append(place: Path) -> int:
    place.mkdir()
    engine_on(place).append(MAIN, rows(1, 2, 3))
    fs = FaultyFileSystem(inner=NoLeases(), counts_looks=True)
    engine_on(place, fs).append(MAIN, BATCH, batch_id="b")
    return len(fs.steps)


class NoLeases(OsFileSystem):
    """A system that cannot keep another program from opening a file."""

    def __init__(self) -> None:
        super().__init__(is_synced=False)

    @contextmanager
    def lease(self, file: io.RawIOBase) -> Iterator[bool | None]:  # noqa: ARG002
        yield None


class Rewriter:
    """Another program that reads a log, and later puts what it keeps of it in its place, as the client does."""

    def __init__(self, path: Path, *, drops: bytes = b"") -> None:
        self.path = path
        self._drops = drops
        self._kept = b""

    def read(self) -> None:
        lines = self.path.read_bytes().splitlines(keepends=True)
        self._kept = b"".join(line for line in lines if line != self._drops)

    def put(self) -> None:
        other = self.path.with_suffix(".rewritten")
        other.write_bytes(self._kept)
        os.replace(other, self.path)


@pytest.mark.parametrize("drops", [b"", bytes_of(rows(2))], ids=["a copy", "a shorter copy"])
def test_a_log_that_is_replaced_in_the_middle_of_an_append(tmp_path: Path, drops: bytes) -> None:
    last = _steps_of_append(tmp_path / "count")
    kept = [entry.data + b"\n" for entry in rows(1, 2, 3) if entry.data + b"\n" != drops]
    mine = [entry.data + b"\n" for entry in BATCH]
    for reads in range(last + 1):
        for puts in range(reads, last + 1):
            place = tmp_path / f"{reads}-{puts}"
            place.mkdir()
            engine_on(place).append(MAIN, rows(1, 2, 3))
            other = Rewriter(engine_on(place).path_of(MAIN), drops=drops)
            meanwhile = {reads: other.read, puts: other.put}
            if reads == puts:
                meanwhile = {reads: lambda other=other: (other.read(), other.put())}  # type: ignore[misc]
            fs = FaultyFileSystem(inner=NoLeases(), counts_looks=True, meanwhile=meanwhile)
            with replayable(Fault("fail", reads, taken=puts)):
                done = engine_on(place, fs).append(MAIN, BATCH, batch_id="b")
                assert done.written == len(BATCH)
                looks = [at for at, step in enumerate(fs.steps) if step == Step("stat", str(other.path))]
                if puts <= looks[-1]:
                    # It came before the last look, so the answer was given when the rows stood in the new file.
                    assert set(mine) <= set(whole_lines(place))
                if len(fs.steps) <= puts:
                    # It came too late for this append; the next one finds what is missing.
                    (other.read() if len(fs.steps) <= reads else None, other.put())
                engine_on(place).append(MAIN, rows(20))
                there = whole_lines(place)
                for line in (*kept, *mine, *(entry.data + b"\n" for entry in rows(20))):
                    assert line in there
                assert [line for line in there if line in kept] == kept
            shutil.rmtree(place)


def test_a_log_that_is_removed_in_the_middle_of_an_append_is_a_conflict(tmp_path: Path) -> None:
    last = _steps_of_append(tmp_path / "count")
    for step in range(last):
        place = tmp_path / f"{step}"
        place.mkdir()
        engine = engine_on(place)
        engine.append(MAIN, rows(1))
        path = engine.path_of(MAIN)
        removed: list[Path] = []

        def remove(path: Path = path, removed: list[Path] = removed) -> None:
            path.unlink()
            removed.append(path)

        fs = FaultyFileSystem(inner=NoLeases(), counts_looks=True, meanwhile={step: remove})
        with replayable(Fault("fail", step)):
            try:
                done = engine_on(place, fs).append(MAIN, BATCH, batch_id="b")
            except Conflict as error:
                _assert_says(error, "removed")
            else:
                assert done.written == len(BATCH)
                # Done is done: the rows stand in a new log, unless it was removed after the last look.
                there = [] if engine_on(place).stat(MAIN) is None else whole_lines(place)
                if not removed:
                    # A run of fewer steps, since the times of the file lay far enough apart.
                    there = there[1:]
                assert there in ([entry.data + b"\n" for entry in BATCH], [])
        shutil.rmtree(place)


@pytest.mark.parametrize("by", ["delete", "set_aside"])
def test_a_log_that_the_client_makes_anew_has_nothing_of_the_one_that_was_taken_away(tmp_path: Path, by: str) -> None:
    engine = engine_on(tmp_path)
    engine.append(MAIN, BATCH, batch_id="b")
    path = engine.path_of(MAIN)
    # Somebody still reads the old file, so the new one gets an inode of its own.
    with path.open("rb"):
        if by == "delete":
            engine.delete(MAIN)
        else:
            engine.set_aside(MAIN, "op")
        path.write_bytes(bytes_of(rows(1)))
    done = engine.append(MAIN, rows(2))
    assert (done.written, done.notes) == (1, ())
    assert content_of(engine, MAIN) == bytes_of(rows(1, 2))
