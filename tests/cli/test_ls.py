"""`clew ls` and `clew` alone: which sessions are listed, in which order, and what a row says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew import ClaudeKeys
from clew.cli import render
from clew_calls import Done, Run
from session_files import PROJECT, append, in_bytes, session_id, two_turns, user, write

KEYS = [
    "id", "project", "cwd", "title", "first_prompt", "tag", "git_branch", "model", "created_at", "updated_at",
    "message_count", "size_bytes", "agents", "version", "pinned", "archived", "parent_id", "path", "owner", "workspace",
    "labels", "turn_count", "total_tokens", "exit_reason", "agent_name", "expires_at",
]  # fmt: skip


def numbers(done: Done) -> list[int]:
    return [int(row["id"][:8], 16) for row in done.json]


def titled(number: int, text: str) -> list[dict[str, object]]:
    return [*two_turns(), {"type": "custom-title", "customTitle": text, "sessionId": session_id(number)}]


def test_json_is_one_array_of_rows_with_every_key_of_the_contract(run: Run, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns())
    done = run("ls", "--all", "--json")
    assert (done.code, done.err) == (0, "")
    (row,) = done.json
    assert list(row) == KEYS
    assert (row["id"], row["project"], row["path"]) == (session_id(1), PROJECT, str(path))
    assert (row["updated_at"], row["expires_at"]) == ("2026-11-18T10:00:00.000Z", "2026-12-18T10:00:00.000Z")
    assert (row["pinned"], row["archived"], row["labels"], row["parent_id"]) == (False, False, [], None)


def test_without_a_session_json_is_an_empty_array(run: Run) -> None:
    assert run("ls", "--json").json == []
    assert run("--json").json == []


def test_the_scope_is_this_directory_unless_all_or_another_is_asked_for(run: Run, config_dir: Path) -> None:
    here = ClaudeKeys().key(os.path.realpath("."))
    write(config_dir, 1, *two_turns(), project=here, at=1)
    write(config_dir, 2, *two_turns(), at=2)
    assert numbers(run("ls", "--json")) == [1]
    assert numbers(run("ls", "--json", "--all")) == [2, 1]
    assert numbers(run("ls", "--json", "--project", "/home/me/proj")) == [2]
    assert numbers(run("ls", "--json", f"--project={PROJECT}")) == [2]
    assert numbers(run("ls", "--json", "--project", ".")) == [1]


def test_global_options_mean_the_same_before_and_after_the_command(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns())
    expected = run("ls", "--all", "--json").out
    assert "[{" in expected
    assert run("--all", "--json", "ls").out == expected
    assert run("--json", "ls", "--all").out == expected
    assert run("--config-dir", config_dir, "ls", "--all", "--json").out == expected
    assert run("ls", "--store", f"claude:{config_dir}", "--all", "--json").out == expected


def test_the_order_and_the_limit_can_be_chosen(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *titled(1, "banana"), at=1)
    write(config_dir, 2, *titled(2, "Apple"), user("u5", "x" * 5000, "a4"), at=2)
    write(config_dir, 3, raw=b"", at=3)
    for sort, expected in {"newest": [3, 2, 1], "oldest": [1, 2, 3], "size": [2, 1, 3], "title": [2, 1, 3]}.items():
        assert numbers(run("ls", "--all", "--json", "--sort", sort)) == expected
        assert numbers(run("ls", "--all", "--json", "--sort", sort, "--limit", "2")) == expected[:2]
    assert numbers(run("ls", "--all", "--json", "--limit", "0")) == []


def test_people_get_a_table_with_ids_that_can_be_typed(run: Run, config_dir: Path) -> None:
    write(config_dir, 0xABCDEF01, *titled(1, "Fix the login"), at=0)
    write(config_dir, 0xABCDEF02, *two_turns(), at=-86_400 * 3)
    done = run("ls", "--all")
    assert done.code == 0
    heading, first, second = done.out.splitlines()
    assert heading.split() == ["ID", "AGE", "TITLE", "MSGS", "SIZE", "BRANCH", "PROJECT"]
    assert first.split() == ["abcdef01", "2h", "Fix", "the", "login", "4", "1.3", "KB", "main", "/home/me/proj"]
    assert second.split()[:2] == ["abcdef02", "3d"]
    assert run("show", first.split()[0]).code == 0


def test_a_table_is_no_wider_than_the_terminal(run: Run, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(config_dir, 1, *titled(1, "wide 日本語 " * 40))
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = run("ls", "--all").out.splitlines()
        assert max(render.cells(line) for line in lines) <= columns
        assert "…" in lines[1]


def test_what_the_client_soon_deletes_is_marked_with_what_to_do(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), at=-86_400 * 27)
    write(config_dir, 2, *two_turns(), at=-86_400 * 99)
    write(config_dir, 3, *two_turns())
    lines = run("ls", "--all").out.splitlines()
    assert ["◷" in line for line in lines[1:4]] == [False, True, True]
    assert "◷ 2d" in lines[2]
    assert "◷ 0d" in lines[3]
    assert "cleanupPeriodDays" in lines[-1]
    assert "~/.claude/settings.json" in lines[-1]
    (config_dir / "settings.json").write_text('{"cleanupPeriodDays": 3650}')
    assert "◷" not in run("ls", "--all").out


def test_hostile_titles_and_branches_cannot_reach_the_terminal(
    run: Run, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "a\x1b]0;x\x07\x1b[2J\u202etxt\r\n\x9b1m[bold]b[/bold]\u200b"
    rows = [row | {"gitBranch": evil, "cwd": evil} for row in titled(1, evil)]
    write(config_dir, 1, *rows)
    monkeypatch.setenv("COLUMNS", "300")
    out = run("ls", "--all").out
    assert "a\\x1b]0;x\\x07\\x1b[2J\\u202etxt \\x9b1m[bold]b[/bold]\\u200b" in out
    assert not set(out) & set("\x1b\x07\u202e\r\x9b\u200b")


def test_a_lone_surrogate_leaves_the_document_readable(run: Run, config_dir: Path) -> None:
    row = rb'{"type":"user","uuid":"\ud800u1","timestamp":"2026-01-01T00:00:00Z","message":{"content":"h\ud800\u00e9"}}'
    write(config_dir, 1, raw=row + b"\n")
    assert run("ls", "--all", "--json").json[0]["title"] == "h\ufffdé"
    assert run("show", session_id(1), "--json").json["head"] == "\ud800u1"
    assert run("tree", session_id(1), "--json").json["head"] == "\ud800u1"
    assert run("tree", session_id(1)).code == run("show", session_id(1)).code == 0


def test_what_cannot_be_read_is_told_on_stderr_and_the_rest_is_listed(run: Run, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns())
    (path.parent / f"{session_id(2)}.jsonl").mkdir()
    os.mkfifo(path.parent / f"{session_id(3)}.jsonl")
    (path.parent / f"{session_id(4)}.jsonl").symlink_to(f"{session_id(4)}.jsonl")
    done = run("ls", "--all", "--json")
    assert (done.code, numbers(done)) == (0, [1])
    assert done.err.count("left out") == 3
    assert "it is a directory" in done.err
    assert "it is a pipe" in done.err
    assert run("ls", "--all", "-q").err == ""


@pytest.mark.parametrize("settings", ["garbage", "[1]", '{"cleanupPeriodDays": "x"}', None])
def test_settings_that_cannot_be_read_are_told_and_the_rest_goes_on(
    run: Run, config_dir: Path, settings: str | None
) -> None:
    write(config_dir, 1, *two_turns())
    place = config_dir / "settings.json"
    place.mkdir() if settings is None else place.write_text(settings)
    for command in (["ls", "--all"], ["ls", "--all", "--json"], ["--all", "--json"], ["--all"]):
        done = run(*command)
        assert done.code == 0
        assert done.err.startswith(f"clew: left out {place}: ")
        assert "30 " in done.err
    assert run("ls", "--all", "--json").json[0]["expires_at"].startswith("2026-12-18")
    if settings is not None:
        for fine in ("", "{ }", '{"cleanupPeriodDays": 3}'):
            place.write_text(fine)
            assert run("ls", "--all").err == ""


def test_subagents_are_counted_and_not_listed(run: Run, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns())
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(in_bytes(user("x1", "look", isSidechain=True)))
    done = run("ls", "--all", "--json")
    assert [row["agents"] for row in done.json] == [1]


def test_clew_alone_shows_this_directory_and_how_to_go_on(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), project=ClaudeKeys().key(os.path.realpath(".")))
    done = run()
    assert done.code == 0
    assert "second question" in done.out or "first question" in done.out
    assert "clew --help" in done.out.splitlines()[-1]
    assert "clew --help" not in run("-q").out


def test_clew_alone_shows_everything_where_this_directory_has_nothing(run: Run, config_dir: Path) -> None:
    assert run().out.startswith("No sessions here.")
    write(config_dir, 1, *two_turns())
    assert run().out.startswith("No sessions in this directory; these are from all of them.")
    assert "first question" in run().out
    assert "clew ls --all" in run("ls").out


def test_a_session_that_grew_is_listed_as_it_is_now(run: Run, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns())
    assert run("ls", "--all", "--json").json[0]["message_count"] == 4
    append(path, user("u5", "third", "a4", 5))
    assert run("ls", "--all", "--json").json[0]["message_count"] == 5


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(-5, "now"), (0, "now"), (59, "now"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86_399, "23h"), (86_400, "1d"),
     (604_799, "6d"), (604_800, "1w"), (2_629_800, "1mo"), (31_557_600, "1y"), (400_000_000, "12y")],
)  # fmt: skip
def test_ages_are_one_short_word(seconds: int, word: str) -> None:
    from datetime import UTC, datetime, timedelta

    now = datetime(2026, 11, 18, tzinfo=UTC)
    assert render.age((now - timedelta(seconds=seconds)).isoformat(), now) == word


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (9_940, "9.9 KB"), (9_960, "10 KB"), (999_499, "999 KB"),
     (999_500, "1.0 MB"), (24_000_000, "24 MB"), (3_200_000_000, "3.2 GB"), (5 * 10**15, "5000 TB")],
)  # fmt: skip
def test_sizes_are_short(count: int, text: str) -> None:
    assert render.size(count) == text


def test_short_ids_tell_apart_what_begins_alike() -> None:
    assert render.short_ids(["aaaaaaaa-1", "aaaaaaaa-2", "bbbbbbbb-1"]) == {
        "aaaaaaaa-1": "aaaaaaaa-1", "aaaaaaaa-2": "aaaaaaaa-2", "bbbbbbbb-1": "bbbbbbbb"}  # fmt: skip
