"""The Agent SDKs work on our stores, and say of a session what we say."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

import pytest

import clew
import sdks
from clew import Store
from clew.adapters.claude_agent_sdk import ClaudeSessionStore, SessionKey, SessionStoreEntry
from clew.engines import table as engines
from clew.testing.corpus import SessionDraft
from real_client import conversation, in_namespace, namespaces_work
from stores import ENGINES, store_on

pytestmark = pytest.mark.compat

T = TypeVar("T")
NODE_SECONDS_MAX = 120
LIFE_SECONDS_MAX = 180


@pytest.fixture(scope="module")
def sdk() -> Any:
    return sdks.python_sdk()


@pytest.fixture(scope="module")
def node_sdk() -> Path:
    return sdks.node_sdk()


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_on(ENGINES[request.param](tmp_path)) as made:
        yield made


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """Where the agents of these tests work. Its name is short and plain, so that both rules for keys agree on it."""
    place = tmp_path / "app"
    place.mkdir()
    return str(place)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def draft_of(directory: str, prompts: int = 2) -> SessionDraft:
    draft = SessionDraft(str(uuid4()), cwd=directory)
    for number in range(prompts):
        draft.user(f"prompt {number}")
        call = draft.tool_use()
        draft.tool_result(call)
        draft.assistant(f"answer {number}")
    return draft


def keep(store: Store, sdk: Any, directory: str, draft: SessionDraft) -> str:
    """Puts a session into the store as a mirror of the SDK would. Returns its id."""
    rows = [json.loads(line) for line in draft.to_bytes().split(b"\n") if line]
    key: SessionKey = {"project_key": sdk.project_key_for_directory(directory), "session_id": draft.session}
    run(store.claude().append(key, rows))
    return draft.session


@pytest.mark.usefixtures("sdk")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", ENGINES)
def test_the_official_suite_passes(name: str, backend: str, tmp_path: Path) -> None:
    anyio = pytest.importorskip("anyio")
    testing = pytest.importorskip("claude_agent_sdk.testing")
    made: list[Store] = []

    def fresh() -> ClaudeSessionStore:
        place = tmp_path / str(len(made))
        place.mkdir()
        made.append(store_on(ENGINES[name](place)))
        return made[-1].claude()

    anyio.run(testing.run_session_store_conformance, fresh, backend=backend)
    for store in made:
        store.close()
    assert len(made) >= 14, "each contract is asked on a store of its own"


def test_every_method_of_the_protocol_counts_as_there(sdk: Any, store: Store) -> None:
    validation = pytest.importorskip("claude_agent_sdk._internal.session_store_validation")
    methods = ("append", "load", "list_sessions", "list_session_summaries", "delete", "list_subkeys")
    assert all(validation._store_implements(store.claude(), method) for method in methods)
    options = sdk.ClaudeAgentOptions(session_store=store.claude(), continue_conversation=True)
    validation.validate_session_store_options(options)


def test_lists_agree(store: Store, sdk: Any, directory: str) -> None:
    ids = [keep(store, sdk, directory, draft_of(directory, prompts)) for prompts in (1, 2, 3)]
    run(sdk.rename_session_via_store(store.claude(), ids[0], "  a title ", directory))
    run(sdk.tag_session_via_store(store.claude(), ids[1], "urgent", directory))
    theirs = run(sdk.list_sessions_from_store(store.claude(), directory))
    ours = list(store.sessions(directory))
    assert {info.session_id for info in theirs} == set(ids)
    assert [info.session_id for info in theirs] == [info.id for info in ours]
    for their, our in zip(theirs, ours, strict=True):
        assert (their.summary, their.first_prompt, their.cwd) == (our.title, our.first_prompt, our.cwd)
        assert (their.tag, their.git_branch) == (our.tag, our.git_branch)
        one = run(sdk.get_session_info_from_store(store.claude(), our.id, directory))
        assert (one.summary, one.tag, one.first_prompt) == (our.title, our.tag, our.first_prompt)
        assert their.created_at == one.created_at
    assert {info.session_id: info.custom_title for info in theirs}[ids[0]] == "a title"
    page = run(sdk.list_sessions_from_store(store.claude(), directory, limit=1, offset=1))
    assert [info.session_id for info in page] == [ours[1].id]


def test_messages_agree(store: Store, sdk: Any, directory: str) -> None:
    session = keep(store, sdk, directory, draft_of(directory))
    theirs = run(sdk.get_session_messages_from_store(store.claude(), session, directory))
    ours = store.session(session).messages()
    assert [message.uuid for message in theirs] == [uuid for message in ours for uuid in message.uuids]
    assert [message.type for message in theirs] == [m.role for m in ours for _ in m.uuids]
    assert len(theirs) == 8


def test_subagents_agree(store: Store, sdk: Any, directory: str) -> None:
    session = store.create(directory, id=str(uuid4()))
    session.append({"role": "user", "content": "look around"})
    said = [{"role": "user", "content": "find it"}, {"role": "assistant", "content": "found"}]
    session.append_subagent("a1b2c3d4e5f60718a", said, meta={"toolUseId": "toolu_1", "agentType": "general-purpose"})
    (agent,) = run(sdk.list_subagents_from_store(store.claude(), session.id, directory))
    assert agent == "a1b2c3d4e5f60718a"
    theirs = run(sdk.get_subagent_messages_from_store(store.claude(), session.id, agent, directory))
    ours = session.agent(agent).messages()
    assert [message.uuid for message in theirs] == [uuid for message in ours for uuid in message.uuids]
    assert {message.parent_tool_use_id for message in theirs} == {"toolu_1"}


def test_a_fork_by_the_sdk_is_a_session_of_ours(store: Store, sdk: Any, directory: str) -> None:
    session = keep(store, sdk, directory, draft_of(directory))
    forked = run(sdk.fork_session_via_store(store.claude(), session, directory)).session_id
    ours, source = store.session(forked), store.session(session)
    assert [m.content for m in ours.messages()] == [m.content for m in source.messages()]
    assert {info.id: info.title for info in store.sessions(directory)}[forked] == "prompt 0 (fork)"
    assert {info.id: info.parent_id for info in store.sessions(directory)}[forked] == session


def test_titles_and_tags_of_ours_are_seen_by_the_sdk(store: Store, sdk: Any, directory: str) -> None:
    session = store.create(directory, id=str(uuid4()), title="by clew")
    session.append({"role": "user", "content": "hello"})
    session.append({"type": "tag", "tag": "ours"})
    (info,) = run(sdk.list_sessions_from_store(store.claude(), directory))
    assert (info.summary, info.tag, info.first_prompt) == ("by clew", "ours", "hello")
    run(sdk.tag_session_via_store(store.claude(), session.id, None, directory))
    assert [our.tag for our in store.sessions(directory)] == [None]


def test_deleting_by_the_sdk_deletes(store: Store, sdk: Any, directory: str) -> None:
    kept, gone = (keep(store, sdk, directory, draft_of(directory)) for _ in range(2))
    run(sdk.delete_session_via_store(store.claude(), gone, directory))
    assert [info.id for info in store.sessions(directory)] == [kept]
    assert run(sdk.get_session_messages_from_store(store.claude(), gone, directory)) == []


def test_an_import_by_the_sdk_brings_all_rows_and_a_second_one_none(
    store: Store, sdk: Any, directory: str, config_dir: Path
) -> None:
    draft = draft_of(directory)
    project = sdk.project_key_for_directory(directory)
    folder = config_dir / "projects" / project
    (folder / draft.session / "subagents").mkdir(parents=True)
    (folder / f"{draft.session}.jsonl").write_bytes(draft.to_bytes())
    agent = SessionDraft(draft.session, cwd=directory)
    agent.user("find it", isSidechain=True, agentId="a1")
    (folder / draft.session / "subagents" / "agent-a1.jsonl").write_bytes(agent.to_bytes())
    (folder / draft.session / "subagents" / "agent-a1.meta.json").write_text('{"toolUseId": "toolu_1"}')
    key: SessionKey = {"project_key": project, "session_id": draft.session}
    rows = []
    for _ in range(2):
        run(sdk.import_session_to_store(draft.session, store.claude(), directory=directory, batch_size=3))
        loaded = run(store.claude().load(key)) or []
        rows.append([row for row in loaded if "uuid" in row])
    assert rows[0] == rows[1]
    assert [row["uuid"] for row in rows[0]] == [message.uuid for message in sdk.get_session_messages(draft.session)]
    (found,) = run(sdk.get_subagent_messages_from_store(store.claude(), draft.session, "a1", directory))
    assert found.parent_tool_use_id == "toolu_1"


def test_what_the_sdk_resumes_from_is_the_session(store: Store, sdk: Any, directory: str) -> None:
    """The SDK writes the session that it loads to a directory of its own, for the client to resume from."""
    materialize = pytest.importorskip("claude_agent_sdk._internal.session_resume").materialize_resume_session
    draft = draft_of(directory)
    session = keep(store, sdk, directory, draft)
    project = sdk.project_key_for_directory(directory)
    sub: SessionKey = {"project_key": project, "session_id": session, "subpath": "subagents/agent-a1"}
    noted = cast(SessionStoreEntry, {"type": "agent_metadata", "toolUseId": "t"})
    run(store.claude().append(sub, [noted, {"type": "x"}]))
    for options in ({"resume": session}, {"continue_conversation": True}):
        made = run(materialize(sdk.ClaudeAgentOptions(session_store=store.claude(), cwd=directory, **options)))
        try:
            folder = made.config_dir / "projects" / project
            rows = [json.loads(line) for line in (folder / f"{session}.jsonl").read_bytes().split(b"\n") if line]
            assert rows == [json.loads(line) for line in draft.to_bytes().split(b"\n") if line]
            assert json.loads((folder / session / "subagents" / "agent-a1.meta.json").read_text()) == {"toolUseId": "t"}
        finally:
            run(made.cleanup())


def test_the_typescript_sdk_reads_our_summaries(store: Store, sdk: Any, node_sdk: Path, directory: str) -> None:
    ids = [keep(store, sdk, directory, draft_of(directory, prompts)) for prompts in (1, 2)]
    run(sdk.rename_session_via_store(store.claude(), ids[0], "a title", directory))
    run(sdk.tag_session_via_store(store.claude(), ids[0], "urgent", directory))
    project = sdk.project_key_for_directory(directory)
    listed = run(store.claude().list_sessions(project))
    summed_up = run(store.claude().list_session_summaries(project))
    told = node_calls(node_sdk, {
        "function": "listSessions", "arguments": [], "options": {"dir": directory}, "entries": {},
        "sessions": [{"sessionId": each["session_id"], "mtime": each["mtime"]} for each in listed],
        "summaries": [
            {"sessionId": each["session_id"], "mtime": each["mtime"], "data": each["data"]} for each in summed_up
        ],
    })  # fmt: skip
    theirs = run(sdk.list_sessions_from_store(store.claude(), directory))
    assert [info["sessionId"] for info in told] == [info.session_id for info in theirs]
    for other, python in zip(told, theirs, strict=True):
        assert (other["summary"], other.get("customTitle"), other["firstPrompt"]) == (
            python.summary, python.custom_title, python.first_prompt)  # fmt: skip
        assert (other.get("tag"), other["gitBranch"], other["cwd"], other["createdAt"], other["lastModified"]) == (
            python.tag, python.git_branch, python.cwd, python.created_at, python.last_modified)  # fmt: skip


LIVES: list[dict[str, Any]] = [
    {"prompt": "look around", "options": {}, "script": [
        {"text": "I look", "tools": [{"name": "Bash", "input": {"command": "echo found", "description": "look"}}]},
        {"text": "there it is"},
    ]},
    {"prompt": "and now?", "options": {"resume": True}, "script": [{"text": "nothing more"}]},
    {"prompt": "still there?", "options": {"continue_conversation": True}, "script": [{"text": "yes"}]},
]  # fmt: skip


@pytest.mark.usefixtures("sdk")
@pytest.mark.parametrize("kind", sorted({"claude", "sqlite"} & set(engines.ENGINES)))
def test_an_agent_lives_in_a_store_of_ours(kind: str, tmp_path: Path) -> None:
    """The real client mirrors each run into the store, and the next run, which knows nothing else, resumes from it."""
    client = os.environ.get("CLEW_CLIENT")
    if not client or not namespaces_work():
        pytest.skip("there is no client, or no network namespace to keep it in")
    place = tmp_path / "store"
    if kind == "claude":
        place.mkdir()
    url, session = f"{kind}:{place}", ""
    known: list[dict[str, Any]] = []
    for number, life in enumerate(LIVES):
        options = {name: session if name == "resume" else value for name, value in life["options"].items()}
        told = live({
            **life, "options": options, "binary": client, "sdk": os.environ["CLEW_AGENT_SDK"], "store": url,
            "root": str(tmp_path), "number": number,
        })  # fmt: skip
        assert not told["mirror_errors"]
        assert without_reminders(conversation(told["messages"], life["prompt"])) == known
        assert told["session"] == session or not session
        session = told["session"]
        with clew.open(url) as store:
            messages = plain(store.session(session))
            assert messages[len(known)] == {"role": "user", "content": [{"type": "text", "text": life["prompt"]}]}
            assert messages[-1]["content"] == [{"type": "text", "text": life["script"][-1]["text"]}]
            (info,) = store.sessions()
            assert (info.id, info.first_prompt) == (session, "look around")
            key: SessionKey = {"project_key": info.project, "session_id": session}
            mirrored = run(store.claude().load(key)) or []
        # A run that resumes writes to a directory that the SDK removes afterwards: the store alone has its rows. The
        # client mirrors all of its rows but those about its requests.
        for file in told["files"]:
            rows = [json.loads(line) for line in file.split("\n") if line]
            assert [each for each in rows if not each["type"].startswith("api-request")] == mirrored
        assert bool(told["files"]) == (not known)
        known = messages


def plain(session: clew.Session) -> list[dict[str, Any]]:
    """Our messages in the form in which `conversation` has the client's."""
    return [{"role": each.role, "content": each.content} for each in session.messages()]


def without_reminders(messages: list[dict[str, Any]] | None) -> Any:
    """Without what the client adds to the results of tools while it runs."""
    return json.loads(re.sub(r"(\\n)*<system-reminder>.*?</system-reminder>", "", json.dumps(messages or [])))


def live(job: dict[str, Any]) -> Any:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}
    done = subprocess.run(
        [*in_namespace(), sys.executable, str(Path(__file__).with_name("live_agent.py"))], env=environment,
        input=json.dumps(job).encode(), capture_output=True, timeout=LIFE_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


def node_calls(node_sdk: Path, job: dict[str, Any], config: Path | None = None) -> Any:
    """Runs the SDK for TypeScript with an empty environment, where no network is."""
    node = shutil.which("node")
    if node is None or not namespaces_work():
        pytest.skip("there is no node, or no network namespace to keep it in")
    script = Path(__file__).with_name("agent_sdk.mjs")
    home = os.environ["HOME"]
    environment = {"PATH": os.defpath, "HOME": home, "CLAUDE_CONFIG_DIR": str(config or f"{home}/.claude")}
    done = subprocess.run(
        [*in_namespace(), node, str(script), str(node_sdk)], input=json.dumps(job).encode(), env=environment,
        capture_output=True, timeout=NODE_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)
