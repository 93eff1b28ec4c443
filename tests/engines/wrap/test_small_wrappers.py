"""Read only, logged and faulty: each does its one thing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from clew.engines.contract import BlobKey, Engine, Entry, LogKey
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.faulty import Fault, Faulty, at, seeded
from clew.engines.wrap.logged import Logged
from clew.engines.wrap.read_only import ReadOnly
from clew.errors import Busy, NotFound, StorageError, UsageError

MAIN = LogKey("-home-a", "session")
BLOB = BlobKey("-home-a", "session", "checkpoint", "one")
SECRET = b'{"type":"user","uuid":"u-1","text":"the secret"}'


def filled() -> MemoryEngine:
    engine = MemoryEngine()
    engine.append(MAIN, [Entry(SECRET, "u-1"), Entry(b'{"n":2}')])
    engine.put(BLOB, [b"the secret", b" of a blob"])
    return engine


CHANGES: list[Callable[[Engine], object]] = [
    lambda engine: engine.append(MAIN, [Entry(b"{}")]),
    lambda engine: engine.append(MAIN, []),
    lambda engine: engine.extend(MAIN, [b"{}\n"], start=0),
    lambda engine: engine.replace(MAIN, [b"{}\n"], expect="1"),
    lambda engine: engine.delete(MAIN),
    lambda engine: engine.set_aside(MAIN, "operation"),
    lambda engine: engine.bring_back("operation"),
    lambda engine: engine.free_aside("operation"),
    lambda engine: engine.put(BLOB, [b"x"]),
    lambda engine: engine.delete_blob(BLOB),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_open_for_reading_refuses_every_change_and_says_what_to_do(
    change: Callable[[Engine], object],
) -> None:
    inner = filled()
    before = inner.stat(MAIN), inner.blob_stat(BLOB)
    with pytest.raises(UsageError, match="memory: is open for reading only") as raised:
        change(ReadOnly(inner))
    assert "ReadOnly" in raised.value.hint
    assert (inner.stat(MAIN), inner.blob_stat(BLOB)) == before


def test_what_is_open_for_reading_is_read() -> None:
    engine = ReadOnly(filled())
    assert [line.data for line in engine.read(MAIN)] == [SECRET + b"\n", b'{"n":2}\n']
    engine.flush()
    engine.close()


def test_a_log_of_calls_holds_methods_keys_and_sizes_and_no_contents(caplog: pytest.LogCaptureFixture) -> None:
    ticks = count()
    engine = Logged(MemoryEngine(), clock=lambda: next(ticks) * 0.0015)
    with caplog.at_level(logging.DEBUG, "clew.engine"):
        engine.append(MAIN, [Entry(SECRET, "u-1")], summary=b"the secret")
        engine.extend(MAIN, iter([b"the ", b"secret"]), start=49)
        [*engine.read(MAIN)]
        engine.put(BLOB, [b"the secret"])
        [*engine.open(BLOB)]
        [*engine.list()]
        with pytest.raises(UsageError):
            engine.append(MAIN, [Entry(b"the secret\n")])
    assert [record.message for record in caplog.records] == [
        "append -home-a/session: 1 pieces, 49 bytes, 1.500 ms",
        "extend -home-a/session: 2 pieces, 10 bytes, 1.500 ms",
        "read -home-a/session: 2 pieces, 59 bytes, 1.500 ms",
        "put -home-a/session/checkpoint/one: 1 pieces, 10 bytes, 1.500 ms",
        "open -home-a/session/checkpoint/one: 1 pieces, 10 bytes, 1.500 ms",
        "list -: 1 pieces, 0 bytes, 1.500 ms",
        "append -home-a/session: 1 pieces, 12 bytes, 1.500 ms, UsageError",
    ]
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 6 + ["WARNING"]
    assert "secret" not in caplog.text


def test_a_name_cannot_look_like_another_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    engine = Logged(MemoryEngine(), clock=lambda: 0.0)
    with caplog.at_level(logging.DEBUG, "clew.engine"):
        engine.stat(LogKey("p\nDEBUG clew", "s\x1b[2J\u202e"))
    assert caplog.records[0].message == r"stat p\nDEBUG clew/s\x1b[2J\u202e: 0 pieces, 0 bytes, 0.000 ms"


def test_a_read_that_is_dropped_or_fails_is_logged_with_what_was_read(caplog: pytest.LogCaptureFixture) -> None:
    engine = Logged(Faulty(filled(), at(Fault("read", 2, "during"))), clock=lambda: 0.0)
    with caplog.at_level(logging.DEBUG, "clew.engine"):
        dropped = engine.read(MAIN)
        next(dropped)
        del dropped
        with pytest.raises(StorageError):
            [*engine.read(MAIN)]
        with pytest.raises(NotFound):
            engine.read(LogKey("-home-a", "none"))
    assert [record.message.partition(":")[2] for record in caplog.records] == [
        " 1 pieces, 49 bytes, 0.000 ms",
        " 1 pieces, 49 bytes, 0.000 ms, StorageError",
        " 0 pieces, 0 bytes, 0.000 ms, NotFound",
    ]


def test_a_planned_fault_comes_at_its_call_and_nothing_was_done() -> None:
    inner = MemoryEngine()
    engine = Faulty(inner, at(Fault("append", 2)))
    engine.append(MAIN, [Entry(b"1")])
    with pytest.raises(StorageError, match="call 2 of append fails before it is done") as raised:
        engine.append(MAIN, [Entry(b"2")])
    assert raised.value.is_permanent is False
    engine.append(MAIN, [Entry(b"3")])
    assert [line.data for line in inner.read(MAIN)] == [b"1\n", b"3\n"]
    assert engine.faults == [("append", 2, "before")]


def test_of_a_lost_answer_everything_was_done() -> None:
    inner = MemoryEngine()
    engine = Faulty(inner, at(Fault("append", 0, "after", Busy("somebody is writing"))))
    with pytest.raises(Busy):
        engine.append(MAIN, [Entry(b"1")])
    assert [line.data for line in inner.read(MAIN)] == [b"1\n"]


def test_an_iterator_breaks_off_after_its_first_piece_or_its_last() -> None:
    engine = Faulty(filled(), at(Fault("read", 1, "during"), Fault("read", 2, "after")))
    for expected in (1, 2):
        found = []
        with pytest.raises(StorageError):
            found += [found.append(line) for line in engine.read(MAIN)]
        assert len(found) == expected
    assert len([*engine.read(MAIN)]) == 2


def test_the_same_seed_fails_at_the_same_calls() -> None:
    def failed(seed: int) -> list[tuple[str, int, str]]:
        engine = Faulty(filled(), seeded(seed, rate=0.3))
        for _ in range(50):
            for call in (lambda: engine.stat(MAIN), lambda: [*engine.read(MAIN)], engine.close):
                with suppress(StorageError):
                    call()
        return [*engine.faults]

    assert failed(1) == failed(1) != failed(2)
    assert {method for method, _, _ in failed(1)} == {"stat", "read"}, "close always works"
    assert {when for _, _, when in failed(1)} == {"before", "after", "during"}
