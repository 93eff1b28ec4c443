"""A session is read once, streams where it can, and takes in what another program writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import FilesEngine, LogKey, NotFound, Record, Session, State, Turn, UsageError
from clew.engines.filesystem import OsFileSystem
from session_files import CountingFileSystem, append, assistant, changed, in_bytes, session_id, two_turns, user, write


def opened(path: Path, fs: OsFileSystem | None = None) -> Session:
    engine, key = FilesEngine.for_file(path, fs=fs)
    return Session(engine, key)


def texts(session: Session, up_to: str | None = None) -> list[str]:
    return [str(block["text"]) for message in session.messages(up_to) for block in message.content]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, 1, *two_turns())


def test_a_session_says_what_it_is(path: Path) -> None:
    session = opened(path)
    assert (session.id, session.project, session.where) == (session_id(1), "-home-me-proj", str(path))
    assert session.key == LogKey("-home-me-proj", session_id(1))
    assert not session.is_agent
    assert (session.head.uuid, session.state) == ("a4", State.COMPLETE)
    assert texts(session) == ["first question", "first answer", "second question", "second answer"]
    assert [record.uuid for record in session.chain().records] == ["u1", "a2", "u3", "a4"]


def test_the_lines_of_a_session_are_its_bytes(path: Path) -> None:
    append(path, raw=b'\n{"torn": \n\x00\x00\nplain text')
    session = opened(path)
    assert b"".join(line.data for line in session.lines()) == path.read_bytes()
    assert b"".join(row.raw for row in session.rows()) == path.read_bytes()


def test_streaming_does_not_load_the_session(path: Path) -> None:
    fs = CountingFileSystem()
    session = opened(path, fs)
    assert isinstance(next(session.records()), Record)
    read = fs.count
    session.tree  # noqa: B018 - Reading the property loads the log.
    assert fs.count >= read + path.stat().st_size


def test_a_session_is_read_once(path: Path) -> None:
    fs = CountingFileSystem()
    session = opened(path, fs)
    session.messages()
    read = fs.count
    for _ in range(3):
        assert len(session.messages()) == 4
        assert session.malformed == ()
        assert len(list(session.transcripts())) == 1
    assert fs.count == read


@pytest.mark.parametrize(
    ("point", "last"),
    [("turn:1", "first answer"), ("turn:-2", "first answer"), ("turn:-1", "second answer"), ("u3", "second question"),
     ("msg:msg_a2", "first answer"), ("time:2026-11-18T10:00:03Z", "second question")],
)  # fmt: skip
def test_messages_go_up_to_a_point_and_include_it(path: Path, point: str, last: str) -> None:
    assert texts(opened(path), point)[-1] == last


def test_a_point_may_be_an_object(path: Path) -> None:
    assert len(opened(path).messages(Turn(-2))) == 2


def test_a_point_that_is_not_there_is_not_found_and_no_point_is_wrong_usage(path: Path) -> None:
    with pytest.raises(NotFound, match="no turn 7"):
        opened(path).messages("turn:7")
    with pytest.raises(UsageError, match="names no turn"):
        opened(path).messages("turn:x")


def test_an_open_call_and_a_prompt_without_answer_are_states(tmp_path: Path) -> None:
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    interrupted = write(tmp_path, 1, user("u1", "go"), assistant("a2", call, "u1", 1))
    unanswered = write(tmp_path, 2, *two_turns(), user("u5", "and?", "a4", 5))
    assert opened(interrupted).state is State.INTERRUPTED
    assert opened(unanswered).state is State.UNANSWERED
    assert len(opened(unanswered).messages()) == 5


def test_every_leaf_is_a_transcript_and_one_is_the_head(tmp_path: Path) -> None:
    path = write(tmp_path, 1, *two_turns(), user("u5", "other way", "a2", 5), assistant("a6", "other answer", "u5", 6))
    found = {each.leaf: each for each in opened(path).transcripts()}
    assert set(found) == {"a4", "a6"}
    assert [record.uuid for record in found["a4"].records] == ["u1", "a2", "u3", "a4"]
    assert [leaf for leaf, each in found.items() if each.is_head] == ["a6"]
    last = opened(path).last()
    assert last is not None
    assert (last.leaf, len(last.messages())) == ("a6", 4)


def test_a_log_without_a_conversation_has_none(tmp_path: Path) -> None:
    empty = opened(write(tmp_path, 1, raw=b""))
    assert (empty.messages(), empty.last(), empty.head.refused) == ([], None, True)
    garbage = opened(write(tmp_path, 2, raw=b"garbage\n"))
    assert (garbage.messages(), [row.line.number for row in garbage.malformed]) == ([], [1])


# Subagents.


def with_agents(root: Path) -> Path:
    path = write(root, 1, *two_turns())
    side = {"isSidechain": True, "agentId": "a1", "sessionId": session_id(1)}
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(
        in_bytes(user("x1", "look", None, 1, **side), assistant("x2", "seen", "x1", 2, **side))
    )
    (folder / "agent-a1.meta.json").write_text('{"agentType":"general-purpose","toolUseId":"toolu_1","spawnDepth":1}')
    (folder / "journal.jsonl").write_bytes(b'{"type":"started"}\n')
    (path.parent / "agent-old.jsonl").write_bytes(in_bytes(user("y1", "old style", None, 1, **side)))
    return path


def test_subagents_of_both_layouts_belong_to_their_session(tmp_path: Path) -> None:
    agents = opened(with_agents(tmp_path)).agents()
    assert [agent.id for agent in agents] == ["agent-old", "agent-a1"]
    assert all(agent.is_agent and agent.agents() == [] for agent in agents)
    assert texts(agents[0]) == ["old style"]
    assert texts(agents[1]) == ["look", "seen"]
    assert texts(agents[1], "turn:1") == ["look", "seen"]


def test_the_note_about_a_subagent_is_typed(tmp_path: Path) -> None:
    old, new = opened(with_agents(tmp_path)).agents()
    assert old.meta is None
    assert new.meta is not None
    assert (new.meta.agent_type, new.meta.tool_use_id, new.meta.spawn_depth) == ("general-purpose", "toolu_1", 1)


def test_a_broken_note_about_a_subagent_says_nothing(tmp_path: Path) -> None:
    path = with_agents(tmp_path)
    (path.with_suffix("") / "subagents" / "agent-a1.meta.json").write_bytes(b'{"agentType": 5, "toolUseId": \xff')
    meta = opened(path).agents()[1].meta
    assert meta is not None
    assert meta.agent_type is None


def test_the_path_of_a_subagent_is_a_session_too(tmp_path: Path) -> None:
    path = with_agents(tmp_path)
    assert texts(opened(path.with_suffix("") / "subagents" / "agent-a1.jsonl")) == ["look", "seen"]
    assert texts(opened(path.parent / "agent-old.jsonl")) == ["old style"]


def test_blobs_are_what_is_no_log(tmp_path: Path) -> None:
    assert [blob.key.name for blob in opened(with_agents(tmp_path)).blobs()] == ["subagents/agent-a1.meta.json"]


# Taking in what another program writes.


def test_a_log_that_stayed_is_not_read_again(path: Path) -> None:
    fs = CountingFileSystem()
    session = opened(path, fs)
    session.messages()
    read = fs.count
    assert not session.refresh()
    assert fs.count == read


def test_of_a_log_that_grew_only_the_new_bytes_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, 1, user("u1", "x" * 500_000), *two_turns()[1:])
    fs = CountingFileSystem()
    session = opened(path, fs)
    assert len(session.messages()) == 4
    before = fs.count
    append(path, user("u5", "third", "a4", 5), assistant("a6", "third answer", "u5", 6))
    assert session.refresh()
    assert texts(session)[-1] == "third answer"
    assert session.head.uuid == "a6"
    assert fs.count - before < 20_000


def test_a_log_that_was_replaced_is_read_anew(path: Path, tmp_path: Path) -> None:
    session = opened(path)
    session.messages()
    other = tmp_path / "other"
    # The same size up to the old end and the same last line, but another file with another first line.
    rows = path.read_bytes().replace(b"first question", b"other question"[:14])
    other.write_bytes(rows + in_bytes(user("u5", "more", "a4", 5)))
    os.replace(other, path)
    assert session.refresh()
    assert texts(session)[0] == "other question"


def test_a_log_that_was_cut_is_read_anew(path: Path) -> None:
    session = opened(path)
    session.messages()
    path.write_bytes(in_bytes(*two_turns()[:2]))
    assert session.refresh()
    assert len(session.messages()) == 2


def test_a_log_that_was_overwritten_in_place_before_it_grew_is_read_anew(path: Path) -> None:
    session = opened(path)
    session.messages()
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"second answer", b"SECOND ANSWER"))
    append(path, user("u5", "more", "a4", 5))
    changed(path, 99)
    assert session.refresh()
    assert "SECOND ANSWER" in texts(session)


def test_a_log_that_is_gone_is_not_found_and_nothing_is_kept(path: Path) -> None:
    session = opened(path)
    session.messages()
    path.unlink()
    with pytest.raises(NotFound):
        session.refresh()
    with pytest.raises(NotFound):
        session.messages()


def test_malformed_lines_keep_their_numbers_in_a_log_that_grew(path: Path) -> None:
    append(path, raw=b"garbage one\n")
    session = opened(path)
    assert [row.line.number for row in session.malformed] == [5]
    append(path, user("u5", "third", "a4", 5), raw=b"garbage two\n")
    session.refresh()
    assert [(row.line.number, row.line.position) for row in session.malformed] == [
        (row.line.number, row.line.position) for row in opened(path).malformed
    ]
    assert [row.line.number for row in session.malformed] == [5, 7]


PIECES = [
    *(in_bytes(row) for row in two_turns()),
    in_bytes(user("u5", "on another branch", "a2", 5)),
    in_bytes({"type": "last-prompt", "leafUuid": "a4", "sessionId": "s"}),
    in_bytes({"type": "custom-title", "customTitle": "T", "sessionId": "s"}),
    b"\n", b"   \r\n", b"garbage\n", b"\x00\x00\x00", b'{\n"type":"user",\n', b'"uuid":"j1"}\n', b"{\n", b"}\n",
    b'{"type":"user","uuid":"m1"}{"type":"user","uuid":"m2"}\n',
]  # fmt: skip


@st.composite
def growing(draw: st.DrawFn) -> list[bytes]:
    """Bytes of a log, cut anywhere into the parts that are appended one after the other."""
    whole = b"".join(draw(st.lists(st.sampled_from(PIECES), max_size=8)))
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@given(growing())
def test_a_log_that_was_followed_is_as_if_it_was_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    path = write(tmp_path_factory.mktemp("grown"), 1, raw=parts[0])
    session = opened(path)
    state(session)
    for at, part in enumerate(parts[1:]):
        append(path, raw=part)
        changed(path, at + 1)
        session.refresh()
        assert state(session) == state(opened(path))


def state(session: Session) -> tuple[object, ...]:
    """Everything that a session answers."""
    tree = session.tree
    return (
        [(uuid, record.raw.rstrip()) for uuid, record in tree.records.items()],
        tree.parents,
        session.head,
        [(row.line.number, row.line.position, row.raw, row.reason) for row in session.malformed],
        session.digest,
        session.messages(),
    )


def test_rows_read_on_after_the_generator_was_dropped(path: Path) -> None:
    session = opened(path)
    rows: Iterator[object] = session.rows()
    next(rows)
    del rows
    assert len(list(session.rows())) == 4
