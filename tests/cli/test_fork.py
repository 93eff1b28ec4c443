"""`clew fork`: for people and for programs, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import clew
from clew_calls import Run
from session_files import session_id, two_turns, write

ONE, NEW = session_id(1), session_id(99)


@pytest.fixture
def log(config_dir: Path) -> Path:
    return write(config_dir, 1, *two_turns())


@pytest.mark.usefixtures("log")
def test_fork_says_what_came_of_it_where_it_is_and_what_to_type(run: Run) -> None:
    done = run("fork", ONE[:8], "--id", NEW)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Forked {NEW}: 5 records.")
    assert f"{NEW}.jsonl" in done.out
    assert f"clew resume {NEW}" in done.out
    (row,) = (row for row in run("ls", "--all", "--json").json if row["id"] == NEW)
    assert (row["parent_id"], row["message_count"]) == (ONE, 4)


def test_fork_in_json_is_one_document(run: Run, log: Path) -> None:
    before = log.read_bytes()
    told = run("fork", ONE, "--json", "--at", "turn:1", "--title", "another way", "--new-ids").json
    assert (told["records"], told["parent_id"], told["at"], told["kind"]) == (5, ONE, "a2", "copy")
    assert told["path"] == str(log.with_name(f"{told['session_id']}.jsonl"))
    assert Path(told["path"]).read_bytes().count(b"\n") == 5
    assert run("show", told["session_id"], "--json").json["messages"][-1]["content"][0]["text"] == "first answer"
    assert log.read_bytes() == before
    assert (log.parent / told["session_id"] / "custom-title.json").read_bytes() == b'{"customTitle":"another way"}'


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--id", ONE], 6, "there is a session"),
        (["--id", "no-uuid"], 2, "is no id that Claude Code shows"),
        (["--at", "turn:9"], 4, "no turn 9"),
        (["--at", "nothing"], 4, "no record 'nothing'"),
        (["--kind", "sideways"], 2, "no kind of fork 'sideways'"),
    ],
)
def test_what_is_refused_says_why_and_makes_nothing(
    run: Run, log: Path, arguments: list[str], code: int, says: str
) -> None:
    done = run("fork", ONE, *arguments)
    assert says in done.err
    assert done.code == code
    assert [path.name for path in log.parent.glob("*.jsonl")] == [log.name]


def test_lines_that_are_no_records_are_named(run: Run, log: Path) -> None:
    log.write_bytes(b"[1]\n" + log.read_bytes() + b"{torn\n")
    done = run("fork", ONE)
    assert done.code == 0
    assert "left out, since they are no records: lines 1, 6" in done.err
    assert run("fork", ONE, "--json").json["malformed"] == [1, 6]


def test_where_the_client_cannot_go_on_the_fork_is_to_be_read(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    session = clew.open(url).create(tmp_path)
    session.append({"role": "user", "content": "hi"})
    done = run("fork", "--store", url, session.id)
    assert "clew resume" not in done.out
    call = done.out.splitlines()[-1].partition("Read it: ")[2].split()
    assert "hi" in run(*call[1:]).out
