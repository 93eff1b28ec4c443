"""What clew names and marks, the real client and the Agent SDK find, keep, and go on with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
import sdks
from clew.session import Session
from real_client import Case, Sent, resume
from test_agent_sdk import node_calls
from test_appending import PARAGRAPH, Place, texts, turns

pytestmark = pytest.mark.compat

MARKS: dict[str, Any] = {"tag": "wip", "pinned": True, "owner": "ada", "workspace": "api", "labels": ("auth", "flaky")}
REWRITES = {"CLAUDE_CODE_TRANSCRIPT_LOCAL_GC": "1"}
"""With it, the client writes a file over 5 MiB anew when it has compacted the conversation."""


@pytest.fixture
def place(client: Path, tmp_path: Path) -> Place:
    return Place(client, tmp_path)


def run_client(place: Place, session: str, *arguments: str, **named: Any) -> Sent:
    case = Case({}, session, arguments=arguments, config=place.config, cwd=place.work, **named)
    (sent,) = resume(place.client, [case], place.root)
    return sent


def seen(place: Place, session: Session) -> dict[str, Any]:
    """What a store that has read nothing yet says."""
    info = clew.open(str(place.config)).session(session.id).info()
    return {name: getattr(info, name) for name in ("title", *MARKS)}


def rows(session: Session, kind: str) -> list[dict[str, Any]]:
    found = (json.loads(line) for line in Path(session.where).read_bytes().splitlines())
    return [row for row in found if row.get("type") == kind]


def test_what_is_marked_is_found_and_goes_on_with_its_marks(place: Place) -> None:
    older, newer = place.create(), place.create()
    turns(older, ["of the older"])
    turns(newer, ["of the newer"])
    before = Path(older.where).stat().st_mtime_ns
    older.set(title="Fix the login", archived=True, **MARKS)
    assert Path(older.where).stat().st_mtime_ns == before
    assert texts(place.ask(None))[:2] == ["prompt of the newer", "answer of the newer"]
    assert run_client(place, "fix the LOGIN").exit_code == 0
    assert seen(place, older) == {"title": "Fix the login", **MARKS}
    assert clew.open(str(place.config)).session(older.id).info().archived is False, "a prompt takes it out again"
    place.agrees(older)


def test_a_title_that_was_taken_off_is_found_no_more(place: Place) -> None:
    session = place.create(title="Fix the login")
    turns(session, ["one"])
    session.set(tag="wip")
    session.set(title=None, tag=None)
    sent = run_client(place, "Fix the login")
    assert (sent.exit_code, sent.messages) == (1, None)
    place.agrees(session)
    assert seen(place, session)["title"] == "CLEW-PROBE"
    assert {row["customTitle"] for row in rows(session, "custom-title")[1:]} == {""}, "the client said it again"


def test_a_title_between_the_windows_of_the_client_is_found_by_its_sidecar(place: Place) -> None:
    session = place.create()
    turns(session, [f"{number} {PARAGRAPH}" for number in range(40)])
    session.set(title="Far back")
    with Path(session.where).open("ab") as log:
        # As another program may go on, which says nothing again.
        row = {"type": "mode", "mode": "normal", "note": PARAGRAPH, "sessionId": session.id}
        log.write((json.dumps(row, separators=(",", ":")) + "\n").encode() * 100)
    assert Path(session.where).stat().st_size - Path(session.where).read_bytes().rfind(b"Far back") > 150_000
    assert run_client(place, "far back").exit_code == 0
    assert seen(place, session)["title"] == "Far back"


def test_marks_are_there_after_the_client_wrote_a_large_compacted_file_anew(place: Place) -> None:
    session = place.create()
    session.set(title="Before", **{**MARKS, "tag": "old"})
    turns(session, [f"{number} {'x' * 100_000}" for number in range(30)])
    session.set(title="Large", tag="wip", owner=None)
    session.set(owner="ada")
    before = Path(session.where).stat()
    ours = rows(session, "clew-session")
    assert before.st_size > 5 * 1024 * 1024
    assert run_client(place, session.id, prompt="/compact", environment=REWRITES).exit_code == 0
    after = Path(session.where).stat()
    assert after.st_ino != before.st_ino, "the client did not write it anew"
    assert after.st_size < before.st_size // 10
    assert seen(place, session) == {"title": "Large", **MARKS}
    assert rows(session, "clew-session") == ours, "the client keeps rows of types that it does not know, in order"
    assert (Path(session.where).with_suffix("") / "custom-title.json").read_text() == '{"customTitle":"Large"}'
    place.agrees(session, asked="LARGE")
    assert seen(place, session) == {"title": "Large", **MARKS}


def test_a_fork_by_the_client_has_the_title_and_the_tag_and_not_our_own_marks(place: Place) -> None:
    session = place.create()
    turns(session, ["one"])
    session.set(title="The first", archived=True, **MARKS)
    content = Path(session.where).read_bytes()
    sent = run_client(place, session.id, "--fork-session")
    assert sent.exit_code == 0
    (path,) = (name for name in sent.appended if name.endswith(".jsonl"))
    fork = place.store.session(place.config / path)
    info = fork.info()
    assert (info.title, info.tag, info.archived) == ("The first", "wip", False)
    assert (info.pinned, info.owner, info.labels) == (False, None, ())
    assert Path(session.where).read_bytes() == content
    assert place.store.session(session.id).info().archived is True


def test_a_live_session_is_named_and_nothing_of_the_clients_is_lost(place: Place) -> None:
    """The client calls our command line in the middle of its turn, so it holds the session while we write."""
    session = place.create(title="Old")
    turns(session, ["one"])
    before = Path(session.where).read_bytes()
    call = f"{sys.executable} -m clew --config-dir {place.config}"
    command = f"{call} title {session.id} New && {call} pin {session.id} && {call} label {session.id} auth"
    script = ({"tools": [{"name": "Bash", "input": {"command": command, "description": "mark"}}]}, {"text": "done"})
    environment = {"PYTHONPATH": str(Path(clew.__file__).parent.parent)}
    sent = run_client(
        place, session.id, "--permission-mode", "bypassPermissions", script=script, environment=environment
    )
    assert sent.exit_code == 0, sent.stderr
    content = Path(session.where).read_bytes()
    assert content.startswith(before)
    told = "".join(str(row["message"]["content"]) for row in rows(session, "user"))
    assert "New: titled" in told, told
    assert "a running client holds this session" in told
    assert "New" in {row["customTitle"] for row in rows(session, "custom-title")}
    info = clew.open(str(place.config)).session(session.id).info()
    assert (info.pinned, info.labels, info.title in ("New", "Old")) == (True, ("auth",), True)
    # Now that it has ended, what is set is the last word.
    place.store.session(session.id).set(title="New")
    place.agrees(session, asked="new")
    assert seen(place, session)["title"] == "New"


# The Agent SDK for TypeScript, on the same files.


@pytest.fixture
def shared(config_dir: Path, tmp_path: Path) -> Any:
    work = tmp_path / "app"
    work.mkdir()
    with clew.open(str(config_dir)) as store:
        session = store.create(work)
        turns(session, ["one"])

    def call(function: str, *arguments: Any) -> Any:
        job = {"function": function, "arguments": list(arguments), "options": {"dir": str(work)},
               "onFiles": True, "entries": {}}  # fmt: skip
        return node_calls(sdks.node_sdk(), job, config_dir)

    return config_dir, session.id, call


def test_the_sdk_lists_what_we_set(shared: Any) -> None:
    config, name, call = shared
    session = clew.open(str(config)).session(name)
    assert call("getSessionInfo", name).get("customTitle") is None
    session.set(title='Say "hi"', archived=True, **MARKS)
    info = call("getSessionInfo", name)
    assert (info["customTitle"], info["tag"], info["archived"]) == ('Say "hi"', "wip", True)
    session.set(title=None, archived=False, tag=None)
    info = call("getSessionInfo", name)
    assert (info.get("customTitle"), info.get("tag"), info.get("archived")) == (None, None, False), info


def test_we_list_what_the_sdk_sets(shared: Any) -> None:
    config, name, call = shared

    def info() -> Any:
        return clew.open(str(config)).session(name).info()

    clew.open(str(config)).session(name).set(title="Ours", tag="ours", pinned=True)
    call("renameSession", name, "  Theirs ")
    call("tagSession", name, "theirs")
    call("archiveSession", name)
    assert (info().title, info().tag, info().archived, info().pinned) == ("Theirs", "theirs", True, True)
    call("unarchiveSession", name)
    call("tagSession", name, None)
    assert (info().tag, info().archived) == (None, False)
