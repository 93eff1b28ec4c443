"""Processes that are killed, and many that write at once: what was acknowledged is there, and the file is sound."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from clew.engines.contract import BlobKey, Engine, Entry, LogKey
from clew.engines.sqlite import SqliteEngine

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")]

MAIN, COPIED = (LogKey("-home-a", name) for name in ("appended", "copied"))
CRASHES = 300
WRITERS, APPENDS = 8, 500


def row(writer: int, number: int) -> Entry:
    uuid = f"{writer:08x}-0000-4000-8000-{number:012x}"
    return Entry(msgspec.json.encode({"type": "user", "uuid": uuid, "text": "x" * (number * 37 % 3000)}), uuid)


def batch(number: int) -> list[Entry]:
    """What is appended at once; one of the lines has no id."""
    return [row(0, number * 3), row(0, number * 3 + 1), Entry(b'{"number":%d}' % number)]


def chunk(number: int) -> bytes:
    return (b"%08d\0\r\n\n" % number) * (number % 50 + 1)


def blob(number: int) -> tuple[BlobKey, bytes]:
    return BlobKey("-home-a", "appended", "k", str(number % 5)), b"%06d" % number * (20_000 if number % 2 else 10)


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as db:
        return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def write_until_killed(path: Path, first: int, answers: int) -> None:
    """Says in the pipe what was acknowledged, each thing by its number."""
    engine = SqliteEngine(path)
    stat = engine.stat(COPIED)
    size = 0 if stat is None else stat.size_bytes
    for number in range(first, first + 100_000):
        done = engine.append(MAIN, batch(number), batch_id=str(number), summary=b"%d" % number)
        os.write(answers, b"append %d %d\n" % (number, done.written))
        size = engine.extend(COPIED, [chunk(number)], start=size)
        os.write(answers, b"extend %d\n" % size)
        engine.put(blob(number)[0], [blob(number)[1]])
        os.write(answers, b"put %d\n" % number)
        key = LogKey("-home-a", "gone", f"s{number % 3}")
        engine.append(key, [row(9, number)])
        engine.set_aside(key, f"operation {number}")
        if number % 2:
            engine.bring_back(f"operation {number}")
            engine.delete(key.main)
        else:
            engine.free_aside(f"operation {number}")


def acknowledged(said: bytes) -> dict[str, int]:
    """The last number of each thing; a line that the kill cut off says nothing."""
    found = {"append": -1, "extend": 0, "put": -1}
    for line in said[: said.rfind(b"\n") + 1].decode().splitlines():
        what, number, *_ = line.split()
        found[what] = int(number)
    return found


def puts(said: bytes) -> dict[BlobKey, int]:
    lines = [line.split() for line in said[: said.rfind(b"\n") + 1].splitlines()]
    return {blob(int(line[1]))[0]: int(line[1]) for line in lines if line[0] == b"put"}


def started(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)


def killed(path: Path, first: int, wanted: int, chance: random.Random) -> bytes:
    """What a child said before it was killed, after so many bytes and a moment."""
    reading, answers = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_until_killed(path, first, answers)
        finally:
            os._exit(1)
    os.close(answers)
    said = b""
    with open(reading, "rb", buffering=0) as pipe:
        while len(said) < wanted:
            said += pipe.read(wanted - len(said))
        for _ in range(chance.randrange(60_000)):
            pass
        os.kill(child, signal.SIGKILL)
        said += pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return said


def batches_in(engine: Engine) -> list[int]:
    """The numbers of the batches that are there, each whole and in its place, or this fails."""
    lines = [line.data for line in engine.read(MAIN)]
    numbers = [int(line[len(b'{"number":') : -2]) for line in lines[2::3]]
    assert lines == [entry.data + b"\n" for number in numbers for entry in batch(number)]
    return numbers


def bytes_of(engine: Engine, key: LogKey) -> bytes:
    return b"" if engine.stat(key) is None else b"".join(line.data for line in engine.read(key))


def test_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    path, seed = tmp_path / "sessions.db", 20261119
    print(f"seed {seed}")
    chance, first, copied = random.Random(seed), 0, b""
    kept: dict[BlobKey, set[int]] = {}
    for crash in range(CRASHES):
        # A part of what it says is waited for, so that every moment of the loop is hit, the first ones too.
        said = killed(path, first, chance.choice([0, 1, chance.randrange(400), chance.randrange(1200)]), chance)
        known = acknowledged(said)
        engine = SqliteEngine(path)
        if engine.stat(MAIN) is not None:
            there = batches_in(engine)
            assert there == list(range(len(there))), f"crash {crash}"
            assert known["append"] < len(there) <= max(known["append"] + 2, first + 1)
            # The answer of the last one may have been lost: saying it again adds what is missing, and nothing else.
            last = max(known["append"] + 1, first)
            again = engine.append(MAIN, batch(last), batch_id=str(last))
            assert again.duplicates == (3 if last < len(there) else 0)
            first = last + 1
            assert batches_in(engine) == list(range(first))
            now = bytes_of(engine, COPIED)
            assert now.startswith(copied)
            assert known["extend"] <= len(now)
            copied = now
            for key, number in [*puts(said).items()]:
                kept[key] = {number}
            # The answer of one more may have been lost.
            for number in (last - 1, last):
                kept.setdefault(blob(number)[0], {-1}).add(number)
            for key, numbers in kept.items():
                assert engine.blob_stat(key) is not None or -1 in numbers
                if engine.blob_stat(key) is not None:
                    assert b"".join(engine.open(key)) in [blob(number)[1] for number in numbers]
            # Something of the last operation may be kept still; it is brought to its end.
            for number in (last - 1, last):
                engine.free_aside(f"operation {number}")
        assert sound(path)
        engine.close()
    assert first > CRASHES
    files = {
        each.name for each in (tmp_path / "sessions.db-blobs").rglob("*") if each.is_file() and len(each.name) == 64
    }
    with closing(sqlite3.connect(path)) as db:
        beside = {digest.hex() for (digest,) in db.execute("SELECT digest FROM content WHERE data IS NULL")}
    assert beside <= files


def test_many_processes_append_while_others_read(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    children = [started("append", path, writer) for writer in range(WRITERS)]
    readers = [started("read", path) for _ in range(2)]
    answers = [child.communicate(timeout=300)[0] for child in [*children, *readers]]
    assert [child.returncode for child in [*children, *readers]] == [0] * (WRITERS + 2)
    assert all(int(answer) > 1 for answer in answers[WRITERS:]), "a reader saw the log grow"
    engine = SqliteEngine(path)
    found = [line.data for line in engine.read(MAIN)]
    for writer in range(WRITERS):
        own = [line for line in found if line.startswith(b'{"type":"user","uuid":"%08x' % writer)]
        assert own == [row(writer, number).data + b"\n" for number in range(APPENDS)]
    assert len(found) == WRITERS * APPENDS
    engine.close()
    assert sound(path)


def append_all(path: Path, writer: int) -> None:
    engine = SqliteEngine(path)
    for number in range(APPENDS):
        done = engine.append(MAIN, [row(writer, number)])
        assert done.written == 1
        # Another one says the same at the same time.
        assert engine.append(MAIN, [row(writer, number)]).duplicates == 1
    engine.close()


def read_until_all_is_there(path: Path) -> None:
    """Says how many different states it saw, each of which begins with the one before."""
    engine, before, seen = SqliteEngine(path), b"", 0
    while before.count(b"\n") < WRITERS * APPENDS:
        now = bytes_of(engine, MAIN)
        assert now.startswith(before)
        assert not now or now.endswith(b"\n")
        seen += now != before
        before = now
    print(seen)


if __name__ == "__main__":
    match sys.argv[1]:
        case "append":
            append_all(Path(sys.argv[2]), int(sys.argv[3]))
        case _:
            read_until_all_is_there(Path(sys.argv[2]))
