"""`clew delete`, `undo`, `operations` and `gc`: for people, for programs, and after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import clew
from clew.engines.contract import Entry
from clew.engines.files import FilesEngine
from clew.operations.operation import State
from clew_calls import Run
from contents import contents, fill, set_live
from session_files import session_id, two_turns, write
from stores import store_on

ONE, TWO = session_id(1), session_id(2)


@pytest.fixture
def engine(config_dir: Path) -> FilesEngine:
    made = FilesEngine(config_dir, durability="none")
    fill(made, 1)
    fill(made, 2)
    return made


def ids(run: Run) -> set[str]:
    return {row["id"] for row in run("ls", "--all", "--json").json}


# delete


@pytest.mark.usefixtures("engine")
def test_delete_says_what_went_and_how_to_bring_it_back(run: Run) -> None:
    done = run("delete", ONE[:8])
    assert (done.code, done.err) == (0, "")
    operation = run("operations", "--json").json[0]["operation"]
    assert done.out.startswith("Deleted first question: 1 session, 10 files, ")
    assert f"clew undo {operation[:8]}" in done.out
    assert ids(run) == {TWO}
    assert run("delete", ONE[:8]).code == 4
    place = os.environ["CLAUDE_CONFIG_DIR"]
    assert f"clew undo --config-dir {place} " in run("delete", TWO, "--config-dir", place).out


def test_delete_names_attached_forks_and_gives_them_their_beginning_when_asked(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    with clew.open(url) as store:
        parent = store.create(tmp_path)
        parent.append_many([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}])
        child = parent.fork(kind="attached")
    done = run("delete", parent.id, "--store", url, "--json")
    assert (done.code, done.json["candidates"]) == (6, [child.id])
    assert "--materialise" in done.json["hint"]
    assert run("delete", parent.id, "--store", url, "--materialise").code == 0
    shown = run("show", child.id, "--store", url, "--json").json
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]


@pytest.mark.usefixtures("engine")
def test_delete_in_json_is_the_operation_and_what_it_took(run: Run) -> None:
    done = run("delete", ONE, TWO, "--json")
    assert (done.code, done.err) == (0, "")
    assert list(done.json) == ["operation", "sessions", "files", "bytes"]
    assert (done.json["sessions"], done.json["files"]) == (2, 20)
    assert ids(run) == set()


def test_delete_takes_everything_that_can_name_a_session(run: Run, engine: FilesEngine) -> None:
    path = str(engine.path_of(engine.find_sessions(ONE)[0].key))
    assert run("delete", path).code == 0
    assert run("delete", "latest", "--all").code == 0
    assert ids(run) == set()


@pytest.mark.usefixtures("engine")
def test_one_wrong_name_and_nothing_is_deleted(run: Run) -> None:
    done = run("delete", ONE, "nope")
    assert (done.code, done.out) == (4, "")
    assert len(ids(run)) == 2
    assert run("operations", "--json").json == []


@pytest.mark.usefixtures("engine")
def test_a_session_that_a_client_holds_is_deleted_only_by_force(run: Run, config_dir: Path) -> None:
    set_live(config_dir, ONE)
    done = run("delete", ONE)
    assert done.code == 6
    assert "a running client holds" in done.err
    assert "--force" in done.err
    assert len(ids(run)) == 2
    assert run("delete", ONE, "--force").code == 0
    assert ids(run) == {TWO}


@pytest.mark.usefixtures("engine")
def test_a_file_that_lies_elsewhere_is_not_deleted(run: Run, tmp_path: Path) -> None:
    loose = write(tmp_path / "other", 7, *two_turns())
    done = run("delete", loose)
    assert done.code == 2
    assert "is not in this store" in done.err
    assert loose.exists()


# undo


def test_undo_brings_back_the_newest_and_says_so(run: Run, engine: FilesEngine) -> None:
    before = contents(engine)
    run("delete", ONE)
    run("delete", TWO)
    done = run("undo")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Undid delete first question: 1 session brought back.\n"
    assert ids(run) == {TWO}
    assert run("undo", "--json").json["state"] == "undone"
    assert contents(engine) == before
    done = run("undo")
    assert done.code == 4
    assert "there is nothing to undo" in done.err


@pytest.mark.usefixtures("engine")
def test_undo_of_an_empty_name_is_not_the_newest(run: Run) -> None:
    run("delete", ONE)
    done = run("undo", "", "--json")
    assert (done.code, ids(run)) == (4, {TWO})


def test_undo_of_what_is_in_the_way_changes_nothing_and_says_what_to_do(run: Run, engine: FilesEngine) -> None:
    run("delete", ONE)
    engine.append(fill(engine, 1), [Entry(b'{"type":"tag","tag":"another"}')])
    before = contents(engine)
    done = run("undo", "--json")
    assert done.code == 6
    assert "is there again" in done.json["error"]
    assert done.json["hint"]
    assert contents(engine) == before


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["nope", "../../x", "\x1b[2J", "-", " "])
def test_an_operation_that_is_not_there_is_not_found(run: Run, name: str) -> None:
    run("delete", ONE)
    for words in (["undo", "--", name], ["operations", "--finish", name]):
        done = run(*words)
        assert (done.code, done.out) == (4, "")
        assert "hint: " in done.err
        assert "\x1b" not in done.err


# operations


@pytest.mark.usefixtures("engine")
def test_operations_are_listed_newest_first(run: Run) -> None:
    assert run("operations").out == "Nothing was changed here by clew beyond appending.\n"
    run("delete", ONE)
    run("delete", TWO)
    run("undo")
    done = run("operations")
    assert (done.code, done.err) == (0, "")
    heading, newest, oldest, *_ = done.out.splitlines()
    assert heading.split() == ["ID", "AGE", "KIND", "STATE", "WHAT", "SESSIONS", "FILES", "SIZE"]
    assert " undone " in newest
    assert " done " in oldest
    rows = run("operations", "--json").json
    assert [row["state"] for row in rows] == ["undone", "done"]
    assert {"operation", "kind", "state", "begun_at", "changed_at", "sessions", "files", "bytes", "plan"} <= rows[
        0
    ].keys()


def unfinished(engine: FilesEngine, state: State) -> str:
    store = store_on(engine)
    operation = msgspec.structs.replace(store.delete(ONE), state=state)
    store.operation_log._put(operation)
    return operation.id


@pytest.mark.parametrize("words", [["ls", "--all"], ["show", TWO], ["ls", "--all", "--json"], [], ["undo", "x"]])
def test_every_command_tells_of_an_unfinished_operation_and_what_to_type(
    run: Run, engine: FilesEngine, words: list[str]
) -> None:
    name = unfinished(engine, State.BEGUN)
    done = run(*words)
    if done.code == 0:
        assert f"clew operations --finish {name}" in done.err
        assert f"clew undo {name}" in done.err
        assert run(*words, "-q").err == ""
    if "--json" in words:
        assert isinstance(done.json, list)


def test_an_unfinished_operation_is_finished_as_asked(run: Run, engine: FilesEngine) -> None:
    name = unfinished(engine, State.BEGUN)
    assert "begun!" in run("operations").out
    done = run("operations", "--finish", name[:8])
    assert (done.code, done.err, done.out) == (0, "", f"The operation {name} is done.\n")
    assert run("ls", "--all").err == ""
    assert ids(run) == {TWO}


def test_what_is_being_freed_can_only_be_finished(run: Run, engine: FilesEngine) -> None:
    name = unfinished(engine, State.FREEING)
    err = run("ls", "--all").err
    assert f"clew operations --finish {name}" in err
    assert "undo" not in err
    assert run("operations", "--finish", name, "--json").json["state"] == "freed"


@pytest.mark.usefixtures("engine")
def test_a_record_that_cannot_be_read_is_told_and_nothing_in_it_controls_the_terminal(
    run: Run, config_dir: Path
) -> None:
    run("delete", ONE)
    folder = config_dir / "clew" / "store" / "operation"
    record = next(folder.iterdir())
    (folder / "bad\x1b[2J").write_bytes(b"{}")
    record.write_bytes(record.read_bytes().replace(b"first question", rb"\u001b[2J\u202e"))
    done = run("operations")
    assert done.code == 0
    assert "left out" in done.err
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err


# gc


@pytest.mark.usefixtures("engine")
def test_gc_frees_only_what_is_old(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    size = run("delete", ONE, "--json").json["bytes"]
    assert run("gc", "--json").json == {"freed_bytes": 0, "kept_bytes": size}
    assert run("gc").out.startswith("Nothing to free: nothing was deleted more than 30 days ago.")
    monkeypatch.setenv("CLEW_NOW", "2026-12-20T12:00:00Z")
    dry = run("gc", "--dry-run", "--json")
    assert dry.json == {"freed_bytes": size, "kept_bytes": 0}
    assert run("undo").code == 0
    run("delete", ONE)
    assert run("gc", "--older-than", "0", "--dry-run").out.startswith("Would free ")
    assert run("gc", "--older-than", "0", "--yes", "--json").json["freed_bytes"] == size
    assert run("undo").code == 4
    assert run("gc").out == "Nothing to free: nothing was deleted more than 30 days ago.\n"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_gc_frees_nothing_where_it_cannot_ask_and_nobody_said_yes(run: Run, more: list[str]) -> None:
    run("delete", ONE)
    done = run("gc", "--older-than", "0", *more)
    assert done.code == 2
    assert "gone for good" in done.out + done.err
    assert "clew gc --yes" in done.out + done.err
    assert run("undo").code == 0


def test_gc_of_nothing_needs_no_yes_and_makes_nothing(run: Run, config_dir: Path) -> None:
    assert run("gc", "--json").json == {"freed_bytes": 0, "kept_bytes": 0}
    assert run("gc").out == "Nothing to free: nothing was deleted more than 30 days ago.\n"
    assert not (config_dir / "clew").exists()


# Completion.


@pytest.mark.usefixtures("engine")
def test_operations_are_completed(run: Run) -> None:
    name = run("delete", ONE, "--json").json["operation"]
    environment = os.environ | {
        "PYTHONPATH": str(Path(clew.__file__).parent.parent), "_CLEW_COMPLETE": "bash_complete",
        "COMP_WORDS": "clew undo ", "COMP_CWORD": "2",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "clew"], env=environment, capture_output=True, text=True, check=False)
    assert name in done.stdout


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("days", ["nan", "inf", "1e300"])
def test_gc_of_an_age_that_nothing_has_frees_nothing(run: Run, days: str) -> None:
    run("delete", ONE)
    done = run("gc", "--older-than", days, "--json", "--yes")
    assert (done.code, done.json["freed_bytes"]) == (0, 0)
    run("undo")
    assert ids(run) == {ONE, TWO}
