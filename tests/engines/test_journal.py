"""The journal tells what was appended, also after it was torn, to every process that asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.engines.filesystem import OsFileSystem
from clew.engines.journal import BATCHES_NOTED, JOURNAL_BYTES_MAX, Journal, Noted


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "log.jnl")


def journal(path: str) -> Journal:
    return Journal(OsFileSystem(is_synced=False), path)


def add(to: Journal, *notes: Noted) -> None:
    for noted in notes:
        to.notes()
        to.note(noted, is_durable=noted.batch is not None)


ONE, TWO, THREE = (Noted(name, 7, 100 * at, 5, b"rows\n") for at, name in enumerate(["one", None, "\ud800"]))


def test_what_one_process_notes_every_other_reads(path: str) -> None:
    here, there = journal(path), journal(path)
    add(here, ONE)
    assert there.notes() == [ONE]
    add(here, TWO)
    add(there, THREE)
    assert here.notes() == there.notes() == journal(path).notes() == [ONE, TWO, THREE]


@pytest.mark.parametrize("cut", range(1, 12))
def test_after_a_torn_note_the_next_ones_can_be_read(path: str, cut: int) -> None:
    add(journal(path), ONE, TWO)
    Path(path).write_bytes(Path(path).read_bytes()[:-cut])
    assert journal(path).notes() == [ONE]
    here = journal(path)
    add(here, THREE)
    assert here.notes() == journal(path).notes() == [ONE, THREE]


def test_a_journal_does_not_grow_without_end_and_keeps_the_batches(path: str) -> None:
    here = journal(path)
    notes = [Noted(f"batch {number}", 7, number, 10_000, b"x" * 10_000) for number in range(400)]
    add(here, *notes)
    assert Path(path).stat().st_size <= JOURNAL_BYTES_MAX
    for told in (here, journal(path)):
        assert [noted.batch for noted in told.notes()][-BATCHES_NOTED:] == [
            noted.batch for noted in notes[-BATCHES_NOTED:]
        ]
        assert told.notes()[-1] == notes[-1]


def test_a_journal_that_was_taken_away_begins_anew(path: str) -> None:
    here = journal(path)
    add(here, ONE, TWO)
    Path(path).unlink()
    assert here.notes() == []
    add(here, THREE)
    assert here.notes() == journal(path).notes() == [THREE]


@pytest.mark.parametrize("place", ["-1", "-1000000000000000000000000000000"])
@pytest.mark.parametrize("field", ["inode", "start", "size"])
def test_a_note_of_a_place_that_cannot_be_counts_as_damage(path: str, field: str, place: str) -> None:
    add(journal(path), ONE)
    header = {"batch": '"61"', "inode": "7", "start": "0", "size": "0", "kept": "false"} | {field: place}
    with Path(path).open("ab") as file:
        file.write(("{" + ",".join(f'"{name}":{value}' for name, value in header.items()) + "}\n").encode())
    assert journal(path).notes() == [ONE]
    add(journal(path), TWO)
    assert journal(path).notes() == [ONE, TWO]
