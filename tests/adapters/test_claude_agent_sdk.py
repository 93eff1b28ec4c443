"""What the Claude Agent SDK asks of a store, on every engine, without the SDK: that one is asked in tests/compat."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import Store
from clew.adapters import summaries
from clew.adapters.claude_agent_sdk import ClaudeSessionStore, SessionKey, SessionStoreEntry
from clew.engines.contract import Appended, BlobKey, Engine, Entry, LogKey, LogStat
from clew.engines.memory import MemoryEngine
from clew.errors import NotFound, StorageError, UsageError
from clew.testing.corpus import SessionDraft
from clew.testing.strategies import json_objects
from stores import ENGINES, store_on, ticking

T = TypeVar("T")
SESSION = "11111111-1111-4111-8111-111111111111"
MAIN: SessionKey = {"project_key": "proj", "session_id": SESSION}
AGENT: SessionKey = {**MAIN, "subpath": "subagents/agent-a1"}
LOG = LogKey("proj", SESSION)
SECONDS_MAX = 30
SUMMED_UP = [name for name in ENGINES if name != "files"]
"""Engines that keep a summary with the log; Claude's files have no place for one."""


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def row(number: int, **fields: Any) -> SessionStoreEntry:
    return cast(SessionStoreEntry, {"type": "x", "n": number, **fields})


def said(words: str, uuid: str, **fields: Any) -> SessionStoreEntry:
    """A prompt as the client writes it."""
    return cast(SessionStoreEntry, {
        "parentUuid": None, "isSidechain": False, "type": "user", "message": {"role": "user", "content": words},
        "uuid": uuid, "timestamp": "2026-11-18T12:00:00.000Z", "cwd": "/home/user/app", "sessionId": SESSION,
        "version": "2.1.327", "gitBranch": "main", **fields,
    })  # fmt: skip


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made = ENGINES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture(params=SUMMED_UP)
def summing_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made = ENGINES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(engine: Engine) -> ClaudeSessionStore:
    return store_on(engine).claude()


def summary_of(store: ClaudeSessionStore) -> dict[str, Any]:
    (found,) = run(store.list_session_summaries("proj"))
    return found["data"]


# What is appended is what is loaded.

ODD_VALUES: list[Any] = [
    None, True, False, 0, -0.0, 0.1, 1e300, 2**53 + 1, 2**64, 10**40, "", "\x00", "\u2028\u2029\x85", "\ud800 alone",
    "é e\u0301 \U0001f600", "line\nbreak\r\n", "\x7f\x1b[31m", [], {}, [[[]]], {"": {"": ""}}, {"a b": [1, "2", None]},
    "</script>", '"quoted\\"',
]  # fmt: skip


def test_rows_come_back_deep_equal_whatever_is_in_them(store: ClaudeSessionStore) -> None:
    rows = [row(number, value=value) for number, value in enumerate(ODD_VALUES)]
    run(store.append(MAIN, rows))
    loaded = run(store.load(MAIN))
    assert loaded == rows
    assert json.dumps(loaded) == json.dumps(rows), "down to the order of keys, and to 0 that is not False"


@given(st.lists(json_objects(), max_size=8))
def test_any_objects_come_back_as_they_were(rows: list[dict[str, Any]]) -> None:
    store = ClaudeSessionStore(MemoryEngine())
    entries = [cast(SessionStoreEntry, {**each, "type": "x", "uuid": f"u{at}"}) for at, each in enumerate(rows)]
    run(store.append(MAIN, entries))
    assert json.dumps(run(store.load(MAIN))) == (json.dumps(entries) if entries else "null")


def test_what_was_loaded_is_a_copy(store: ClaudeSessionStore) -> None:
    mine = row(1, deep={"list": [1]})
    run(store.append(MAIN, [mine]))
    cast(dict[str, Any], mine)["deep"]["list"].append("changed after the append")
    loaded = run(store.load(MAIN))
    assert loaded is not None
    cast(dict[str, Any], loaded[0])["deep"]["list"].append("changed after the load")
    assert run(store.load(MAIN)) == [row(1, deep={"list": [1]})]


def test_rows_are_taken_as_they_are_at_the_call(store: ClaudeSessionStore) -> None:
    async def change_meanwhile() -> None:
        mine = row(1)
        task = asyncio.create_task(store.append(MAIN, [mine]))
        await asyncio.sleep(0)
        cast(dict[str, Any], mine)["n"] = 2
        await task

    run(change_meanwhile())
    assert run(store.load(MAIN)) == [row(1)]


def test_a_log_that_is_not_there_loads_as_none(store: ClaudeSessionStore) -> None:
    assert run(store.load(MAIN)) is None
    run(store.append(AGENT, [row(1)]))
    assert run(store.load(MAIN)) is None
    assert run(store.load({**MAIN, "subpath": "subagents/agent-b2"})) is None
    assert run(store.list_sessions("proj")) == [], "a session without a main log is in no list"
    assert run(store.list_sessions("nowhere")) == []
    assert run(store.list_subkeys({"project_key": "proj", "session_id": "nowhere"})) == []


def test_appending_nothing_makes_no_log(store: ClaudeSessionStore) -> None:
    run(store.append(MAIN, []))
    assert run(store.load(MAIN)) is None
    assert run(store.list_sessions("proj")) == []


def test_a_broken_line_is_left_out_and_told(engine: Engine) -> None:
    engine.extend(LOG, [b'{"type":"x","n":1}\n{"type":"x","n\n{"type":"x","n":3}\n'], start=0)
    store = store_on(engine).claude()
    assert run(store.load(MAIN)) == [row(1), row(3)]
    (problem,) = store.problems
    assert SESSION in problem.path
    assert problem.reason.startswith("1 of its lines are no records; line 2: ")


def test_a_row_over_the_limit_for_lines_is_loaded_all_the_same() -> None:
    store = ClaudeSessionStore(MemoryEngine(clock=ticking(), line_bytes_max=100))
    rows = [row(1), row(2, text="x" * 1_000), row(3)]
    run(store.append(MAIN, rows))
    assert run(store.load(MAIN)) == rows
    assert not store.problems


# Idempotency.


def test_a_uuid_is_written_once_whatever_the_type_of_its_row(store: ClaudeSessionStore) -> None:
    first, title = said("one", "u1"), cast(SessionStoreEntry, {"type": "custom-title", "customTitle": "T", "uuid": "t"})
    run(store.append(MAIN, [first, title]))
    run(store.append(MAIN, [first, said("two", "u2"), title, said("two again", "u2")]))
    assert run(store.load(MAIN)) == [first, title, said("two", "u2")]


def test_rows_without_a_uuid_are_written_as_often_as_they_are_appended(store: ClaudeSessionStore) -> None:
    run(store.append(MAIN, [row(1), row(1)]))
    run(store.append(MAIN, [row(1)]))
    assert run(store.load(MAIN)) == [row(1)] * 3


class LosesAnswers(MemoryEngine):
    """Fails its next `fails` appends: after they were written, as if the answer was lost, or before."""

    fails = 0
    writes_first = True
    batches: list[str | None]

    def append(self, key: LogKey, entries: Sequence[Entry], **options: Any) -> Appended:
        self.batches = [*getattr(self, "batches", []), options.get("batch_id")]
        if not self.fails:
            return super().append(key, entries, **options)
        self.fails -= 1
        if self.writes_first:
            super().append(key, entries, **options)
        raise StorageError("the answer was lost", is_permanent=False)


@pytest.mark.parametrize("writes_first", [True, False])
@pytest.mark.parametrize("key", [MAIN, AGENT])
def test_a_batch_that_failed_and_comes_again_is_completed(key: SessionKey, writes_first: bool) -> None:
    engine = LosesAnswers(clock=ticking())
    store = ClaudeSessionStore(engine)
    batch = [row(1), said("one", "u1"), row(1)]
    engine.fails, engine.writes_first = 2, writes_first
    for _ in range(2):
        with pytest.raises(StorageError, match="lost"):
            run(store.append(key, batch))
    run(store.append(key, batch))
    assert run(store.load(key)) == batch
    assert len(set(engine.batches)) == 1
    run(store.append(key, batch))
    assert run(store.load(key)) == [*batch, row(1), row(1)], "after the answer the same rows are another batch"


def test_the_same_rows_after_other_ones_are_no_second_try() -> None:
    engine = LosesAnswers(clock=ticking())
    store = ClaudeSessionStore(engine)
    engine.fails = 1
    with pytest.raises(StorageError):
        run(store.append(MAIN, [row(1)]))
    for again in (row(2), row(1)):
        run(store.append(MAIN, [again]))
    assert run(store.load(MAIN)) == [row(1), row(2), row(1)]


def test_a_summary_is_right_after_an_answer_was_lost() -> None:
    engine = LosesAnswers(clock=ticking())
    store = ClaudeSessionStore(engine)
    run(store.append(MAIN, [said("one", "u1")]))
    engine.fails = 1
    batch = [cast(SessionStoreEntry, {"type": "ai-title", "aiTitle": "T"})]
    with pytest.raises(StorageError):
        run(store.append(MAIN, batch))
    assert summary_of(store)["ai_title"] == "T"
    run(store.append(MAIN, batch))
    assert summary_of(store)["ai_title"] == "T"
    assert len(run(store.load(MAIN)) or []) == 2


# Order and concurrency.


def test_appends_that_nobody_awaited_are_written_in_the_order_of_the_calls(store: ClaudeSessionStore) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(store.append(MAIN, [row(number)]) for number in range(100)))

    run(all_at_once())
    assert run(store.load(MAIN)) == [row(number) for number in range(100)]


class Slow(MemoryEngine):
    """Waits in its first append until it may go on."""

    def __init__(self) -> None:
        super().__init__(clock=ticking())
        self.has_begun, self.may_end = Event(), Event()

    def append(self, key: LogKey, entries: Sequence[Entry], **options: Any) -> Appended:
        if not self.has_begun.is_set():
            self.has_begun.set()
            assert self.may_end.wait(SECONDS_MAX)
        return super().append(key, entries, **options)


def test_a_cancelled_append_that_has_not_begun_is_not_written_and_one_that_has_is_not_doubled() -> None:
    engine = Slow()
    store = ClaudeSessionStore(engine)

    async def cancel_both() -> None:
        running, waiting = (asyncio.create_task(store.append(MAIN, [row(number)])) for number in (1, 2))
        await asyncio.to_thread(engine.has_begun.wait, SECONDS_MAX)
        for task in (waiting, running):
            task.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        again = asyncio.create_task(store.append(MAIN, [row(1)]))
        await asyncio.sleep(0)
        engine.may_end.set()
        await again

    run(cancel_both())
    assert run(store.load(MAIN)) == [row(1)]


def test_loops_in_many_threads_share_a_store(engine: Engine) -> None:
    store = store_on(engine).claude()

    async def eight() -> None:
        def loop(writer: int) -> None:
            for number in range(20):
                asyncio.run(store.append(MAIN, [said(f"{writer}.{number}", f"w{writer}-{number:02}")]))

        await asyncio.gather(*(asyncio.to_thread(loop, writer) for writer in range(8)))

    run(eight())
    uuids = [cast(dict[str, str], each)["uuid"] for each in run(store.load(MAIN)) or []]
    assert len(uuids) == 160
    for writer in range(8):
        assert [uuid for uuid in uuids if uuid.startswith(f"w{writer}-")] == [f"w{writer}-{n:02}" for n in range(20)]
    assert summary_of(store)["first_prompt"] == f"{uuids[0][1]}.{int(uuids[0][3:])}"


def test_two_stores_on_one_engine_see_each_others_rows_in_their_summaries(summing_engine: Engine) -> None:
    one, two = (store_on(summing_engine).claude() for _ in range(2))
    for number in range(10):
        for store in (one, two):
            title = cast(SessionStoreEntry, {"type": "ai-title", "aiTitle": f"{number} {store is one}"})
            run(store.append(MAIN, [title]))
    for store in (one, two):
        assert summary_of(store)["ai_title"] == "9 False"


# Times.


def test_times_grow_with_every_append_and_lists_and_summaries_share_them(store: ClaudeSessionStore) -> None:
    times = []
    for number in range(20):
        run(store.append(MAIN, [row(number)]))
        (listed,), (summed_up,) = run(store.list_sessions("proj")), run(store.list_session_summaries("proj"))
        assert listed["mtime"] == summed_up["mtime"]
        times.append(listed["mtime"])
    assert times == sorted(set(times))
    assert all(isinstance(time, int) and time > 10**12 for time in times)


def test_a_clock_that_stands_still_does_not_stop_the_times() -> None:
    start = ticking()()
    store = ClaudeSessionStore(MemoryEngine(clock=lambda: start))
    times = []
    for number in range(5):
        run(store.append(MAIN, [row(number)]))
        times.append(run(store.list_sessions("proj"))[0]["mtime"])
    assert times == sorted(set(times))


def test_a_title_does_not_make_a_session_of_claudes_files_the_newest(tmp_path: Path) -> None:
    store = store_on(ENGINES["files"](tmp_path)).claude()
    other: SessionKey = {**MAIN, "session_id": SESSION.replace("1", "2")}
    run(store.append(MAIN, [said("one", "u1")]))
    run(store.append(other, [said("two", "u2")]))
    before = run(store.list_sessions("proj"))
    run(store.append(MAIN, [cast(SessionStoreEntry, {"type": "custom-title", "customTitle": "T", "uuid": "t"})]))
    assert run(store.list_sessions("proj")) == before
    found = {each["session_id"]: each["data"] for each in run(store.list_session_summaries("proj"))}
    assert found[SESSION]["custom_title"] == "T"


# Summaries.

NAMES_OF_BOTH = {
    "is_sidechain": "isSidechain", "created_at": "createdAt", "cwd": "cwd", "first_prompt": "firstPrompt",
    "first_prompt_locked": "firstPromptLocked", "custom_title": "customTitle", "ai_title": "aiTitle",
    "last_prompt": "lastPrompt", "summary_hint": "summaryHint", "git_branch": "gitBranch", "tag": "tag",
}  # fmt: skip
FULL: list[dict[str, Any]] = [
    {"type": "summary", "summary": "a hint", "leafUuid": "u1"},
    {"type": "ai-title", "aiTitle": "by a model"},
    {"type": "custom-title", "customTitle": "first title"},
    {"type": "custom-title", "customTitle": "last title"},
    {"type": "tag", "tag": "urgent"},
    {"type": "last-prompt", "lastPrompt": "the last one", "leafUuid": "u1"},
]


def test_a_summary_has_what_both_sdks_look_for_in_the_spelling_of_each(store: ClaudeSessionStore) -> None:
    run(store.append(MAIN, [said("Fix the\nlogin", "u1")]))
    for each in FULL:
        run(store.append(MAIN, [cast(SessionStoreEntry, each)]))
    found = summary_of(store)
    assert found == {
        **{name: found[name] for name in NAMES_OF_BOTH},
        **{other: found[name] for name, other in NAMES_OF_BOTH.items()},
    }
    assert {name: found[name] for name in NAMES_OF_BOTH} == {
        "is_sidechain": False, "created_at": 1795003200000, "cwd": "/home/user/app",
        "first_prompt": "Fix the login", "first_prompt_locked": True, "custom_title": "last title",
        "ai_title": "by a model", "last_prompt": "the last one", "summary_hint": "a hint", "git_branch": "main",
        "tag": "urgent",
    }  # fmt: skip
    for each in ({"type": "tag", "tag": ""}, {"type": "custom-title", "customTitle": ""}):
        run(store.append(MAIN, [cast(SessionStoreEntry, each)]))
    assert not {"tag", "custom_title", "customTitle"} & {*summary_of(store)}


def test_a_command_stands_in_for_a_first_prompt_until_there_is_one(store: ClaudeSessionStore) -> None:
    run(store.append(MAIN, [said("<command-name>/init</command-name><command-args></command-args>", "u1")]))
    found = summary_of(store)
    assert (found["command_fallback"], found["commandFallback"]) == ("/init", "/init")
    assert "first_prompt" not in found
    run(store.append(MAIN, [said("now in words", "u2")]))
    assert summary_of(store)["first_prompt"] == "now in words"
    assert "command_fallback" not in summary_of(store)


def test_a_session_that_begins_with_a_sidechain_is_marked(store: ClaudeSessionStore) -> None:
    run(store.append(MAIN, [said("from an agent", "u1", isSidechain=True), said("from a person", "u2")]))
    assert summary_of(store)["is_sidechain"] is True


def test_a_row_of_an_unknown_type_may_name_its_session_and_the_input_of_a_tool_not(
    store: ClaudeSessionStore,
) -> None:
    evil = {"customTitle": "EVIL", "aiTitle": "EVIL", "summary": "EVIL", "lastPrompt": "EVIL"}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": evil}
    answer = {"type": "assistant", "uuid": "a1", "message": {"role": "assistant", "content": [call]}, **evil}
    run(store.append(MAIN, [said("one", "u1"), cast(SessionStoreEntry, answer), row(1, customTitle=7, nested=evil)]))
    assert not set(summary_of(store)) & {"custom_title", "ai_title", "summary_hint", "last_prompt"}
    run(store.append(MAIN, [row(2, customTitle="of tomorrow", aiTitle="made")]))
    assert (summary_of(store)["custom_title"], summary_of(store)["ai_title"]) == ("of tomorrow", "made")


def test_rows_of_subagents_change_no_summary(store: ClaudeSessionStore) -> None:
    run(store.append(MAIN, [said("one", "u1")]))
    before = summary_of(store)
    run(store.append(AGENT, [cast(SessionStoreEntry, {"type": "custom-title", "customTitle": "of the agent"})]))
    assert summary_of(store) == before
    assert [each["session_id"] for each in run(store.list_sessions("proj"))] == [SESSION]


def test_a_summary_agrees_with_what_our_own_list_says(engine: Engine) -> None:
    store = store_on(engine)
    session = store.create("/home/user/app", title="mine", git_branch="main")
    session.append({"role": "user", "content": "Fix the login"})
    session.append({"role": "assistant", "content": "done"})
    (info,) = store.sessions()
    (found,) = run(store.claude().list_session_summaries(info.project))
    data = found["data"]
    assert found["session_id"] == info.id
    assert (data["custom_title"], data["first_prompt"], data["cwd"]) == (info.title, info.first_prompt, info.cwd)
    assert data["git_branch"] == info.git_branch


def test_what_the_agent_said_is_a_session_like_any_other(engine: Engine) -> None:
    store = store_on(engine)
    draft = SessionDraft(SESSION)
    draft.user("hello")
    draft.assistant("world")
    rows = [json.loads(line) for line in draft.to_bytes().split(b"\n") if line]
    run(store.claude().append(MAIN, rows))
    session = store.session(SESSION)
    assert [message.role for message in session.messages()] == ["user", "assistant"]
    session.append({"role": "user", "content": "and now?"})
    loaded = run(store.claude().load(MAIN))
    assert loaded is not None
    assert loaded[: len(rows)] == rows
    assert len(loaded) > len(rows)


class Reads(MemoryEngine):
    """Counts how often logs are read."""

    reads = 0

    def read(self, key: LogKey, **options: Any) -> Any:
        self.reads += 1
        return super().read(key, **options)


def test_a_list_reads_no_log_that_was_written_through_a_store() -> None:
    engine = Reads(clock=ticking())
    for number in range(10):
        run(ClaudeSessionStore(engine).append({**MAIN, "session_id": f"s{number}"}, [said("one", "u1")]))
        run(ClaudeSessionStore(engine).append({**MAIN, "session_id": f"s{number}"}, [said("two", "u2")]))
    assert len(run(ClaudeSessionStore(engine).list_session_summaries("proj"))) == 10
    assert engine.reads == 0


def test_a_summary_is_right_when_only_a_part_of_the_rows_was_new(summing_engine: Engine) -> None:
    title, other = ({"type": "custom-title", "customTitle": name, "uuid": name} for name in ("old", "new"))
    rows = [cast(SessionStoreEntry, each) for each in (title, other)]
    run(ClaudeSessionStore(summing_engine).append(MAIN, rows))
    # The old title comes again, as from a second import. It was said before the new one, and stays so.
    run(ClaudeSessionStore(summing_engine).append(MAIN, [said("one", "u1"), rows[0]]))
    assert summary_of(ClaudeSessionStore(summing_engine))["custom_title"] == "new"
    stat = summing_engine.stat(LOG)
    assert stat is not None
    kept = summaries.kept_in(stat)
    assert kept is not None, "and it stands beside the log again"
    assert kept.data()["custom_title"] == "new"


def test_a_summary_counts_what_others_appended_without_one(engine: Engine) -> None:
    store = store_on(engine)
    run(store.claude().append(MAIN, [said("one", "u1")]))
    store.session(SESSION).append({"type": "custom-title", "customTitle": "by hand"})
    assert summary_of(store.claude())["custom_title"] == "by hand"
    run(store.claude().append(MAIN, [said("two", "u2")]))
    assert summary_of(store.claude())["custom_title"] == "by hand"
    assert summary_of(store.claude())["first_prompt"] == "one"


def test_a_summary_is_right_when_somebody_appends_between_look_and_append() -> None:
    class Crowded(MemoryEngine):
        """Somebody else gives a title whenever the log was looked at, three times."""

        times = 3

        def stat(self, key: LogKey) -> LogStat | None:
            found = super().stat(key)
            if self.times:
                self.times -= 1
                super().append(key, [Entry(b'{"type":"custom-title","customTitle":"theirs %d"}' % self.times)])
            return found

    engine = Crowded(clock=ticking())
    store = ClaudeSessionStore(engine)
    run(store.append(MAIN, [said("mine", "u1")]))
    assert len(run(store.load(MAIN)) or []) == 4
    assert (summary_of(store)["custom_title"], summary_of(store)["first_prompt"]) == ("theirs 0", "mine")


def test_a_summary_of_a_log_that_was_replaced_is_about_the_new_one(engine: Engine) -> None:
    store = store_on(engine).claude()
    run(store.append(MAIN, [cast(SessionStoreEntry, {"type": "ai-title", "aiTitle": "old", "x": "y" * 100})]))
    assert summary_of(store)["ai_title"] == "old"
    stat = engine.stat(LOG)
    assert stat is not None
    new = json.dumps({"type": "ai-title", "aiTitle": "new"}).encode()
    engine.replace(LOG, [new.ljust(stat.size_bytes - 1) + b"\n"], expect=stat.revision)
    assert summary_of(store)["ai_title"] == "new"


def test_a_title_as_long_as_a_book_is_in_the_answer_and_not_kept(summing_engine: Engine) -> None:
    store, book = ClaudeSessionStore(summing_engine), "x" * (summaries.SUMMARY_BYTES_MAX + 1)
    run(store.append(MAIN, [said("one", "u1")]))
    run(store.append(MAIN, [cast(SessionStoreEntry, {"type": "custom-title", "customTitle": book})]))
    assert summary_of(ClaudeSessionStore(summing_engine))["custom_title"] == book
    stat = summing_engine.stat(LOG)
    assert stat is not None
    assert summaries.kept_in(stat) is None
    assert len(stat.summary or b"") < 2_000


@pytest.mark.parametrize("kept", [b"", b"{}", b"\xff", b'{"claude_agent_sdk":7}', b'{"rules":1,"claude_agent_sdk":{}}'])
def test_what_is_kept_and_is_no_summary_is_not_believed(kept: bytes, summing_engine: Engine) -> None:
    summing_engine.append(LOG, [Entry(json.dumps(said("one", "u1")).encode(), "u1")], summary=kept)
    assert summary_of(ClaudeSessionStore(summing_engine))["first_prompt"] == "one"


def test_a_torn_last_line_counts_only_once_it_is_whole(engine: Engine) -> None:
    whole, torn = (json.dumps({"type": "ai-title", "aiTitle": name}).encode() for name in ("one", "two"))
    engine.extend(LOG, [whole + b"\n" + torn[:9]], start=0)
    store = ClaudeSessionStore(engine)
    assert summary_of(store)["ai_title"] == "one"
    engine.extend(LOG, [torn[9:] + b"\n"], start=len(whole) + 10)
    assert summary_of(store)["ai_title"] == "two"


def test_a_log_that_cannot_be_read_is_missing_among_the_summaries_and_told() -> None:
    class Unreadable(MemoryEngine):
        def read(self, key: LogKey, **options: Any) -> Any:
            if key.session == "bad":
                raise StorageError("the disk says no")
            return super().read(key, **options)

    engine = Unreadable(clock=ticking())
    for session in ("bad", "good"):
        engine.append(LogKey("proj", session), [Entry(b'{"type":"x"}')])
    store = ClaudeSessionStore(engine)
    assert [each["session_id"] for each in run(store.list_session_summaries("proj"))] == ["good"]
    assert [problem.reason for problem in store.problems] == ["the disk says no"]
    assert len(run(store.list_sessions("proj"))) == 2


# Deleting.


def test_deleting_a_session_takes_its_sublogs_and_blobs_and_nothing_else(engine: Engine) -> None:
    store = store_on(engine).claude()
    others: list[SessionKey] = [{**MAIN, "session_id": "other"}, {**MAIN, "project_key": "elsewhere"}]
    for key in (MAIN, AGENT, *others):
        run(store.append(key, [row(1)]))
    engine.put(BlobKey("proj", SESSION, "tool result", "tool-results/a.txt"), [b"large"])
    run(store.delete(MAIN))
    assert [run(store.load(key)) for key in (MAIN, AGENT, *others)] == [None, None, [row(1)], [row(1)]]
    assert not engine.blobs(LOG)
    assert run(store.list_subkeys({"project_key": "proj", "session_id": SESSION})) == []
    run(store.append(MAIN, [row(2)]))
    assert run(store.load(MAIN)) == [row(2)], "what was deleted does not come back"
    assert run(store.list_subkeys({"project_key": "proj", "session_id": SESSION})) == []


def test_a_session_that_was_deleted_comes_back_with_all_that_belongs_to_it(engine: Engine) -> None:
    whole = store_on(engine)
    store = whole.claude()
    for key in (MAIN, AGENT):
        run(store.append(key, [row(1)]))
    engine.put(BlobKey("proj", SESSION, "tool result", "tool-results/a.txt"), [b"large"])
    run(store.delete(MAIN))
    (operation,) = whole.operations()
    assert (operation.kind, operation.sessions) == ("delete", 1)
    whole.undo()
    assert [run(store.load(key)) for key in (MAIN, AGENT)] == [[row(1)], [row(1)]]
    assert len(engine.blobs(LOG)) == 1
    assert [entry["session_id"] for entry in run(store.list_session_summaries("proj"))] == [SESSION]


def test_deleting_a_sublog_takes_that_one_alone(store: ClaudeSessionStore) -> None:
    for key in (MAIN, AGENT, {**MAIN, "subpath": "subagents/agent-b2"}):
        run(store.append(cast(SessionKey, key), [row(1)]))
    run(store.delete(AGENT))
    assert run(store.load(AGENT)) is None
    assert run(store.load(MAIN)) == [row(1)]
    assert run(store.list_subkeys({"project_key": "proj", "session_id": SESSION})) == ["subagents/agent-b2"]


def test_deleting_what_is_not_there_does_nothing(store: ClaudeSessionStore) -> None:
    run(store.delete(MAIN))
    run(store.delete(AGENT))
    assert run(store.list_sessions("proj")) == []


# Names from outside.

HOSTILE_SUBPATHS = [
    "", ".", "..", "./", "../other", "a/..", "a/../b", "/etc/passwd", "a//b", "a/", "\\\\host\\share", "a\\..\\b",
    "C:x", "c:/x", "a\0b", "subagents/./agent-a1",
]  # fmt: skip


@pytest.mark.parametrize("subpath", HOSTILE_SUBPATHS)
def test_a_subpath_that_leads_elsewhere_is_refused_by_every_method(subpath: str, engine: Engine) -> None:
    store, key = ClaudeSessionStore(engine), cast(SessionKey, {**MAIN, "subpath": subpath})
    calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
        lambda: store.append(key, [row(1)]), lambda: store.load(key), lambda: store.delete(key),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="is no subpath"):
            run(call())
    assert not engine.projects()


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "x" * 300, "a\0b"])
def test_names_that_are_no_file_names_are_refused_or_kept_as_they_are(
    name: str, engine: Engine, tmp_path: Path
) -> None:
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    store = ClaudeSessionStore(engine)
    for key in ({"project_key": name, "session_id": "s"}, {"project_key": "p", "session_id": name}):
        try:
            run(store.append(cast(SessionKey, key), [row(1)]))
        except UsageError:
            assert engine.url != "memory:"
            continue
        assert run(store.load(cast(SessionKey, key))) == [row(1)]
        assert [each["session_id"] for each in run(store.list_sessions(key["project_key"]))] == [key["session_id"]]
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(path.is_relative_to(tmp_path) for path in made)
    assert not list(tmp_path.parent.glob("x*"))


@pytest.mark.parametrize("key", [
    {"project_key": "", "session_id": "s"}, {"project_key": "p", "session_id": ""},
    {"project_key": 7, "session_id": "s"}, {"project_key": "p", "session_id": None},
])  # fmt: skip
def test_a_key_without_names_is_refused(key: Any, store: ClaudeSessionStore) -> None:
    with pytest.raises(UsageError, match=r"is no (project_key|session_id)"):
        run(store.append(key, [row(1)]))


@pytest.mark.parametrize("bad", [{"type": "x", "n": b"bytes"}, {"type": "x", "n": {1, 2}}, ["no", "object"], "text"])
def test_what_is_no_json_is_refused_and_nothing_of_its_batch_is_written(bad: Any, store: ClaudeSessionStore) -> None:
    with pytest.raises(UsageError, match="entry 1 "):
        run(store.append(MAIN, [row(0), bad]))
    assert run(store.load(MAIN)) is None


# Renaming, and notes about subagents.


@pytest.mark.parametrize("name", [{"type": "custom-title", "customTitle": "T"}, {"type": "tag", "tag": "t"}])
def test_renaming_or_tagging_a_session_that_is_not_there_makes_none(name: Any, store: ClaudeSessionStore) -> None:
    by_hand = {**name, "sessionId": SESSION, "uuid": "u", "timestamp": "2026-11-18T12:00:00.000Z"}
    with pytest.raises(NotFound, match="to be renamed or tagged"):
        run(store.append(MAIN, [cast(SessionStoreEntry, by_hand)]))
    assert run(store.list_sessions("proj")) == []
    run(store.append(MAIN, [name]))
    assert len(run(store.list_sessions("proj"))) == 1, "a running agent may begin with a name: its rows have no uuid"


NOTE = {"type": "agent_metadata", "agentType": "general-purpose", "toolUseId": "toolu_1", "description": "looks around"}


def test_the_note_about_a_subagent_is_there_for_the_sdk_and_for_us(engine: Engine) -> None:
    store = store_on(engine)
    agents = [said("find it", "a1", isSidechain=True, agentId="a1")]
    run(store.claude().append(MAIN, [said("one", "u1")]))
    run(store.claude().append(AGENT, [*agents, cast(SessionStoreEntry, NOTE)]))
    loaded = run(store.claude().load(AGENT)) or []
    assert [each for each in loaded if each["type"] != "agent_metadata"] == agents
    assert [each for each in loaded if each["type"] == "agent_metadata"] == [NOTE]
    meta = store.session(SESSION).agent("a1").meta
    assert meta is not None
    assert (meta.description, meta.agent_type) == ("looks around", "general-purpose")
    run(store.claude().delete(AGENT))
    assert not engine.blobs(LOG)


def test_the_note_about_a_subagent_of_ours_reaches_the_sdk(engine: Engine) -> None:
    store = store_on(engine)
    session = store.create("/home/user/app", id=SESSION)
    session.append({"role": "user", "content": "one"})
    session.append_subagent("a1", [{"role": "user", "content": "find it"}], meta={"toolUseId": "toolu_1"})
    key: SessionKey = {"project_key": session.project, "session_id": SESSION, "subpath": "subagents/agent-a1"}
    loaded = run(store.claude().load(key))
    assert loaded is not None
    assert loaded[-1] == {"toolUseId": "toolu_1", "type": "agent_metadata"}


# The whole of it.


def test_an_agent_keeps_its_session_and_goes_on_with_it(engine: Engine) -> None:
    """What the SDK does in a run and a resume: mirrored batches, then the list, the log and its sublogs."""
    store: Store = store_on(engine)

    async def agent() -> list[SessionStoreEntry] | None:
        mirror = store.claude()
        await mirror.append(MAIN, [cast(SessionStoreEntry, {"type": "mode", "mode": "normal", "sessionId": SESSION})])
        await mirror.append(MAIN, [said("Fix the login", "u1")])
        await asyncio.gather(
            mirror.append(AGENT, [said("find it", "a1", isSidechain=True, agentId="a1")]),
            mirror.append(MAIN, [said("and the logout", "u2", parentUuid="u1")]),
        )
        (newest,) = await mirror.list_sessions("proj")
        resumed: SessionKey = {"project_key": "proj", "session_id": newest["session_id"]}
        for subpath in await mirror.list_subkeys({"project_key": "proj", "session_id": newest["session_id"]}):
            assert await mirror.load({**resumed, "subpath": subpath})
        return await mirror.load(resumed)

    loaded = asyncio.run(agent())
    assert [each.get("uuid") for each in loaded or []] == [None, "u1", "u2"]
    (info,) = store.sessions()
    assert (info.id, info.first_prompt, info.agents) == (SESSION, "Fix the login", 1)


def test_the_adapter_imports_neither_the_sdk_nor_an_event_loop() -> None:
    check = (
        "import sys, clew.adapters.claude_agent_sdk as made\n"
        "from clew.engines.memory import MemoryEngine\n"
        "made.ClaudeSessionStore(MemoryEngine())\n"
        "print(*sorted({'asyncio', 'anyio', 'claude_agent_sdk'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
