"""Bad calls and bad places: the right exit code, what is wrong, what to do, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

import clew
from clew.cli import group, table
from clew.cli.output import encoded
from clew_calls import Run
from session_files import session_id, two_turns, write

ID = session_id(1)

BAD: list[tuple[list[str], int, str]] = [
    (["ls", "--config-dir", "/nowhere/at/all"], 4, "there is no directory /nowhere/at/all"),
    (["ls", "--config-dir", "FILE"], 6, "cannot be read: Not a directory"),
    (["ls", "--project", "/nowhere/at/all"], 4, "there is no directory '/nowhere/at/all'"),
    (["ls", "--all", "--project", "."], 2, "--all and --project contradict"),
    (["ls", "--store", "sqlite:x", "--config-dir", "y"], 2, "both name a store"),
    (["ls", "--store", "postgresql://x"], 2, "later version"),
    (["ls", "--store", "sqlite:/nowhere/at/all.db"], 4, "there is no directory /nowhere/at"),
    (["ls", "--config-dir", ""], 2, "--config-dir names no directory"),
    (["ls", "--store", ""], 2, "a store needs a directory"),
    (["ls", "--project", ""], 4, "there is no directory ''"),
    (["ls", "--project", "x" * 10_000], 4, "xxx…"),
    (["ls", "--limit", "-1"], 2, "Invalid value for '--limit'"),
    (["ls", "--sort", "colour"], 2, "Invalid value for '--sort'"),
    (["ls", "--bogus"], 2, "No such option"),
    (["ls", "extra"], 2, "unexpected extra argument"),
    (["show"], 2, "Missing argument"),
    (["show", ""], 2, "an empty text names no session"),
    (["show", " \t"], 2, "an empty text names no session"),
    (["show", "x" * 150_000], 2, "150,000 characters"),
    (["show", "nope"], 4, "no session"),
    (["show", "../../etc/passwd"], 4, "no session"),
    (["show", "/etc/passwd"], 4, "no session"),
    (["show", "0000000"], 4, "ambiguous: 2 ids begin so"),
    (["show", "nope.jsonl"], 4, "there is no"),
    (["show", ".jsonl"], 2, "is no session file"),
    (["show", "DIRECTORY"], 6, "it is a directory, not a regular file"),
    (["show", "PIPE"], 6, "it is a pipe, not a regular file"),
    (["show", "CIRCLE"], 6, "Too many levels of symbolic links"),
    (["show", "latest"], 4, "there is no session in"),
    (["show", "title:x"], 4, "no session here has the title 'x'"),
    (["show", "title:"], 2, "title: names no title"),
    (["show", "tag:\udcff"], 4, "no session here has the tag"),
    (["show", "branch:x"], 4, "no session here is on the branch 'x'"),
    (["show", "pr:x"], 2, "is no pull request"),
    (["show", "project:/nowhere#latest"], 4, "there is no session in /nowhere"),
    (["show", "project:/nowhere"], 2, "names no session of a project"),
    (["show", "https://example.org/1"], 2, "'https://example.org/1' is a URL"),
    (["show", "\x1b[2J"], 4, "no session"),
    (["show", ID, "--at", "turn:99"], 4, "no turn 99"),
    (["show", ID, "--at", "turn:0"], 2, "names no turn"),
    (["show", ID, "--at", "time:soon"], 2, "names no time"),
    (["show", ID, "--at", "\x1b[2J"], 2, "is no point"),
    (["tree", "nope"], 4, "no session"),
    (["search", "x"], 2, "`clew search` comes with a later version"),
    (["shwo"], 2, "there is no command 'shwo'"),
    (["\x1b[2J"], 2, "there is no command '\\x1b[2J'"),
    (["show", ID, "--at", "turn:" + "9" * 5000], 2, "99…"),
    (["show", "a" * 10_000], 4, "no session"),
    (["show", "x/" * 5_000 + "y.jsonl"], 6, "x/x/x"),
    (["show", "\udcff\udcfe"], 4, "no session"),
    (["show", "/tmp/\udcff.jsonl"], 4, "there is no /tmp/\\udcff.jsonl"),
    (["completion", "tcsh"], 2, "Invalid value for"),
]


@pytest.fixture
def places(config_dir: Path) -> dict[str, str]:
    """Words of the table above that stand for something on the disk."""
    write(config_dir, 1, *two_turns())
    folder = write(config_dir, 2, *two_turns()).parent
    found = {name: folder / f"{name.lower()}.jsonl" for name in ("DIRECTORY", "PIPE", "CIRCLE", "FILE")}
    found["DIRECTORY"].mkdir()
    os.mkfifo(found["PIPE"])
    found["CIRCLE"].symlink_to(found["CIRCLE"])
    found["FILE"].write_text("x")
    return {name: str(path) for name, path in found.items()}


@pytest.mark.parametrize(("arguments", "code", "says"), BAD)
def test_a_bad_call_says_what_is_wrong_and_what_to_do(
    run: Run, places: dict[str, str], arguments: list[str], code: int, says: str
) -> None:
    done = run(*(places.get(word, word) for word in arguments))
    assert done.code == code
    assert done.out == ""
    assert says in done.err
    assert "hint: " in done.err
    assert "\x1b" not in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(("arguments", "code", "says"), BAD)
def test_in_json_the_error_is_the_one_document(
    run: Run, places: dict[str, str], arguments: list[str], code: int, says: str
) -> None:
    words = [places.get(word, word) for word in arguments]
    for done in (run("--json", *words), run(*words, "--json")):
        assert (done.code, done.err) == (code, "")
        assert list(done.json) == ["error", "hint", "candidates"]
        assert says in done.json["error"]
        assert done.json["hint"]


def test_candidates_are_listed_in_both(run: Run, places: dict[str, str]) -> None:
    assert places
    ids = {session_id(1), session_id(2)}
    assert set(run("show", "0000000", "--json").json["candidates"]) == ids
    assert {line.strip() for line in run("show", "0000000").err.splitlines()} >= ids


@pytest.mark.usefixtures("permissions_count")
def test_a_file_that_may_not_be_read_is_a_storage_error(run: Run, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns())
    path.chmod(0)
    for name in (str(path), ID):
        done = run("show", name)
        assert done.code == 6
        assert "Traceback" not in done.err


@pytest.mark.usefixtures("permissions_count")
@pytest.mark.parametrize("name", ["", "projects", "projects/-home-me-proj"])
def test_a_directory_that_may_not_be_read_is_told(run: Run, config_dir: Path, name: str) -> None:
    write(config_dir, 1, *two_turns())
    place = config_dir / name
    place.chmod(0)
    try:
        done = run("ls", "--all", "--json")
        assert done.code == (0 if "/" in name else 6)
        assert str(place) in (done.err if "/" in name else done.json["error"])
        assert run("show", ID).code == (4 if "/" in name else 6)
    finally:
        place.chmod(0o700)


def test_a_session_id_that_is_a_directory_says_so(run: Run, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns())
    path.unlink()
    path.mkdir()
    done = run("show", ID)
    assert done.code == 6
    assert "it is a directory, not a regular file" in done.err


# Processes of their own: pipes, signals, and what is imported.


def clew_process(*arguments: str, stdout: int | IO[bytes]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    command = [sys.executable, "-m", "clew", *arguments]
    return subprocess.Popen(command, env=environment, stdout=stdout, stderr=subprocess.PIPE)


CALLS = [
    ["ls", "--all"], ["ls", "--all", "--json"], ["show", "latest", "--all"], ["show", "latest", "--all", "--json"],
    ["tree", "latest", "--all"], ["tree", "latest", "--all", "--json"], ["show", "nope", "--json"], ["--help"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", CALLS)
def test_a_reader_that_stops_reading_ends_it_quietly(config_dir: Path, arguments: list[str]) -> None:
    write(config_dir, 1, *two_turns())
    reading, writing = os.pipe()
    os.close(reading)
    process = clew_process(*arguments, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (4 if "nope" in arguments else 0, b"")


def python(program: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60, **options)


def test_where_the_directory_is_gone_only_what_needs_it_fails(config_dir: Path, tmp_path: Path) -> None:
    write(config_dir, 1, *two_turns())
    here = tmp_path / "here"
    for words, code in ((["ls"], 4), (["show", "x.jsonl"], 4), (["ls", "--all"], 0), (["show", ID], 0)):
        here.mkdir()
        program = f"import os; os.rmdir(os.getcwd()); from clew.cli import main; exit(main({[*words, '--json']}))"
        done = python(program, cwd=here)
        assert (done.returncode, done.stderr) == (code, b"")
        assert (b"is gone" in done.stdout) is (code == 4)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0, 1, 2"])
def test_streams_that_were_closed_before_cost_no_traceback(config_dir: Path, closed: str) -> None:
    write(config_dir, 1, *two_turns())
    again = "os.execv(sys.executable, [sys.executable, '-m', 'clew', 'ls', '--all'])"
    done = python(f"import os, sys\nfor stream in ({closed},): os.close(stream)\n{again}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (session_id(1)[:8].encode() in done.stdout) is ("1" not in closed)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_behind_stdout_is_a_storage_error(config_dir: Path, more: list[str]) -> None:
    write(config_dir, 1, *two_turns())
    with Path("/dev/full").open("wb") as full:
        process = clew_process("ls", "--all", *more, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 6
    assert err.startswith(b"clew: the output cannot be written: No space left")
    assert b"Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_error_that_finds_no_room_keeps_its_code_and_costs_no_traceback(config_dir: Path, more: list[str]) -> None:
    write(config_dir, 1, *two_turns())
    with Path("/dev/full").open("wb") as full:
        process = clew_process("show", "nope", *more, stdout=full)
        _, err = process.communicate(timeout=60)
        program = "import os, sys\nos.dup2(os.open('/dev/full', os.O_WRONLY), 2)\n"
        silent = python(program + f"os.execv(sys.executable, [sys.executable, '-m', 'clew', 'show', 'nope', *{more}])")
    assert process.returncode == silent.returncode == 4
    assert err.startswith(b"clew: no session has an id that begins with 'nope'")
    assert b"Traceback" not in err
    assert silent.stdout.startswith(b'{"error":') is bool(more)


def imported(*arguments: str) -> set[str]:
    """The modules that a call imports, by `python -X importtime`."""
    environment = os.environ | {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "clew", *arguments], env=environment,
                          capture_output=True, check=True, text=True)  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def test_help_and_version_import_no_command_and_no_data(config_dir: Path) -> None:
    assert config_dir.is_dir()
    for arguments in (["--help"], ["--version"]):
        found = imported(*arguments)
        assert "clew.cli.group" in found
        assert not found & {"clew.store", "clew.cli.ls", "clew.cli.show", "rich.console", "rich.table", "asyncio"}


def test_json_imports_no_terminal_library(config_dir: Path) -> None:
    write(config_dir, 1, *two_turns())
    for arguments in (["ls", "--all", "--json"], ["show", "--all", "latest", "--json"]):
        found = imported(*arguments)
        assert "clew.store" in found
        assert not found & {"rich.console", "rich.table", "rich.progress", "rich.markup", "asyncio", "sqlite3"}


# Help.


def test_help_names_every_command_and_what_to_type_first(run: Run) -> None:
    done = run("--help")
    assert (done.code, done.err) == (0, "")
    for name in table.HELP:
        assert f"\n  {name} " in done.out
    for example in ("clew ls --all", "clew show latest"):
        assert example in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    assert run("-h").out == done.out


@pytest.mark.parametrize("name", table.HELP)
def test_the_line_in_help_is_the_first_line_of_the_command(run: Run, name: str) -> None:
    command = group.Clew().get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.short_help == table.HELP[name]
    assert not command.hidden
    out = run(name, "--help").out
    assert f"Usage: clew {name}" in out
    assert "--json" in out


def test_commands_without_a_line_in_help_are_hidden() -> None:
    for name in table.COMMANDS.keys() - table.HELP.keys():
        command = group.Clew().get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.hidden


def test_no_name_is_there_and_coming_at_once() -> None:
    assert not set(table.COMING) & set(table.COMMANDS)


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").out == f"clew {clew.__version__}\n"


def test_what_cannot_be_said_in_utf8_is_escaped_and_what_is_no_number_is_null() -> None:
    assert encoded({"a": "é", "b": float("nan")}) == '{"a":"é","b":null}'.encode()
    assert encoded({"a": "é\ud800", "b": float("inf")}) == b'{"a":"\\u00e9\\ud800","b":null}'


# The first thing that a newcomer runs.


def test_welcome_shows_the_sessions_there_are_and_the_newest_conversation(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), at=1)
    write(config_dir, 2, *two_turns(), at=2)
    done = run("welcome")
    assert (done.code, done.err) == (0, "")
    assert "sample" not in done.out
    assert done.out.index("00000002") < done.out.index("00000001") < done.out.index("The newest conversation")
    assert "second answer" in done.out


@pytest.mark.parametrize("there", [True, False])
def test_welcome_shows_the_sample_where_there_is_nothing_and_says_so(run: Run, config_dir: Path, there: bool) -> None:
    if not there:
        config_dir.rmdir()
    done = run("welcome")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("There are no sessions in ~/.claude yet. This is the sample that comes with clew:\n")
    assert "The newest conversation" in done.out
    assert config_dir.exists() is there
