"""`clew truncate`: for people and for programs."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from clew_calls import Run
from contents import set_live
from session_files import assistant, session_id, two_turns, user, write

ONE = session_id(1)


@pytest.fixture
def log(config_dir: Path) -> Path:
    third = [user("u5", "third \x1b[31mquestion", "a4", 5), assistant("a6", "yes", "u5", 6)]
    return write(config_dir, 1, *two_turns(), *third)


def shown(run: Run) -> list[str]:
    return [message["content"][0]["text"] for message in run("show", ONE, "--json").json["messages"]]


def test_what_is_dropped_is_said_and_how_to_bring_it_back(run: Run, log: Path) -> None:
    before = log.read_bytes()
    done = run("truncate", ONE[:8], "--at", "turn:2")
    assert (done.code, done.err) == (0, "")
    operation = run("operations", "--json").json[0]["operation"]
    assert done.out.splitlines() == [
        r"Dropped 2 messages, from third \x1b[31mquestion on.",
        f"Bring it back: clew undo {operation[:8]}  (nothing was deleted)",
    ]
    assert shown(run) == ["first question", "first answer", "second question", "second answer"]
    assert log.read_bytes().startswith(before)
    undone = run("undo", operation)
    assert (undone.code, undone.out.startswith("Undid truncate third ")) == (0, True)
    assert len(shown(run)) == 6


def test_in_json_it_is_the_session_the_head_and_what_was_dropped(run: Run, log: Path) -> None:
    done = run("truncate", ONE, "--at", "turn:1", "--json")
    assert (done.code, done.err) == (0, "")
    assert list(done.json)[:5] == ["session_id", "head", "dropped", "operation", "live"]
    assert done.json | {"operation": ""} == {
        "session_id": ONE, "head": "a2", "dropped": 4, "operation": "", "live": False, "dry_run": False, "notes": [],
        "first_dropped": "second question", "before": "a6",
    }  # fmt: skip
    assert done.json["operation"] == run("operations", "--json").json[0]["operation"]
    assert run("show", ONE, "--json").json["head"] == "a2"
    assert {leaf["uuid"] for leaf in run("tree", ONE, "--json").json["leaves"]} == {"a6"}
    assert log.exists()


def test_a_dry_run_changes_nothing(run: Run, log: Path) -> None:
    before = log.read_bytes()
    done = run("truncate", ONE, "--at", "turn:1", "--dry-run")
    assert done.out == "Would drop 4 messages, from second question on.\n"
    as_json = run("truncate", ONE, "--at", "turn:1", "--dry-run", "--json").json
    assert (as_json["operation"], as_json["dropped"], as_json["dry_run"]) == (None, 4, True)
    assert log.read_bytes() == before
    assert run("operations", "--json").json == []


def test_where_it_ends_there_already_that_is_said(run: Run, log: Path) -> None:
    before = log.read_bytes()
    for extra in ((), ("--dry-run",)):
        done = run("truncate", ONE, "--at", "turn:-1", *extra)
        assert (done.code, done.out) == (0, f"The session {ONE} ends there already: nothing was changed.\n")
    assert run("truncate", ONE, "--at", "turn:-1", "--json").json["operation"] is None
    assert log.read_bytes() == before


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("at", "code"), [("turn:9", 4), ("nowhere-at-all", 4), ("msg:x", 4), ("turn:0", 2), ("when:now", 2), ("", 2)]
)
def test_a_point_that_is_none_or_not_there_ends_with_a_hint(run: Run, at: str, code: int) -> None:
    done = run("truncate", ONE, "--at", at)
    assert (done.code, done.out) == (code, "")
    assert "hint: " in done.err
    assert run("truncate", ONE, "--at", at, "--json").json["hint"]
    assert len(shown(run)) == 6


@pytest.mark.usefixtures("log")
def test_an_unknown_record_is_answered_with_prompts_that_could_be_meant(run: Run) -> None:
    done = run("truncate", ONE, "--at", "nowhere-at-all", "--json")
    assert done.json["candidates"] == ["u1", "u3", "u5"]


@pytest.mark.usefixtures("log")
def test_without_a_point_it_is_a_wrong_call(run: Run) -> None:
    assert run("truncate", ONE).code == 2
    assert run("truncate").code == 2


@pytest.mark.usefixtures("log")
def test_undo_that_would_cut_off_what_was_said_since_names_both_ways_on(run: Run, log: Path) -> None:
    run("truncate", ONE, "--at", "turn:1")
    with log.open("a") as file:
        file.write('{"type":"user","uuid":"u7","parentUuid":"a2","timestamp":"2026-11-18T11:00:00Z",'
                   '"message":{"role":"user","content":"and now"}}\n')  # fmt: skip
    done = run("undo")
    assert done.code == 6
    assert f"clew truncate {ONE} --at a6" in done.err
    assert f"clew fork {ONE} --at a6" in done.err
    assert shown(run)[-1] == "and now"


@pytest.mark.usefixtures("log")
def test_a_live_session_is_named_on_stderr(run: Run, config_dir: Path) -> None:
    set_live(config_dir, ONE)
    done = run("truncate", ONE, "--at", "turn:1")
    assert done.code == 0
    assert "a running client holds this session" in done.err
    assert "a running client" not in run("truncate", ONE, "--at", "a6", "-q").err
    assert run("truncate", ONE, "--at", "turn:1", "--json").json["live"] is True


@pytest.mark.parametrize("folder", ["other/projects/-home-me-proj", "lone"])
def test_the_hint_for_a_file_elsewhere_leads_back_too(run: Run, log: Path, tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / log.name
    path.parent.mkdir(parents=True)
    path.write_bytes(log.read_bytes())
    done = run("truncate", path, "--at", "turn:1")
    assert len(run("show", path, "--json").json["messages"]) == 2
    words = shlex.split(done.out.partition("Bring it back: clew ")[2].partition("  (")[0])
    assert run(*words).code == 0
    assert len(run("show", path, "--json").json["messages"]) == 6
    assert log.read_bytes() == path.read_bytes()[: len(log.read_bytes())]


@pytest.mark.usefixtures("log")
def test_the_hint_names_the_store_that_was_named(run: Run) -> None:
    place = os.environ["CLAUDE_CONFIG_DIR"]
    assert f"clew undo --config-dir {place} " in run("truncate", ONE, "--at", "turn:1", "--config-dir", place).out


@pytest.mark.usefixtures("log")
def test_with_fork_a_new_session_ends_there_and_this_one_stays_as_it_is(run: Run, log: Path) -> None:
    before, new = log.read_bytes(), session_id(7)
    done = run("truncate", ONE, "--at", "turn:1", "--fork", "--id", new, "--title", "Another way", "--json")
    assert (done.code, done.json["session_id"], done.json["parent_id"]) == (0, new, ONE)
    assert list(done.json) == list(run("fork", ONE, "--at", "turn:1", "--json").json)
    said = run("show", new, "--json").json["messages"]
    assert [message["content"][0]["text"] for message in said] == ["first question", "first answer"]
    assert log.read_bytes() == before
    assert run("operations", "--json").json == []


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("extra", [("--fork", "--dry-run"), ("--id", session_id(7)), ("--title", "x")])
def test_options_that_contradict_each_other_are_a_wrong_call(run: Run, log: Path, extra: tuple[str, ...]) -> None:
    before = log.read_bytes()
    done = run("truncate", ONE, "--at", "turn:1", *extra)
    assert done.code == 2
    assert "hint: " in done.err
    assert log.read_bytes() == before
