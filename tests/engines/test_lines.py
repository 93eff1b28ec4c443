"""Lines of a file: what is read is what was written, forward and backward, whatever the sizes."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.engines.contract import LogKey
from clew.engines.files import FilesEngine
from clew.errors import Conflict, NotFound, UsageError
from clew.records.line import Line

KEY = LogKey("p", "s")

# Mostly newlines and short runs, so that lines, chunks and limits meet at every offset.
contents = st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\0", b"\xff", b"bc", b"{}\n", b"x" * 9]), max_size=40).map(
    b"".join
) | st.binary(max_size=60)
sizes = st.integers(1, 70)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "projects" / "p" / "s.jsonl"
    path.parent.mkdir(parents=True)
    return path


def engine_for(log: Path, *, line_bytes_max: int = 1 << 20, chunk_bytes: int = 1 << 20) -> FilesEngine:
    return FilesEngine(log.parents[2], line_bytes_max=line_bytes_max, chunk_bytes=chunk_bytes)


def lines_of(data: bytes, line_bytes_max: int) -> list[Line]:
    """The same in a way that is too simple to be wrong: all of it in memory, split at newlines."""
    pieces = [piece + b"\n" for piece in data.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    pieces = [piece for piece in pieces if piece]
    starts = accumulate(map(len, pieces), initial=0)
    return [
        Line(piece if len(piece) <= line_bytes_max else b"", start, number, len(piece))
        for number, (piece, start) in enumerate(zip(pieces, starts, strict=False), 1)
    ]


@given(contents, sizes, sizes)
@example(b"", 1, 1)
@example(b"\n" * 5, 1, 1)
@example(b"abc\nabcd\nabcde", 4, 2)
def test_reading_gives_every_line_in_order_with_its_place(log: Path, data: bytes, limit: int, chunk: int) -> None:
    log.write_bytes(data)
    engine = engine_for(log, line_bytes_max=limit, chunk_bytes=chunk)
    read = list(engine.read(KEY))
    assert read == lines_of(data, limit)
    again = [
        b"".join(engine.read_range(KEY, position=line.position, size=line.size)) if not line.is_held else line.data
        for line in read
    ]
    assert b"".join(again) == data


@given(contents, sizes, sizes)
@example(b"", 1, 1)
@example(b"\n" * 5, 1, 1)
@example(b"abc\nabcd\nabcde", 4, 2)
def test_reading_back_gives_the_same_lines_from_the_end(log: Path, data: bytes, limit: int, chunk: int) -> None:
    log.write_bytes(data)
    back = list(engine_for(log, line_bytes_max=limit, chunk_bytes=chunk).read_back(KEY))
    assert back == [Line(line.data, line.position, 0, line.size) for line in reversed(lines_of(data, limit))]


@given(contents, sizes, st.integers(0, 70), st.integers(0, 70))
def test_a_part_is_the_lines_that_begin_in_it(log: Path, data: bytes, chunk: int, start: int, end: int) -> None:
    log.write_bytes(data)
    engine = engine_for(log, chunk_bytes=chunk)
    whole = list(engine.read(KEY))
    if start not in [0, *(line.position for line in whole)]:
        start = whole[len(whole) // 2].position if whole else 0
    expected = [line for line in whole if start <= line.position < end]
    part = list(engine.read(KEY, start=start, end=end))
    assert [(line.data, line.position) for line in part] == [(line.data, line.position) for line in expected]
    assert [line.number for line in part] == list(range(1, len(part) + 1))


def test_going_on_behind_the_last_line_gives_only_what_came_after(log: Path) -> None:
    log.write_bytes(b"one\ntwo\n")
    engine = engine_for(log)
    *_, last = engine.read(KEY)
    assert list(engine.read(KEY, start=last.position + last.size)) == []
    with log.open("ab") as file:
        file.write(b"three\n")
    assert [line.data for line in engine.read(KEY, start=last.position + last.size)] == [b"three\n"]


@pytest.mark.parametrize("start", [1, 2, 3, 5, 9, 1000, 2**70])
def test_a_start_where_no_line_begins_is_a_conflict_and_not_half_a_line(log: Path, start: int) -> None:
    log.write_bytes(b"one\ntwo\n")
    with pytest.raises(Conflict, match=f"no line that begins at byte {start}"):
        engine_for(log).read(KEY, start=start)


def test_negative_places_are_refused(log: Path) -> None:
    engine = engine_for(log)
    with pytest.raises(UsageError):
        engine.read(KEY, start=-1)
    with pytest.raises(UsageError):
        engine.read(KEY, end=-1)
    with pytest.raises(UsageError):
        engine.read_range(KEY, position=-1, size=1)


def test_a_missing_log_shows_at_the_call_and_not_at_the_first_line(tmp_path: Path) -> None:
    engine = FilesEngine(tmp_path)
    for read in (engine.read, engine.read_back):
        with pytest.raises(NotFound):
            read(KEY)
    with pytest.raises(NotFound):
        engine.read_range(KEY, position=0, size=1)


def test_a_range_that_is_no_longer_there_is_a_conflict(log: Path) -> None:
    log.write_bytes(b"0123456789")
    engine = engine_for(log, chunk_bytes=3)
    assert list(engine.read_range(KEY, position=2, size=8)) == [b"234", b"567", b"89"]
    assert list(engine.read_range(KEY, position=10, size=0)) == []
    for position, size, short in [(2, 10, 2), (11, 0, 1), (2**70, 1, 2**70 - 9), (0, 2**70, 2**70 - 10)]:
        with pytest.raises(Conflict, match=f"ends {short} bytes too early"):
            engine.read_range(KEY, position=position, size=size)
    rest = engine.read_range(KEY, position=2, size=8)
    with log.open("r+b") as file:
        file.truncate(5)
    assert next(rest) == b"234"
    with pytest.raises(Conflict, match="ends 5 bytes too early"):
        next(rest)


def test_a_line_over_the_limit_is_a_range_and_its_neighbours_are_lines(log: Path) -> None:
    log.write_bytes(b"a\n" + b"x" * 50_000 + b"\nb\n")
    engine = engine_for(log, line_bytes_max=1000, chunk_bytes=64)
    long = Line(b"", 2, 2, 50_001)
    assert list(engine.read(KEY)) == [Line(b"a\n", 0, 1, 2), long, Line(b"b\n", 50_003, 3, 2)]
    assert [line.size for line in engine.read_back(KEY)] == [2, 50_001, 2]
    assert not long.is_held


@pytest.mark.parametrize("direction", ["read", "read_back"])
def test_a_line_without_end_takes_no_memory_that_grows_with_it(log: Path, direction: str) -> None:
    with log.open("wb") as file:
        file.truncate(100 * 2**20)
    engine = engine_for(log, line_bytes_max=2**20, chunk_bytes=2**18)
    tracemalloc.start()
    try:
        lines = list(getattr(engine, direction)(KEY))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(line.data, line.size) for line in lines] == [(b"", 100 * 2**20)]
    assert peak < 4 * 2**20


def test_lines_that_are_appended_while_reading_do_not_come_and_break_nothing(log: Path) -> None:
    log.write_bytes(b"one\ntw")
    lines = engine_for(log, chunk_bytes=1).read(KEY)
    back = engine_for(log, chunk_bytes=1).read_back(KEY)
    with log.open("ab") as file:
        file.write(b"o\nthree\n")
    assert [line.data for line in lines] == [b"one\n", b"tw"]
    assert [line.data for line in back] == [b"tw", b"one\n"]


def test_a_file_that_is_cut_while_reading_ends_there(log: Path) -> None:
    log.write_bytes(b"one\ntwo\nthree\n")
    lines = engine_for(log, chunk_bytes=1).read(KEY)
    back = engine_for(log, chunk_bytes=1).read_back(KEY)
    with log.open("r+b") as file:
        file.truncate(5)
    assert [line.data for line in lines] == [b"one\n", b"t"]
    assert list(back) == []


def test_a_file_that_is_replaced_while_reading_is_read_as_it_was(log: Path) -> None:
    log.write_bytes(b"one\ntwo\n")
    lines = engine_for(log, chunk_bytes=1).read(KEY)
    other = log.with_name("other")
    other.write_bytes(b"1\n")
    other.replace(log)
    assert [line.data for line in lines] == [b"one\n", b"two\n"]


def test_reads_of_one_log_do_not_disturb_each_other(log: Path) -> None:
    log.write_bytes(b"".join(b"%d\n" % number for number in range(100)))
    engine = engine_for(log, chunk_bytes=7)
    forward = [line.data for line in engine.read(KEY)]
    pairs = list(zip(engine.read(KEY), engine.read_back(KEY), engine.read(KEY), strict=True))
    assert [one.data for one, _, _ in pairs] == [three.data for _, _, three in pairs] == forward
    assert [two.data for _, two, _ in pairs] == forward[::-1]


def assert_never_half_a_line(engine: FilesEngine, done: threading.Event) -> int:
    """Reads again and again until the writer is done. Each row says its number twice, around its filling."""
    reads = 0
    finished = False
    while not finished:
        finished = done.is_set()
        lines = list(engine.read(KEY))
        back = list(engine.read_back(KEY))
        for number, line in enumerate(lines):
            if line.is_terminated:
                first, _, last = line.data.rstrip(b"\n").split(b" ")
                assert int(first) == int(last) == number
            else:
                assert line is lines[-1], "only the last line may be unfinished"
        assert all(line.is_terminated for line in back[1:])
        whole = [line.data for line in lines if line.is_terminated]
        assert [line.data for line in reversed(back)][: len(whole)] == whole
        reads += 1
    return reads


WRITER = """
import os, sys
path, rows, pieces = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
for number in range(rows):
    row = b"%d %s %d\\n" % (number, b"x" * (number * 37 % 3000), number)
    cut = len(row) // pieces
    for at in range(0, len(row), max(cut, 1)):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(handle, row[at : at + max(cut, 1)])
        os.close(handle)
"""


@pytest.mark.parametrize("pieces", [1, 3])
def test_reading_while_another_process_appends_never_yields_half_a_line(log: Path, pieces: int) -> None:
    log.write_bytes(b"")
    engine, done = engine_for(log, chunk_bytes=512), threading.Event()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(log), "400", str(pieces)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"

        def wait() -> None:
            writer.wait()
            done.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert_never_half_a_line(engine, done)
        waiter.join()
    assert writer.returncode == 0
    assert [line.number for line in engine.read(KEY)] == list(range(1, 401))


def test_reading_while_a_thread_appends_never_yields_half_a_line(log: Path) -> None:
    log.write_bytes(b"")
    engine, done = engine_for(log, chunk_bytes=512), threading.Event()

    def write() -> None:
        with log.open("ab", buffering=0) as file:
            for number in range(400):
                file.write(b"%d %s %d\n" % (number, b"x" * (number * 37 % 3000), number))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert_never_half_a_line(engine, done)
    writer.join()
    assert sum(1 for _ in engine.read(KEY)) == 400
