"""Conformance of an engine that several processes hold at once: what they write together is whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from clew.engines.contract import Engine, Entry, LogKey
from clew.errors import Busy
from clew.testing.conformance_base import MAIN, EngineUnderTest, content_of, line_of, row, uuid_of
from clew.testing.forks import forked, in_processes

TRIES_MAX = 20
RETRIED = 10
"""Each so many-th append is made twice, as after an answer that was lost."""


def entries_of(writer: int, number: int) -> list[Entry]:
    """The lines of one append: a row that no other append has, and a line without id that says whose it is.

    Appends that are made twice have rows with ids alone: between both tries a process may lose its turn for longer than
    a log knows its batches (237 batches of others were seen in between).
    """
    unique = (writer + 1) * 1_000_000 + number
    first = row(unique, "x" * (number % 7) * 500)
    if number % RETRIED == 0:
        return [first, row(unique + 500_000)]
    return [first, Entry(line_of(type="mode", writer=writer, number=number))]


def append_all(engine: Engine, key: LogKey, writer: int, appends: int) -> None:
    """Appends as one of several writers does."""
    for number in range(appends):
        for _ in range(2 if number % RETRIED == 0 else 1):
            _patiently(engine, key, writer, number)


def _patiently(engine: Engine, key: LogKey, writer: int, number: int) -> None:
    for left in range(TRIES_MAX - 1, -1, -1):
        try:
            engine.append(key, entries_of(writer, number), batch_id=f"{writer}-{number}")
        except Busy:
            if not left:
                raise
        else:
            return


def follow(engine: Engine, key: LogKey, lines: int, done: Path) -> None:
    """Reads again and again until so many lines are there, or `done` is; what was seen once must stay as it was."""
    before = b""
    while True:
        is_last = done.exists()
        if engine.stat(key) is not None:
            there = content_of(engine, key)
            assert there.startswith(before), "bytes that a reader saw are not there any more"
            whole = there[: there.rfind(b"\n") + 1]
            back = b"".join([line.data for line in engine.read_back(key)][::-1])
            assert back.startswith(whole)
            before = whole
        if is_last or before.count(b"\n") >= lines:
            return


def assert_whole(content: bytes, writers: int, appends: int, foreign: Sequence[bytes] = ()) -> None:
    """Nothing is lost, torn, doubled or mixed: each append stands together, and those of a writer in their order."""
    lines = content.split(b"\n")
    assert lines.pop() == b"", "the last line has no end"
    mine = [line for line in lines if line not in set(foreign)]
    assert [line for line in lines if line in set(foreign)] == [*foreign]
    assert len(mine) == writers * appends * 2
    pairs = [*zip(mine[::2], mine[1::2], strict=True)]
    for writer in range(writers):
        expected = [tuple(entry.data for entry in entries_of(writer, number)) for number in range(appends)]
        known = set(expected)
        assert [pair for pair in pairs if pair in known] == expected, f"writer {writer}"


class ProcessConformance(EngineUnderTest):
    """What an engine promises to several processes; needs `os.fork`. Skips for a store of one process."""

    @pytest.mark.parametrize(
        ("writers", "appends"), [(3, 40), pytest.param(8, 500, marks=pytest.mark.slow)], ids=["3x40", "8x500"]
    )
    def test_processes_append_to_one_session(self, place: Path, writers: int, appends: int) -> None:
        self._must_be_shared(place)
        done = place.parent / "done"
        total = writers * appends * 2

        def write(writer: int) -> None:
            engine = self.open_engine(place)
            append_all(engine, MAIN, writer, appends)
            engine.close()

        def read() -> None:
            engine = self.open_engine(place)
            follow(engine, MAIN, total, done)
            engine.close()

        readers = [forked(read) for _ in range(2)]
        try:
            in_processes([partial(write, writer) for writer in range(writers)])
        finally:
            done.touch()
            ended = [os.waitpid(reader, 0)[1] for reader in readers]
        assert ended == [0, 0]
        engine = self.open_engine(place)
        assert_whole(content_of(engine, MAIN), writers, appends)
        engine.close()

    def test_processes_that_append_the_same_rows_write_each_once(self, place: Path) -> None:
        self._must_be_shared(place)

        def write() -> None:
            engine = self.open_engine(place)
            for number in range(0, 60, 3):
                engine.append(MAIN, [row(number), row(number + 1), row(number + 2)])
            engine.close()

        in_processes([write] * 4)
        engine = self.open_engine(place)
        ids = [line.data.split(b'"uuid":"')[1][:36].decode() for line in engine.read(MAIN)]
        assert sorted(ids) == [uuid_of(number) for number in range(60)]
        engine.close()

    def _must_be_shared(self, place: Path) -> None:
        engine = self.open_engine(place)
        is_shared = self.is_kept and engine.capabilities.is_shared
        engine.close()
        if not is_shared:
            pytest.skip("a store of one process")
