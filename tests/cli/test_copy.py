"""`clew copy`: what it says, what it prints for programs, and when it ends with 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.engines.files import FilesEngine
from clew_calls import Run
from contents import contents, fill
from session_files import PROJECT, append, in_bytes, session_id, user


@pytest.fixture
def engine(config_dir: Path) -> FilesEngine:
    made = FilesEngine(config_dir, durability="none")
    fill(made, 1)
    fill(made, 2)
    return made


def test_copy_makes_a_backup_and_brings_it_up_to_date(run: Run, engine: FilesEngine, tmp_path: Path) -> None:
    place = tmp_path / "backup"
    done = run("copy", "claude:", place)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Copied 2 sessions: 12 records, 14 files, ")
    assert contents(FilesEngine(place)) == contents(engine)
    append(Path(engine.where(engine.find_sessions(session_id(1))[0].key)), user("new", "x"))
    done = run("copy", "claude:", f"claude:{place}", "--verify", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == {"sessions": 1, "records": 1, "blobs": 0, "skipped": 1, "conflicts": 0, "left_out": []}
    assert run("copy", "claude:", place).out == "Nothing is new: 2 sessions had everything already.\n"
    assert contents(FilesEngine(place)) == contents(engine)


def test_a_conflict_is_named_not_overwritten_and_ends_with_1(run: Run, engine: FilesEngine, tmp_path: Path) -> None:
    place = tmp_path / "backup"
    run("copy", "claude:", place)
    log = place / "projects" / PROJECT / f"{session_id(1)}.jsonl"
    log.write_bytes(in_bytes(user("other", "\x1b[2J")))
    before = log.read_bytes()
    done = run("copy", "claude:", place)
    assert done.code == 1
    assert "1 conflict." in done.out
    assert f"conflict: {engine.path_of(engine.find_sessions(session_id(1))[0].key)}: the logs differ" in done.err
    assert log.read_bytes() == before
    told = run("copy", "claude:", place, "--json")
    assert (told.code, told.json["conflicts"], told.json["sessions"]) == (1, 1, 0)
    assert told.json["left_out"][0]["session"] == session_id(1)


def test_one_project_can_be_copied_alone(run: Run, engine: FilesEngine, tmp_path: Path) -> None:
    fill(engine, 3, project="-other")
    assert run("copy", "claude:", tmp_path / "a", "--project", "-other", "--json").json["sessions"] == 1
    assert run("copy", "claude:", tmp_path / "b", "--project", "/nowhere").code == 4
    assert not (tmp_path / "b").exists()


BAD = [
    (["copy"], 2, "Missing argument"),
    (["copy", "claude:"], 2, "Missing argument"),
    (["copy", "/nowhere/at/all", "/tmp/x"], 4, "there is no directory"),
    (["copy", "claude:", "claude:"], 2, "to itself"),
    (["copy", "nope:x", "claude:"], 2, "no kind of store"),
    (["copy", "claude:", ""], 2, "needs a directory"),
    (["copy", "--config-dir", "x", "claude:", "y"], 2, "both stores by their URLs"),
    (["copy", "--all", "--project", ".", "claude:", "y"], 2, "contradict"),
    (["delete"], 2, "Missing argument"),
    (["gc", "--older-than", "-1"], 2, "Invalid value"),
]


@pytest.mark.parametrize(("words", "code", "says"), BAD)
def test_a_bad_call_says_what_is_wrong(run: Run, engine: FilesEngine, words: list[str], code: int, says: str) -> None:
    before = contents(engine)
    done = run(*words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "hint: " in done.err
    told = run(*words, "--json")
    assert (told.code, told.err) == (code, "")
    assert told.json["hint"]
    assert contents(engine) == before


@pytest.mark.usefixtures("engine")
def test_a_target_that_cannot_be_written_is_a_storage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = run("copy", "claude:", tmp_path / "file" / "backup")
    assert done.code == 6
    assert "Traceback" not in done.err
