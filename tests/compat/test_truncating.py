"""The real client goes on where clew moved the head, and where undo or a second truncation moves it back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clew
from clew import Conflict
from clew.session import Session
from clew.session_writer import IS_LIVE
from contents import set_live
from odd_files.answers import clients, plain
from odd_files.rows import SESSION, answer, boundary, encoded, summary, text, user, uuid
from real_client import PROBE, Case, Sent, conversation, in_namespace, project_folder, resume
from test_appending import Place, turns

pytestmark = pytest.mark.compat

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
SITUATIONS = {
    "plain": "01_two_turns",
    "checkpointed": "02_checkpoints",
    "with a subagent": "03_subagent",
    "branched by the client": "07_resume_at",
    "rewound": "08_rewind",
    "compacted": "09_compact",
    "parallel calls": "12_parallel",
}
CHECKPOINTS = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}


@pytest.fixture
def place(client: Path, tmp_path: Path) -> Place:
    return Place(client, tmp_path)


def brought(place: Place, name: str) -> Session:
    """The largest session of a corpus with all that belongs to it, in the project of this place, and a turn more."""
    config = CORPUS / name / "config"
    folder = place.config / "projects" / project_folder(place.work)
    for source in (config / "projects").iterdir():
        shutil.copytree(source, folder, dirs_exist_ok=True)
    if (config / "file-history").exists():
        shutil.copytree(config / "file-history", place.config / "file-history")
    (info,) = sorted(place.store.sessions(), key=lambda info: -info.message_count)[:1]
    session = place.store.session(info.id)
    turns(session, ["more"])
    return session


def run(place: Place, session: str | None, *arguments: str, **named: Any) -> Sent:
    case = Case(files={}, session=session, arguments=arguments, config=place.config, cwd=place.work, **named)
    (sent,) = resume(place.client, [case], place.root)
    return sent


def said(session: Session) -> list[dict[str, Any]]:
    return plain([{"role": m.role, "content": m.content} for m in session.messages()])


def middle(session: Session) -> str:
    rows = session.chain().records
    return rows[len(rows) // 2].uuid or ""


def an_answer(session: Session) -> str:
    return next(f"msg:{row.message.id}" for row in session.chain().records if row.message and row.message.id)


def a_time(session: Session) -> str:
    rows = [row for row in session.chain().records if row.timestamp]
    return f"time:{rows[len(rows) // 3].timestamp}"


POINTS: dict[str, Callable[[Session], str]] = {
    "uuid": middle, "msg": an_answer, "time": a_time, "turn": lambda _: "turn:-2",
}  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", SITUATIONS.values(), ids=SITUATIONS)
def test_the_client_goes_on_there_and_afterwards_where_it_was(place: Place, name: str, point: str) -> None:
    session = brought(place, name)
    whole, end = said(session), session.head.uuid or ""
    at = POINTS[point](session)
    done = session.truncate(at)
    kept = said(session)
    assert len(kept) == len(whole) - done.dropped
    assert done.dropped > 0
    place.agrees(session)
    # The client has gone on there: its turn hangs below the new head, and undo would cut it off.
    session = place.store.session(session.id)
    assert PROBE in str(said(session)[len(kept) - 1 :])
    assert done.head in {row.uuid for row in session.chain().records}
    with pytest.raises(Conflict):
        place.store.undo(done.operation or "")
    session.truncate(end)
    assert said(session) == whole
    place.agrees(session)


def test_after_undo_the_client_goes_on_as_if_nothing_had_been(place: Place) -> None:
    session = brought(place, SITUATIONS["parallel calls"])
    whole = said(session)
    for at in ("turn:1", middle(session), "turn:-2"):
        done = session.truncate(at)
        assert done.operation is not None
        place.store.undo()
        session = place.store.session(session.id)
        assert said(session) == whole
    place.agrees(session)


def test_a_head_record_far_from_the_end_of_the_file_still_truncates(place: Place) -> None:
    """It is not said again as titles are: rows of subagents came behind it, more than the client's window holds."""
    session = place.create()
    turns(session, ["one", "two", "three"])
    session.truncate("turn:1")
    kept = said(session)
    for number in range(4):
        row = {"role": "user", "content": f"{number} {'x' * 40_000}"}
        session.append({"type": "user", "isSidechain": True, "message": row})
    assert "prompt two" not in str(kept)
    assert said(place.store.session(session.id)) == kept
    place.agrees(session)


def test_what_the_client_notes_without_a_turn_leaves_the_head_where_it_is(place: Place) -> None:
    """A run that only rewinds files appends its notes, and undo is still possible afterwards."""
    session = place.create()
    turns(session, ["one", "two"])
    whole = said(session)
    done = session.truncate("turn:1")
    prompt = session.chain().records[0].uuid or ""
    before = Path(session.where).read_bytes()
    run(place, session.id, "--rewind-files", prompt, prompt="", environment=CHECKPOINTS)
    after = Path(session.where).read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)
    place.store.undo(done.operation or "")
    session = place.store.session(session.id)
    assert said(session) == whole
    place.agrees(session)


def test_continue_finds_the_session_that_it_would_have_found(place: Place) -> None:
    older, newer = place.create(), place.create()
    turns(older, ["old one", "old two"])
    turns(newer, ["new one", "new two"])
    older.truncate("turn:1")
    newer.truncate("turn:1")
    sent = place.ask(None)
    assert [m["content"][0]["text"] for m in conversation(sent.messages) or []] == ["prompt new one", "answer new one"]
    place.agrees(older)


def test_the_client_forks_what_was_kept_and_nothing_else(place: Place) -> None:
    session = brought(place, SITUATIONS["parallel calls"])
    dropped = {row.uuid for row in session.chain().records}
    session.truncate("turn:1")
    dropped -= {row.uuid for row in session.chain().records}
    sent = run(place, session.id, "--fork-session")
    assert clients(conversation(sent.messages), Path(session.where).read_bytes()) == said(session)
    (grown,) = [data for name, data in sent.appended.items() if Path(name).stem != session.id]
    rows = {json.loads(line).get("uuid") for line in grown.splitlines()}
    assert dropped
    assert not rows & dropped


def test_the_client_rewinds_files_to_a_prompt_that_was_kept_and_to_no_other(place: Place) -> None:
    file = place.work / "notes.txt"
    script = (
        {"tools": [{"name": "Write", "input": {"file_path": str(file), "content": "first\n"}}]},
        {"text": "written"},
    )
    named = {"environment": CHECKPOINTS, "prompt": "write it"}
    allowed = ("--permission-mode", "bypassPermissions")
    session = place.create()
    turns(session, ["zero"])
    assert run(place, session.id, *allowed, script=script, **named).exit_code == 0
    again = (
        {"tools": [{"name": "Write", "input": {"file_path": str(file), "content": "second\n"}}]},
        {"text": "again"},
    )
    read = ({"tools": [{"name": "Read", "input": {"file_path": str(file)}}]},)
    assert run(place, session.id, *allowed, script=(*read, *again), **named).exit_code == 0
    assert file.read_text() == "second\n"
    session = place.store.session(session.id)
    prompts = [row.uuid or "" for row in session.chain().records if b'"write it"' in row.raw]
    assert len(prompts) == 2
    done = session.truncate("turn:2")
    assert done.first_dropped == "write it"
    place.agrees(session)
    refused = run(place, session.id, "--rewind-files", prompts[1], prompt="", environment=CHECKPOINTS)
    assert refused.exit_code == 1
    assert file.read_text() == "second\n"
    rewound = run(place, session.id, "--rewind-files", prompts[0], prompt="", environment=CHECKPOINTS)
    assert rewound.exit_code == 0, rewound.stderr
    assert not file.exists()


def test_a_client_that_runs_goes_on_from_its_own_head_and_is_named(place: Place) -> None:
    """The same with the client itself, held between two prompts while clew truncates and appends."""
    session = place.create()
    turns(session, ["one", "two"])
    job = {"binary": str(place.client), "config": str(place.config), "cwd": str(place.work), "session": session.id,
           "prompts": ["said first", "said second"]}  # fmt: skip
    script = Path(__file__).with_name("held_client.py")
    command = [*in_namespace(), sys.executable, "-I", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdin is not None
        assert held.stdout is not None
        held.stdin.write(json.dumps(job) + "\n")
        held.stdin.flush()
        assert held.stdout.readline() == "held\n"
        before = Path(session.where).read_bytes()
        session = place.store.session(session.id)
        done = session.truncate("turn:1")
        assert (done.is_live, done.notes, done.dropped) == (True, (IS_LIVE,), 4)
        session.append_many([{"role": "user", "content": "beside it"}, {"role": "assistant", "content": "a branch"}])
        ours = {row.uuid for row in session.tree.records.values()}
        held.stdin.write("\n")
        held.stdin.flush()
        sent = json.loads(held.stdout.readline())
        assert held.wait(timeout=60) == 0
    said_to_it = [m["content"][0]["text"] for m in conversation(sent, "said second") or []]
    assert said_to_it == ["prompt one", "answer one", "prompt two", "answer two", "said first", "ok"]
    assert Path(session.where).read_bytes().startswith(before)
    session = place.store.session(session.id)
    assert ours < {row.uuid for row in session.tree.records.values()}
    # The last who wrote decides, as between two clients; the other branch can be gone back to.
    assert [m["content"][0]["text"] for m in said(session)] == [*said_to_it, "said second", "ok"]
    place.agrees(session)


def test_nothing_that_a_running_client_writes_is_lost(place: Place) -> None:
    """A client that holds the session goes on from its own head, which moves the head of the log there again."""
    session = place.create()
    turns(session, ["one", "two"])
    end = session.head.uuid
    set_live(place.config, session.id)
    done = session.truncate("turn:1")
    assert (done.is_live, done.notes) == (True, (IS_LIVE,))
    (place.config / "sessions" / f"{os.getpid()}.json").unlink()
    late = user(901, 0, "said by the running client", parentUuid=end, at=3000, sessionId=session.id)
    with Path(session.where).open("ab") as file:
        file.write(encoded(late, answer(902, 901, at=3001, sessionId=session.id)))
    session = place.store.session(session.id)
    assert [m["content"][0]["text"] for m in said(session)][-2:] == ["said by the running client", "A902"]
    assert len(said(session)) == 6
    place.agrees(session)


BIG = "x" * 3_000_000


@pytest.mark.parametrize("is_big", [False, True], ids=["small", "over 5 MiB"])
def test_why_a_row_before_a_compaction_is_refused(place: Place, is_big: bool) -> None:
    """In a small log the client would go back there; once the log is over 5 MiB it does not read those rows at all."""
    long = BIG if is_big else "short"
    rows = [user(1), answer(2, 1), user(3, 2, f"U3 {long}"), answer(4, 3, [text(f"A4 {long}")]),
            boundary(5), summary(6, 5), answer(7, 6)]  # fmt: skip
    path = place.config / "projects" / project_folder(place.work) / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    exact = {"type": "last-prompt", "leafUuid": uuid(2), "explicit": True, "sessionId": SESSION}
    path.write_bytes(encoded(*rows, exact))
    sent = [m["content"][0]["text"] for m in conversation(place.ask(SESSION).messages) or []]
    assert sent == (["SUM6", "A7"] if is_big else ["U1", "A2"])
    path.write_bytes(encoded(*rows))
    with pytest.raises(clew.UsageError, match="before a compaction"):
        place.store.session(SESSION).truncate(uuid(2))
