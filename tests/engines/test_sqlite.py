"""The engine on one SQLite file: all that the contract says, and what is its own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import io
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.engines import sqlite_schema
from clew.engines.contract import Aside, BlobKey, Engine, Entry, LogKey
from clew.engines.files import Durability, FilesEngine
from clew.engines.filesystem import OsFileSystem
from clew.engines.memory import MemoryEngine
from clew.engines.sqlite import SqliteEngine
from clew.engines.sqlite_blobs import INSIDE_BYTES_MAX
from clew.errors import Busy, ClewError, DamagedData, NotFound, StorageError, UsageError
from clew.records.line import LINE_BYTES_MAX
from clew.testing.conformance import AppendConformance, EngineConformance, SharingConformance
from session_files import write

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # Python says it at every fork.


def now() -> datetime:
    return datetime.now(UTC)


class TestSqlite(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return SqliteEngine(place / "sessions.db", clock=now, line_bytes_max=line_bytes_max, durability="none")


class TestDurableSqlite(EngineConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return SqliteEngine(place / "sessions.db", clock=now, line_bytes_max=line_bytes_max)


class TestFlushedSqlite(AppendConformance, SharingConformance):
    def open_engine(self, place: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Engine:
        return SqliteEngine(place / "sessions.db", clock=now, line_bytes_max=line_bytes_max, durability="flush")


def opened(place: Path, **settings: object) -> SqliteEngine:
    return SqliteEngine(place / "sessions.db", clock=now, durability="none", **settings)  # type: ignore[arg-type]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = opened(tmp_path)
    yield engine
    engine.close()


MAIN = LogKey("-home-a", "s1")


def said(number: int, text: str = "hello") -> Entry:
    """A row of a conversation."""
    uuid = f"{number:08x}-0000-4000-8000-000000000000"
    row = {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}
    return Entry(msgspec.json.encode(row), uuid)


def content(engine: Engine, key: LogKey = MAIN) -> bytes:
    return b"".join(line.data for line in engine.read(key))


# The file.


def test_opening_and_looking_around_make_nothing(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    assert [*engine.list(), *engine.list_sub(MAIN), *engine.projects(), *engine.find_sessions("s")] == []
    assert [*engine.search("word"), *engine.blobs(MAIN)] == []
    assert engine.stat(MAIN) is None
    assert not engine.delete(MAIN)
    assert engine.set_aside(MAIN, "o") == Aside()
    assert engine.bring_back("o") == engine.free_aside("o") == Aside()
    assert [problem.reason for problem in engine.problems] == ["there is no database yet"]
    engine.flush()
    engine.close()
    assert [*tmp_path.iterdir()] == []


def test_everything_beside_the_sessions_is_for_their_owner_only(tmp_path: Path, engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(1)])
    engine.put(BlobKey("-home-a", "s1", "backup", "x"), [b"x" * (INSIDE_BYTES_MAX + 1)])
    modes = {path: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert {path.name for path in modes} > {"sessions.db", "sessions.db-wal", "sessions.db-shm", "sessions.db-blobs"}
    assert {oct(mode) for path, mode in modes.items() if path.is_file()} == {"0o600"}
    assert {oct(mode) for path, mode in modes.items() if path.is_dir()} == {"0o700"}


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path, engine: SqliteEngine) -> None:
    (tmp_path / "sessions.db").touch(mode=0o640)
    engine.append(MAIN, [said(1)])
    assert (tmp_path / "sessions.db").stat().st_mode & 0o777 == 0o640


def _a_directory(path: Path) -> None:
    path.mkdir()


def _a_text(path: Path) -> None:
    path.write_text("a diary, and not a database " * 200)


def _a_pipe(path: Path) -> None:
    os.mkfifo(path)


def _a_circle(path: Path) -> None:
    path.symlink_to(path)


def _of_another_program(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
        db.commit()


def _damaged(path: Path) -> None:
    engine = SqliteEngine(path, durability="none")
    engine.append(MAIN, [Entry(b"x" * 3_000) for _ in range(200)])
    engine.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))


def _of_a_schema_that_is_no_text(path: Path) -> None:
    engine = SqliteEngine(path, durability="none")
    engine.append(MAIN, [Entry(b"x")])
    engine.close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \xeaABLE"))


@pytest.mark.parametrize(("make", "kind", "says"), [
    (_of_a_schema_that_is_no_text, DamagedData, "is damaged"),
    (_a_directory, StorageError, "is a directory"), (_a_text, DamagedData, "is no SQLite database"),
    (_a_pipe, StorageError, "is a pipe"), (_a_circle, StorageError, "Too many levels"),
    (_of_another_program, DamagedData, "database of another program"), (_damaged, DamagedData, "is damaged"),
])  # fmt: skip
def test_what_is_no_database_of_ours_is_told_and_left_as_it_is(
    tmp_path: Path, engine: SqliteEngine, make: Callable[[Path], None], kind: type[ClewError], says: str
) -> None:
    path = tmp_path / "sessions.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    for ask in (
        lambda: [*engine.list()], lambda: engine.append(MAIN, [said(1)]), lambda: engine.extend(MAIN, [b"x"], start=0),
        lambda: engine.put(BlobKey("p", "s", "k", "n"), [b"x"]), lambda: [*engine.search("word")],
    ):  # fmt: skip
        with pytest.raises(kind, match=says) as caught:
            ask()
        assert caught.value.hint
    assert says in engine.problems[0].reason
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "not" / "there.db")
    for ask in (lambda: [*engine.list()], lambda: engine.append(MAIN, [said(1)])):
        with pytest.raises(NotFound, match=r"there is no directory .*/not") as caught:
            ask()
        assert "mkdir" in caught.value.hint
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="no path"):
        SqliteEngine(path)


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    name = "a b?mode=memory&x=%41#é\udcff;'\""
    engine = SqliteEngine(tmp_path / name, durability="none")
    engine.append(MAIN, [said(1)])
    engine.close()
    assert os.listdir(tmp_path) == [name]


def test_a_link_and_the_file_are_one_store(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "sessions.db")
    linked, engine = SqliteEngine(tmp_path / "link.db", durability="none"), opened(tmp_path)
    key, large = BlobKey("p", "s", "k", "n"), b"x" * (INSIDE_BYTES_MAX + 1)
    linked.append(MAIN, [said(1)])
    linked.put(key, [large])
    assert engine.stat(MAIN) == linked.stat(MAIN)
    assert b"".join(engine.open(key)) == large


def test_another_file_under_the_name_is_another_store(tmp_path: Path, engine: SqliteEngine) -> None:
    before = engine.append(MAIN, [said(1)]).revision
    for name in os.listdir(tmp_path):
        (tmp_path / name).unlink()
    assert engine.stat(MAIN) is None
    # The same bytes in a log that was made anew: it is told from the one that a caller may remember.
    assert engine.append(MAIN, [said(1)]).revision.partition("-")[0] != before.partition("-")[0]
    assert [line.data for line in opened(tmp_path).read(MAIN)] == [said(1).data + b"\n"]


def as_nobody(work: Callable[[], object]) -> None:
    """Does it in a child without the rights of root."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - Nothing may come back from here.
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def public_place() -> Iterator[Path]:
    """A directory that every user can reach: pytest's own are closed to others."""
    place = Path(tempfile.mkdtemp(prefix="clew-test-"))
    yield place
    place.chmod(0o700)
    shutil.rmtree(place)


def test_a_file_that_can_only_be_read_is_read(public_place: Path) -> None:
    engine = opened(public_place)
    engine.append(MAIN, [said(1)])
    engine.close()
    (public_place / "sessions.db").chmod(0o444)
    public_place.chmod(0o555)

    def look() -> None:
        engine = opened(public_place)
        assert content(engine) == said(1).data + b"\n"
        assert [stat.key for stat in engine.list()] == [MAIN]
        with pytest.raises(StorageError, match="readonly database") as caught:
            engine.append(MAIN, [said(2)])
        assert "ls -ld" in caught.value.hint

    as_nobody(look)
    assert os.listdir(public_place) == ["sessions.db"]


def test_a_file_that_must_not_be_read_is_told(public_place: Path) -> None:
    engine = opened(public_place)
    engine.append(MAIN, [said(1)])
    engine.close()
    (public_place / "sessions.db").chmod(0o000)
    public_place.chmod(0o755)

    def look() -> None:
        with pytest.raises(StorageError, match="unable to open") as caught:
            [*opened(public_place).list()]
        assert caught.value.hint

    as_nobody(look)


# Migrations.


def _changed(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    engine.append(MAIN, [said(1)])
    engine.close()
    _changed(tmp_path / "sessions.db", "INSERT INTO migration VALUES ('9999 what comes')")
    for ask in (lambda: [*engine.list()], lambda: engine.append(MAIN, [said(2)])):
        with pytest.raises(UsageError, match=r"later version of clew.*'9999 what comes'") as caught:
            ask()
        assert "upgrade" in caught.value.hint


def test_a_file_of_an_earlier_version_gets_what_it_lacks(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    engine.append(MAIN, [said(1)])
    engine.close()
    _changed(
        tmp_path / "sessions.db", "DELETE FROM migration WHERE name = '0002 blobs'", "DROP TABLE blob",
        "DROP TABLE content",
    )  # fmt: skip
    key = BlobKey("p", "s", "k", "n")
    assert engine.blob_stat(key) is None
    engine.put(key, [b"x"])
    assert b"".join(engine.open(key)) == b"x"
    assert content(engine) == said(1).data + b"\n"
    engine.close()


def test_rows_that_an_earlier_version_appended_are_known_but_not_where_they_stand(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    engine.append(MAIN, [said(1)])
    engine.close()
    _changed(
        tmp_path / "sessions.db", "DELETE FROM migration WHERE name = '0003 positions'",
        "ALTER TABLE dedupe DROP COLUMN position",
    )  # fmt: skip
    ids = [entry.dedupe_id or "" for entry in (said(1), said(2))]
    assert engine.find_row(MAIN, ids[0]) is None
    assert engine.append(MAIN, [said(1), said(2)]).written == 1
    assert [engine.find_row(MAIN, each) for each in ids] == [None, len(said(1).data) + 1]
    engine.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**sqlite_schema.MIGRATIONS, "9999 broken": ("CREATE TABLE extra (x)", "CREATE TABLE log (x)")}
    engine = opened(tmp_path)
    engine.append(MAIN, [said(1)])
    engine.close()
    with monkeypatch.context() as patched:
        patched.setattr(sqlite_schema, "MIGRATIONS", broken)
        with pytest.raises(StorageError, match="already exists"):
            engine.append(MAIN, [said(2)])
    assert content(engine) == said(1).data + b"\n"
    with contextlib.closing(sqlite3.connect(tmp_path / "sessions.db")) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'extra'").fetchone() == (0,)
    engine.close()


# Writing.


def test_durability_is_what_sqlite_is_told(tmp_path: Path) -> None:
    for durability, level in (("fsync", 2), ("flush", 1), ("none", 0)):
        engine = SqliteEngine(tmp_path / f"{durability}.db", durability=cast(Durability, durability))
        engine.append(MAIN, [said(1)])
        with engine._file.writing() as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (level,)
            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert engine.capabilities.is_durable is (durability == "fsync")
        engine.close()


def test_flush_brings_what_was_appended_to_the_disk(tmp_path: Path) -> None:
    synced: list[str] = []

    class Watched(OsFileSystem):
        def sync(self, file: io.RawIOBase) -> None:
            synced.append(os.readlink(f"/proc/self/fd/{file.fileno()}") if sys.platform == "linux" else "x-wal")
            super().sync(file)

    engine = SqliteEngine(tmp_path / "sessions.db", durability="flush", fs=Watched())
    engine.flush()
    engine.append(MAIN, [said(1)])
    assert synced == []
    engine.flush()
    assert [name.endswith("-wal") for name in synced] == [True]
    engine.close()


def test_who_writes_for_too_long_makes_others_busy_and_nothing_is_written(tmp_path: Path) -> None:
    holder, engine = opened(tmp_path), opened(tmp_path, wait_seconds=1, pause=(pauses := []).append)
    holder.append(MAIN, [said(1)])
    with holder._file.writing():
        with pytest.raises(Busy, match="written by others for more than 1 s"):
            engine.append(MAIN, [said(2)])
        assert 1 <= sum(pauses) < 1.1
        # Reading waits for nobody.
        assert content(engine) == said(1).data + b"\n"
    assert engine.append(MAIN, [said(2)]).written == 1
    holder.close()
    engine.close()


def test_a_full_disk_loses_nothing_and_what_comes_after_it_is_kept(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(1)])
    with engine._file.writing() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 4}")
    for ask in (
        lambda: engine.append(MAIN, [said(2, "x" * 1_000_000)], batch_id="b"),
        lambda: engine.extend(MAIN, [b"x" * 1_000_000], start=len(content(engine))),
        lambda: engine.extend(LogKey("p", "new"), [b"x" * 1_000_000], start=0),
    ):
        with pytest.raises(StorageError, match="full") as caught:
            ask()
        assert "df -h" in caught.value.hint
    assert content(engine) == said(1).data + b"\n"
    assert engine.stat(LogKey("p", "new")) is None
    with engine._file.writing() as db:
        db.execute("PRAGMA max_page_count = 1000000")
    assert engine.append(MAIN, [said(2, "x" * 1_000_000)], batch_id="b").written == 1


def test_an_error_of_the_caller_undoes_the_whole_change(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(1)])

    def chunks() -> Iterator[bytes]:
        yield b"x" * 100
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        engine.extend(MAIN, chunks(), start=len(content(engine)))
    with pytest.raises(RuntimeError, match="no more"):
        engine.put(BlobKey("p", "s", "k", "n"), chunks())
    assert content(engine) == said(1).data + b"\n"


def test_times_beyond_what_the_file_can_hold_are_cut(engine: SqliteEngine) -> None:
    for modified_ns in (2**70, -(2**70)):
        key = LogKey("p", str(modified_ns))
        engine.extend(key, [b"{}\n"], start=0, modified_ns=modified_ns)
        stat = engine.stat(key)
        assert stat is not None
        assert abs(stat.modified_ns) == 2**63 - 1
        assert engine.append(key, [said(1)]).written == 1


def test_a_row_that_an_append_ended_is_known_later(engine: SqliteEngine) -> None:
    engine.extend(MAIN, [said(1).data], start=0)
    assert engine.append(MAIN, [Entry(b'{"type":"mode"}')]).notes
    assert engine.append(MAIN, [said(1)]).duplicates == 1
    assert content(engine) == said(1).data + b'\n{"type":"mode"}\n'


def test_sessions_of_the_client_come_back_byte_for_byte(tmp_path: Path, engine: SqliteEngine) -> None:
    chance = random.Random(7)
    for number, path in enumerate(sorted(CORPUS.rglob("*.jsonl"))):
        data = bytearray(path.read_bytes())
        for _ in range(number % 4):
            at = chance.randrange(len(data))
            data[at : at + chance.randrange(9)] = chance.choice(
                [b"\0" * 600, b"\r\n", b"\n\n", b"\xff\xfe", b"}{", b""]
            )
        write(tmp_path / "config", number, raw=bytes(data[: len(data) - number % 3]), at=1_000 + number)
    source, target = FilesEngine(tmp_path / "config"), FilesEngine(tmp_path / "copy", durability="none")
    (tmp_path / "copy").mkdir()
    keys = [stat.key for main in source.list() for stat in (main, *source.list_sub(main.key))]
    assert len(keys) >= 30
    for key in keys:
        for one, other in ((source, engine), (engine, target)):
            stat = one.stat(key)
            assert stat is not None
            chunks = one.read_range(key, position=0, size=stat.size_bytes)
            other.extend(key, chunks, start=0, modified_ns=stat.modified_ns, make=True)
    for key in keys:
        before, after = Path(source.where(key)), Path(target.where(key))
        assert after.read_bytes() == before.read_bytes()
        assert after.stat().st_mtime_ns == before.stat().st_mtime_ns


@given(st.lists(st.one_of(
    st.binary(max_size=40).map(lambda data: ("extend", data)),
    st.sampled_from([b"\n", b"\r\n", b'{"uuid":"a"}', b'{"uuid":"a"}\n', b'{"uuid":', b"\0\0\n"]).map(
        lambda data: ("extend", data)),
    st.sampled_from(["a", "b", None]).map(lambda uuid: ("append", uuid)),
), max_size=12))  # fmt: skip
def test_whatever_comes_is_as_it_would_be_in_memory(steps: list[tuple[str, bytes | str | None]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        ours, model = opened(Path(place), line_bytes_max=20, chunk_bytes=7), MemoryEngine(line_bytes_max=20)
        for what, value in steps:
            for engine in (ours, model):
                stat = engine.stat(MAIN)
                if what == "extend":
                    engine.extend(MAIN, [cast(bytes, value)], start=stat.size_bytes if stat else 0, make=True)
            if what == "append":
                entry = Entry(b'{"uuid":"%s"}' % str(value).encode(), cast("str | None", value))
                found = [engine.append(MAIN, [entry, entry]) for engine in (ours, model)]
                assert [(each.written, each.duplicates, each.notes) for each in found[:1]] == [
                    (each.written, each.duplicates, each.notes) for each in found[1:]
                ]
        if model.stat(MAIN) is not None:
            assert [*ours.read(MAIN)] == [*model.read(MAIN)]
            assert [*ours.read_back(MAIN)] == [*model.read_back(MAIN)]
        ours.close()


# Blobs.


def test_content_is_held_once_and_goes_with_the_last_name(tmp_path: Path, engine: SqliteEngine) -> None:
    large = b"x" * (INSIDE_BYTES_MAX + 1)
    keys = [BlobKey("p", session, "k", "n") for session in ("a", "b", "c")]
    for key in keys:
        engine.put(key, [large])
    files = [path for path in (tmp_path / "sessions.db-blobs").rglob("*") if path.is_file()]
    assert [path.name for path in files] == [hashlib.sha256(large).hexdigest()]
    engine.delete_blob(keys[0])
    engine.put(keys[1], [b"small now"])
    engine.set_aside(LogKey("p", "c"), "operation")
    assert files[0].exists()
    engine.free_aside("operation")
    assert not files[0].exists()
    assert b"".join(engine.open(keys[1])) == b"small now"
    with engine._file.reading() as db:
        assert db is not None
        assert db.execute("SELECT count(*) FROM content").fetchone() == (1,)


def test_content_that_is_read_while_it_is_freed_is_read_to_its_end(engine: SqliteEngine) -> None:
    key, large = BlobKey("p", "s", "k", "n"), b"x" * 3_000_000
    engine.put(key, [large])
    reading = engine.open(key)
    engine.delete_blob(key)
    assert b"".join(reading) == large


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_content_that_was_damaged_is_told_and_healed_by_putting_it_again(
    tmp_path: Path, engine: SqliteEngine, damage: str
) -> None:
    key, large = BlobKey("p", "s", "k", "n"), b"x" * (INSIDE_BYTES_MAX + 1)
    digest = engine.put(key, [large])
    path = tmp_path / "sessions.db-blobs" / digest[:2] / digest
    match damage:
        case "changed":
            path.write_bytes(b"y" + large[1:])
        case "cut":
            path.write_bytes(large[1:])
        case _:
            path.unlink()
    with pytest.raises(DamagedData, match=r"k 'n' (is not what|holds)"):
        b"".join(engine.open(key))
    engine.put(BlobKey("p", "s", "k", "other"), [large])
    assert b"".join(engine.open(key)) == large


def test_what_a_crash_left_of_writing_a_blob_goes_a_day_later(tmp_path: Path, engine: SqliteEngine) -> None:
    large = b"x" * (INSIDE_BYTES_MAX + 1)
    engine.put(BlobKey("p", "s", "k", "n"), [large])
    folder = tmp_path / "sessions.db-blobs"
    (folder / "old").write_bytes(b"x")
    (folder / "new").write_bytes(b"x")
    os.utime(folder / "old", (0, 0))
    engine.append(MAIN, [said(1)])
    engine.set_aside(MAIN, "operation")
    engine.free_aside("operation")
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["new"]
    assert b"".join(engine.open(BlobKey("p", "s", "k", "n"))) == large


def test_what_is_freed_goes_back_to_the_disk(tmp_path: Path, engine: SqliteEngine) -> None:
    engine.append(MAIN, [Entry(b"x" * 5_000_000)])
    engine.set_aside(MAIN, "operation")
    engine.free_aside("operation")
    engine.close()
    assert (tmp_path / "sessions.db").stat().st_size < 200_000


# Search.


def words(engine: Engine, text: str, **settings: object) -> list[tuple[LogKey, bytes]]:
    found = engine.search(text, **settings)  # type: ignore[arg-type]
    return [(each.key, b"".join(engine.read_range(each.key, position=each.position, size=each.size))) for each in found]


def test_words_are_found_as_soon_as_they_are_appended(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(1, "the brave new world"), said(2, "a brave one")])
    assert {line for _, line in words(engine, "brave")} == {said(1, "the brave new world").data + b"\n",
                                                           said(2, "a brave one").data + b"\n"}  # fmt: skip
    assert words(engine, "World BRAVE") == [(MAIN, said(1, "the brave new world").data + b"\n")]
    engine.append(LogKey("other", "s2", "subagents/agent-a"), [said(3, "brave again")])
    assert len(words(engine, "brave")) == 3
    assert len(words(engine, "brave", limit=1)) == 1
    assert [key.project for key, _ in words(engine, "brave", project="other")] == ["other"]
    assert words(engine, "uuid") + words(engine, "user") == [], "names of fields are no texts"


def test_better_matches_come_first(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(1, "needle " + "hay " * 200), said(2, "needle needle"), said(3, "hay")])
    found = [*engine.search("needle")]
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert found[0].position == len(said(1, "needle " + "hay " * 200).data) + 1


@pytest.mark.parametrize("asked", [
    '"quoted', "a AND b", "text: needle", "needle*", "(needle", "needle -x", "^needle", "x\0y", "NEAR(a b)", "'",
    "don't", "日本語", "🧶 yarn",
])  # fmt: skip
def test_no_word_means_anything_but_itself(engine: SqliteEngine, asked: str) -> None:
    engine.append(MAIN, [said(1, f"before {asked} after"), said(2, "something else")])
    if any(map(str.isalnum, asked)):
        assert [line for _, line in words(engine, asked)] == [said(1, f"before {asked} after").data + b"\n"]
    else:
        with pytest.raises(UsageError, match="no word"):
            engine.search(asked)


def test_what_is_out_of_sight_is_not_found_and_comes_back(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(1, "secret")])
    assert len(words(engine, "secret")) == 1
    engine.set_aside(MAIN, "operation")
    assert words(engine, "secret") == []
    engine.bring_back("operation")
    assert len(words(engine, "secret")) == 1


@pytest.mark.parametrize("how", ["delete", "replace", "free"])
def test_words_of_what_was_removed_are_not_kept(engine: SqliteEngine, how: str) -> None:
    engine.append(MAIN, [said(1, "secret")])
    engine.append(LogKey("p", "s2"), [said(1, "open")])
    assert len(words(engine, "secret")) == 1
    match how:
        case "delete":
            engine.delete(MAIN)
        case "replace":
            engine.replace(MAIN, [said(2, "public").data + b"\n"], expect=engine.append(MAIN, []).revision)
        case _:
            engine.set_aside(MAIN, "operation")
            engine.free_aside("operation")
    assert words(engine, "secret") == []
    assert len(words(engine, "public")) == (how == "replace")
    assert len(words(engine, "open")) == 1
    with engine._file.writing() as db:
        db.execute("CREATE VIRTUAL TABLE temp.kept USING fts5vocab(main, 'words_1', 'row')")
        kept = {term for (term,) in db.execute("SELECT term FROM kept")}
        db.execute("DROP TABLE temp.kept")
    assert "open" in kept
    assert "secret" not in kept


def test_the_index_may_be_deleted_and_comes_back(tmp_path: Path, engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(number, f"needle {number}") for number in range(50)])
    before = words(engine, "needle")
    engine.close()
    _changed(tmp_path / "sessions.db", "DROP TABLE words_1", "DROP TABLE words_seen_1")
    assert words(engine, "needle") == before
    assert len(before) == 50


def test_damaged_lines_are_searched_around(engine: SqliteEngine) -> None:
    lines = [b"needle", b'{"type":"user"', b"\0\0\0", said(1, "needle").data, b"[1]", b"\xff\xfe", b""]
    engine.extend(MAIN, [b"\n".join(lines)], start=0)
    assert words(engine, "needle") == [(MAIN, said(1, "needle").data + b"\n")]


# Threads, processes, forks.


def test_threads_that_append_lose_and_tear_nothing(engine: SqliteEngine) -> None:
    barrier, written = threading.Barrier(8), 0

    def work(writer: int) -> int:
        barrier.wait()
        return sum(engine.append(MAIN, [said(writer << 16 | number)]).written for number in range(50))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        written = sum(pool.map(work, range(8)))
    assert written == 400
    found = [line.data for line in engine.read(MAIN)]
    assert sorted(found) == sorted(said(w << 16 | n).data + b"\n" for w in range(8) for n in range(50))
    for writer in range(8):
        own = [line for line in found if line.startswith(b'{"type":"user","uuid":"%04x' % writer)]
        assert own == [said(writer << 16 | number).data + b"\n" for number in range(50)], "its order is kept"


def test_a_child_that_a_fork_made_writes_beside_its_parent(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(0)])
    reading = engine.read(MAIN)

    def work() -> None:
        assert next(reading).data == said(0).data + b"\n"
        for number in range(1, 40):
            engine.append(MAIN, [said(number)])
        engine.close()

    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    for number in range(100, 140):
        engine.append(MAIN, [said(number)])
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    found = [line.data for line in engine.read(MAIN)]
    assert sorted(found) == sorted(said(number).data + b"\n" for number in [*range(40), *range(100, 140)])
    with engine._file.reading() as db:
        assert db is not None
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_fork_while_another_thread_writes_does_not_stop_the_child(engine: SqliteEngine) -> None:
    engine.append(MAIN, [said(0)])
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        # Between the lock of the threads and that of the file.
        with engine._file._here.lock:
            inside.set()
            go_on.wait(30)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert inside.wait(30)
        child = os.fork()
        if child == 0:
            try:
                # The thread that holds it is not here.
                engine._file._wait_seconds = 0.0
                engine.append(MAIN, [said(1)])
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        go_on.set()
        held.result(30)
    assert engine.append(MAIN, [said(1), said(2)]).duplicates == 1
