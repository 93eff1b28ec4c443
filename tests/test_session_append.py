"""What is appended to a session becomes the conversation that it is, on every engine."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew import Conflict, FilesEngine, NotFound, Record, Session, StorageError, Store, UsageError
from clew.engines.contract import Entry, LogKey
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.base import Wrapper
from clew.engines.wrap.faulty import Fault, Faulty, at
from clew.records.codec import decode
from clew.records.line import Line
from clew.session_writer import IS_LIVE, WINDOW_BYTES, _Ask
from clew.writing import LOST_SIDECHAIN
from stores import ENGINES, numbered, store_on, ticking


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_on(ENGINES[request.param](tmp_path)) as store:
        yield store


@pytest.fixture
def files(tmp_path: Path) -> Store:
    return store_on(ENGINES["files"](tmp_path))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def said(session: Session) -> list[tuple[str, str]]:
    return [(m.role, "".join(str(block.get("text", block["type"])) for block in m.content)) for m in session.messages()]


def rows(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line.data) for line in session.lines()]


TALK = [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")]


def talk(session: Session) -> list[str | None]:
    session.append(user("one"))
    written = session.append_many([assistant("two"), user("three"), assistant("four")])
    return [session.chain().records[0].uuid, *written.uuids]


ID = "0000000a-0000-4000-8000-00000000000f"
ROW = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"one"}}\n'


# A conversation.


def test_messages_that_are_appended_are_the_conversation(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    assert said(session) == TALK
    assert said(store.session(session.id)) == TALK
    (info,) = store.sessions()
    assert (info.id, info.cwd, info.message_count, info.title) == (session.id, str(tmp_path), 4, "three")


def test_a_new_session_leaves_nothing_until_something_is_appended(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    assert (session.messages(), session.state.value, session.refresh()) == ([], "complete", False)
    session.close(exit_reason="nothing was said")
    assert [*store.sessions()] == []
    assert not [*tmp_path.glob("config/*")]


def test_the_place_of_a_store_is_made_with_the_first_session_in_it(tmp_path: Path) -> None:
    store = store_on(FilesEngine(tmp_path / "not" / "there"))
    session = store.create(tmp_path)
    assert not (tmp_path / "not").exists()
    talk(session)
    assert said(store.session(session.id)) == TALK
    assert {path.stat().st_mode & 0o77 for path in (tmp_path / "not").rglob("*")} == {0}


def test_a_title_given_at_the_start_is_the_title(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path, title="Fix login")
    session.append(user("hello"))
    (info,) = store.sessions()
    assert (info.title, info.agent_name) == ("Fix login", "Fix login")


def test_a_session_is_gone_on_with_where_it_ends(store: Store, tmp_path: Path) -> None:
    name = store.create(tmp_path).id
    talk(store.create(tmp_path, id=name))
    store.session(name).append(user("five"))
    assert said(store.session(name)) == [*TALK, ("user", "five")]


def test_every_row_hangs_on_the_one_before_and_says_where_it_was_written(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path, git_branch="main")
    talk(session)
    chain = [row for row in rows(session) if row["type"] in ("user", "assistant")]
    assert [row["parentUuid"] for row in chain] == [None, *(row["uuid"] for row in chain[:-1])]
    for row in chain:
        assert (row["cwd"], row["gitBranch"], row["sessionId"]) == (str(tmp_path), "main", session.id)
        assert next(iter(row)) == "parentUuid"
    answers = [row["message"]["id"] for row in chain if row["type"] == "assistant"]
    assert len({*answers}) == 2


def test_what_a_message_of_the_api_has_besides_stays_in_it(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    usage = {"input_tokens": 3, "output_tokens": 4}
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "usage": usage,
              "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "a"}}]}  # fmt: skip
    session.append_many([user("read a"), answer])
    assert session.state.value == "interrupted"
    (info,) = store.sessions()
    assert (info.model, info.total_tokens) == ("claude-x", 7)
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "A"}
    session.append({"role": "user", "content": [result]})
    assert [message.role for message in session.messages()] == ["user", "assistant", "user"]


def test_a_branch_is_gone_on_from_and_the_old_one_stays(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    uuids = talk(session)
    session.append_many([user("other"), assistant("way")], parent=uuids[1])
    assert said(session) == [*TALK[:2], ("user", "other"), ("assistant", "way")]
    assert said(store.session(session.id)) == said(session)
    assert rows(session)[-1]["type"] == "last-prompt"
    session.append(user("further"))
    assert said(session)[-1] == ("user", "further")
    assert len(session.tree.leaves()) == 2


def test_a_parent_of_none_begins_anew(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    session.append(user("fresh"), parent=None)
    assert said(session) == [("user", "fresh")]


def test_what_others_appended_meanwhile_is_what_the_next_row_hangs_on(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    session.append(user("one"))
    other = store.session(session.id)
    other.append(assistant("two"))
    session.append(user("three"))
    other.append(assistant("four"))
    assert said(store.session(session.id)) == TALK


def test_rows_and_records_are_taken_beside_messages(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    note = {"type": "system", "subtype": "informational", "content": "a note"}
    session.append_many([user("one"), note, {"type": "tag", "tag": "wip"}, {"type": "new-thing", "x": [1.0, 10**30]}])
    line = b'{"type" : "user","uuid":"r1","timestamp":"2026-11-18T13:00:00Z","message":{"content":"x"}}\r\n'
    record = decode(Line(line, 0, 1, len(line)))
    assert isinstance(record, Record)
    session.append(record)
    found = [*session.lines()]
    assert found[-1].data == line or found[-2].data == line
    kinds = [row["type"] for row in rows(session)]
    assert kinds[:4] == ["user", "system", "tag", "new-thing"]
    assert rows(session)[3] == {"type": "new-thing", "x": [1.0, 10**30], "sessionId": session.id}
    assert store.session(session.id).info().tag == "wip"


# Writing once.


def test_a_row_that_is_there_is_not_written_again(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    before = rows(session)
    written = session.append_many([row for row in before if row["type"] != "last-prompt"])
    assert (written.written, written.duplicates) == (0, 4)
    assert rows(session) == before
    session.append(user("five"))
    assert said(session) == [*TALK, ("user", "five")]


def test_a_batch_that_is_appended_again_adds_nothing(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    batch = [user("one"), assistant("two"), {"type": "tag", "tag": "t"}]
    first = session.append_many(batch, batch_id="b1")
    again = store.session(session.id).append_many(batch, batch_id="b1")
    assert (again.written, again.uuids) == (0, first.uuids)
    other = session.append_many(batch, batch_id="b2")
    assert not {*other.uuids} & {*first.uuids} - {None}
    assert len(said(session)) == 4


def test_a_batch_that_was_half_written_is_completed(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    session = store_on(engine).create(tmp_path)
    batch = [user("one"), assistant("two"), user("three"), assistant("four")]
    session.append_many(batch, batch_id="b1")
    (log,) = (tmp_path / "config" / "projects").rglob("*.jsonl")
    whole = log.read_bytes()
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    os.utime(log, ns=(0, 0))
    again = Store(ENGINES["files"](tmp_path), clock=ticking(), new_id=numbered()).session(session.id)
    assert again.append_many(batch, batch_id="b1").duplicates == 2
    assert said(again) == TALK


# Subagents.


def test_a_subagent_has_a_log_and_a_note_of_its_own(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    session.append(user("one"))
    session.append_subagent("a1", [user("go"), assistant("done")], meta={"agentType": "Explore", "toolUseId": "t1"})
    session.append_subagent("a1", [user("again")])
    (agent,) = session.agents()
    assert said(agent) == [("user", "go"), ("assistant", "done"), ("user", "again")]
    assert agent.meta is not None
    assert (agent.meta.agent_type, agent.meta.tool_use_id) == ("Explore", "t1")
    for row in rows(agent):
        assert (row["isSidechain"], row["agentId"], row["sessionId"]) == (True, "a1", session.id)
    assert said(session) == [("user", "one")]


def test_only_this_user_may_read_what_was_written(tmp_path: Path) -> None:
    root = tmp_path / "config"
    before = os.umask(0)
    try:
        with store_on(FilesEngine(root)) as store, store.create(tmp_path) as session:
            session.append(user("one"))
            session.append_subagent("a1", [user("go")], meta={"agentType": "Explore"})
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (root, *root.rglob("*"))}
    assert len(list(root.rglob("*.jsonl"))) == 2
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_a_subagent_goes_on_as_itself_however_it_was_found(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    session.append_subagent("a1", [user("count the files")])
    session.agent("a1").append(assistant("I count."))
    (found,) = store.session(session.id).agents()
    found.append(assistant("There are 3."))
    assert [row["agentId"] for row in rows(found)] == ["a1"] * 3
    assert all(row["isSidechain"] for row in rows(found))
    assert said(found)[0] == ("user", "count the files")


def test_a_subagent_in_the_layout_of_older_clients_is_not_appended_to(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path)
    talk(session)
    old = Path(session.where).with_name("agent-a1.jsonl")
    old.write_bytes(Path(session.where).read_bytes())
    with pytest.raises(UsageError, match="older clients"):
        files.session(old).append(user("more"))


def test_rows_of_subagents_go_to_their_logs_and_a_lost_one_is_told(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    side = {"type": "user", "isSidechain": True, "message": user("go"), "agentId": "a1"}
    lost = {"type": "user", "isSidechain": True, "message": user("whose")}
    written = session.append_many([user("one"), side, lost, assistant("two")])
    assert written.notes == (LOST_SIDECHAIN,)
    assert all(written.uuids)
    assert said(session) == TALK[:2]
    assert [said(agent) for agent in session.agents()] == [[("user", "go")]]
    assert [row["message"]["content"] for row in rows(session) if row.get("isSidechain")] == ["whose"]


@pytest.mark.parametrize("agent", ["", "../x", "a/b", "a\0b", "x" * 300])
def test_a_name_that_is_no_agents_is_refused(files: Store, tmp_path: Path, agent: str) -> None:
    session = files.create(tmp_path)
    with pytest.raises(UsageError):
        session.append_subagent(agent, [user("go")])
    assert not [*tmp_path.rglob("*.jsonl")]


# Refusals.

WRONG: list[Any] = [
    {},
    {"role": "system", "content": "be good"},
    {"role": "user"},
    {"role": "user", "content": 3},
    {"role": "user", "content": ["text"]},
    {"role": "user", "content": [{"text": "x"}]},
    {"role": "user", "content": [{"type": "text", "text": object()}]},
    {"type": "user"},
    {"type": ""},
    {"type": 3},
    {"type": "user", "message": {"content": "x"}, "uuid": 7},
    {"type": "user", "message": {"content": "x"}, "parentUuid": "nowhere"},
    {"type": "user", "message": {"content": "x"}, "timestamp": "yesterday"},
    {"type": "user", "message": {"content": "x"}, "sessionId": "another"},
    {"type": "custom-title"},
    {"type": "tag", "tag": None},
    {"type": "file-history-snapshot"},
    {"type": "clew-session", "exitReason": "x"},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_no_reader_could_use_is_refused_before_anything_is_written(
    store: Store, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    session = store.create(tmp_path)
    talk(session)
    before = [line.data for line in session.lines()]
    with pytest.raises(UsageError, match=r"1|row") as caught:
        session.append_many([user("good"), wrong])
    assert caught.value.hint
    assert [line.data for line in session.lines()] == before


def test_an_unknown_parent_is_refused(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    with pytest.raises(UsageError, match="the parent 'nope' is no row of this log"):
        session.append(user("x"), parent="nope")


def test_an_id_that_is_taken_is_refused(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    session.append(user("x"))
    with pytest.raises(Conflict, match=session.id):
        store.create(tmp_path / "elsewhere", id=session.id)


@pytest.mark.parametrize("name", ["sess", "../x", ""])
def test_an_id_that_the_client_would_not_show_is_refused_on_its_files(files: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        files.create(tmp_path, id=name)


def test_a_closed_session_takes_no_more(store: Store, tmp_path: Path) -> None:
    with store.create(tmp_path) as session:
        session.append(user("x"))
    with pytest.raises(UsageError, match="was closed"):
        session.append(user("y"))
    assert said(session) == [("user", "x")]


def test_the_reason_for_closing_is_in_the_list(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    session.append(user("x"))
    before = session.stat().modified_ns
    session.close(exit_reason="out of budget")
    session.close(exit_reason="again")
    (info,) = store.sessions()
    assert info.exit_reason == "out of budget"
    assert session.stat().modified_ns == before


def test_a_session_closes_in_asyncio_too(store: Store, tmp_path: Path) -> None:
    async def run() -> Session:
        async with store.create(tmp_path) as session:
            session.append(user("x"))
        return session

    with pytest.raises(UsageError, match="was closed"):
        asyncio.run(run()).append(user("y"))


# What stands on Claude's files.


def test_metadata_does_not_move_the_time_of_a_session(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path)
    talk(session)
    before = session.stat().modified_ns
    session.append({"type": "custom-title", "customTitle": "Later"})
    assert session.stat().modified_ns == before
    session.append(user("x"))
    assert session.stat().modified_ns > before


def test_metadata_is_compact_with_its_type_first(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path)
    session.append({"tag": "wip ü", "type": "tag"})
    (line,) = session.lines()
    assert line.data == f'{{"type":"tag","tag":"wip ü","sessionId":"{session.id}"}}\n'.encode()


def in_window(session: Session, kind: str) -> list[dict[str, Any]]:
    data = b"".join(line.data for line in session.lines())
    return [row for row in map(json.loads, data[-65_536:].split(b"\n")[1:-1]) if row["type"] == kind]


def test_titles_tags_and_the_head_stay_where_the_client_looks_for_them(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path, title="Old")
    talk(session)
    session.append_many([{"type": "tag", "tag": "wip"}, {"type": "custom-title", "customTitle": "New"}])
    for number in range(40):
        session.append_many([user(f"q{number}"), assistant("x" * 10_000)])
        (title,) = in_window(session, "custom-title")[-1:]
        assert title["customTitle"] == "New"
        assert in_window(session, "tag")[-1]["tag"] == "wip"
    assert session.info().title == "New"
    again = [row for row in rows(session) if row["type"] == "custom-title"]
    assert 5 <= len(again) <= 2 + 40 * 10_500 // WINDOW_BYTES + 1
    assert said(session)[-1] == ("assistant", "x" * 10_000)


def test_a_title_that_somebody_else_gave_is_the_one_that_is_said_again(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path, title="Ours")
    session.append(user("q"))
    files.session(session.id).append({"type": "custom-title", "customTitle": "Theirs"})
    session.append(assistant("x" * 70_000))
    session.append(user("more"))
    assert in_window(session, "custom-title")[-1]["customTitle"] == "Theirs"


def test_an_explicit_head_is_not_said_again_over_what_came_after_it(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path)
    uuids = talk(session)
    session.append({"type": "last-prompt", "leafUuid": uuids[1], "explicit": True})
    session.append(assistant("y" * 70_000))
    session.append(assistant("z"))
    assert said(session)[-1] == ("assistant", "z")
    assert said(files.session(session.id)) == said(session)


def test_a_session_that_a_client_holds_is_named(files: Store, tmp_path: Path) -> None:
    session = files.create(tmp_path)
    session.append(user("x"))
    folder = tmp_path / "config" / "sessions"
    folder.mkdir()
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    note = {"pid": os.getpid(), "sessionId": session.id, "procStart": start}
    (folder / f"{os.getpid()}.json").write_text(json.dumps(note))
    written = session.append(user("y"))
    assert written.is_live
    assert written.notes == (IS_LIVE,)


# Others at the same time.


def test_threads_that_share_a_session_lose_nothing(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)

    def run(name: int) -> None:
        for number in range(20):
            session.append(user(f"{name}-{number}"))

    threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [record.body()["message"] for record in session.chain().records]
    assert len(texts) == 80
    for name in range(4):
        own = [row["content"] for row in texts if isinstance(row, dict) and str(row["content"]).startswith(f"{name}-")]
        assert own == [f"{name}-{number}" for number in range(20)]


def asks(session: Session, *told: list[dict[str, Any]]) -> list[_Ask]:
    """One round with what several threads want to say, as when they waited for it together."""
    found = [_Ask(each) for each in told]
    session._open_writer()._serve(found)
    return found


def test_what_threads_say_together_is_one_append_and_each_has_its_answer(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    before = len(rows(session))
    first, second, third = asks(session, [user("five"), assistant("six")], [assistant("seven")], [user("eight")])
    said_now = said(store.session(session.id))
    assert said_now == [*TALK, ("user", "five"), ("assistant", "six"), ("assistant", "seven"), ("user", "eight")]
    answers = [each.written for each in (first, second, third) if each.written]
    chain = [record.uuid for record in store.session(session.id).chain().records]
    assert [uuid for answer in answers for uuid in answer.uuids] == chain[-4:]
    assert [len(answer.uuids) for answer in answers] == [2, 1, 1]
    assert sum(answer.written for answer in answers) == len(rows(session)) - before


def test_one_that_is_refused_keeps_nobody_else_from_being_written(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    good, bad, other = asks(session, [user("one")], [{"role": "system", "content": "no"}], [assistant("two")])
    assert isinstance(bad.error, UsageError)
    assert (bad.written, good.error, other.error) == (None, None, None)
    assert said(store.session(session.id)) == [("user", "one"), ("assistant", "two")]


def test_what_fails_for_all_that_say_it_together_is_told_to_all(tmp_path: Path) -> None:
    store = Store(Faulty(MemoryEngine(clock=ticking()), at(Fault("append", 1, "before"))), clock=ticking())
    session = store.create(tmp_path)
    found = asks(session, [user("one")], [user("two")])
    assert all(isinstance(each.error, StorageError) and each.written is None for each in found)
    assert session.append(user("three")).written
    assert said(session) == [("user", "three")]


def test_sessions_of_several_threads_make_one_conversation(store: Store, tmp_path: Path) -> None:
    first = store.create(tmp_path)
    first.append(user("start"))

    def run(name: int) -> None:
        session = Store(store.engine, clock=ticking()).session(first.id)
        for number in range(10):
            session.append(user(f"{name}-{number}"))

    threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.session(first.id).chain().records) == 41


def test_a_watcher_sees_each_new_record_once_and_whole(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    session.append(user("before"))
    stop = threading.Event()
    seen = store.session(session.id).watch(stop)
    uuids = [*session.append_many([user("one"), assistant("two")]).uuids]
    found = [next(seen) for _ in range(3)]
    assert [record.uuid for record in found if record.uuid] == uuids
    session.append(assistant("three"))
    assert next(seen).type == "assistant"
    stop.set()
    assert [*seen] == []


def test_a_watcher_goes_on_where_a_log_was_replaced(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    stop = threading.Event()
    seen = session.watch(stop)
    lines = [line.data for line in session.lines()]
    store.engine.replace(session.key, lines[2:], expect=session.stat().revision)
    session.append(assistant("new"))
    assert next(seen).body()["message"] == rows(session)[-1]["message"]
    stop.set()


def test_a_watcher_waits_until_a_line_over_the_limit_has_ended(tmp_path: Path) -> None:
    rest, path = [b"x" * 500, b'x"}\n' + ROW, b""], tmp_path / "projects" / "-p" / f"{ID}.jsonl"

    class Stepwise(FilesEngine):
        """Somebody appends a piece before each look."""

        def watch(self, *_: Any, **__: Any) -> Iterator[None]:
            for piece in rest:
                with path.open("ab") as file:
                    file.write(piece)
                yield None

    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":"user","x":"' + b"x" * 500)
    engine = Stepwise(tmp_path, line_bytes_max=200)
    found = [*Session(engine, LogKey("-p", ID)).watch(threading.Event())]
    assert [record.uuid for record in found] == ["u1"]


def test_a_watcher_waits_for_a_session_that_is_not_there_yet(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    stop = threading.Event()
    seen = session.watch(stop)
    session.append(user("first"))
    assert next(seen).type == "user"
    stop.set()


# Anything.

contents = st.one_of(
    st.text(min_size=1).filter(lambda text: text.strip()),
    st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text(min_size=1)}), min_size=1, max_size=3),
)
messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": contents})


@given(st.lists(st.tuples(messages, st.booleans()), min_size=1, max_size=12))
def test_any_messages_however_they_are_cut_read_back(said_and_cut: list[tuple[dict[str, Any], bool]]) -> None:
    at_once, cut = (store_on(MemoryEngine()).create("/p") for _ in range(2))
    at_once.append_many([message for message, _ in said_and_cut])
    batch: list[dict[str, Any]] = []
    for message, is_last in said_and_cut:
        batch.append(message)
        if is_last:
            cut.append_many(batch)
            batch = []
    cut.append_many(batch)
    bodies = [[record.body()["message"] for record in session.chain().records] for session in (at_once, cut)]
    assert [_content(body) for body in bodies[0]] == [_content(body) for body in bodies[1]]
    assert [_content(body) for body in bodies[0]] == [_content(message) for message, _ in said_and_cut]


def _content(message: Any) -> tuple[Any, Any]:
    content = message["content"]
    if message["role"] == "assistant" and isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return message["role"], content


def test_a_session_without_a_store_is_for_reading() -> None:
    engine = MemoryEngine()
    engine.append(LogKey("p", "s"), [Entry(b'{"type":"tag","tag":"x"}')])
    with pytest.raises(UsageError, match="for reading only"):
        Session(engine, LogKey("p", "s")).append(user("x"))


def test_a_session_that_went_away_says_so(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    talk(session)
    other = store.session(session.id)
    assert other.messages()
    store.engine.delete(session.key)
    with pytest.raises(NotFound):
        other.refresh()


def test_what_was_written_is_plain_data() -> None:
    written = store_on(MemoryEngine()).create("/p").append(user("x"))
    assert isinstance(written, clew.Written)
    assert msgspec.json.decode(msgspec.json.encode(written), type=clew.Written) == written


# What must not be written, and what must not be lost.


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")], ids=str)
def test_a_number_that_the_client_would_drop_the_row_for_is_refused(store: Store, value: float) -> None:
    session = store.create("/tmp")
    talk(session)
    before = rows(session)
    with pytest.raises(UsageError, match="row 0 cannot be written as JSON"):
        session.append({"role": "user", "content": [{"type": "text", "text": "five", "score": value}]})
    assert rows(session) == before


def test_a_row_that_no_reader_would_take_for_a_record_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.writing.LINE_BYTES_MAX", 1000)
    session = store.create("/tmp")
    session.append(user("one"))
    with pytest.raises(UsageError, match="no line over 1,000 is read as a record"):
        session.append_many([assistant("two"), user("x" * 1000)])
    assert len(rows(session)) == 2


def test_nothing_is_written_in_any_log_when_a_row_of_one_is_refused(store: Store) -> None:
    session = store.create("/tmp")
    session.append(user("one"))
    side = {"type": "user", "isSidechain": True, "agentId": "a1", "message": user("look")}
    with pytest.raises(UsageError, match="role"):
        session.append_many([side, {"role": "system", "content": "no"}])
    assert session.agents() == []
    with pytest.raises(UsageError, match="role"):
        session.append_subagent("a1", [{"role": "system", "content": "no"}], meta={"agentType": "x"})
    assert session.agents() == []
    assert session.blobs() == []


def test_a_note_about_a_subagent_that_is_no_json_is_refused_by_name(store: Store) -> None:
    session = store.create("/tmp")
    for odd in (object(), float("nan")):
        with pytest.raises(UsageError, match="the note about the subagent a1"):
            session.append_subagent("a1", [user("look")], meta={"odd": odd})
    assert session.agents() == []
    assert session.blobs() == []


def test_the_name_of_a_batch_may_be_any_text(store: Store) -> None:
    session = store.create("/tmp")
    first = session.append_many([user("one")], batch_id="\ud800")
    again = session.append_many([user("one")], batch_id="\ud800")
    assert first.uuids == again.uuids
    assert again.written == 0
    assert session.append_many([user("one")], batch_id="\ud801").uuids != first.uuids


def test_a_directory_that_cannot_exist_is_a_name_like_any_other(store: Store) -> None:
    for name in ("/tmp/\0", "/tmp/\ud800"):
        session = store.create(name)
        session.append(user("one"))
        assert session.id in {info.id for info in store.sessions(session.project)}


@pytest.mark.parametrize("what", [user("again"), {"type": "tag", "tag": "again"}], ids=["message", "metadata"])
def test_a_session_that_was_deleted_meanwhile_does_not_begin_anew(store: Store, what: dict[str, Any]) -> None:
    session = store.create("/tmp")
    talk(session)
    Store(store.engine, clock=ticking()).delete(session.id)
    with pytest.raises(NotFound, match="taken away"):
        session.append(what)
    store.undo()
    assert len(session.messages()) == 4
    session.append(what)


def test_metadata_does_not_begin_a_session_that_is_deleted_under_it(store: Store) -> None:
    session = store.create("/tmp")
    talk(session)

    class DeletesFirst(Wrapper):
        def append(self, key: LogKey, entries: Any, **given: Any) -> Any:
            if self.inner.stat(key) is not None:
                self.inner.set_aside(key, "op")
            return self.inner.append(key, entries, **given)

    other = Store(DeletesFirst(store.engine), clock=ticking()).session(session.id)
    with pytest.raises(NotFound):
        other.append({"type": "tag", "tag": "t"})
    assert store.engine.bring_back("op").logs == 1
