"""Things under a session's name that are no readable session: an error names them, a list reports them, none hangs."""

from __future__ import annotations

import errno
import io
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.engines.contract import BlobKey, Entry, LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import DirEntry, OsFileSystem, failures_of, read_small, shown_path, translated
from clew.errors import ClewError, NotFound, StorageError

A, B = (f"{letter * 8}-0000-4000-8000-000000000001" for letter in "ab")
KEY = LogKey("-p", A)
FS = OsFileSystem()


def a_directory(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    # The path of a socket may have some 100 bytes, so it is made under a short name first.
    short = Path("s")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(short))
    short.rename(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_circle_of_links(path: Path) -> None:
    other = path.with_suffix(".other")
    path.symlink_to(other)
    other.symlink_to(path)


NOT_FILES: dict[Callable[[Path], None], str] = {
    a_directory: "it is a directory",
    a_pipe: "it is a pipe",
    a_socket: "it is a socket",
    a_device: "it is a device",
    a_circle_of_links: os.strerror(errno.ELOOP),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / f"{B}.jsonl").write_bytes(b"{}\n")
    return folder


@pytest.mark.parametrize(("make", "reason"), NOT_FILES.items())
def test_what_is_no_file_is_refused_by_name_and_reported_in_a_list(
    folder: Path, make: Callable[[Path], None], reason: str
) -> None:
    path = folder / f"{A}.jsonl"
    make(path)
    engine = FilesEngine(folder.parent.parent)
    for use in (
        lambda: engine.read(KEY),
        lambda: engine.read_back(KEY),
        lambda: engine.read_range(KEY, position=0, size=1),
        lambda: engine.stat(KEY),
    ):
        with pytest.raises(StorageError) as caught:
            use()
        assert str(path) in caught.value.message
        assert reason in caught.value.message
        assert caught.value.hint
        assert caught.value.is_permanent
    assert [stat.key.session for stat in engine.list()] == [B]
    assert [stat.key.session for stat in engine.find_sessions("bb")] == [B]
    assert [(problem.path, problem.reason.partition(",")[0]) for problem in engine.problems] == [(str(path), reason)]


def test_a_file_that_turns_into_a_pipe_behind_our_back_is_still_refused(folder: Path) -> None:
    class Swapping(OsFileSystem):
        """Answers the look before the open with what was there a moment ago."""

        def stat(self, path: str) -> os.stat_result:
            return super().stat(path.replace(A, B))

    path = folder / f"{A}.jsonl"
    os.mkfifo(path)
    with pytest.raises(StorageError, match="it is a pipe"):
        FilesEngine(folder.parent.parent, fs=Swapping()).read(KEY)


def test_a_linked_session_is_read_and_a_link_to_nowhere_is_reported(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_bytes(b"real\n")
    (folder / f"{A}.jsonl").symlink_to(tmp_path / "real.jsonl")
    engine = FilesEngine(tmp_path)
    assert {stat.key.session for stat in engine.list()} == {A, B}
    assert [line.data for line in engine.read(KEY)] == [b"real\n"]
    (tmp_path / "real.jsonl").unlink()
    assert {stat.key.session for stat in engine.list()} == {B}
    assert [problem.reason for problem in engine.problems] == ["its link leads nowhere"]
    (folder / f"{A}.jsonl").unlink()
    assert {stat.key.session for stat in engine.list()} == {B}
    assert not engine.problems, "a problem that is gone is no problem any more"


def test_a_linked_project_is_read_and_links_that_lead_to_no_directory_are_reported(tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / f"{A}.jsonl").touch()
    projects = tmp_path / "projects"
    projects.mkdir()
    (projects / "-p").symlink_to(tmp_path / "moved")
    (projects / "-gone").symlink_to(tmp_path / "nowhere")
    (projects / "-circle").symlink_to(projects / "-circle")
    (projects / ".DS_Store").touch()
    engine = FilesEngine(tmp_path)
    assert [stat.key for stat in engine.list()] == [KEY]
    assert {Path(problem.path).name for problem in engine.problems} == {"-gone", "-circle"}


def test_links_inside_a_session_do_not_lead_out_of_it_or_around(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    results = folder / A / "tool-results"
    results.mkdir(parents=True)
    (results / "b1.txt").symlink_to(tmp_path / "secret")
    (results / "up").symlink_to(folder)
    (results / "b2.txt").write_bytes(b"ours")
    engine = FilesEngine(tmp_path)
    assert [blob.key.name for blob in engine.blobs(KEY)] == ["tool-results/b2.txt"]
    assert {Path(problem.path).name for problem in engine.problems} == {"b1.txt", "up"}


def test_a_session_that_nests_without_end_is_walked_so_far_and_no_further(folder: Path, tmp_path: Path) -> None:
    deepest = folder.joinpath(A, *["d"] * 40)
    deepest.mkdir(parents=True)
    (deepest / "x.jsonl").touch()
    (folder / A / "d" / "y.jsonl").touch()
    engine = FilesEngine(tmp_path)
    assert [stat.key.subpath for stat in engine.list_sub(KEY)] == ["d/y"]
    assert [problem.reason for problem in engine.problems] == ["it lies 16 directories deep in its session"]


def test_a_file_where_the_folder_of_a_session_should_be_is_reported(folder: Path, tmp_path: Path) -> None:
    (folder / A).write_bytes(b"")
    engine = FilesEngine(tmp_path)
    assert engine.list_subs("-p") == {}
    assert [problem.reason for problem in engine.problems] == [os.strerror(errno.ENOTDIR)]


def test_a_root_that_is_no_directory_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be read"):
        FilesEngine(tmp_path / "file").list()
    (tmp_path / "projects").touch()
    with pytest.raises(StorageError, match="cannot be read"):
        FilesEngine(tmp_path).list()


class Denying(OsFileSystem):
    """Refuses what has the word in its path, as the system does: a test that runs as root is refused nothing."""

    def __init__(self, word: str, code: int) -> None:
        self.word = word
        self.error = OSError(code, os.strerror(code))

    def open(self, path: str) -> io.RawIOBase:
        if self.word in path:
            raise self.error
        return super().open(path)

    def scan(self, path: str) -> list[DirEntry]:
        if self.word in path:
            raise self.error
        return super().scan(path)

    def may_read(self, path: str, stat: os.stat_result) -> bool:
        return self.word not in path and super().may_read(path, stat)


def test_a_session_that_may_not_be_read_is_left_out_of_the_list_and_refused_by_name(folder: Path) -> None:
    (folder / f"{A}.jsonl").touch()
    engine = FilesEngine(folder.parent.parent, fs=Denying(A, errno.EACCES))
    assert [stat.key.session for stat in engine.list()] == [B]
    assert [problem.reason for problem in engine.problems] == ["this user may not read it"]
    with pytest.raises(StorageError, match=os.strerror(errno.EACCES)):
        engine.read(KEY)


@pytest.mark.usefixtures("permissions_count")
def test_the_system_says_what_may_not_be_read(folder: Path) -> None:
    (folder / f"{A}.jsonl").touch(mode=0)
    engine = FilesEngine(folder.parent.parent)
    assert [stat.key.session for stat in engine.list()] == [B]
    assert [problem.reason for problem in engine.problems] == ["this user may not read it"]


def test_a_project_that_may_not_be_read_does_not_hide_the_others(folder: Path) -> None:
    (folder.parent / "-denied").mkdir()
    engine = FilesEngine(folder.parent.parent, fs=Denying("-denied", errno.EACCES))
    assert [stat.key.session for stat in engine.list()] == [B]
    assert [(Path(problem.path).name, problem.reason) for problem in engine.problems] == [
        ("-denied", os.strerror(errno.EACCES))
    ]


def test_a_flat_sublog_or_a_session_that_fails_while_looking_around_is_reported(folder: Path) -> None:
    (folder / "agent-1.jsonl").touch()
    (folder / f"{A}.jsonl").touch()
    engine = FilesEngine(folder.parent.parent, fs=Denying("agent-1", errno.EIO))
    assert list(engine.list_sub(KEY)) == []
    assert os.strerror(errno.EIO) in engine.problems[0].reason
    engine = FilesEngine(folder.parent.parent, fs=Denying(B, errno.EIO))
    engine.list("-p")
    assert engine.cwd_of("-p") is None


def test_a_disk_that_fails_in_the_middle_of_a_read_is_our_error_and_not_the_systems(folder: Path) -> None:
    class Breaking(io.FileIO):
        def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
            if self.tell() >= 4:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().readinto(buffer)

    class Broken(OsFileSystem):
        def open(self, path: str) -> io.RawIOBase:
            return Breaking(path)

    (folder / f"{A}.jsonl").write_bytes(b"one\ntwo\n")
    lines = FilesEngine(folder.parent.parent, fs=Broken(), chunk_bytes=4).read(KEY)
    assert next(lines).data == b"one\n"
    with pytest.raises(StorageError, match=os.strerror(errno.EIO)) as caught:
        next(lines)
    assert not caught.value.is_permanent


MEANINGS: list[tuple[int, type[ClewError], bool]] = [
    (errno.ENOENT, NotFound, True),
    (errno.EACCES, StorageError, True),
    (errno.EPERM, StorageError, True),
    (errno.ELOOP, StorageError, True),
    (errno.ENOTDIR, StorageError, True),
    (errno.EISDIR, StorageError, True),
    (errno.ENAMETOOLONG, StorageError, True),
    (errno.EINVAL, StorageError, True),
    (errno.EIO, StorageError, False),
    (errno.EMFILE, StorageError, False),
    (errno.ENFILE, StorageError, False),
    (errno.EAGAIN, StorageError, False),
    (errno.EBUSY, StorageError, False),
    (errno.ESTALE, StorageError, False),
    (errno.ETIMEDOUT, StorageError, False),
]


@pytest.mark.parametrize(("code", "kind", "is_permanent"), MEANINGS, ids=[errno.errorcode[row[0]] for row in MEANINGS])
def test_a_failure_of_the_system_means_one_thing(code: int, kind: type[ClewError], is_permanent: bool) -> None:
    with pytest.raises(ClewError) as caught, failures_of("/a/b.jsonl"):
        raise OSError(code, os.strerror(code), "/a/b.jsonl")
    error = caught.value
    assert type(error) is kind
    assert "/a/b.jsonl" in error.message
    assert error.hint
    assert "{" not in error.hint
    assert isinstance(error.__cause__, OSError)
    if isinstance(error, StorageError):
        assert error.is_permanent is is_permanent
        assert os.strerror(code) in error.message


def test_a_failure_without_a_code_is_still_a_storage_error() -> None:
    assert isinstance(translated(OSError("odd"), "/a"), StorageError)


def test_a_path_in_an_error_does_not_drive_the_terminal_or_the_shell() -> None:
    assert shown_path("/a\x1b[2J\n\ud800é日/{x}") == "/a\\x1b[2J\\n\\ud800é日/{x}"
    error = translated(PermissionError(errno.EACCES, "no"), "/a b/$(x){path}")
    assert error.hint.endswith("'/a b/$(x){path}'")


def test_a_small_file_is_whole_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "title.json"
    path.write_bytes(b"12345")
    assert read_small(FS, str(path)) == read_small(FS, str(path), 5) == b"12345"
    assert read_small(FS, str(path), 4) is None
    assert read_small(FS, str(tmp_path)) is read_small(FS, str(tmp_path / "missing")) is None
    path.write_bytes(b"")
    assert read_small(FS, str(path), 1) == b""


def test_no_file_stays_open_when_a_read_is_given_up(folder: Path) -> None:
    (folder / f"{A}.jsonl").write_bytes(b"one\ntwo\n")
    engine = FilesEngine(folder.parent.parent)
    before = sorted(os.listdir("/dev/fd"))
    for lines in (engine.read(KEY), engine.read_back(KEY), engine.read_range(KEY, position=0, size=8)):
        assert next(lines)
    engine.read(KEY)
    engine.read_back(KEY)
    del lines
    assert sorted(os.listdir("/dev/fd")) == before


def test_an_open_log_is_not_inherited_by_child_processes(folder: Path) -> None:
    with FS.open(str(folder / f"{B}.jsonl")) as file:
        assert not os.get_inheritable(file.fileno())


@pytest.mark.parametrize("key", [LogKey("p", "a.clew.tmp"), LogKey("p.clew.tmp", "a")], ids=["session", "project"])
def test_a_name_that_ends_like_one_of_ours_comes_back_whole(tmp_path: Path, key: LogKey) -> None:
    engine = FilesEngine(tmp_path)
    sublog = LogKey(key.project, key.session, "subagents/agent-b")
    blob = BlobKey(key.project, key.session, "tool result", "tool-results/x.clew.tmp")
    row = Entry(b'{"type":"user","uuid":"u1"}', "u1")
    for each in (key, sublog):
        engine.append(each, [row])
    engine.put(blob, [b"result"])
    assert [stat.key for stat in engine.blobs(key)] == [blob]
    engine.set_aside(key, "op")
    engine.bring_back("op")
    assert [b"".join(engine.read_range(each, position=0, size=27)) for each in (key, sublog)] == [row.data] * 2
    assert b"".join(engine.open(blob)) == b"result"
