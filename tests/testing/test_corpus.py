"""The rows and files that tests are made of look as the client writes them, and lead nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew.testing
from clew.errors import UsageError
from clew.records.codec import decode, decode_lines
from clew.records.record import Record, records_in
from clew.testing.corpus import SESSION, SessionDraft, lines_of, to_bytes, user, write_session, write_subagent
from clew.transcript.chain import chain_to
from clew.transcript.head import find_head
from clew.transcript.messages import conversation
from clew.transcript.rows import State
from clew.transcript.tree import Tree


def talk() -> SessionDraft:
    draft = SessionDraft()
    draft.user("q")
    call = draft.tool_use("Read", {"file_path": "a.py"})
    draft.tool_result(call, "text")
    draft.assistant("done")
    draft.head()
    return draft


def test_a_draft_reads_as_the_conversation_it_was_written_as() -> None:
    tree = Tree(records_in(decode_lines(lines_of(talk().to_bytes()))))
    found = conversation(chain_to(tree, find_head(tree).uuid).records)
    assert found.state is State.COMPLETE
    kinds = [(message.role, [block["type"] for block in message.content]) for message in found.messages]
    assert kinds == [
        ("user", ["text"]),
        ("assistant", ["tool_use"]),
        ("user", ["tool_result"]),
        ("assistant", ["text"]),
    ]


def test_the_same_calls_give_the_same_bytes() -> None:
    assert talk().to_bytes() == talk().to_bytes()


def test_a_row_has_the_clients_keys_in_the_clients_order() -> None:
    row = json.loads(to_bytes([user("q", uuid="u", parent=None)]))
    assert list(row) == [
        "parentUuid", "isSidechain", "type", "message", "uuid", "timestamp", "userType", "entrypoint", "cwd",
        "sessionId", "version", "gitBranch",
    ]  # fmt: skip
    assert list(talk().rows[0]) == list(row)


def test_a_field_given_by_name_takes_the_place_of_the_drafts() -> None:
    draft = SessionDraft()
    draft.user("q", uuid="mine", gitBranch="topic", isMeta=True)
    draft.assistant("a")
    first, second = draft.rows
    assert (first["gitBranch"], first["isMeta"], second["parentUuid"]) == ("topic", True, "mine")


def test_a_result_hangs_on_the_row_of_its_call() -> None:
    draft = SessionDraft()
    draft.user("q")
    calls = [draft.tool_use(message_id="m") for _ in range(2)]
    for call in reversed(calls):
        draft.tool_result(call)
    assert [row["parentUuid"] for row in draft.rows[3:]] == [draft.rows[2]["uuid"], draft.rows[1]["uuid"]]


def test_uuids_differ_in_their_first_characters() -> None:
    draft = SessionDraft()
    for _ in range(50):
        draft.user("q")
    assert len({str(row["uuid"])[:6] for row in draft.rows}) == 50


def test_a_session_is_written_where_the_client_looks_for_it(tmp_path: Path) -> None:
    path = talk().write(tmp_path)
    assert path == tmp_path / "projects" / "-home-dev-project" / f"{SESSION}.jsonl"
    assert path.read_bytes() == talk().to_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_subagent_lies_below_its_session(tmp_path: Path) -> None:
    path = write_subagent(tmp_path, talk().rows, agent="a1", cwd="/x", mtime=1000.0)
    assert path == tmp_path / "projects" / "-x" / SESSION / "subagents" / "agent-a1.jsonl"
    assert path.stat().st_mtime == 1000.0


@pytest.mark.parametrize("name", ["../out", "a/b", "", "..", "x" * 300])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        write_session(tmp_path, b"", session=name)
    with pytest.raises(UsageError):
        write_subagent(tmp_path, b"", agent=f"x/../../{name}")
    assert not [*tmp_path.rglob("*.jsonl")]


@pytest.mark.parametrize("cwd", ["/", "..", "/a/../../b", "/home/dev/\x00", "/" + "x" * 400])
def test_no_directory_name_leads_out_of_the_config_directory(tmp_path: Path, cwd: str) -> None:
    path = write_session(tmp_path / "config", b"", cwd=cwd)
    assert path.resolve().is_relative_to((tmp_path / "config" / "projects").resolve())
    assert os.listdir(tmp_path) == ["config"]


def test_a_session_is_not_written_twice(tmp_path: Path) -> None:
    talk().write(tmp_path)
    with pytest.raises(UsageError, match="exists"):
        talk().write(tmp_path)


@given(st.binary(max_size=200))
def test_lines_are_what_newlines_end_and_nothing_else(data: bytes) -> None:
    lines = list(lines_of(data))
    assert b"".join(line.data for line in lines) == data
    assert all(line.data.find(b"\n") in (-1, line.size - 1) for line in lines)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert all(data[line.position :].startswith(line.data) for line in lines)


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    data = to_bytes([user("a \ud800 é", uuid="u", parent=None)])
    assert b"\\ud800" in data
    found = decode(next(lines_of(data)))
    assert isinstance(found, Record)
    assert found.body()["message"] == {"role": "user", "content": "a \ud800 é"}


def test_the_helpers_for_files_need_no_hypothesis() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from clew.testing import SessionDraft\nimport clew.testing.corpus\nprint(SessionDraft().user('q') != '')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_every_name_that_is_promised_is_there() -> None:
    for name in clew.testing.__all__:
        assert getattr(clew.testing, name).__doc__
        assert name in dir(clew.testing)
    with pytest.raises(AttributeError):
        _ = clew.testing.no_such_name
