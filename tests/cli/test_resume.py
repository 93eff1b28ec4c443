"""`clew resume` and `clew continue`: what is started, where, with which words; and when nothing is."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import clew
from clew import ClaudeKeys
from clew_calls import Run
from continuing import project_folder
from session_files import Row, assistant, session_id, user, write
from terminal import Terminal

NEW = "11111111-2222-4333-8444-555555555555"
CLIENT = """#!{python}
import json, os, sys
told = {{"words": sys.argv[1:], "cwd": os.getcwd(), "config": os.environ.get("CLAUDE_CONFIG_DIR")}}
print(json.dumps(told))
sys.exit(7)
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that only says how it was started, and ends with 7."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLIENT.format(python=sys.executable))
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


def turns(cwd: Path | str, *names: str) -> list[Row]:
    rows: list[Row] = []
    for name in names or ("one", "two"):
        before = str(rows[-1]["uuid"]) if rows else None
        rows += [user(f"{name}-prompt", name, before, len(rows)), assistant(f"{name}-answer", "yes", f"{name}-prompt")]
    return [row | {"cwd": str(cwd)} for row in rows]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "project of $(mine)"
    folder.mkdir()
    return folder.resolve()


def put(config: Path, number: int, cwd: Path | str, *more: Row, at: int = 0) -> str:
    write(config, number, *turns(cwd), *more, at=at, project=project_folder(Path(cwd)))
    return session_id(number)


def started(*words: str, cwd: Path | None = None, **options: Any) -> tuple[int, dict[str, Any], str]:
    """What a process of clew became: its code, what the client was told, and what stood on stderr."""
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *words], env=environment, capture_output=True, check=False, text=True, cwd=cwd,
        stdin=subprocess.DEVNULL, timeout=60, **options,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {}, done.stderr


@pytest.mark.usefixtures("client")
def test_the_client_takes_our_place_in_the_sessions_directory(config_dir: Path, work: Path) -> None:
    id_ = put(config_dir, 1, work)
    code, told, err = started("resume", "00000001", "--", "--model", "opus $(touch x)")
    assert (code, err) == (7, "")
    assert told["words"] == ["--resume", id_, "--model", "opus $(touch x)"]
    assert told["cwd"] == str(work)
    assert told["config"] == str(config_dir)


@pytest.mark.usefixtures("client")
def test_without_a_name_what_stands_behind_the_dashes_is_no_name(config_dir: Path, work: Path) -> None:
    put(config_dir, 1, work)
    code, told, err = started("resume", "--", "-p", "hello")
    assert (code, told) == (2, {})
    assert "no session was named" in err


@pytest.mark.usefixtures("client")
def test_a_fork_is_the_clients_own(config_dir: Path, work: Path) -> None:
    id_ = put(config_dir, 1, work)
    _, told, _ = started("resume", id_, "--fork", "--id", NEW)
    assert told["words"] == ["--resume", id_, "--fork-session", "--session-id", NEW]
    for words in (["--id", NEW], ["--fork", "--id", "mine"]):
        assert started("resume", id_, *words)[:2] == (2, {})


@pytest.mark.usefixtures("client")
def test_a_point_is_the_clients_flag_where_it_prints_and_else_the_head_is_moved(config_dir: Path, work: Path) -> None:
    id_ = put(config_dir, 1, work)
    log = Path(clew.open(config_dir).session(id_).where)
    before = log.read_bytes()
    _, told, _ = started("resume", id_, "--at", "turn:1", "--", "-p", "go on")
    assert told["words"] == ["--resume", id_, "--resume-session-at", "one-answer", "-p", "go on"]
    assert log.read_bytes() == before
    _, told, err = started("resume", id_, "--at", "turn:1")
    assert told["words"] == ["--resume", id_]
    assert "clew undo" in err
    assert clew.open(config_dir).session(id_).head.uuid == "one-answer"
    assert log.read_bytes().startswith(before)
    assert started("resume", id_, "--at", "turn:99")[0] == 4


@pytest.mark.usefixtures("client")
def test_a_fork_at_a_point_is_ours_where_the_client_does_not_print(config_dir: Path, work: Path) -> None:
    id_ = put(config_dir, 1, work)
    before = Path(clew.open(config_dir).session(id_).where).read_bytes()
    _, told, _ = started("resume", id_, "--at", "turn:1", "--fork", "--id", NEW)
    assert told["words"] == ["--resume", NEW]
    assert len(clew.open(config_dir).session(NEW).messages()) == 2
    assert Path(clew.open(config_dir).session(id_).where).read_bytes() == before


@pytest.mark.usefixtures("client")
def test_a_point_on_another_branch_is_reached_though_the_client_would_refuse_it(config_dir: Path, work: Path) -> None:
    other = user("else-prompt", "otherwise", "one-answer", 9) | {"cwd": str(work)}
    id_ = put(config_dir, 1, work, other)
    words = ("--at", "two-answer", "--", "-p", "go on")
    _, told, _ = started("resume", id_, "--fork", "--id", NEW, *words)
    assert told["words"] == ["--resume", NEW, "-p", "go on"]
    assert clew.open(config_dir).session(NEW).head.uuid == "two-answer"
    _, told, err = started("resume", id_, *words)
    assert told["words"] == ["--resume", id_, "-p", "go on"]
    assert "clew undo" in err
    assert clew.open(config_dir).session(id_).head.uuid == "two-answer"


def test_a_command_that_the_client_would_not_obey_is_told_with_what_to_do_first(
    run: Run, config_dir: Path, work: Path
) -> None:
    id_ = put(config_dir, 1, work, user("else-prompt", "otherwise", "one-answer", 9))
    for at, words, hint in (
        ("one-answer", ("--", "-p", "x"), ""),
        ("one-answer", (), f"clew resume {id_} --at one-answer"),
        ("two-answer", ("--fork", "--", "-p", "x"), f"clew resume {id_} --at two-answer --fork"),
    ):
        done = run("resume", id_, "--json", "--at", at, *words)
        assert "--resume-session-at" in json.loads(done.out)["command"]
        assert hint in done.err
        assert bool(done.err) == bool(hint)


def test_a_dry_run_of_a_fork_at_a_point_prints_our_own_fork(run: Run, config_dir: Path, work: Path) -> None:
    id_ = put(config_dir, 1, work)
    lines = run("resume", id_, "--dry-run", "--at", "turn:1", "--fork", "--id", NEW).out.splitlines()
    assert lines[1:] == [f"clew fork {id_} --at one-answer --id {NEW}", f"clew resume {NEW}"]
    call = ["resume", id_, "--dry-run", "--at", "turn:1", "--fork", "--id", NEW, "--in", str(work.parent)]
    assert run(*call, "--", "--model", "opus").out.splitlines()[-1] == (
        f"clew resume {NEW} --in {work.parent} -- --model opus"
    )


def test_a_dry_run_at_a_point_of_a_file_names_the_file(run: Run, config_dir: Path, work: Path, tmp_path: Path) -> None:
    id_ = put(config_dir, 1, work)
    file = tmp_path / "else where" / f"{id_}.jsonl"
    file.parent.mkdir()
    file.write_bytes((config_dir / "projects" / project_folder(work) / file.name).read_bytes())
    # By its id it would be the session of the store.
    lines = run("resume", file, "--dry-run", "--at", "turn:1").out.splitlines()
    assert lines[1] == f"clew truncate '{file}' --at one-answer"
    lines = run("resume", file, "--dry-run", "--at", "turn:1", "--fork", "--id", NEW).out.splitlines()
    assert lines[1:] == [
        f"clew fork '{file}' --at one-answer --id {NEW}", f"clew resume '{file.with_name(NEW)}.jsonl'",
    ]  # fmt: skip
    for line in lines[1:]:
        assert run(*shlex.split(line)[1:], *(["--dry-run"] if "resume" in line else [])).code == 0


@pytest.mark.usefixtures("client")
def test_another_store_is_named_to_the_client(config_dir: Path, work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    id_ = put(other, 1, work)
    _, told, _ = started("resume", "--config-dir", str(other), id_)
    assert told["config"] == str(other)
    assert config_dir != other


@pytest.mark.usefixtures("client")
def test_a_directory_that_is_gone_is_told_with_what_to_type(config_dir: Path, work: Path, tmp_path: Path) -> None:
    id_ = put(config_dir, 1, work)
    work.rmdir()
    code, told, err = started("resume", id_)
    assert (code, told) == (4, {})
    assert "is gone" in err
    assert f"clew resume {id_} --in DIR" in err
    _, told, _ = started("resume", id_, "--in", str(tmp_path))
    assert told["cwd"] == str(tmp_path.resolve())
    assert started("resume", id_, "--in", str(work))[0] == 4


@pytest.mark.usefixtures("client")
def test_a_name_in_any_script_is_told_as_it_is_written(config_dir: Path, tmp_path: Path) -> None:
    gone = tmp_path / "プロジェクト-ünï\u202e"
    id_ = put(config_dir, 1, gone)
    assert f"its directory is gone: '{tmp_path}/プロジェクト-ünï\\u202e'" in started("resume", id_)[2]
    assert "begins with '日本'" in started("resume", "日本")[2]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(("typed", "where"), [("\r", "here"), ("other\r", "here/other")])
def test_in_a_terminal_it_asks_for_another_directory(
    config_dir: Path, work: Path, tmp_path: Path, typed: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = put(config_dir, 1, work)
    work.rmdir()
    (tmp_path / "here" / "other").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent), "TERM": "xterm"}
    with closing(Terminal([sys.executable, "-m", "clew", "resume", id_], environment, size=(30, 200))) as terminal:
        terminal.sees("Start Claude Code in which directory?")
        terminal.type(typed)
        terminal.sees(f'"cwd": "{(tmp_path / where).resolve()}"')
        assert terminal.ends()[0] == 7


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("rows", ["none", "without a directory", "of the place before it was moved"])
def test_in_a_directory_of_its_project_a_session_is_gone_on_with_whatever_its_rows_name(
    config_dir: Path, work: Path, rows: str
) -> None:
    """As by `claude --continue`, which asks no row where it is."""
    cwd = {"none": None, "without a directory": None, "of the place before it was moved": "/moved/from"}[rows]
    said = [] if rows == "none" else [{**row, "cwd": cwd} for row in turns(work)]
    write(config_dir, 1, *said, project=project_folder(work))
    code, told, err = started("continue", cwd=work)
    assert (code, told["cwd"]) == (7, str(work)), err
    assert started("resume", session_id(1), cwd=work)[1]["cwd"] == str(work)
    assert started("resume", session_id(1))[0] == 4


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("named", ["relative/dir", "ELSEWHERE", "/\x1b[2J"])
def test_a_directory_that_is_not_the_projects_is_never_entered(config_dir: Path, tmp_path: Path, named: str) -> None:
    named = str(tmp_path) if named == "ELSEWHERE" else named
    write(config_dir, 1, *turns(named), project="-home-me-proj")
    code, told, err = started("resume", session_id(1))
    assert (code, told) == (4, {})
    assert "not the directory of its project" in err
    assert "\x1b" not in err


@pytest.mark.usefixtures("client")
def test_a_directory_that_is_another_thing_now_is_told_as_it_is(config_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "moved").symlink_to(tmp_path / "disk")
    (tmp_path / "file").touch()
    for number, name, says in [(1, "moved", f"is a link now, to '{tmp_path}/disk'"), (2, "file", "is no directory")]:
        key = ClaudeKeys().key(str(tmp_path / name))  # As it was when the sessions were made.
        write(config_dir, number, *turns(tmp_path / name), project=key)
        code, told, err = started("resume", session_id(number))
        assert (code, told) == (4, {})
        assert says in err
        assert "--in DIR" in err


@pytest.mark.usefixtures("client")
def test_a_file_that_lies_elsewhere_is_resumed_here(config_dir: Path, work: Path, tmp_path: Path) -> None:
    put(config_dir, 1, work)
    copied = tmp_path / f"{session_id(2)}.jsonl"
    copied.write_bytes(Path(clew.open(config_dir).session(session_id(1)).where).read_bytes())
    _, told, _ = started("resume", str(copied), cwd=tmp_path)
    assert told["words"] == ["--resume", str(copied)]
    assert told["cwd"] == str(tmp_path.resolve())


def test_where_there_is_no_client_it_says_so(config_dir: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = put(config_dir, 1, work)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "no program claude" in started("resume", id_)[2]
    code, _, err = started("resume", id_, "--client", "/nowhere/claude")
    assert (code, "'/nowhere/claude'" in err) == (4, True)
    assert started("resume", id_, "--json")[1]["command"][0] == "claude"


def test_a_client_that_is_no_program_is_no_traceback(config_dir: Path, work: Path, client: Path) -> None:
    id_ = put(config_dir, 1, work)
    client.write_bytes(b"\0not a program")
    code, _, err = started("resume", id_)
    assert (code, "cannot be started" in err, "Traceback" in err) == (6, True, False)


def test_json_only_says(run: Run, config_dir: Path, work: Path) -> None:
    id_ = put(config_dir, 1, work)
    told = run("resume", id_, "--json", "--at", "turn:1", "--fork").json
    assert told == {
        "kind": "session", "session_id": id_, "project": project_folder(work), "cwd": str(work),
        "path": clew.open(config_dir).session(id_).where, "url": None, "query": None, "candidates": [],
        "command": ["claude", "--resume", id_, "--resume-session-at", "one-answer", "--fork-session"],
    }  # fmt: skip
    work.rmdir()
    done = run("resume", id_, "--json")
    assert (done.code, done.json["cwd"], "is gone" in done.err) == (0, None, True)


def test_json_names_candidates_where_it_is_not_clear(run: Run, config_dir: Path, work: Path) -> None:
    same: Row = {"type": "custom-title", "customTitle": "Same", "sessionId": "s"}
    ids = [put(config_dir, number, work, same, at=-number) for number in (1, 2)]
    done = run("resume", "--all", "same", "--json")
    assert done.code == 4
    assert {name: done.json[name] for name in ("kind", "query", "candidates", "command", "session_id")} == {
        "kind": "picker", "query": "same", "candidates": ids, "command": None, "session_id": None,
    }  # fmt: skip
    assert "2 sessions have this title" in done.json["error"]
    done = run("resume", "--all", "same")
    assert (done.code, done.out) == (4, "")
    assert [line.strip() for line in done.err.splitlines()][1:3] == [f"{id_}  Same" for id_ in ids]
    assert run("show", "--all", "same").err == done.err
    assert run("resume", "--all", "--json").json["candidates"] == ids
    assert run("resume", "", "--json").code == 2


def test_a_dry_run_prints_what_a_shell_can_run(run: Run, config_dir: Path, work: Path, client: Path) -> None:
    id_ = put(config_dir, 1, work)
    lines = run("resume", id_, "--dry-run", "--at", "turn:1", "--client", client).out.splitlines()
    assert [shlex.split(line) for line in lines] == [
        ["cd", str(work)], ["clew", "truncate", id_, "--at", "one-answer"], [str(client), "--resume", id_],
    ]  # fmt: skip


def test_a_store_that_the_client_does_not_read_is_refused_with_the_way_out(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    session = clew.open(url).create(tmp_path, id=session_id(1))
    session.append({"role": "user", "content": "hi"})
    done = run("resume", "--store", url, session_id(1))
    assert done.code == 2
    assert f"clew copy {url} claude:\n" in done.err
    assert run("resume", "--store", url, session_id(1), "--json").json["command"] is None


@pytest.mark.usefixtures("client")
def test_a_file_is_resumed_whatever_store_is_named_beside_it(config_dir: Path, work: Path, tmp_path: Path) -> None:
    path = config_dir / "projects" / project_folder(work) / f"{put(config_dir, 1, work)}.jsonl"
    _, told, _ = started("resume", "--store", f"sqlite:{tmp_path / 'x.db'}", str(path), cwd=work)
    # What is no directory is none for the client: it would make one of that name where it stands.
    assert (told["words"], told["config"]) == (["--resume", str(path)], str(config_dir))


def test_no_list_comes_up_of_sessions_that_the_client_does_not_read(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    clew.open(url).create(tmp_path, id=session_id(1)).append({"role": "user", "content": "hi"})
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent), "TERM": "xterm"}
    command = [sys.executable, "-m", "clew", "resume", "--all", "--store", url]
    with closing(Terminal(command, environment, size=(30, 200))) as terminal:
        terminal.sees("Claude Code does not read")
        assert terminal.ends()[0] == 2


@pytest.mark.usefixtures("client")
def test_continue_takes_the_newest_of_this_directory_and_says_why(config_dir: Path, work: Path, tmp_path: Path) -> None:
    error = assistant("e", "API Error: 500", "two-answer", isApiErrorMessage=True)
    older = put(config_dir, 1, work)
    newer = put(config_dir, 2, work, error, at=5)
    put(config_dir, 3, tmp_path, at=10)
    code, told, err = started("continue", cwd=work)
    assert (code, told["words"], told["cwd"]) == (7, ["--resume", newer], str(work))
    assert err == f"{newer}: the newest that Claude Code would continue\n"
    _, told, err = started("continue", "--policy", "skip-errors", "--", "-p", "x", cwd=work)
    assert told["words"] == ["--resume", older, "-p", "x"]
    assert f"not {newer}: it ends in an API error" in err
    told = started("continue", "--policy", "skip-errors", "--json", cwd=work)[1]
    assert (told["session_id"], told["passed_over"][0]["id"]) == (older, newer)
    assert started("continue", "--all", "--json", cwd=work)[1]["session_id"] == session_id(3)
    assert started("continue", "--project", str(tmp_path), "--json", cwd=work)[1]["session_id"] == session_id(3)
    assert started("continue", "--project", project_folder(tmp_path), "--json")[1]["session_id"] == session_id(3)


@pytest.mark.usefixtures("client")
def test_an_empty_newest_session_is_continued_as_the_client_does(config_dir: Path, work: Path) -> None:
    write(config_dir, 1, raw=b"", project=project_folder(work))
    told = started("continue", "--json", cwd=work)[1]
    assert told["session_id"] == session_id(1)
    assert told["command"][1:] == ["--continue"]


def test_continue_where_there_is_nothing_says_so(run: Run, config_dir: Path) -> None:
    assert config_dir.is_dir()
    assert run("continue").code == 4
    assert run("continue", "--policy", "nope").code == 2
