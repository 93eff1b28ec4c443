"""What an engine finds in a config directory: sessions, their other logs and blobs, and the directories they are of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.engines.contract import LogKey, LogStat, LogStore, Order
from clew.engines.files import FilesEngine
from clew.errors import NotFound, UsageError
from clew.layouts.claude import Kind
from clew.layouts.keys import ClaudeKeys

A, B, C = (f"{letter * 8}-0000-4000-8000-000000000001" for letter in "abc")
KEYS = ClaudeKeys()


def row(session: str, **fields: str) -> bytes:
    more = "".join(f',"{name}":"{value}"' for name, value in fields.items())
    return f'{{"type":"user","sessionId":"{session}"{more}}}\n'.encode()


class Config:
    """A config directory that a test fills by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.engine = FilesEngine(root)

    def put(self, relative: str, data: bytes = b"", *, at: int | None = None) -> Path:
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if at is not None:
            os.utime(path, ns=(at, at))
        return path

    def session(self, project: str, session: str, data: bytes = b"", *, at: int | None = None) -> LogKey:
        self.put(f"projects/{project}/{session}.jsonl", data, at=at)
        return LogKey(project, session)

    @property
    def reasons(self) -> dict[str, str]:
        return {str(Path(each.path).relative_to(self.root)): each.reason for each in self.engine.problems}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "projects").mkdir()
    return Config(tmp_path)


def keys_of(stats: Sequence[LogStat]) -> list[LogKey]:
    return [stat.key for stat in stats]


def test_the_engine_is_a_log_store(config: Config) -> None:
    store: LogStore = config.engine
    assert list(store.list()) == []


def test_sessions_of_all_projects_come_newest_first_and_equal_times_by_key(config: Config) -> None:
    old = config.session("-b", A, at=1_000)
    later = [config.session("-b", B, at=2_000), config.session("-a", C, at=2_000), config.session("-a", B, at=2_000)]
    engine = config.engine
    assert keys_of([*engine.list()]) == [*sorted(later), old]
    assert keys_of([*engine.list(order=Order.OLDEST_FIRST)]) == [old, *sorted(later)]
    assert keys_of([*engine.list(order=Order.BY_KEY)]) == sorted([old, *later])
    assert keys_of([*engine.list("-b")]) == [LogKey("-b", B), old]
    assert keys_of([*engine.list(limit=2)]) == sorted(later)[:2]
    assert list(engine.list(limit=0)) == []
    assert not engine.problems
    with pytest.raises(UsageError):
        engine.list(limit=-1)


def test_every_log_is_listed_and_nothing_else(config: Config) -> None:
    listed = config.session("-p", A)
    upper = config.session("-p", B.upper())
    for name in ("agent-a1.jsonl", "sessions-index.json", "memory/MEMORY.md", f"{C}.jsonl.bak", ".jsonl"):
        config.put(f"projects/-p/{name}")
    stray = config.session("-p", "notes", b"{}\n")
    assert set(keys_of([*config.engine.list()])) == {listed, upper, stray}
    assert config.reasons == {}


def test_an_empty_session_and_one_without_a_last_newline_are_sessions(config: Config) -> None:
    empty, unfinished = config.session("-p", A, b""), config.session("-p", B, b'{"type":"user"}')
    assert sorted(keys_of([*config.engine.list()])) == [empty, unfinished]
    assert list(config.engine.read(empty)) == list(config.engine.read_back(empty)) == []
    assert [line.data for line in config.engine.read(unfinished)] == [b'{"type":"user"}']


def test_a_stat_is_the_one_of_the_list_and_its_revision_changes_with_the_file(config: Config) -> None:
    key = config.session("-p", A, b"{}\n", at=5_000)
    stat = config.engine.stat(key)
    assert stat is not None
    assert [stat] == list(config.engine.list())
    assert (stat.size_bytes, stat.modified_ns) == (3, 5_000)
    path = config.engine.path_of(key)
    seen = {stat.revision}
    path.write_bytes(b"{}\n{}\n")
    os.utime(path, ns=(5_000, 5_000))
    for change in (None, lambda: os.utime(path, ns=(6_000, 6_000)), lambda: _replaced(path)):
        if change:
            change()
        changed = config.engine.stat(key)
        assert changed is not None
        assert changed.revision not in seen
        seen.add(changed.revision)
    assert config.engine.stat(LogKey("-p", B)) is None
    assert config.engine.stat(LogKey("-gone", A)) is None


def _replaced(path: Path) -> None:
    """The same bytes and times in another file under the name, as after a rewrite by rename."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    times = path.stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)


def test_a_root_without_projects_has_no_sessions_and_a_missing_root_is_not_found(tmp_path: Path) -> None:
    assert list(FilesEngine(tmp_path).list()) == []
    assert list(FilesEngine(tmp_path).list("-p")) == []
    missing = FilesEngine(tmp_path / "missing")
    for look in (missing.list, lambda: missing.list("-p"), missing.projects, lambda: missing.find_sessions(A)):
        with pytest.raises(NotFound, match=r"there is no directory .*missing") as caught:
            look()
        assert "--config-dir" in caught.value.hint


def test_sublogs_are_those_in_the_sessions_folder_at_any_depth_by_key(config: Config) -> None:
    key = config.session("-p", A)
    for name in ("agent-b", "agent-a", "workflows/run/agent-c", "workflows/run/journal"):
        config.put(f"projects/-p/{A}/subagents/{name}.jsonl", b"{}\n")
    config.put(f"projects/-p/{A}/subagents/agent-a.meta.json")
    config.put(f"projects/-p/{A}/tool-results/b1.txt")
    config.put(f"projects/-p/{B}/subagents/agent-z.jsonl")
    subs = list(config.engine.list_sub(key))
    assert [stat.key.subpath for stat in subs] == [
        "subagents/agent-a",
        "subagents/agent-b",
        "subagents/workflows/run/agent-c",
        "subagents/workflows/run/journal",
    ]
    assert {stat.key.main for stat in subs} == {key}
    assert [line.data for stat in subs for line in config.engine.read(stat.key)] == [b"{}\n"] * 4
    assert list(config.engine.list_sub(LogKey("-p", C))) == []


def test_an_old_flat_sublog_belongs_to_the_session_that_its_first_row_names(config: Config) -> None:
    key = config.session("-p", A)
    config.put("projects/-p/agent-1.jsonl", row(A))
    config.put("projects/-p/agent-2.jsonl", row(B))
    config.put("projects/-p/agent-3.jsonl", b'not json\n{"type":"summary"}\n\n' + row(A) + row(B))
    config.put(
        "projects/-p/agent-4.jsonl",
        b'{"sessionId":7}\n' + b'{"sessionId":"' + A.encode() + b'\\u0020","x":"\\ud800"}\n',
    )
    config.put(f"projects/-p/{A}/subagents/agent-5.jsonl", row(B))
    subs = list(config.engine.list_sub(key))
    assert [stat.key.subpath for stat in subs] == ["agent-1", "agent-3", "subagents/agent-5"]
    assert [line.data for line in config.engine.read(subs[0].key)] == [row(A)]
    assert not config.engine.problems


def test_a_flat_sublog_that_names_no_session_belongs_to_none_until_it_does(config: Config) -> None:
    key = config.session("-p", A)
    path = config.put("projects/-p/agent-1.jsonl")
    assert list(config.engine.list_sub(key)) == []
    assert "belongs to none" in config.reasons["projects/-p/agent-1.jsonl"]
    path.write_bytes(row(A))
    assert [stat.key.subpath for stat in config.engine.list_sub(key)] == ["agent-1"]


def test_a_flat_sublog_is_read_once_and_again_only_when_its_file_is_another(config: Config) -> None:
    key = config.session("-p", A)
    path = config.put("projects/-p/agent-1.jsonl", row(A))
    assert len(list(config.engine.list_sub(key))) == 1
    # The same file with other bytes shows whether it was read: rows are only appended, so it need not be.
    path.write_bytes(row(B))
    assert len(list(config.engine.list_sub(key))) == 1
    _replaced(path)
    assert list(config.engine.list_sub(key)) == []
    assert len(list(config.engine.list_sub(LogKey("-p", B)))) == 1


def test_a_flat_sublog_whose_row_names_a_path_belongs_to_no_session(config: Config) -> None:
    config.put("projects/-p/agent-1.jsonl", row("../../secret"))
    assert config.engine.list_subs("-p") == {}
    assert "belongs to none" in config.reasons["projects/-p/agent-1.jsonl"]


def test_the_sublogs_of_a_whole_project_are_those_of_each_session(config: Config) -> None:
    for session in (A, B, C):
        config.session("-p", session)
    config.put(f"projects/-p/{A}/subagents/agent-1.jsonl", row(A))
    config.put("projects/-p/agent-2.jsonl", row(A))
    config.put("projects/-p/agent-3.jsonl", row(B))
    assert config.engine.list_subs("-p") == {
        session: list(config.engine.list_sub(LogKey("-p", session))) for session in (A, B)
    }


def test_blobs_and_sublogs_together_are_every_file_of_a_session(config: Config) -> None:
    key = config.session("-p", A)
    config.put(f"projects/-p/{A}/subagents/agent-1.jsonl", row(A))
    config.put("projects/-p/agent-2.jsonl", row(A))
    config.put("projects/-p/agent-2.meta.json", b"{}")
    config.put("projects/-p/agent-9.meta.json", b"{}")
    config.put(f"projects/-p/{A}/subagents/agent-1.meta.json", b"{}")
    config.put(f"projects/-p/{A}/tool-results/b1.txt", b"12345", at=7_000)
    config.put(f"projects/-p/{A}/custom-title.json")
    config.put(f"projects/-p/{A}/archived.json")
    config.put(f"projects/-p/{A}/new/thing")
    config.put(f"file-history/{A}/89ac1c80@v1", b"old")
    config.put(f"file-history/{B}/89ac1c80@v1", b"not ours")
    blobs = config.engine.blobs(key)
    assert [(Kind(blob.key.kind), blob.key.name) for blob in blobs] == [
        (Kind.ARCHIVED, "archived.json"),
        (Kind.BACKUP, "89ac1c80@v1"),
        (Kind.CUSTOM_TITLE, "custom-title.json"),
        (Kind.META, "agent-2.meta.json"),
        (Kind.META, "subagents/agent-1.meta.json"),
        (Kind.SIDECAR, "new/thing"),
        (Kind.TOOL_RESULT, "tool-results/b1.txt"),
    ]
    assert (blobs[-1].size_bytes, blobs[-1].modified_ns) == (5, 7_000)
    assert b"".join(config.engine.open(blobs[1].key)) == b"old"
    assert [config.engine.blob_stat(blob.key) for blob in blobs] == blobs
    ours = [path for path in config.root.rglob("*") if path.is_file() and (A in str(path) or "-2." in path.name)]
    logs = [key, *(stat.key for stat in config.engine.list_sub(key))]
    assert len(blobs) + len(logs) == len(ours)


def test_a_session_is_found_by_its_id_or_a_prefix_in_any_project(config: Config) -> None:
    newer = config.session("-q", A, at=2_000)
    older = config.session("-p", A, at=1_000)
    other = config.session("-p", "aaaaaaab" + A[8:], at=3_000)
    config.session("-p", "aaaa-notes")
    find = config.engine.find_sessions
    assert keys_of(find(A)) == [newer, older]
    assert keys_of(find("aaaaaaa")) == [other, newer, older]
    assert keys_of(find("AAAAAAAB")) == [other]
    assert keys_of(find(A.upper())) == [newer, older]
    assert keys_of(find("aaaa-n")) == [LogKey("-p", "aaaa-notes")]
    assert not any(map(find, ["latest", "b"]))


def test_an_id_as_it_is_written_excludes_one_that_differs_in_case(config: Config) -> None:
    lower, upper = config.session("-p", A), config.session("-p", A.upper())
    assert keys_of(config.engine.find_sessions(A)) == [lower]
    assert keys_of(config.engine.find_sessions(A.upper())) == [upper]


@pytest.mark.parametrize("name", ["", ".", "..", "../../etc/passwd", "/etc/passwd", "a\0b", "a" * 300])
def test_an_id_that_could_be_a_path_is_refused_everywhere(config: Config, name: str) -> None:
    config.put("secret.jsonl", b"secret\n")
    engine = config.engine
    for use in (
        lambda: engine.find_sessions(name),
        lambda: engine.read(LogKey("-p", name)),
        lambda: engine.read_back(LogKey(name, A)),
        lambda: engine.stat(LogKey("-p", name)),
        lambda: engine.list_sub(LogKey("-p", name)),
        lambda: engine.blobs(LogKey("-p", name or ".")),
        lambda: engine.path_of(LogKey(name, A)),
        lambda: list(engine.list(name)),
    ):
        with pytest.raises(UsageError):
            use()


def test_the_directory_of_a_project_is_the_first_one_of_its_newest_session(config: Config) -> None:
    config.session("-p", A, row(A, cwd="/old"), at=1_000)
    config.session("-p", B, b'{"type":"mode"}\n' + row(B, cwd="/new") + row(B, cwd="/new/sub"), at=2_000)
    config.session("-p", C, b'{"type":"mode"}\nnot json\n', at=3_000)
    assert config.engine.cwd_of("-p") == "/new"
    assert config.engine.cwd_of("-nothing") is None


def test_a_session_that_was_moved_says_where_to(config: Config) -> None:
    moved = b'{"type":"relocated","relocatedCwd":"/%s","sessionId":"x"}\n'
    config.session("-p", A, row(A, cwd="/old") + moved % b"first" + row(A, cwd="/old") + moved % b"last" + b"{}\n")
    assert config.engine.cwd_of("-p") == "/last"


def test_only_the_ends_of_a_long_session_are_read_for_its_directory(config: Config) -> None:
    filling = (b'{"type":"mode","x":"' + b"x" * 1000 + b'"}\n') * 1200
    config.session("-p", A, row(A) + filling + row(A, cwd="/too-far"))
    assert config.engine.cwd_of("-p") is None
    big_first = b'{"type":"user","x":"' + b"x" * 2_000_000 + b'","cwd":"/big"}\n'
    config.session("-p", B, big_first)
    assert config.engine.cwd_of("-p") == "/big"


def test_a_word_in_a_text_is_no_directory(config: Config) -> None:
    config.session("-p", A, b'{"type":"user","message":{"content":[{"cwd":"/tool"}],"x":"\\"cwd\\":\\"/y\\""}}\n')
    assert config.engine.cwd_of("-p") is None


DEEP = "/home/me/" + "long-directory-name/" * 12 + "end"


def test_the_project_of_a_directory_is_the_folder_of_its_key(config: Config) -> None:
    config.session(KEYS.key("/home/me/a_b"), A, row(A, cwd="/somewhere/else"))
    assert config.engine.projects_for("/home/me/a_b", KEYS) == ["-home-me-a-b"]
    assert config.engine.projects_for("/home/me/a-b", KEYS) == ["-home-me-a-b"]
    assert config.engine.projects_for("/home/me/a", KEYS) == []


def test_a_long_key_with_another_suffix_counts_when_its_rows_vouch_for_it(config: Config) -> None:
    own = KEYS.key(DEEP)
    other = own[:200] + "-bunhash"
    impostor = own[:200] + "-another"
    config.session(impostor, A, row(A, cwd=DEEP + "/deeper"))
    config.put(f"projects/{own[:200]}-empty/notes.txt")
    assert config.engine.projects_for(DEEP, KEYS) == []
    config.session(other, B, row(B, cwd=DEEP))
    assert config.engine.projects_for(DEEP, KEYS) == [other]
    config.session(own, C)
    assert config.engine.projects_for(DEEP, KEYS) == [own, other]


def test_a_log_named_by_its_path_is_read_where_it_lies(config: Config, tmp_path: Path) -> None:
    key = config.session("-p", A, row(A))
    config.put(f"projects/-p/{A}/subagents/agent-1.jsonl", b"sub\n")
    config.put("projects/-p/agent-2.jsonl", b"flat\n")
    config.put("elsewhere/notes.jsonl", b"loose\n")
    engine, found = FilesEngine.for_file(config.engine.path_of(key))
    assert (engine.root, found) == (config.root, key)
    for relative, data in {
        f"projects/-p/{A}/subagents/agent-1.jsonl": b"sub\n",
        "projects/-p/agent-2.jsonl": b"flat\n",
        "elsewhere/notes.jsonl": b"loose\n",
    }.items():
        engine, found = FilesEngine.for_file(tmp_path / relative)
        assert engine.path_of(found) == tmp_path / relative
        assert [line.data for line in engine.read(found)] == [data]
    with pytest.raises(UsageError, match=r"does not end in \.jsonl"):
        FilesEngine.for_file(tmp_path / "notes.txt")


def test_a_folder_of_copied_sessions_is_a_store_of_its_own(config: Config) -> None:
    config.put(f"{A}.jsonl", row(A))
    config.put(f"{A}/subagents/agent-1.jsonl", row(A))
    config.put("agent-2.jsonl", row(A))
    engine, key = FilesEngine.for_file(config.root / f"{A}.jsonl")
    assert keys_of([*engine.list()]) == [key]
    assert [stat.key.subpath for stat in engine.list_sub(key)] == ["agent-2", "subagents/agent-1"]
    assert engine.projects() == ("",)
