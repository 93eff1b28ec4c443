"""Conformance of an engine that several hold at once: threads, other engines on the same store, watchers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from clew.engines.contract import Engine, Entry, LogKey
from clew.errors import Conflict
from clew.testing.conformance_base import (
    MAIN,
    PROJECT,
    S2,
    SUB1,
    EngineUnderTest,
    blob,
    bytes_of,
    content_of,
    keys_of,
    line_of,
    note,
    row,
    rows,
    uuid_of,
)

Answer = TypeVar("Answer")
THREADS = 6
APPENDS = 25
SWITCH_SECONDS = 0.00001
SECONDS_MAX = 60.0
"""So long a test waits for what must happen, before it is said not to."""


class SharingConformance(EngineUnderTest):
    """What an engine promises to several threads and processes."""

    def test_threads_append_to_one_log_and_nothing_is_lost_or_mixed(self, engine: Engine) -> None:
        def append(thread: int) -> None:
            for number in range(APPENDS):
                engine.append(MAIN, _pair(thread, number), batch_id=f"{thread}-{number}")

        at_once([partial(append, thread) for thread in range(THREADS)])
        lines = content_of(engine, MAIN).splitlines()
        assert len(lines) == THREADS * APPENDS * 2
        pairs = [*zip(lines[::2], lines[1::2], strict=True)]
        for thread in range(THREADS):
            expected = [tuple(entry.data for entry in _pair(thread, number)) for number in range(APPENDS)]
            # Lines of one append stand together, and those of one thread in its order.
            assert [pair for pair in pairs if pair in set(expected)] == expected

    def test_threads_append_to_many_logs(self, engine: Engine) -> None:
        def append(thread: int) -> None:
            for number in range(APPENDS):
                engine.append(LogKey(PROJECT, f"session-{thread}"), rows(number))

        at_once([partial(append, thread) for thread in range(THREADS)])
        for thread in range(THREADS):
            assert content_of(engine, LogKey(PROJECT, f"session-{thread}")) == bytes_of(rows(*range(APPENDS)))

    def test_a_row_that_all_threads_append_is_written_once(self, engine: Engine) -> None:
        done = at_once([lambda: engine.append(MAIN, rows(*range(40))) for _ in range(THREADS)])
        assert sum(each.written for each in done) == 40
        assert sum(each.duplicates for each in done) == 40 * (THREADS - 1)
        assert content_of(engine, MAIN) == bytes_of(rows(*range(40)))

    def test_of_many_that_expect_the_same_revision_one_wins(self, engine: Engine) -> None:
        revision = ""
        for turn in range(5):
            calls = [_expecting(engine, revision, [note(turn * 100 + thread)]) for thread in range(THREADS)]
            won = [each for each in at_once(calls) if each is not None]
            assert len(won) == 1
            revision = won[0]
        assert len(content_of(engine, MAIN).splitlines()) == 5

    def test_lists_hold_what_is_there_while_others_write(self, engine: Engine) -> None:
        engine.append(LogKey(PROJECT, S2), rows(1))
        engine.append(SUB1, rows(1))
        writing = threading.Event()

        def write() -> None:
            for number in range(120):
                key = LogKey(PROJECT, f"session-{number}")
                engine.append(key, rows(number))
                engine.append(MAIN, rows(number))
                if number % 3 == 0:
                    engine.delete(key)
            writing.set()

        def look() -> int:
            looks = 0
            while not writing.is_set() or looks == 0:
                assert LogKey(PROJECT, S2) in keys_of(engine.list(PROJECT))
                assert keys_of(engine.list_sub(MAIN)) == [SUB1]
                assert PROJECT in engine.projects()
                looks += 1
            return looks

        at_once([write, look, look])
        assert len(keys_of(engine.list(PROJECT))) == 80 + 2
        assert content_of(engine, MAIN) == bytes_of(rows(*range(120)))

    def test_a_reader_sees_whole_lines_and_of_one_being_written_its_beginning(self, engine: Engine) -> None:
        entries = [row(number, "x" * (number % 7) * 4_000) for number in range(80)]
        whole = bytes_of(entries)
        writing = threading.Event()

        def write() -> None:
            for entry in entries:
                engine.append(MAIN, [entry])
            writing.set()

        def read() -> None:
            while True:
                last = writing.is_set()
                stat = engine.stat(MAIN)
                if stat is not None:
                    forward = [line.data for line in engine.read(MAIN)]
                    back = [line.data for line in engine.read_back(MAIN)][::-1]
                    for lines in (forward, back):
                        assert whole.startswith(b"".join(lines))
                        assert all(line.endswith(b"\n") for line in lines[:-1])
                    assert stat.size_bytes <= len(b"".join(forward)) <= len(b"".join(back))
                if last:
                    assert b"".join(forward) == whole
                    return

        at_once([write, read, read])

    def test_blobs_of_the_same_name_are_put_whole(self, engine: Engine) -> None:
        contents = [bytes([65 + thread]) * 50_000 for thread in range(THREADS)]
        at_once([partial(engine.put, blob(), [content]) for content in contents])
        assert b"".join(engine.open(blob())) in contents

    # Several engines on one store, as several processes have them.

    def test_another_engine_sees_what_was_written(self, engine: Engine, place: Path) -> None:
        other = self.second(engine, place)
        revision = engine.append(MAIN, rows(1), batch_id="b").revision
        assert content_of(other, MAIN) == bytes_of(rows(1))
        assert other.append(MAIN, rows(1, 2)).written == 1
        assert other.append(MAIN, rows(1), batch_id="b").written == 0
        with pytest.raises(Conflict):
            engine.append(MAIN, rows(3), expect=revision)
        assert engine.append(MAIN, rows(2, 3)).written == 1
        assert content_of(other, MAIN) == bytes_of(rows(1, 2, 3))
        other.close()

    def test_a_batch_without_ids_is_known_to_another_engine(self, engine: Engine, place: Path) -> None:
        other = self.second(engine, place)
        for each in (engine, other, engine, other):
            each.append(MAIN, [note(1), note(1)], batch_id="b")
        assert content_of(engine, MAIN) == bytes_of([note(1)] * 2)
        other.close()

    def test_another_engine_sees_what_was_replaced_deleted_and_set_aside(self, engine: Engine, place: Path) -> None:
        other = self.second(engine, place)
        revision = engine.append(MAIN, rows(1, 2)).revision
        assert other.append(MAIN, rows(1)).written == 0
        engine.replace(MAIN, [bytes_of(rows(2))], expect=revision)
        assert other.append(MAIN, rows(1, 2)).written == 1
        assert engine.append(MAIN, rows(1)).written == 0
        assert other.delete(MAIN) is True
        assert engine.append(MAIN, rows(1)).written == 1
        assert content_of(other, MAIN) == bytes_of(rows(1))
        other.set_aside(MAIN, "op")
        assert engine.append(MAIN, rows(1)).written == 1
        engine.delete(MAIN)
        assert engine.bring_back("op").logs == 1
        assert other.append(MAIN, rows(1)).written == 0
        other.close()

    def test_engines_on_one_store_append_at_once(self, engine: Engine, place: Path) -> None:
        engines = [engine, self.second(engine, place), self.second(engine, place)]

        def append(at: int) -> None:
            for number in range(APPENDS):
                engines[at].append(MAIN, [*_pair(at, number), row(number)], batch_id=f"{at}-{number}")

        at_once([partial(append, at) for at in range(len(engines))])
        lines = content_of(engine, MAIN).splitlines()
        expected = {entry.data for at in range(3) for number in range(APPENDS) for entry in _pair(at, number)}
        expected |= {row(number).data for number in range(APPENDS)}
        assert len(lines) == len(expected)
        assert set(lines) == expected
        for each in engines[1:]:
            each.close()

    # Watching.

    def test_a_watcher_misses_no_change(self, engine: Engine) -> None:
        other = LogKey(PROJECT, S2)
        engine.append(MAIN, rows(0))
        stop = threading.Event()
        changes = engine.watch([MAIN, other], stop, seconds=0.005)
        # Already since the call, not only since the first look.
        engine.append(MAIN, rows(1))

        def follow() -> list[int]:
            seen = [sum(1 for _ in engine.read(MAIN))]
            for _ in changes:
                seen.append(sum(1 for _ in engine.read(MAIN)))
                if seen[-1] == 12 and engine.stat(other) is not None:
                    break
            return seen

        def write() -> list[int]:
            for number in range(2, 12):
                engine.append(MAIN, rows(number))
            engine.append(other, rows(1))
            return []

        timer = threading.Timer(SECONDS_MAX, stop.set)
        timer.start()
        seen = max(at_once([follow, write]), key=len)
        timer.cancel()
        assert seen[-1] == 12
        assert not stop.is_set()

    def test_a_watcher_ends_when_it_is_told_to(self, engine: Engine) -> None:
        stop = threading.Event()
        changes = engine.watch([MAIN], stop, seconds=0.005)
        stop.set()
        assert [*changes] == []

    # Flushing and closing.

    def test_what_was_written_is_there_after_closing_twice(self, engine: Engine, place: Path) -> None:
        engine.append(MAIN, rows(1, 2))
        engine.put(blob(), [b"x"])
        engine.flush()
        engine.flush()
        again = self.reopened(engine, place)
        engine.close()
        assert content_of(again, MAIN) == bytes_of(rows(1, 2))
        assert b"".join(again.open(blob())) == b"x"
        assert keys_of(again.list()) == [MAIN]
        again.close()
        again.close()


def at_once(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """What the calls answer, each in a thread of its own, all begun together. The first error of one gets out.

    Threads change places far more often than they would by themselves, so that what is not locked shows.
    """
    barrier = threading.Barrier(len(calls))

    def begun(call: Callable[[], Answer]) -> Answer:
        barrier.wait(SECONDS_MAX)
        return call()

    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            waiting: list[Future[Answer]] = [pool.submit(begun, call) for call in calls]
    finally:
        sys.setswitchinterval(usual)
    return [each.result() for each in waiting]


def _pair(thread: int, number: int) -> list[Entry]:
    """Two lines of one append, which no other append has."""
    unique = (thread + 1) * 100_000 + number
    return [row(unique, "x" * (number % 5) * 1_000), Entry(line_of(type="mode", of=uuid_of(unique)))]


def _expecting(engine: Engine, revision: str, entries: Sequence[Entry]) -> Callable[[], str | None]:
    """An append that answers with its revision, or None where another was first."""

    def call() -> str | None:
        try:
            return engine.append(MAIN, entries, expect=revision).revision
        except Conflict:
            return None

    return call
