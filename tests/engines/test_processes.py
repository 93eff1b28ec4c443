"""Processes of ours and another program that appends to the same session: no row of anybody is lost, torn or doubled.

That several processes of ours append to one store is in the conformance suite of every engine. Here another program
writes Claude's files as the client does: it opens, writes once and closes, knows no lock, and may write a row in two
pieces.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import pytest

from clew.engines.files import FilesEngine
from clew.testing.conformance_base import MAIN, content_of, line_of
from clew.testing.forks import forked, in_processes
from clew.testing.processes import append_all, assert_whole, follow

PIECES_SECONDS = 0.05
"""So long the other program waits between two pieces of one row."""


def foreign_row(number: int) -> bytes:
    return line_of(type="foreign", number=number, text="y" * (number % 5) * 700)


def write_as_the_client(path: Path, count: int, *, in_pieces: int) -> None:
    """Appends rows, each in one write, but every so many-th in two."""
    for number in range(count):
        data = foreign_row(number) + b"\n"
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if number % in_pieces == in_pieces - 1:
                cut = len(data) // 2
                os.write(handle, data[:cut])
                time.sleep(PIECES_SECONDS)
                os.write(handle, data[cut:])
            else:
                os.write(handle, data)
        finally:
            os.close(handle)
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("writers", "appends", "rows", "in_pieces"),
    [(3, 40, 30, 6), pytest.param(8, 500, 1_000, 10, marks=pytest.mark.slow)],
    ids=["3x40", "8x500"],
)
def test_a_program_that_appends_as_the_client_does(
    tmp_path: Path, writers: int, appends: int, rows: int, in_pieces: int
) -> None:
    place, done = tmp_path / "config", tmp_path / "done"
    place.mkdir()
    path = FilesEngine(place).path_of(MAIN)
    path.parent.mkdir(parents=True)

    def write(writer: int) -> None:
        append_all(FilesEngine(place, durability="flush"), MAIN, writer, appends)

    reader = forked(lambda: follow(FilesEngine(place), MAIN, writers * appends * 2 + rows, done))
    try:
        in_processes(
            [
                partial(write_as_the_client, path, rows, in_pieces=in_pieces),
                *(partial(write, writer) for writer in range(writers)),
            ]
        )
    finally:
        done.touch()
        ended = os.waitpid(reader, 0)[1]
    assert ended == 0
    content = content_of(FilesEngine(place), MAIN)
    assert_whole(content, writers, appends, foreign=[foreign_row(number) for number in range(rows)])
