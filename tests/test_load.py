"""Load and crashes, seen by a reader: writers that are slow, killed or fast, many sessions, wide trees, giant lines."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.cli.tree import LINES_MAX
from clew.records.line import LINE_BYTES_MAX
from clew.testing.corpus import SessionDraft

pytestmark = pytest.mark.slow

ID = "0000000a-0000-4000-8000-00000000000f"
SECONDS_MAX = 120
"""How long anything may take that is waited for; nothing here comes near it."""
ROWS = 5_000
SESSIONS = 10_000
LEAVES = 200_000
LIVES, LIVES_MAX = 15, 200
"""So often a writer is killed, and on until one of them was in the middle of a row: 15 are sometimes not enough."""
SOURCE = str(Path(clew.__file__).parent.parent)
# A client that appends: each row in one write, in two or in three; between the pieces of every twentieth row it stands
# still for a moment, so that whoever looks finds half a row.
WRITER = """
import os, random, sys, time
path, first, last, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
file = os.open(path, os.O_WRONLY | os.O_APPEND)
for at in range(first, last):
    text = "é" * chance.choice((1, 30, 3000))
    parent = '"u%d"' % (at - 1) if at else "null"
    row = ('{"type":"user","uuid":"u%d","parentUuid":%s,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z",'
           '"message":{"role":"user","content":"%d %s"}}\\n' % (at, parent, at, text)).encode()
    cuts = sorted(chance.sample(range(1, len(row)), chance.choice((0, 0, 1, 2))))
    for start, end in zip([0, *cuts], [*cuts, len(row)]):
        os.write(file, row[start:end])
        if end < len(row) and at % 20 == 0:
            time.sleep(0.01)
"""


def new_log(config: Path) -> Path:
    folder = config / "projects" / "-p"
    folder.mkdir(parents=True)
    path = folder / f"{ID}.jsonl"
    path.touch()
    return path


def writer(path: Path, first: int, last: int, seed: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), *map(str, (first, last, seed))])


def program(*arguments: str, config: Path) -> Any:
    """`clew` as a process of its own; the document that it prints."""
    environment = os.environ | {"PYTHONPATH": SOURCE, "CLAUDE_CONFIG_DIR": str(config)}
    command = [sys.executable, "-m", "clew", *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=SECONDS_MAX)
    return json.loads(done.stdout)


def number_of(record: clew.Record) -> int:
    """The number of a row; fails where its text is not all there."""
    content = record.content()
    assert isinstance(content, str)
    number, _, text = content.partition(" ")
    assert len(text) in (1, 30, 3000)
    assert set(text) == {"é"}
    return int(number)


def test_a_log_that_is_followed_gives_every_record_whole_and_once(tmp_path: Path) -> None:
    path, stop, seen = new_log(tmp_path), threading.Event(), list[int]()
    session = clew.open(str(tmp_path)).session(ID)
    limit = threading.Timer(SECONDS_MAX, stop.set)
    limit.start()
    following = session.watch(stop)
    process = writer(path, 0, ROWS, seed=1)
    try:
        for record in following:
            seen.append(number_of(record))
            assert seen[-1] == len(seen) - 1
            if len(seen) == ROWS:
                stop.set()
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    assert seen == list(range(ROWS))


def test_whatever_is_read_while_another_process_appends_is_a_beginning_of_it(tmp_path: Path) -> None:
    path = new_log(tmp_path)
    store = clew.open(str(tmp_path))
    followed, process, looks = store.session(ID), writer(path, 0, ROWS, seed=2), 0
    try:
        while process.poll() is None:
            followed.refresh()
            for session in (followed, store.session(ID)):
                numbers = [number_of(record) for record in session.chain().records]
                assert numbers == list(range(len(numbers)))
                # Only the last line may be half there, and it is told as what it is.
                assert len(session.malformed) <= 1
                assert all(not row.line.is_terminated for row in session.malformed)
            looks += 1
    finally:
        process.kill()
        process.wait()
    assert looks > 1
    followed.refresh()
    assert (len(followed.messages(reminders=True)) > 0, len(followed.tree.records)) == (True, ROWS)


def test_a_writer_that_is_killed_leaves_a_beginning_and_at_most_one_torn_line(tmp_path: Path) -> None:
    path, chance, torn = new_log(tmp_path), random.Random(3), 0
    store = clew.open(str(tmp_path))
    for life in range(LIVES_MAX):
        if life >= LIVES and torn:
            break
        known = len(store.session(ID).tree.records)
        process = writer(path, known, known + 100_000, seed=life)
        wanted = path.stat().st_size + chance.randrange(1, 200_000)
        while path.stat().st_size < wanted and process.poll() is None:
            pass
        process.kill()
        process.wait()
        session = store.session(ID)
        numbers = [number_of(record) for record in session.chain().records]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= known
        rows = session.malformed
        assert len(rows) <= 1
        if rows:
            torn += 1
            assert rows[0].line.position + rows[0].line.size == path.stat().st_size
            # As the client would go on: the rest of a row that nobody finishes is cut off here, so that the next life
            # can be told from it.
            os.truncate(path, rows[0].line.position)
    assert torn > 0


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config directory of 10,000 sessions in 50 projects, each changed a second after the one before."""
    config = tmp_path_factory.mktemp("many")
    draft = SessionDraft()
    for turn in range(3):
        draft.user(f"prompt {turn}")
        draft.assistant(f"answer {turn}")
    draft.head()
    data = draft.to_bytes()
    for number in range(SESSIONS):
        folder = config / "projects" / f"-home-me-{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number:08x}-0000-4000-8000-00000000000f.jsonl"
        path.write_bytes(data)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return config


def test_10_000_sessions_are_listed_newest_first_and_found(many: Path) -> None:
    rows = program("ls", "--all", config=many)
    assert [int(row["id"][:8], 16) for row in rows] == list(range(SESSIONS - 1, -1, -1))
    assert {(row["message_count"], row["title"]) for row in rows} == {(6, "prompt 2")}
    assert len(program("ls", "--project", "-home-me-7", config=many)) == SESSIONS // 50
    assert [row["id"][:8] for row in program("ls", "--all", "--limit", "2", config=many)] == ["0000270f", "0000270e"]
    assert len(program("show", "0000162e", config=many)["messages"]) == 6
    store = clew.open(str(many))
    with pytest.raises(clew.Ambiguous, match=f"{SESSIONS} ids begin so") as caught:
        store.session("0000")
    assert len(caught.value.candidates) == 20


def rows_on(parents: Iterator[str]) -> bytes:
    return b"".join(
        b'{"type":"user","uuid":"u%d","parentUuid":%s,"timestamp":"2026-01-01T00:00:00.000Z",'
        b'"message":{"role":"user","content":"%d"}}\n' % (at, parent.encode(), at)
        for at, parent in enumerate(parents)
    )


def test_200_000_leaves_are_all_in_the_document_and_a_page_is_drawn(tmp_path: Path) -> None:
    new_log(tmp_path).write_bytes(rows_on("null" if at == 0 else '"u0"' for at in range(LEAVES + 1)))
    told = program("tree", ID, config=tmp_path)
    assert [leaf["uuid"] for leaf in told["leaves"]] == [f"u{at}" for at in range(1, LEAVES + 1)]
    assert [len(fork["children"]) for fork in told["forks"]] == [LEAVES]
    environment = os.environ | {"PYTHONPATH": SOURCE, "CLAUDE_CONFIG_DIR": str(tmp_path)}
    page = subprocess.run([sys.executable, "-m", "clew", "tree", ID], env=environment, capture_output=True, check=True)
    assert LINES_MAX < len(page.stdout.splitlines()) < LINES_MAX + 10
    assert b"all 200,000 leaves" in page.stdout


def test_a_chain_of_200_000_records_is_shown(tmp_path: Path) -> None:
    new_log(tmp_path).write_bytes(rows_on("null" if at == 0 else f'"u{at - 1}"' for at in range(LEAVES)))
    told = program("show", ID, config=tmp_path)
    assert [len(message["uuids"]) for message in told["messages"]] == [LEAVES]
    assert program("tree", ID, config=tmp_path)["leaves"][0]["depth"] == LEAVES


# Almost as long as a line may be; what nests is shorter, since every level costs the scanner a step.
LONG = LINE_BYTES_MAX - 1_000
NESTED = LINE_BYTES_MAX // 16
GIANTS = {
    "too long": (b'{"type":"user","x":"', b"x" * LINE_BYTES_MAX, "too long to be held"),
    "a text cut off": (b'{"type":"user","x":"', rb"\n\u00e9 " * (LONG // 9), "torn"),
    "arrays cut off": (b'{"type":"user","x":', b"[" * LONG, "torn"),
    "zeros": (b"", b"\0" * LONG, "NUL bytes"),
    "no JSON": (b"}", b"\xff" * LONG, "not JSON"),
    "objects cut off": (b'{"type":"user","x":', b'{"x":' * (NESTED // 5), "torn"),
    "members cut off": (b'{"type":"user"', b',"x":[1,{"y":2}]' * (NESTED // 16), "torn"),
    "records in one another": (b"[", b'{"type":"user","uuid":' * (NESTED // 22), "torn"),
}


@pytest.mark.parametrize("name", GIANTS)
def test_a_giant_broken_line_is_told_and_what_stands_around_it_is_read(tmp_path: Path, name: str) -> None:
    before, filling, reason = GIANTS[name]
    first, last = rows_on(iter(["null", '"u0"'])).splitlines(keepends=True)
    path = new_log(tmp_path)
    path.write_bytes(first + before + filling + b"\n" + last)
    told = program("show", ID, config=tmp_path)
    assert [message["uuids"] for message in told["messages"]] == [["u0", "u1"]]
    (row,) = told["malformed"]
    assert (row["line"], row["offset"]) == (2, len(first))
    assert reason in row["reason"]
    # Nothing of it is lost: the lines are the bytes of the file, the giant by its range.
    engine, key = clew.FilesEngine.for_file(path)
    copied = hashlib.sha256()
    for line in engine.read(key):
        chunks = [line.data] if line.is_held else engine.read_range(key, position=line.position, size=line.size)
        for chunk in chunks:
            copied.update(chunk)
    assert copied.digest() == hashlib.sha256(path.read_bytes()).digest()


def test_the_reader_of_a_large_conversation_may_leave_after_the_first_screen(tmp_path: Path) -> None:
    draft = SessionDraft(session=ID)
    for turn in range(20_000):
        draft.user(f"prompt {turn} " + "why does the login fail " * 40)
        draft.assistant(f"answer {turn} " + "because the cookie is never set " * 45)
    draft.head()
    assert draft.write(tmp_path).stat().st_size > 60_000_000
    environment = os.environ | {"PYTHONPATH": SOURCE, "CLAUDE_CONFIG_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "clew", "show", ID]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"prompt 0 " in process.stdout.read(4096)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SECONDS_MAX) == 0
