"""Copies between stores: identical bytes whatever is in them, only what is new, and never over what is not ours."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew import Busy, DamagedData, NotFound, StorageError, UsageError, copying
from clew.copying import MARK_KIND, Copied, Progress, copy
from clew.engines.contract import BlobKey, BlobStat, Engine, LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import OsFileSystem
from clew.engines.memory import MemoryEngine
from clew.testing.faults import Crash, Fault, FaultKind, FaultyFileSystem, replayable
from clew.testing.strategies import byte_soup, damaged_sessions, sessions
from contents import FILLED_NS, contents, fill, set_live
from session_files import PROJECT, CountingFileSystem, in_bytes, session_id, user
from stores import ENGINES, store_on

ROW = in_bytes(user("new", "more"))


def files(place: Path) -> FilesEngine:
    place.mkdir(exist_ok=True)
    return FilesEngine(place, durability="none")


@pytest.fixture(params=ENGINES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return ENGINES[request.param](tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Engine:
    made = files(tmp_path / "source")
    for number in (1, 2):
        fill(made, number)
    return made


def told(copied: Copied) -> tuple[int, int, int, int, int]:
    return copied.sessions, copied.records, copied.blobs, copied.skipped, copied.conflicts


def append(engine: Engine, key: LogKey, *rows: bytes) -> None:
    size = engine.stat(key)
    assert size is not None
    engine.extend(key, rows, start=size.size_bytes)


# What is copied.


def test_a_copy_and_the_way_back_have_the_same_bytes_times_and_modes(
    source: Engine, target: Engine, tmp_path: Path
) -> None:
    before = contents(source)
    copied = copy(source, target)
    assert told(copied) == (2, 2 * (4 + 2), 2 * 7, 0, 0)
    assert copied.left_out == ()
    assert contents(target) == before
    back = files(tmp_path / "back")
    copy(target, back)
    assert contents(back) == before == contents(source)


@settings(max_examples=60)
@given(logs=st.lists(sessions() | damaged_sessions() | byte_soup(), min_size=1, max_size=3), chunk=st.integers(1, 300))
def test_whatever_is_in_a_log_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, logs: list[bytes], chunk: int
) -> None:
    place = tmp_path_factory.mktemp("copy")
    source = FilesEngine(files(place / "source").root, durability="none", chunk_bytes=chunk)
    for number, raw in enumerate(logs):
        source.extend(LogKey(PROJECT, session_id(number)), [raw], start=0, make=True)
        source.extend(LogKey(PROJECT, session_id(number), "subagents/agent-a"), [raw[::-1]], start=0, make=True)
    before = contents(source)
    for name, make in ENGINES.items():
        (place / name).mkdir()
        between = make(place / name)
        copy(source, between)
        assert contents(between) == before
        copy(between, back := files(place / f"back of {name}"))
        assert contents(back) == before


def test_a_second_copy_changes_nothing(source: Engine, target: Engine) -> None:
    copy(source, target)
    before, blobs = contents(target), target.blobs(LogKey("", ""))
    revisions = {stat.key: stat.revision for stat in target.list()}
    assert told(copy(source, target)) == (0, 0, 0, 2, 0)
    assert contents(target) == before
    assert {stat.key: stat.revision for stat in target.list()} == revisions
    assert target.blobs(LogKey("", "")) == blobs


def test_only_what_is_new_is_copied_and_nothing_else_is_read(tmp_path: Path) -> None:
    root = files(tmp_path / "source").root
    fs = CountingFileSystem()
    source, target = FilesEngine(root, fs=fs, durability="none"), files(tmp_path / "target")
    key = fill(files(root), 1, raw=in_bytes(user("a", "x" * 1_000_000)))
    fill(files(root), 2)
    copy(source, target)
    append(files(root), key, ROW)
    fs.count = 0
    assert told(copy(source, target)) == (1, 1, 0, 1, 0)
    assert 0 < fs.count < 400_000
    assert contents(target) == contents(source)
    fs.count = 0
    copy(source, target)
    # The first rows of flat sublogs say whose they are.
    assert fs.count < 1000


def test_a_project_that_is_named_is_copied_alone(source: Engine, target: Engine) -> None:
    fill(source, 3, project="-other")
    assert told(copy(source, target, projects=["-other", "-unknown"]))[0] == 1
    assert target.projects() == ["-other"] or set(target.projects()) == {"-other"}


def test_what_belongs_to_the_store_alone_stays_there(source: Engine, target: Engine) -> None:
    store_on(source).delete(session_id(2))
    copy(source, target)
    kinds = {stat.key.kind for stat in target.blobs(LogKey("", ""))}
    assert kinds == {MARK_KIND}
    assert store_on(target).operations() == []
    assert {key.session for key in contents(target)} == {session_id(1)}


def test_progress_grows_and_ends_with_everything(source: Engine, target: Engine) -> None:
    seen: list[Progress] = []
    copy(source, target, on_progress=seen.append)
    assert (seen[-1].sessions, seen[-1].sessions_total) == (2, 2)
    assert seen[-1].size_bytes == seen[-1].size_bytes_total > 0
    assert all(one.size_bytes <= other.size_bytes for one, other in pairwise(seen))


def test_a_store_is_not_copied_to_itself(source: Engine, tmp_path: Path) -> None:
    for same in (source, files(tmp_path / "source")):
        with pytest.raises(UsageError, match="to itself"):
            copy(source, same)


def test_memory_does_not_grow_with_a_line(tmp_path: Path) -> None:
    source, target = files(tmp_path / "source"), files(tmp_path / "target")
    key = LogKey(PROJECT, session_id(1))
    source.extend(key, (b"x" * 1_000_000 for _ in range(100)), start=0)
    tracemalloc.start()
    try:
        copy(source, target, is_verified=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    stat = target.stat(key)
    assert stat is not None
    assert stat.size_bytes == 100_000_000
    assert peak < 20_000_000


# What is there already.


def test_a_beginning_is_gone_on_with_and_what_is_ahead_is_left(source: Engine, target: Engine) -> None:
    one, two = LogKey(PROJECT, session_id(1)), LogKey(PROJECT, session_id(2))
    data = contents(source)[one][0]
    target.extend(one, [data[: len(data) // 2]], start=0)
    target.extend(two, [contents(source)[two][0], ROW], start=0)
    copied = copy(source, target)
    assert (copied.sessions, copied.conflicts) == (2, 0)
    assert contents(target)[one] == contents(source)[one]
    assert contents(target)[two][0] == contents(source)[two][0] + ROW
    # What is ahead is no copy of ours: if the source becomes another, it is not replaced.
    assert told(copy(source, target)) == (0, 0, 0, 2, 0)


def test_what_differs_is_a_conflict_and_nothing_of_the_session_is_touched(source: Engine, target: Engine) -> None:
    key = LogKey(PROJECT, session_id(1))
    data = contents(source)[key][0]
    target.extend(key, [data[:100], b"?", data[101:200]], start=0)
    copied = copy(source, target)
    assert (copied.sessions, copied.conflicts) == (1, 1)
    assert [(each.session, each.is_conflict) for each in copied.left_out] == [(session_id(1), True)]
    assert "differ from byte 100 on" in copied.left_out[0].reason
    of_one = {each: value for each, value in contents(target).items() if each.session == session_id(1)}
    assert [value[0] for value in of_one.values()] == [data[:100] + b"?" + data[101:200]]


def test_a_log_that_was_rewritten_replaces_what_a_copy_left(source: Engine, target: Engine) -> None:
    copy(source, target)
    rewrite(source, 1, b"{}\n" + ROW * 2)
    copied = copy(source, target)
    assert told(copied) == (1, 3, 0, 1, 0)
    key = LogKey(PROJECT, session_id(1))
    assert contents(target)[key][0] == b"{}\n" + ROW * 2
    assert told(copy(source, target)) == (0, 0, 0, 2, 0)


def test_a_log_that_was_rewritten_replaces_nothing_that_others_wrote(source: Engine, target: Engine) -> None:
    copy(source, target)
    key = LogKey(PROJECT, session_id(1))
    append(target, key, ROW)
    there = contents(target)
    rewrite(source, 1, b"{}\n" + ROW * 2)
    assert told(copy(source, target)) == (0, 0, 0, 1, 1)
    assert contents(target) == there


def test_both_sides_going_on_is_a_conflict(source: Engine, target: Engine) -> None:
    copy(source, target)
    key = LogKey(PROJECT, session_id(1))
    append(source, key, ROW)
    append(target, key, b'{"type":"other"}\n')
    there = contents(target)
    assert copy(source, target).conflicts == 1
    assert contents(target) == there


def rewrite(engine: Engine, number: int, data: bytes) -> None:
    key = LogKey(PROJECT, session_id(number))
    stat = engine.stat(key)
    assert stat is not None
    engine.replace(key, data.splitlines(keepends=True), expect=stat.revision)


def test_a_blob_that_changed_replaces_what_a_copy_left_and_nothing_else(source: Engine, target: Engine) -> None:
    key = BlobKey(PROJECT, session_id(1), "custom title", "custom-title.json")
    copy(source, target)
    source.put(key, [b'{"title":"Other"}'])
    assert told(copy(source, target)) == (1, 0, 1, 1, 0)
    assert b"".join(target.open(key)) == b'{"title":"Other"}'
    target.put(key, [b'{"title":"Here"}'])
    source.put(key, [b'{"title":"There"}'])
    assert told(copy(source, target)) == (0, 0, 0, 1, 1)
    assert b"".join(target.open(key)) == b'{"title":"Here"}'


def test_equal_blobs_of_other_times_are_the_same(source: Engine, target: Engine) -> None:
    for stat in source.blobs(LogKey(PROJECT, session_id(1))):
        target.put(stat.key, source.open(stat.key), modified_ns=FILLED_NS + 5_000_000_000)
    assert told(copy(source, target))[2] == 7


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff" * 100, b'{"source":5}', b'{"sessions":{"x":null}}'])
def test_marks_that_cannot_be_read_count_for_nothing(source: Engine, target: Engine, data: bytes) -> None:
    copy(source, target)
    for stat in target.blobs(LogKey("", "")):
        target.put(stat.key, [data])
    append(source, LogKey(PROJECT, session_id(1)), ROW)
    assert told(copy(source, target)) == (1, 1, 0, 1, 0)
    assert contents(target) == contents(source)


@pytest.mark.parametrize("size", [0, 1000], ids=["as long as it was", "longer"])
def test_a_log_that_was_damaged_in_its_place_does_not_replace_its_good_copy(tmp_path: Path, size: int) -> None:
    source, target = files(tmp_path / "source"), files(tmp_path / "target")
    key = fill(source, 1)
    copy(source, target)
    before = contents(target)
    path = source.path_of(key)
    path.write_bytes(b"\0" * (path.stat().st_size + size))
    copied = copy(source, target)
    assert (copied.sessions, copied.conflicts) == (0, 1)
    assert contents(target) == before


def test_a_log_that_another_program_rewrote_replaces_its_copy(tmp_path: Path) -> None:
    source, target = files(tmp_path / "source"), files(tmp_path / "target")
    key = fill(source, 1)
    copy(source, target)
    (tmp_path / "new").write_bytes(b"{}\n" * 1000)
    (tmp_path / "new").rename(source.path_of(key))
    copied = copy(source, target)
    assert (copied.sessions, copied.conflicts) == (1, 0)
    assert contents(target)[key][0] == b"{}\n" * 1000


# What changes meanwhile.


class Busybody(FilesEngine):
    """A source on which something happens while it is copied."""

    def happens_after_blobs(self) -> None: ...

    def happens_in_read(self) -> None: ...

    def blobs(self, key: LogKey) -> Sequence[BlobStat]:
        found = super().blobs(key)
        self.happens_after_blobs()
        return found

    def read_range(self, key: LogKey, *, position: int, size: int) -> Iterator[bytes]:
        chunks = super().read_range(key, position=position, size=size)
        self.happens_in_read()
        return chunks


def busybody(tmp_path: Path) -> Busybody:
    source = Busybody(files(tmp_path / "source").root, durability="none", chunk_bytes=256)
    fill(source, 1)
    return source


def test_a_row_that_points_to_something_new_is_not_there_before_it(tmp_path: Path, target: Engine) -> None:
    source = busybody(tmp_path)
    key = LogKey(PROJECT, session_id(1))
    before = contents(source)[key][0]

    def client_goes_on() -> None:
        source.put(BlobKey(PROJECT, session_id(1), "tool result", "tool-results/new.txt"), [b"result"])
        append(source, key, ROW)

    source.happens_after_blobs = client_goes_on  # type: ignore[method-assign]
    copy(source, target)
    assert contents(target)[key][0] == before
    source.happens_after_blobs = lambda: None  # type: ignore[method-assign]
    copy(source, target)
    assert contents(target) == contents(source)


def test_a_log_that_grows_meanwhile_is_a_beginning_and_the_next_copy_brings_the_rest(
    tmp_path: Path, target: Engine
) -> None:
    source = busybody(tmp_path)
    key = LogKey(PROJECT, session_id(1))
    for _ in range(3):
        source.happens_in_read = lambda: append(source, key, ROW)  # type: ignore[method-assign]
        assert copy(source, target).conflicts == 0
        there = contents(target)[key][0]
        source.happens_in_read = lambda: None  # type: ignore[method-assign]
        assert contents(source)[key][0].startswith(there)
    assert copy(source, target).conflicts == 0
    assert contents(target) == contents(source)


def test_a_log_that_is_replaced_meanwhile_is_copied_as_one_or_the_other(tmp_path: Path, target: Engine) -> None:
    source = busybody(tmp_path)
    key = LogKey(PROJECT, session_id(1))
    path = source.path_of(key)
    new = b'{"type":"compacted"}\n' * 200

    def replaced() -> None:
        source.happens_in_read = lambda: None  # type: ignore[method-assign]
        (path.parent / "new").write_bytes(new)
        (path.parent / "new").rename(path)

    source.happens_in_read = replaced  # type: ignore[method-assign]
    assert copy(source, target).conflicts == 0
    assert contents(target)[key][0] == new


def test_a_session_that_is_deleted_meanwhile_is_no_failure_of_the_others(tmp_path: Path, target: Engine) -> None:
    source = busybody(tmp_path)
    fill(source, 2)

    def cleaned_up() -> None:
        source.delete(LogKey(PROJECT, session_id(1)))

    source.happens_after_blobs = cleaned_up  # type: ignore[method-assign]
    copy(source, target)
    assert contents(target)[LogKey(PROJECT, session_id(2))] == contents(source)[LogKey(PROJECT, session_id(2))]


def test_a_session_that_a_client_holds_at_the_target_is_a_conflict(source: Engine, tmp_path: Path) -> None:
    target = files(tmp_path / "target")
    copy(source, target)
    set_live(target.root, session_id(1))
    assert told(copy(source, target)) == (0, 0, 0, 2, 0)
    append(source, LogKey(PROJECT, session_id(1)), ROW)
    copied = copy(source, target)
    assert told(copied) == (0, 0, 0, 1, 1)
    assert "running client" in copied.left_out[0].reason


# What fails.


def test_what_cannot_be_read_is_left_out_and_named(source: Engine, target: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "source" / "projects" / PROJECT
    os.mkfifo(folder / f"{session_id(8)}.jsonl")
    (folder / session_id(1) / "link").symlink_to("/etc/passwd")
    copied = copy(source, target)
    assert (copied.sessions, copied.conflicts) == (2, 0)
    assert {Path(each.where).name for each in copied.left_out} == {f"{session_id(8)}.jsonl", "link"}
    assert not any("link" in str(key) for key in contents(target))


class Failing(MemoryEngine):
    """Refuses what `error` says, from the so many-th log on; flips a bit of what it takes if it is told to."""

    left = 0
    error: Exception | None = None
    is_lying = False

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        self.left -= 1
        if self.error is not None and self.left < 0:
            raise self.error
        if self.is_lying:
            chunks = [b"?" + chunk[1:] for chunk in chunks]
        return super().extend(key, chunks, start=start, modified_ns=modified_ns, make=make)


def test_a_target_that_fails_is_raised_and_the_next_copy_goes_on(source: Engine) -> None:
    target = Failing()
    for left in range(6):
        target.left, target.error = left, StorageError("the disk is full")
        with suppress(StorageError):
            copy(source, target)
    target.error = None
    copy(source, target)
    assert contents(target) == contents(source)


@pytest.mark.parametrize("error", [UsageError("no such name here"), Busy("held")])
def test_a_session_that_the_target_cannot_take_keeps_no_other_back(
    source: Engine, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One after the other, so that the logs that are refused are all of one session.
    monkeypatch.setattr("clew.copying.WORKERS", 1)
    target = Failing()
    target.left, target.error = 3, error
    copied = copy(source, target)
    assert [each.reason for each in copied.left_out] == [str(error)]
    assert copied.sessions == 1


def test_a_source_that_is_not_there_says_so(tmp_path: Path, target: Engine) -> None:
    with pytest.raises(NotFound):
        copy(FilesEngine(tmp_path / "none"), target)


def test_what_the_target_made_of_it_is_seen_when_it_is_verified(source: Engine) -> None:
    target = Failing()
    target.is_lying = True
    with pytest.raises(DamagedData):
        copy(source, target, is_verified=True)


# What a crash leaves.


class Interrupted:
    """One session to be copied, with one worker, so that each run has the same steps."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(copying, "WORKERS", 1)
        self.source = files(tmp_path / "source")
        self.key = fill(self.source, 1)
        self.before = contents(self.source)
        self.folder = tmp_path / "target"

    def run(self, fs: FaultyFileSystem) -> None:
        copy(self.source, FilesEngine(self.folder, fs=fs, durability="none"))

    def start(self, number: int) -> None:
        """Nothing there yet, or a copy from before the session grew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if number:
            other = files(self.folder)
            for key, (data, modified_ns, _) in self.before.items():
                if isinstance(key, LogKey):
                    other.extend(key, [data[: len(data) // 3]], start=0, modified_ns=modified_ns)


@pytest.mark.parametrize("grown", [0, 1])
@pytest.mark.parametrize(
    "kind", ["crash", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("torn", "fail", "lost"))]
)
def test_after_a_fault_at_any_step_there_is_no_row_without_what_it_points_to_and_a_second_copy_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grown: int, kind: FaultKind
) -> None:
    work = Interrupted(tmp_path, monkeypatch)
    work.start(grown)
    whole = FaultyFileSystem(inner=OsFileSystem(is_synced=False))
    work.run(whole)
    assert len(whole.steps) > 20
    for step in range(len(whole.steps)):
        work.start(grown)
        fs = FaultyFileSystem(Fault(kind, step), OsFileSystem(is_synced=False))
        with replayable(Fault(kind, step)):
            with suppress(StorageError, Crash):
                work.run(fs)
            assert fs.is_hit
            left = contents(target := files(work.folder))
            if work.key in left and left[work.key][0] == work.before[work.key][0]:
                assert {key: value[0] for key, value in left.items()} == {
                    key: value[0] for key, value in work.before.items()
                }
            for key, value in left.items():
                assert work.before[key][0].startswith(value[0])
            assert copy(work.source, target).left_out == ()
            assert {key: value[0] for key, value in contents(target).items()} == {
                key: value[0] for key, value in work.before.items()
            }
