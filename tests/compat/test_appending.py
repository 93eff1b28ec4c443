"""The real client resumes what clew appended, sends what `messages()` says, and goes on in the same file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.session import Session
from odd_files.answers import clients, plain
from real_client import PROBE, Case, Sent, conversation, resume

pytestmark = pytest.mark.compat

PARAGRAPH = "The cookie is set on another domain. " * 60


class Place:
    """A config directory and a working directory that clew and the client share."""

    def __init__(self, client: Path, root: Path) -> None:
        self.client = client
        self.root = root
        self.config = root / "config"
        self.work = root / "work"
        self.config.mkdir()
        self.work.mkdir()
        self.store = clew.open(str(self.config))

    def create(self, **named: Any) -> Session:
        return self.store.create(self.work, **named)

    def ask(self, session: str | None, *, prompt: str = PROBE) -> Sent:
        """One run of the client; `None` is `--continue`."""
        case = Case(files={}, session=session, prompt=prompt, config=self.config, cwd=self.work)
        (sent,) = resume(self.client, [case], self.root)
        assert sent.exit_code == 0, sent.stderr + sent.stdout
        return sent

    def agrees(self, session: Session, *, asked: str | None = None) -> None:
        """Resumes, and compares what the client sends with what we say; it must go on in the session's file."""
        fresh = self.store.session(session.id)
        expected = plain([{"role": m.role, "content": m.content} for m in fresh.messages()])
        content = Path(session.where).read_bytes()
        sent = self.ask(asked or session.id)
        assert clients(conversation(sent.messages), content) == expected
        assert [Path(grown).name for grown in sent.appended] == [f"{session.id}.jsonl"]
        assert Path(session.where).read_bytes().startswith(content), "the client wrote our rows anew"


@pytest.fixture
def place(client: Path, tmp_path: Path) -> Place:
    return Place(client, tmp_path)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": "assistant", "content": content}


def call(name: str, number: int, **arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number:020d}", "name": name, "input": arguments}


def result(number: int, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number:020d}", "content": text}


def turns(session: Session, names: Iterable[str]) -> list[str]:
    """One prompt and its answer for each name; gives the uuids of the answers."""
    uuids = []
    for name in names:
        session.append(user(f"prompt {name}"))
        uuids.append(session.append(assistant(f"answer {name}")).uuids[0] or "")
    return uuids


def texts(sent: Sent) -> list[str]:
    found = conversation(sent.messages) or []
    return [block["text"] for message in found for block in message["content"] if block["type"] == "text"]


def test_two_turns_and_more_after_the_client_went_on(place: Place) -> None:
    session = place.create()
    turns(session, ["one", "two"])
    place.agrees(session)
    # The client has added its own turn; ours hangs on that one now.
    turns(session, ["three"])
    assert [m.role for m in session.messages()] == ["user", "assistant"] * 4
    place.agrees(session)


def test_a_branch_is_where_the_client_goes_on(place: Place) -> None:
    session = place.create()
    one, two, _ = turns(session, ["one", "two", "three"])
    branch = session.append_many([user("another way"), assistant("gladly")], parent=one)
    place.agrees(session)
    session = place.store.session(session.id)
    said = [block["text"] for m in session.messages() for block in m.content if "text" in block]
    assert said[:4] == ["prompt one", "answer one", "another way", "gladly"]
    # And once more back into the branch that was left, with an answer that is no prompt.
    session.append_many([assistant("on second thought")], parent=two)
    place.agrees(session)
    assert branch.uuids[1] not in [record.uuid for record in place.store.session(session.id).chain().records]


def test_a_branch_from_before_the_first_row(place: Place) -> None:
    session = place.create()
    turns(session, ["one"])
    session.append_many([user("all anew"), assistant("from the start")], parent=None)
    place.agrees(session)


def test_tools_in_parallel_with_thinking_and_an_image(place: Place) -> None:
    session = place.create()
    pixel = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    session.append_many([
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": pixel}]},
        assistant("I read both.", call("Read", 1, file_path="a.py"), call("Read", 2, file_path="b.py")),
        {"role": "user", "content": [result(1, "text of a"), result(2, "text of b")]},
        assistant("Done."),
    ])  # fmt: skip
    place.agrees(session)


def test_an_open_call_at_the_end(place: Place) -> None:
    session = place.create()
    session.append_many([user("read it"), assistant("I will.", call("Read", 1, file_path="a.py"))])
    assert session.state is clew.State.INTERRUPTED
    place.agrees(session)


def test_a_subagent_beside_the_conversation(place: Place) -> None:
    session = place.create()
    task = call("Task", 7, description="count", prompt="count the files", subagent_type="general-purpose")
    session.append_many([user("how many files?"), assistant("I ask.", task)])
    agent = "a0123456789abcdef"
    session.append_subagent(
        agent,
        [user("count the files"), assistant("There are 3.")],
        meta={"agentType": "general-purpose", "description": "count", "toolUseId": task["id"]},
    )
    session.append_many([{"role": "user", "content": [result(7, "There are 3.")]}, assistant("Three.")])
    place.agrees(session)
    (sub,) = place.store.session(session.id).agents()
    assert [m.role for m in sub.messages()] == ["user", "assistant"]
    assert sub.meta is not None
    assert sub.meta.description == "count"


def test_continue_is_not_moved_by_metadata(place: Place) -> None:
    older, newer = place.create(), place.create()
    turns(older, ["of the older"])
    turns(newer, ["of the newer"])
    older.append_many([
        {"type": "custom-title", "customTitle": "Named later"},
        {"type": "agent-name", "agentName": "Named later"},
        {"type": "tag", "tag": "kept"},
    ])  # fmt: skip
    older.close(exit_reason="done")
    assert Path(older.where).stat().st_mtime_ns < Path(newer.where).stat().st_mtime_ns
    assert texts(place.ask(None))[:2] == ["prompt of the newer", "answer of the newer"]
    place.agrees(older)


def test_a_title_far_back_is_found_by_the_client(place: Place) -> None:
    session = place.create(title="Fix the login")
    turns(session, [f"{number} {PARAGRAPH}" for number in range(40)])
    assert Path(session.where).stat().st_size > 150_000
    place.agrees(session, asked="fix the LOGIN")


def test_a_whole_conversation_in_one_append_with_rows_of_the_client(place: Place) -> None:
    """Rows that a program copied from somewhere keep their ids; what they lack is filled in."""
    session = place.create()
    first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    rows: list[dict[str, Any]] = [
        {"type": "user", "uuid": first, "parentUuid": None, "message": user("hello")},
        {"type": "assistant", "uuid": second, "parentUuid": first, "message": assistant("hello to you")},
        {"type": "system", "subtype": "informational", "content": "beside"},
        {"role": "user", "content": "and on"},
        assistant("on"),
    ]
    written = session.append_many(rows)
    assert written.uuids[:2] == (first, second)
    place.agrees(session)
