"""Appends that come together are written together, and each is answered as if it came alone."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from clew import Conflict, FilesEngine, LogKey
from clew.engines.contract import Entry
from clew.engines.filesystem import OsFileSystem
from clew.engines.shared_log import GROUP_BYTES_MAX, REWRITE_NS, Want

KEY = LogKey("p", "5e551000-0000-4000-8000-000000000001")


@pytest.fixture
def engine(tmp_path: Path) -> FilesEngine:
    return FilesEngine(tmp_path / "config", durability="none")


def row(name: str, size: int = 0) -> Entry:
    return Entry(b'{"type":"user","uuid":"%s","x":"%s"}' % (name.encode(), b"x" * size), name)


def serve(engine: FilesEngine, *wants: Want) -> None:
    """One round with all of them, as when they waited for it together."""
    engine._log(KEY)._serve(wants)


def lines(engine: FilesEngine) -> list[bytes]:
    return [line.data.rstrip(b"\n") for line in engine.read(KEY)]


def test_appends_of_one_round_are_written_in_order_and_each_once(engine: FilesEngine) -> None:
    wants = [Want([row("a"), row("b")]), Want([row("b"), row("c")]), Want([row("a")]), Want([row("d")])]
    serve(engine, *wants)
    assert lines(engine) == [row(name).data for name in "abcd"]
    answers = [want.answer for want in wants]
    assert [(answer.written, answer.duplicates) for answer in answers if answer] == [(2, 0), (1, 1), (0, 1), (1, 0)]


def test_only_the_last_append_of_a_round_knows_the_present_revision(engine: FilesEngine) -> None:
    wants = [Want([row(name)]) for name in "abc"]
    serve(engine, *wants)
    revisions = [want.answer.revision for want in wants if want.answer]
    stat = engine.stat(KEY)
    assert stat is not None
    assert (len({*revisions}), revisions[-1]) == (3, stat.revision)
    for passed in revisions[:-1]:
        with pytest.raises(Conflict):
            engine.append(KEY, [row("late")], expect=passed)
    engine.append(KEY, [row("d")], expect=revisions[-1])
    assert lines(engine) == [row(name).data for name in "abcd"]


def test_an_append_with_a_condition_is_compared_with_what_came_before_it_in_the_same_round(engine: FilesEngine) -> None:
    revision = engine.append(KEY, [row("a")]).revision
    bold, careful = Want([row("b")]), Want([row("c")], expect=revision)
    serve(engine, bold, careful, Want([row("d")]))
    assert isinstance(careful.error, Conflict)
    assert lines(engine) == [row(name).data for name in "abd"]


def test_appends_that_are_large_together_are_written_one_after_the_other(engine: FilesEngine) -> None:
    wants = [Want([row(name, GROUP_BYTES_MAX - 100)]) for name in "abc"]
    serve(engine, *wants)
    assert [line[:30] for line in lines(engine)] == [row(name).data[:30] for name in "abc"]
    assert all(want.answer for want in wants)


def test_a_flush_finds_that_the_file_was_replaced_since_the_append(tmp_path: Path) -> None:
    engine = FilesEngine(tmp_path, durability="flush")
    engine.append(KEY, [row("one")])
    path = Path(engine.where(KEY))
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    engine.append(KEY, [row("two")])
    copy.rename(path)
    engine.flush()
    assert lines(engine) == [row("one").data, row("two").data]


def test_rows_that_a_copy_lacks_are_told_where_they_may_be_missing_on_purpose(tmp_path: Path) -> None:
    engine = FilesEngine(tmp_path, durability="none")
    engine.append(KEY, [row("one")])
    path = Path(engine.where(KEY))
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    engine.append(KEY, [row("two")])
    copy.rename(path)
    (journal,) = (tmp_path / "clew").rglob("*.jnl")
    long_ago = journal.stat().st_mtime_ns - REWRITE_NS - 1_000_000_000
    os.utime(journal, ns=(long_ago, long_ago))
    told = FilesEngine(tmp_path, durability="none").append(KEY, [row("three")])
    assert told.notes == ("another program replaced the log: 1 rows appended before are not in it any more",)
    assert lines(engine) == [row("one").data, row("three").data]
    assert engine.append(KEY, [row("four")]).notes == ()


class Replaced(OsFileSystem):
    """Another program puts its copy in the place of the log when the next append is about to be flushed."""

    copy: Path | None = None

    def sync(self, file: io.RawIOBase) -> None:
        super().sync(file)
        if self.copy is None:
            return
        log = self.copy.with_suffix(".jsonl")
        if os.path.samestat(os.fstat(file.fileno()), log.stat()):
            self.copy.rename(log)
            self.copy = None


def test_what_earlier_appends_lost_comes_back_with_the_append_that_finds_it(tmp_path: Path) -> None:
    fs = Replaced(is_synced=True)
    engine = FilesEngine(tmp_path, fs=fs)
    rows = [
        Entry(b'{"type":"user","uuid":"%d","parentUuid":"%d"}' % (at, at - 1) if at else b'{"type":"user","uuid":"0"}')
        for at in range(5)
    ]
    engine.append(KEY, [rows[0]])
    path = Path(engine.where(KEY))
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    engine.append(KEY, [rows[1]])
    engine.append(KEY, [rows[2]])
    fs.copy = copy
    assert engine.append(KEY, [rows[3]]).notes == (
        "another program replaced the log and lost rows: 3 were appended again",
    )
    engine.append(KEY, [rows[4]])
    assert lines(engine) == [row.data for row in rows]
