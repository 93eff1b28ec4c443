"""A store lists, finds and loads sessions; it reads once, and again only what changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

import clew
from clew import Ambiguous, ClientIndex, FilesEngine, Maps, NotFound, Record, StorageError, Store, UsageError, defaults
from clew.engines.contract import Entry, LogKey
from session_files import (
    CWD,
    PROJECT,
    CountingFileSystem,
    Row,
    append,
    changed,
    in_bytes,
    session_id,
    two_turns,
    user,
    write,
)


def store_of(root: Path, fs: CountingFileSystem | None = None) -> Store:
    root.mkdir(exist_ok=True)
    return Store(FilesEngine(root, fs=fs), fs=fs)


def ids(store: Store, project: str | Path | None = None, limit: int | None = None) -> list[int]:
    return [int(info.id[:8], 16) for info in store.sessions(project, limit=limit)]


# Listing.


def test_sessions_come_newest_change_first_and_none_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns(), at=10)
    write(tmp_path, 2, *two_turns(), at=30)
    write(tmp_path, 3, *two_turns(), at=20, project="-home-me-other")
    write(tmp_path, 4, raw=b"", at=5)
    write(tmp_path, 5, raw=b"garbage\n", at=4)
    assert ids(store_of(tmp_path)) == [2, 3, 1, 4, 5]
    assert ids(store_of(tmp_path), limit=2) == [2, 3]
    assert ids(store_of(tmp_path), limit=0) == []


def test_a_list_row_says_what_the_whole_log_says(tmp_path: Path) -> None:
    title: Row = {"type": "custom-title", "customTitle": "Fix login", "sessionId": "s"}
    path = write(tmp_path, 1, *two_turns(), title, {"type": "tag", "tag": "wip", "sessionId": "s"}, at=7)
    (info,) = store_of(tmp_path).sessions()
    assert (info.title, info.first_prompt, info.tag) == ("Fix login", "first question", "wip")
    assert (info.cwd, info.project, info.git_branch, info.version) == (CWD, PROJECT, "main", "2.1.327")
    assert (info.model, info.message_count, info.turn_count, info.total_tokens) == ("claude-x", 4, 2, 30)
    assert (info.created_at, info.updated_at) == ("2026-11-18T10:00:01.000Z", "2026-11-18T10:00:07.000Z")
    assert (info.size_bytes, info.path, info.agents) == (path.stat().st_size, str(path), 0)
    assert (info.pinned, info.archived, info.labels, info.owner) == (False, False, (), None)


def test_subagents_are_counted_and_journals_are_not(tmp_path: Path) -> None:
    path = write(tmp_path, 1, *two_turns())
    folder = path.with_suffix("") / "subagents" / "workflows" / "w1"
    folder.mkdir(parents=True)
    for name in ("agent-a1", "agent-a2", "journal"):
        (folder / f"{name}.jsonl").write_bytes(in_bytes(user("x1", "look", isSidechain=True)))
    (info,) = store_of(tmp_path).sessions()
    assert info.agents == 2
    assert store_of(tmp_path).session(path).info().agents == 2


def test_a_project_is_a_directory_or_a_key(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns(), at=1)
    write(tmp_path, 2, *two_turns(), project="-elsewhere")
    store = store_of(tmp_path)
    assert ids(store, CWD) == ids(store, PROJECT) == ids(store, Path(CWD)) == [1]
    assert ids(store, "/home/me/nothing") == []


def test_the_worktrees_of_a_repository_are_one_scope(tmp_path: Path) -> None:
    main, side = tmp_path / "repo", tmp_path / "side"
    own = main / ".git" / "worktrees" / "side"
    own.mkdir(parents=True)
    side.mkdir()
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "gitdir").write_text(f"{side}/.git\n")
    (own / "commondir").write_text("../..\n")
    (side / ".git").write_text(f"gitdir: {own}\n")
    config, keys = tmp_path / "config", clew.ClaudeKeys()
    write(config, 1, *two_turns(), at=1, project=keys.key(str(main)))
    write(config, 2, *two_turns(), at=2, project=keys.key(str(side)))
    write(config, 3, *two_turns(), at=3, project=keys.key(str(tmp_path)))
    assert ids(store_of(config), main) == ids(store_of(config), side) == [2, 1]


def test_another_key_strategy_finds_other_folders(tmp_path: Path) -> None:
    keys = clew.DigestKeys()
    write(tmp_path, 1, *two_turns(), project=keys.key(CWD))
    store = Store(FilesEngine(tmp_path), keys=keys)
    assert ids(store, CWD) == [1]
    assert ids(store_of(tmp_path), CWD) == []


def test_a_list_reads_each_log_once_and_later_only_what_changed(tmp_path: Path) -> None:
    paths = [write(tmp_path, number, *two_turns(), at=number) for number in range(1, 6)]
    fs = CountingFileSystem()
    store = store_of(tmp_path, fs)
    assert ids(store) == [5, 4, 3, 2, 1]
    assert fs.count == sum(path.stat().st_size for path in paths)
    assert ids(store) == [5, 4, 3, 2, 1]
    assert fs.count == sum(path.stat().st_size for path in paths)
    append(paths[0], user("u5", "third", "a4", 5))
    changed(paths[0], 99)
    read = fs.count
    assert next(iter(store.sessions())).message_count == 5
    list(store.sessions())
    assert fs.count == read + paths[0].stat().st_size


def test_a_limit_reads_only_what_it_shows(tmp_path: Path) -> None:
    paths = [write(tmp_path, number, *two_turns(), at=number) for number in range(1, 6)]
    fs = CountingFileSystem()
    assert ids(store_of(tmp_path, fs), limit=1) == [5]
    assert fs.count == paths[4].stat().st_size


def test_a_log_that_vanishes_while_listing_is_left_out_and_told(tmp_path: Path) -> None:
    path = write(tmp_path, 1, *two_turns(), at=1)
    write(tmp_path, 2, *two_turns(), at=2)
    store = store_of(tmp_path)
    listing = store.sessions()
    assert next(listing).id == session_id(2)
    path.unlink()
    assert list(listing) == []
    assert [problem.path for problem in store.problems] == [str(path)]


# When the client deletes.


@pytest.mark.parametrize(
    ("settings", "day"),
    [(None, "2026-12-18"), ('{"cleanupPeriodDays": 10}', "2026-11-28"), ('{"cleanupPeriodDays": 0}', "2026-11-18"),
     ('{"cleanupPeriodDays": "10"}', "2026-12-18"), ('{"cleanupPeriodDays": -5}', "2026-12-18"),
     ('{"cleanupPeriodDays": true}', "2026-12-18"), ('{"cleanupPeriodDays": NaN}', "2026-12-18"),
     ('{"cleanupPeriodDays": 1e400}', "2026-12-18"), ('{"cleanupPeriodDays": 99999999999999999999}', "2026-12-18"),
     ("[10]", "2026-12-18"), ("{torn", "2026-12-18"), ("[" * 5000, "2026-12-18"),
     ('{"cleanupPeriodDays": 3650}', "2036-11-15")],
)  # fmt: skip
def test_a_session_expires_by_the_settings_of_the_client(tmp_path: Path, settings: str | None, day: str) -> None:
    write(tmp_path, 1, *two_turns())
    if settings is not None:
        (tmp_path / "settings.json").write_text(settings)
    (info,) = store_of(tmp_path).sessions()
    assert info.expires_at is not None
    assert info.expires_at.startswith(day)


def test_far_beyond_the_calendar_nothing_expires(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns())
    (info,) = Store(FilesEngine(tmp_path, retention_days=1e9)).sessions()
    assert info.expires_at is None


def test_a_file_outside_a_config_directory_never_expires(tmp_path: Path) -> None:
    path = tmp_path / "copied.jsonl"
    path.write_bytes(in_bytes(*two_turns()))
    info = store_of(tmp_path / "config").session(path).info()
    assert (info.id, info.expires_at, info.title) == ("copied", None, "first question")


# Finding one.


def test_a_session_is_found_by_id_and_by_what_only_it_begins_with(tmp_path: Path) -> None:
    write(tmp_path, 0x11111111, *two_turns())
    write(tmp_path, 0x11112222, *two_turns(), project="-elsewhere")
    store = store_of(tmp_path)
    for name in (session_id(0x11112222), "11112", session_id(0x11112222).upper()):
        assert store.session(name).id == session_id(0x11112222)


def test_a_beginning_of_several_ids_is_ambiguous_and_they_are_named(tmp_path: Path) -> None:
    write(tmp_path, 0x11111111, *two_turns(), at=1)
    write(tmp_path, 0x11112222, *two_turns(), at=2)
    with pytest.raises(Ambiguous, match="1111 is ambiguous: 2 ids begin so") as caught:
        store_of(tmp_path).session("1111")
    assert caught.value.candidates == (session_id(0x11112222), session_id(0x11111111))
    assert caught.value.hint


def test_one_id_in_two_projects_is_ambiguous_and_the_paths_are_named(tmp_path: Path) -> None:
    paths = [write(tmp_path, 1, *two_turns(), project=project) for project in ("-a", "-b")]
    with pytest.raises(Ambiguous, match="several projects") as caught:
        store_of(tmp_path).session(session_id(1))
    assert sorted(caught.value.candidates) == [str(path) for path in paths]
    assert store_of(tmp_path).session(caught.value.candidates[0]).id == session_id(1)


def test_a_log_whose_name_is_no_session_id_is_named_as_a_problem_and_not_listed(tmp_path: Path) -> None:
    stray = write(tmp_path, 1, *two_turns()).with_name("abc.jsonl")
    stray.write_bytes(in_bytes(*two_turns()))
    store = store_of(tmp_path)
    assert [info.id for info in store.sessions()] == [session_id(1)]
    reason = "its name is no session id, so the client does not show it either"
    assert [(problem.path, problem.reason) for problem in store.problems] == [(str(stray), reason)]
    with pytest.raises(NotFound):
        store.session("abc")


def test_a_session_is_found_by_its_path_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, 1, *two_turns())
    monkeypatch.chdir(path.parent)
    store = store_of(tmp_path)
    assert store.session(path).where == store.session(path.name).where == str(path)
    assert store.session(path).engine is store.engine
    stray = path.with_name("notes.jsonl")
    stray.write_bytes(in_bytes(*two_turns()))
    assert len(store.session(stray).messages()) == 4


@pytest.mark.parametrize("name", ["nope", "", "../../etc/passwd", "/etc/passwd", "a" * 5000, "\x00", "11\n", "\ud800"])
def test_a_name_that_nothing_answers_to_is_not_found(tmp_path: Path, name: str) -> None:
    write(tmp_path, 1, *two_turns())
    with pytest.raises(NotFound) as caught:
        store_of(tmp_path).session(name)
    assert caught.value.hint
    assert not isinstance(caught.value, Ambiguous)


def test_the_id_of_something_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, 1, *two_turns())
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match="a directory, not a regular file"):
        store_of(tmp_path).session(session_id(1))


@pytest.mark.parametrize("make", ["directory", "pipe", "circle"])
def test_a_path_to_what_is_no_file_is_a_storage_error(tmp_path: Path, make: str) -> None:
    path = tmp_path / "x.jsonl"
    if make == "directory":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    with pytest.raises(StorageError):
        store_of(tmp_path / "config").session(path)


def test_the_latest_session_is_the_one_whose_log_changed_last(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns(), at=1)
    write(tmp_path, 2, *two_turns(), at=2, project="-elsewhere")
    assert store_of(tmp_path).latest().id == session_id(2)
    assert store_of(tmp_path).latest(CWD).id == session_id(1)
    with pytest.raises(NotFound, match="no session in /home/me/nothing"):
        store_of(tmp_path).latest("/home/me/nothing")


# Many at once.


def snapshot(message: str) -> Row:
    return {"type": "file-history-snapshot", "messageId": message, "snapshot": {"messageId": message}}


def delta(message: str) -> Row:
    return {"type": "file-history-delta", "messageId": "x", "snapshotMessageId": message, "trackingPath": "a.txt"}


def test_loading_makes_maps_by_what_things_are_known_by(tmp_path: Path) -> None:
    own = session_id(1)
    rows: list[Row] = [
        *two_turns(),
        {"type": "summary", "summary": "about it", "leafUuid": "a4"},
        {"type": "custom-title", "customTitle": "old", "sessionId": own},
        {"type": "custom-title", "customTitle": "new", "sessionId": own},
        {"type": "tag", "tag": "wip", "sessionId": own},
        {"type": "tag", "tag": "gone", "sessionId": "another"},
        {"type": "tag", "tag": "", "sessionId": "another"},
        snapshot("u1"), delta("u1"), delta("u1"),
    ]  # fmt: skip
    write(tmp_path, 1, *rows)
    loaded = store_of(tmp_path).load()
    assert list(loaded.messages) == ["u1", "a2", "u3", "a4"]
    assert loaded.messages["a2"].type == "assistant"
    assert loaded.summaries == {"a4": "about it"}
    assert (loaded.custom_titles, loaded.tags) == ({own: "new"}, {own: "wip"})
    assert loaded.file_history_snapshots["u1"].type == "file-history-snapshot"
    assert len(loaded.file_history_deltas["u1"]) == 2
    assert (loaded.collisions, [key.session for key in loaded.sessions]) == ([], [own])


def test_of_two_sessions_the_newer_wins_and_the_collision_is_told(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns(), at=1)
    write(tmp_path, 2, user("u1", "the same uuid"), at=2)
    loaded = store_of(tmp_path).load()
    assert loaded.messages["u1"].content() == "the same uuid"
    (collision,) = loaded.collisions
    assert (collision.map, collision.name) == ("messages", "u1")
    assert (collision.kept.session, collision.dropped.session) == (session_id(2), session_id(1))


def test_loading_takes_the_newest_sessions_up_to_the_limit(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, number, *two_turns(f"s{number}"), at=number)
    assert [key.session for key in store_of(tmp_path).load(2).sessions] == [session_id(2), session_id(3)]
    assert set(store_of(tmp_path).load(1).messages) == {"s3u1", "s3a2", "s3u3", "s3a4"}


def test_loading_reads_once_and_after_a_refresh_only_what_changed(tmp_path: Path) -> None:
    paths = [write(tmp_path, number, *two_turns(f"s{number}"), at=number) for number in (1, 2, 3)]
    fs = CountingFileSystem()
    store = store_of(tmp_path, fs)
    loaded = store.load()
    assert fs.count == sum(path.stat().st_size for path in paths)
    append(paths[1], user("new", "third", "s2a4", 5))
    changed(paths[1], 50)
    assert store.load() is loaded, "what was loaded stays until somebody asks for a refresh"
    read = fs.count
    assert [key.session for key in store.refresh()] == [session_id(2)]
    assert "new" in store.load().messages
    assert fs.count == read + paths[1].stat().st_size
    paths[0].unlink()
    assert [key.session for key in store.refresh()] == [session_id(1)]
    assert "s1u1" not in store.load().messages
    assert store.refresh() == []


def test_another_index_builder_keeps_more(tmp_path: Path) -> None:
    class WithPins(ClientIndex):
        def add(self, maps: Maps, record: Record, session: str) -> None:
            super().add(maps, record, session)
            if record.type == "pinned":
                maps.more.setdefault("pinned", {})[session] = record.body().get("pinned")

    write(tmp_path, 1, *two_turns(), {"type": "pinned", "pinned": True})
    loaded = Store(FilesEngine(tmp_path), index_builder=WithPins()).load()
    assert loaded.more == {"pinned": {session_id(1): True}}
    assert len(loaded.messages) == 4
    assert store_of(tmp_path).load().more == {}


def test_every_leaf_of_every_session_is_a_transcript(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns(), user("u5", "other way", "a2", 5), at=1)
    write(tmp_path, 2, *two_turns("b"), at=2)
    store = store_of(tmp_path)
    assert [each.leaf for each in store.transcripts()] == ["ba4", "a4", "u5"]
    assert [each.leaf for each in store.transcripts(1)] == ["ba4"]
    assert [[record.uuid for record in each.records] for each in store.transcripts()][2] == ["u1", "a2", "u5"]


def test_the_last_conversation_is_the_newest_that_the_client_would_go_on_with(tmp_path: Path) -> None:
    write(tmp_path, 1, *two_turns("a"), at=1)
    write(tmp_path, 2, *two_turns("b"), at=2)
    write(tmp_path, 3, user("side", "look", isSidechain=True), at=3)
    write(tmp_path, 4, {"type": "custom-title", "customTitle": "only a title", "sessionId": "s"}, at=4)
    write(tmp_path, 5, raw=b"", at=5)
    last = store_of(tmp_path).last()
    assert last is not None
    assert (last.session.id, last.leaf) == (session_id(2), "ba4")
    assert [message.role for message in last.messages()] == ["user", "assistant", "user", "assistant"]
    assert store_of(tmp_path).last(3) is None


# Opening.


def test_open_takes_the_directory_that_the_environment_names(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert clew.open(environment=home).place == str(tmp_path / ".claude")
    assert clew.open(environment=home | {"CLAUDE_CONFIG_DIR": ""}).place == str(tmp_path / ".claude")
    assert clew.open(environment={"CLAUDE_CONFIG_DIR": "/x/y"}).place == "/x/y"
    assert clew.open("claude:", environment=home).place == str(tmp_path / ".claude")
    assert clew.open("claude:~/other", environment=home).place == str(tmp_path / "other")
    assert clew.open("claude:/x/y", environment={}).place == "/x/y"
    assert clew.open(tmp_path, environment={}).place == str(tmp_path)
    assert clew.open(str(tmp_path), environment={}).place == str(tmp_path)


def test_opening_touches_nothing(tmp_path: Path) -> None:
    clew.open(tmp_path / "not" / "there")
    assert list(tmp_path.iterdir()) == []


def on_disk(place: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in place.rglob("*") if path.is_file()}


def test_a_store_that_does_not_persist_touches_no_disk(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    write(here, 1, *two_turns())
    other = write(elsewhere, 2, *two_turns())
    before = on_disk(tmp_path)
    store = clew.open(here, persist=False)
    for session in (store.session(session_id(1)), store.session(other), store.create(tmp_path, title="gone")):
        count = len(session.messages())
        session.append({"role": "user", "content": "said to nobody"})
        session.append_subagent("a1", [{"role": "user", "content": "nor this"}], meta={"agentType": "x"})
        session.close(exit_reason="over")
        assert len(session.messages()) == count + 1
    assert len(store.session(session_id(1)).agents()) == 1
    assert len([*store.sessions()]) == 2
    store.close()
    assert on_disk(tmp_path) == before
    assert len([*clew.open(here).sessions()]) == 1


def test_a_mirror_has_what_was_written_when_the_store_is_closed(tmp_path: Path) -> None:
    with clew.open(tmp_path / "here", mirror=f"sqlite:{tmp_path}/copy.db") as store:
        session = store.create(tmp_path)
        session.append_many([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}])
        session.append_subagent("a1", [{"role": "user", "content": "three"}], meta={"agentType": "x"})
        session.flush()
        assert not store.problems
    with clew.open(f"sqlite:{tmp_path}/copy.db") as copy:
        found = copy.session(session.id)
        assert [line.data for line in found.lines()] == [line.data for line in session.lines()]
        assert [m.role for m in found.messages()] == ["user", "assistant"]
        (agent,) = found.agents()
        assert agent.meta is not None


@pytest.mark.parametrize(
    ("url", "says"),
    [("sqlite:", "needs a file"), ("postgresql://host/db", "later version"), ("s3://bucket", "later version"),
     ("memory:name", "no kind of store"), ("folder:x", "later version"), ("ftp://x", "no kind of store"),
     ("", "a directory")],
)  # fmt: skip
def test_other_kinds_of_stores_are_refused_with_what_there_is(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        clew.open(url, environment={"HOME": "/x"})
    assert caught.value.hint


def test_a_store_in_memory_is_empty_and_of_its_own() -> None:
    store = clew.open("memory:", environment={})
    store.engine.append(LogKey("p", "s"), [Entry(b"{}")])
    assert [stat.key.session for stat in store.logs()] == ["s"]
    assert clew.open("memory:", environment={}).logs() == []


def test_a_directory_with_a_colon_in_its_name_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foo:bar").mkdir()
    monkeypatch.chdir(tmp_path)
    assert clew.open("foo:bar", environment={}).place == str(tmp_path / "foo:bar")


def test_without_any_home_directory_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(UsageError, match="no home directory") as caught:
        clew.open(environment={})
    assert "CLAUDE_CONFIG_DIR" in caught.value.hint


def test_the_clock_is_the_one_that_is_set(tmp_path: Path) -> None:
    noon = datetime(2026, 11, 18, 12, tzinfo=UTC)
    assert clew.open(tmp_path, environment={"CLEW_NOW": "2026-11-18T12:00:00Z"}).now() == noon
    assert clew.open(tmp_path, environment={"CLEW_NOW": "2026-11-18T12:00:00"}).now() == noon
    assert clew.open(tmp_path, environment={}, clock=lambda: noon).now() == noon
    assert clew.open(tmp_path, environment={}).now().tzinfo is not None
    with pytest.raises(UsageError, match="CLEW_NOW"):
        clew.open(tmp_path, environment={"CLEW_NOW": "soon"})
    with pytest.raises(UsageError, match="no clock"):
        Store(FilesEngine(tmp_path)).now()


def test_a_root_that_does_not_exist_is_not_found_when_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no directory"):
        list(clew.open(tmp_path / "nope").sessions())


def test_the_sample_can_be_opened_like_any_config_directory() -> None:
    infos = list(clew.open(defaults.sample_dir()).sessions())
    assert len(infos) >= 4
    assert all(info.title and info.message_count for info in infos)
    assert sum(info.agents for info in infos) >= 1
    size = sum(path.stat().st_size for path in defaults.sample_dir().rglob("*") if path.is_file())
    assert size < 400_000
