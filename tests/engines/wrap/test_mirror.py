"""The mirror gets what was written, never stands in the way, and says what it lacks."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.engines.contract import BlobKey, Engine, Entry, LogKey, LogStat, LogStore
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.backoff import Backoff
from clew.engines.wrap.base import Wrapper
from clew.engines.wrap.faulty import Fault, Faulty, at, seeded
from clew.engines.wrap.mirror import Mirror, MirrorState
from clew.engines.wrap.remote import EngineWriter, RecordSender, RecordsTo, RemoteWriter
from clew.errors import Busy, Conflict, StorageError
from clew.records.line import Line
from clew.records.record import Record
from stores import ticking

MAIN = LogKey("-home-a", "one")
SUB = LogKey("-home-a", "one", "subagents/agent-a1")
OTHER = LogKey("-home-b", "two")
BLOB = BlobKey("-home-a", "one", "checkpoint", "one")
AT_ONCE = Backoff(tries_max=4, first_seconds=0.0)
SECONDS_MAX = 30.0
SEEDS = 12
ALL_THERE = MirrorState(0, {}, 0)


@contextmanager
def mirrored(inner: Engine, remote: Engine | RemoteWriter, **options: object) -> Iterator[Mirror]:
    """A mirror that is closed however the test ends."""
    mirror = Mirror(inner, remote, **{"backoff": AT_ONCE, "random": lambda: 0.0, **options})
    try:
        yield mirror
    finally:
        mirror.close()


def content(engine: Engine) -> dict[object, bytes]:
    """Everything in a store, logs and blobs."""
    found: dict[object, bytes] = {}
    for stat in engine.list():
        for log in (stat, *engine.list_sub(stat.key)):
            found[log.key] = b"".join(engine.read_range(log.key, position=0, size=log.size_bytes))
        for blob in engine.blobs(stat.key):
            found[blob.key] = b"".join(engine.open(blob.key))
    return found


def lines(*numbers: int) -> list[Entry]:
    return [Entry(b'{"n":%d}' % number) for number in numbers]


class Down(EngineWriter):
    """Takes nothing until it is `up`."""

    up = False
    tries = 0

    def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
        self.tries += 1
        if not self.up:
            raise Busy("the line is dead")
        super().log(source, stat, begun)


class Stuck(EngineWriter):
    """Never answers until `free` is set."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.free = threading.Event()

    def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
        assert self.free.wait(SECONDS_MAX)
        super().log(source, stat, begun)


# What arrives.


def test_everything_that_was_written_is_there_after_flush(tmp_path: Path) -> None:
    remote = MemoryEngine()
    with mirrored(FilesEngine(tmp_path, durability="none"), remote) as mirror:
        mirror.append(MAIN, lines(1, 2), summary=b"s")
        mirror.append(SUB, lines(3))
        mirror.extend(OTHER, [b"raw\n", b"\xff without an end"], start=0, modified_ns=1_700_000_000 * 10**9)
        mirror.put(BLOB, [b"content"], mode=0o640)
        mirror.flush()
        assert content(remote) == content(mirror.inner)
        assert len(content(remote)) == 4
        stat = remote.blob_stat(BLOB)
        assert stat is not None
        assert stat.mode == 0o640
        assert (mirror.state, mirror.problems) == (ALL_THERE, [])
        mirror.append(OTHER, lines(4))
        mirror.flush()
        assert content(remote) == content(mirror.inner), "the torn line was closed there as it was here"


def test_times_are_those_of_the_log() -> None:
    inner, remote = MemoryEngine(clock=ticking()), MemoryEngine()
    with mirrored(inner, remote) as mirror:
        mirror.append(MAIN, lines(1))
        mirror.flush()
    assert [stat.modified_ns for stat in remote.list()] == [stat.modified_ns for stat in inner.list()]


def test_a_log_arrives_with_what_it_held_before() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    inner.append(MAIN, lines(1, 2))
    with mirrored(inner, remote) as mirror:
        mirror.append(MAIN, lines(3))
    assert content(remote) == content(inner)


def test_what_is_replaced_deleted_and_set_aside_is_so_there_too() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    with mirrored(inner, remote) as mirror:
        revision = mirror.append(MAIN, lines(1, 2)).revision
        mirror.append(OTHER, lines(1))
        mirror.put(BLOB, [b"content"])
        mirror.flush()
        mirror.replace(MAIN, [b"another\n"], expect=revision)
        mirror.append(MAIN, lines(3))
        mirror.put(BLOB, [b"other content"])
        mirror.flush()
        assert content(remote) == content(inner)
        assert content(remote)[MAIN] == b'another\n{"n":3}\n'
        mirror.delete(OTHER)
        mirror.delete_blob(BLOB)
        mirror.flush()
        assert content(remote) == content(inner) == {MAIN: b'another\n{"n":3}\n'}
        mirror.append(MAIN, lines(4))
        mirror.set_aside(MAIN, "operation")
        mirror.flush()
        assert content(remote) == {}
        mirror.append(OTHER, lines(5))
        mirror.bring_back("operation")
        mirror.flush()
        assert content(remote) == content(inner)
        assert {*content(remote)} == {MAIN, OTHER}
        mirror.set_aside(MAIN, "operation")
        mirror.free_aside("operation")
        mirror.flush()
        assert (remote.bring_back("operation").logs, mirror.state) == (0, ALL_THERE)


def test_a_log_that_is_made_anew_is_so_there_too_even_if_nobody_looked_in_between(
    caplog: pytest.LogCaptureFixture,
) -> None:
    remote = MemoryEngine()
    writer = Stuck(remote)
    with mirrored(MemoryEngine(), writer) as mirror:
        writer.free.set()
        mirror.append(MAIN, lines(77))
        mirror.flush()
        writer.free.clear()
        mirror.append(MAIN, lines(1, 2, 3))
        for number in range(5):
            mirror.delete(MAIN)
            mirror.append(MAIN, lines(*range(number, number + 6)))
        writer.free.set()
        mirror.flush()
        assert content(remote) == content(mirror.inner)
        assert mirror.state == ALL_THERE
    assert caplog.records == [], "nothing of this is worth a word"


def test_only_what_is_wanted_is_copied() -> None:
    remote = MemoryEngine()
    with mirrored(MemoryEngine(), remote, wants=lambda key: key.project == "-home-a" and not key.subpath) as mirror:
        for key in (MAIN, SUB, OTHER):
            mirror.append(key, lines(1))
        mirror.put(BLOB, [b"content"])
        mirror.put(BlobKey("-home-b", "two", "checkpoint", "one"), [b"content"])
        mirror.delete(OTHER)
        mirror.resync()
    assert {*content(remote)} == {MAIN, BLOB}


def test_a_record_never_comes_before_the_blob_it_speaks_of() -> None:
    missing: list[bytes] = []

    class Checking(EngineWriter):
        def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
            super().log(source, stat, begun)
            for line in self.engine.read(stat.key):
                name = line.data.strip().decode()
                if self.engine.blob_stat(BlobKey(stat.key.project, stat.key.session, "checkpoint", name)) is None:
                    missing.append(line.data)

    remote = MemoryEngine()

    def write(mirror: Mirror, thread: int) -> None:
        key = LogKey("-home-a", f"session-{thread % 2}")
        for number in range(60):
            name = f"{thread}-{number}"
            mirror.put(BlobKey(key.project, key.session, "checkpoint", name), [name.encode()])
            mirror.append(key, [Entry(name.encode())])

    with mirrored(MemoryEngine(), Checking(remote)) as mirror:
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(write, mirror, thread) for thread in range(4)]:
                done.result()
        mirror.flush()
        assert content(remote) == content(mirror.inner)
    assert missing == []


def test_a_record_that_is_appended_while_the_log_is_looked_at_waits_for_its_blob() -> None:
    late = BlobKey("-home-a", "one", "checkpoint", "late")

    class Busily(Wrapper):
        """While a thread of another name looks at the log, a blob is put and a line appended that speaks of it."""

        has_looked = False

        def stat(self, key: LogKey) -> LogStat | None:
            if threading.current_thread().name == "clew mirror" and not self.has_looked:
                self.has_looked = True
                mirror.put(late, [b"content"])
                mirror.append(MAIN, [Entry(b"late")])
            return super().stat(key)

    class Checking(EngineWriter):
        def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
            super().log(source, stat, begun)
            has_line = any(line.data == b"late\n" for line in self.engine.read(stat.key))
            seen.append((has_line, self.engine.blob_stat(late) is not None))

    seen: list[tuple[bool, bool]] = []
    with mirrored(Busily(MemoryEngine()), Checking(MemoryEngine())) as mirror:
        mirror.append(MAIN, lines(1))
        mirror.flush()
    assert seen[0] == (True, True)


# Never in the way.


def test_a_remote_place_that_never_answers_holds_up_neither_appends_nor_flush_nor_close() -> None:
    inner, writer = MemoryEngine(), Stuck(MemoryEngine())
    mirror = Mirror(inner, writer, drain_seconds=0.05)
    for number in range(100):
        assert mirror.append(MAIN, lines(number)).written == 1
    mirror.flush()
    assert [problem.reason for problem in mirror.problems] == ["copying takes too long: 1 sessions wait"]
    assert mirror.state.pending == 1
    mirror.close()
    mirror.close()
    assert len([*inner.read(MAIN)]) == 100
    writer.free.set()
    thread = mirror._thread
    assert thread is not None
    thread.join(SECONDS_MAX)
    assert not thread.is_alive()


def test_what_a_remote_place_does_not_take_fails_no_call_here_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    remote = MemoryEngine()
    writer = Down(remote)
    with caplog.at_level(logging.WARNING, "clew.mirror"), mirrored(MemoryEngine(), writer) as mirror:
        assert mirror.append(MAIN, lines(1)).notes == ()
        mirror.flush()
        assert mirror.state == MirrorState(0, {MAIN: "the line is dead"}, 0)
        assert [(problem.path, problem.reason) for problem in mirror.problems] == [
            ("memory:#-home-a/one", "not copied yet: the line is dead")
        ]
        assert "the line is dead" in caplog.text
        assert mirror.append(MAIN, lines(2)).notes == ("the mirror memory: is behind: the line is dead",)
        mirror.flush()
        writer.up = True
        mirror.flush()
        assert (mirror.state, mirror.problems) == (ALL_THERE, [])
        assert content(remote) == content(mirror.inner)
        assert mirror.append(MAIN, lines(3)).notes == ()


def test_a_place_that_is_down_is_tried_often_once_and_then_once_for_each_session() -> None:
    writer = Down(MemoryEngine())
    with mirrored(MemoryEngine(), writer, backoff=Backoff(tries_max=50, first_seconds=0.0)) as mirror:
        mirror.append(MAIN, lines(1))
        mirror.flush()
        assert writer.tries >= 50
        tries = writer.tries
        for number in range(4):
            mirror.append(LogKey("-home-a", f"session-{number}"), lines(1))
            mirror.flush()
        # Those that are behind are tried again by each flush.
        assert writer.tries - tries <= 4 + (2 + 3 + 4 + 5)
        writer.up = True
    assert mirror.state == ALL_THERE


def test_a_place_that_gets_on_is_not_given_up() -> None:
    remote = MemoryEngine()
    every_other = at(*(Fault("stat", number) for number in range(1, 200, 2)))
    with mirrored(MemoryEngine(), Faulty(remote, every_other), backoff=Backoff(2, 0.0)) as mirror:
        for number in range(50):
            mirror._marks.log(LogKey("-home-a", "one", f"subagents/agent-{number}"), "")
            mirror.inner.append(LogKey("-home-a", "one", f"subagents/agent-{number}"), lines(number))
        mirror.append(MAIN, lines(1))
        mirror.flush()
        assert (mirror.state, content(remote)) == (ALL_THERE, content(mirror.inner))


def test_an_error_of_the_local_store_comes_out_and_what_it_may_have_written_arrives() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    with mirrored(Faulty(inner, at(Fault("append", 1, "after"))), remote) as mirror:
        with pytest.raises(StorageError):
            mirror.append(MAIN, lines(1))
        mirror.flush()
        with pytest.raises(Conflict):
            mirror.append(MAIN, lines(2), expect="other")
    assert content(remote) == content(inner)


def test_a_bug_in_a_writer_is_told_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Buggy(Down):
        def log(self, source: LogStore, stat: LogStat, begun: int) -> None:
            if not self.up:
                raised.append("a bug")
                raise ZeroDivisionError(raised[0])
            super().log(source, stat, begun)

    raised: list[str] = []
    shown = threading.Semaphore(0)
    monkeypatch.setattr(threading, "excepthook", lambda _: shown.release())
    remote = MemoryEngine()
    writer = Buggy(remote)
    with mirrored(MemoryEngine(), writer) as mirror:
        mirror.append(MAIN, lines(1))
        mirror.flush()
        assert "none of clew's" in mirror.state.behind[MAIN]
        mirror.append(MAIN, lines(2))
        mirror.append(OTHER, lines(2))
        mirror.flush()
        assert (mirror.state.pending, {*mirror.state.behind}) == (0, {MAIN, OTHER})
        writer.up = True
        mirror.append(MAIN, lines(3))
        mirror.flush()
        assert (content(remote), mirror.state) == (content(mirror.inner), ALL_THERE)
    assert all(shown.acquire(timeout=SECONDS_MAX) for _ in raised), "each shows with its traceback"


# What cannot be copied.


def test_a_copy_that_has_other_lines_is_left_alone_and_named() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    remote.append(MAIN, lines(7, 8, 9))
    inner.append(MAIN, lines(1))
    with mirrored(inner, remote) as mirror:
        mirror.append(MAIN, lines(2))
        mirror.append(OTHER, lines(3))
        mirror.flush()
        assert "is no copy of" in mirror.problems[0].reason
        assert content(remote) == {MAIN: b'{"n":7}\n{"n":8}\n{"n":9}\n', OTHER: b'{"n":3}\n'}
        # Deleting it is what cures it, though the append before will never pass.
        mirror.append(MAIN, lines(4))
        mirror.delete(MAIN)
        mirror.append(MAIN, lines(5))
        mirror.flush()
        assert content(remote) == content(inner)
        assert mirror.state == ALL_THERE


def test_what_will_never_pass_keeps_no_later_step_from_being_done() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    remote.append(SUB, lines(7, 8, 9))
    with mirrored(inner, remote) as mirror:
        mirror.append(MAIN, lines(1))
        mirror.append(SUB, lines(2))
        mirror.flush()
        assert [*mirror.state.behind] == [MAIN]
        mirror.delete(LogKey("-home-a", "one", "subagents/agent-b"))
        mirror.put(BLOB, [b"content"])
        revision = mirror.append(MAIN, lines(3)).revision
        mirror.replace(MAIN, [b"other\n"], expect=revision)
        mirror.flush()
        assert content(remote) == {MAIN: b"other\n", BLOB: b"content", SUB: b'{"n":7}\n{"n":8}\n{"n":9}\n'}
        assert ([*mirror.state.behind], mirror.state.lost) == ([MAIN], 0)


def test_an_attached_fork_is_not_mirrored_to_where_it_would_lose_its_beginning(tmp_path: Path) -> None:
    config = tmp_path / "config"
    with clew.open("memory:", mirror=f"claude:{config}") as store:
        parent = store.create(tmp_path)
        parent.append({"role": "user", "content": "one"})
        fork = parent.fork(kind="attached")
        fork.append({"role": "user", "content": "two"})
        store.engine.flush()
        assert any(fork.id in problem.reason for problem in store.problems)
    assert [log.stem for log in config.rglob("*.jsonl")] == [parent.id]


def test_a_copy_that_is_further_already_is_left_as_it_is() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    inner.append(MAIN, lines(1))
    remote.append(MAIN, lines(1, 2, 3))
    with mirrored(inner, remote) as mirror:
        mirror.append(MAIN, lines(2))
        mirror.flush()
        assert mirror.state == ALL_THERE
    assert [line.data for line in remote.read(MAIN)] == [b'{"n":1}\n', b'{"n":2}\n', b'{"n":3}\n']


def test_a_copy_that_broke_off_is_gone_on_with() -> None:
    class Short(Wrapper):
        """Takes half of what it is given to go on with, then has no connection any more."""

        calls = 0

        def extend(self, key: LogKey, chunks: Iterable[bytes], *, start: int, **given: Any) -> int:
            self.calls += 1
            if self.calls > 3:
                return self.inner.extend(key, chunks, start=start, **given)
            taken = b"".join(chunks)
            self.inner.extend(key, [taken[: len(taken) // 2]], start=start)
            raise Busy("the connection is gone")

    remote = MemoryEngine()
    with mirrored(MemoryEngine(), Short(remote)) as mirror:
        mirror.append(MAIN, lines(*range(100)))
        mirror.flush()
        assert mirror.state == ALL_THERE
    assert content(remote) == content(mirror.inner)


def test_a_step_that_will_never_pass_is_counted_as_lost() -> None:
    refused = StorageError("the place deletes nothing")
    remote = Faulty(MemoryEngine(), at(Fault("delete", 0, "before", refused)))
    with mirrored(MemoryEngine(), remote) as mirror:
        mirror.append(MAIN, lines(1))
        mirror.delete(MAIN)
        mirror.append(OTHER, lines(1))
        mirror.flush()
        assert mirror.state == MirrorState(0, {}, 1)
        assert mirror.problems[0].reason == "1 changes were not copied and will not be: the place deletes nothing"


def test_the_queue_is_bounded_and_what_did_not_fit_is_counted() -> None:
    remote = MemoryEngine()
    writer = Stuck(remote)
    with mirrored(MemoryEngine(), writer, sessions_max=3) as mirror:
        for number in range(10):
            mirror.append(LogKey("-home-a", f"session-{number}"), lines(1))
        lost = mirror.state.lost
        assert 6 <= lost <= 7, "one session may be in work already"
        assert mirror.state.pending <= 4
        writer.free.set()
        mirror.flush()
        assert len(content(remote)) == 10 - lost
        assert "too many sessions" in mirror.problems[0].reason
        mirror.resync()
        assert content(remote) == content(mirror.inner)


def test_a_session_with_too_many_changes_is_compared_as_a_whole() -> None:
    remote = MemoryEngine()
    writer = Stuck(remote)
    with mirrored(MemoryEngine(), writer, marks_max=5) as mirror:
        for number in range(30):
            mirror.put(BlobKey("-home-a", "one", "checkpoint", f"{number}"), [b"%d" % number])
            mirror.append(LogKey("-home-a", "one", f"subagents/agent-{number}"), lines(number))
        mirror.append(MAIN, lines(1))
        writer.free.set()
        mirror.flush()
        assert content(remote) == content(mirror.inner)
        assert len(content(remote)) == 61
        assert mirror.state == ALL_THERE


# Catching up.


def test_resync_brings_over_what_was_there_before() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    for number in range(8):
        inner.append(LogKey("-home-a", f"session-{number}"), lines(number))
        inner.append(LogKey("-home-a", f"session-{number}", "subagents/agent-a"), lines(number))
    inner.append(OTHER, lines(1))
    inner.put(BlobKey("-home-a", "session-1", "checkpoint", "one"), [b"content"])
    remote.extend(LogKey("-home-a", "session-1"), [b'{"n":1}\n'], start=0)
    with mirrored(inner, remote, sessions_max=4) as mirror:
        mirror.resync("-home-a")
        assert OTHER not in content(remote)
        assert mirror.resync() == ALL_THERE
    assert content(remote) == content(inner)


def test_a_second_mirror_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
    for number in range(3):
        inner, remote = (FilesEngine(place, durability="none") for place in (here, there))
        with mirrored(inner, remote) as mirror:
            mirror.append(MAIN_ID, [Entry(b'{"n":%d}' % number)])
        inner.append(MAIN_ID, [Entry(b'{"unseen":%d}' % number)])
    with mirrored(inner, remote) as mirror:
        mirror.resync()
    assert content(remote) == content(inner)
    assert len([*remote.read(MAIN_ID)]) == 6


MAIN_ID = LogKey("-home-a", "aaaaaaaa-0000-4000-8000-000000000001")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_done_and_whatever_fails_both_hold_the_same_in_the_end(seed: int) -> None:
    chosen = random.Random(seed)
    inner, there = MemoryEngine(), MemoryEngine()
    ways = {"": ("before", "after", "during")}
    remote = Faulty(there, seeded(seed, rate=0.3, when=ways))
    with mirrored(inner, remote, backoff=Backoff(tries_max=60, first_seconds=0.0), marks_max=40) as mirror:
        operations = 0
        for number in range(300):
            key = LogKey("-home-a", f"s{chosen.randrange(3)}", chosen.choice(["", "", "subagents/agent-a"]))
            blob = BlobKey(key.project, key.session, "checkpoint", f"{chosen.randrange(3)}")
            stat = inner.stat(key)
            choice = chosen.randrange(100)
            if choice < 60:
                mirror.append(key, lines(*range(number, number + chosen.randrange(1, 4))))
            elif choice < 75:
                mirror.put(blob, [b"%d" % number])
            elif choice < 80:
                mirror.delete_blob(blob)
            elif choice < 85:
                mirror.delete(key)
            elif choice < 90 and stat is not None:
                mirror.replace(key, [b'{"replaced":%d}\n' % number], expect=stat.revision)
            elif choice < 97:
                operations += 1
                mirror.set_aside(key, f"operation-{operations}")
            else:
                try:
                    mirror.bring_back(f"operation-{chosen.randrange(operations + 1)}")
                except Conflict:
                    continue
        mirror.flush()
        assert mirror.state == ALL_THERE
        assert content(there) == content(inner)


# Records to whoever takes them.


class Ingress(RecordSender):
    """A service that takes prompts and what is no record, and fails as often as it is told."""

    url = "https://ingress.example"

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures = failures
        self.got: list[tuple[str, bytes]] = []

    def wants(self, key: LogKey, line: Line) -> bool:  # noqa: ARG002
        record = clew.decode(line)
        return not isinstance(record, Record) or record.type == "user"

    def send(self, key: LogKey, lines: Sequence[Line]) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route to the ingress")
        assert all(line.is_terminated for line in lines)
        self.got += [(key.session, line.data.strip()) for line in lines]


def prompts(*numbers: int) -> list[Entry]:
    return [Entry(b'{"type":"user","uuid":"u-%d"}' % number, f"u-{number}") for number in numbers]


def test_a_sender_gets_the_new_records_it_wants_in_order() -> None:
    inner, ingress = MemoryEngine(), Ingress(failures=2)
    inner.append(MAIN, prompts(0))
    inner.extend(OTHER, [b'{"torn'], start=0)
    with mirrored(inner, ingress) as mirror:
        mirror.append(MAIN, [*prompts(1), Entry(b'{"type":"mode"}'), *prompts(2)])
        mirror.append(MAIN, prompts(1, 3))
        mirror.append(OTHER, prompts(4))
        mirror.extend(OTHER, [b'{"type":"user","uuid":"u-'], start=inner_size(inner, OTHER))
        mirror.flush()
        mirror.extend(OTHER, [b'5"}\n'], start=inner_size(inner, OTHER))
        mirror.flush()
        assert mirror.state == ALL_THERE
    assert [data for session, data in ingress.got if session == "one"] == [entry.data for entry in prompts(1, 2, 3)]
    ended_here = b'{"torn'
    two = [data for session, data in ingress.got if session == "two"]
    assert two == [ended_here, *(entry.data for entry in prompts(4, 5))]


def inner_size(engine: Engine, key: LogKey) -> int:
    stat = engine.stat(key)
    return 0 if stat is None else stat.size_bytes


def test_a_sender_that_gets_no_answer_is_told_of_as_any_other_place() -> None:
    with mirrored(MemoryEngine(), Ingress(failures=1_000)) as mirror:
        mirror.append(MAIN, prompts(1))
        mirror.flush()
        assert mirror.state.behind == {MAIN: "no route to the ingress"}
        assert mirror.problems[0].path == "https://ingress.example#-home-a/one"


def test_a_sender_gets_a_log_that_was_replaced_from_its_beginning() -> None:
    ingress = Ingress()
    with mirrored(MemoryEngine(), ingress) as mirror:
        revision = mirror.append(MAIN, prompts(1)).revision
        mirror.flush()
        mirror.replace(MAIN, [prompts(7)[0].data + b"\n"], expect=revision)
        mirror.flush()
        mirror.append(MAIN, prompts(8))
    assert [data for _, data in ingress.got] == [entry.data for entry in prompts(1, 7, 8)]


def test_a_line_that_is_too_long_to_be_sent_is_named() -> None:
    ingress = Ingress()
    with mirrored(MemoryEngine(line_bytes_max=40), ingress) as mirror:
        mirror.append(MAIN, [*prompts(1), Entry(b'{"type":"user","text":"' + b"x" * 40 + b'"}'), *prompts(2)])
        mirror.flush()
        assert "too long to be sent" in mirror.problems[0].reason
    assert [data for _, data in ingress.got] == [entry.data for entry in prompts(1, 2)]


def test_chosen_records_are_kept_in_another_engine_each_once() -> None:
    remote = MemoryEngine()
    lost_answers = Faulty(remote, at(*(Fault("append", number, "after") for number in (1, 3))))
    writer = RecordsTo(lost_answers, lambda _, line: b'"user"' in line.data or b'"mode"' in line.data)
    with mirrored(MemoryEngine(), writer) as mirror:
        mirror.append(MAIN, [*prompts(1), Entry(b'{"type":"mode"}'), Entry(b" "), Entry(b'{"type":"secret"}')])
        mirror.flush()
        mirror.append(MAIN, [Entry(b'{"type":"mode"}'), *prompts(2)])
        mirror.flush()
    assert [line.data for line in remote.read(MAIN)] == [
        b'{"type":"user","uuid":"u-1"}\n', b'{"type":"mode"}\n', b'{"type":"mode"}\n', b'{"type":"user","uuid":"u-2"}\n'
    ]  # fmt: skip


def test_many_records_come_in_batches() -> None:
    sizes: list[int] = []

    class Counting(RecordSender):
        def send(self, key: LogKey, lines: Sequence[Line]) -> None:  # noqa: ARG002
            sizes.append(len(lines))

    with mirrored(MemoryEngine(), Counting()) as mirror:
        mirror.append(MAIN, lines(*range(250)))
    assert sizes == [100, 100, 50]
