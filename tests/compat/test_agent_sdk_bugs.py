"""Where the Agent SDKs go wrong, measured on 0.2.184 (Python) and 0.3.327 (TypeScript), clew does not.

Each test shows both: what the SDK does with a case, so that we notice when it changes, and that ours is right.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

import sdks
from clew import Store
from clew.adapters.claude_agent_sdk import SessionKey
from clew.engines.files import FilesEngine
from clew.errors import NotFound
from clew.layouts.keys import ClaudeKeys
from clew.testing.corpus import Row, SessionDraft
from real_client import Case, resume
from stores import ENGINES, store_on

pytestmark = pytest.mark.compat

T = TypeVar("T")
HANGS_SECONDS = 5


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


class Place:
    """A directory of an agent, and the client's files about it, which SDK and clew both read."""

    def __init__(self, sdk: Any, config: Path, directory: Path) -> None:
        directory.mkdir()
        self.directory = str(directory)
        self.project: str = sdk.project_key_for_directory(self.directory)
        self.folder: Path = config / "projects" / self.project
        self.folder.mkdir(parents=True)
        self.store = store_on(FilesEngine(config, durability="none"))
        self.draft = SessionDraft(str(uuid4()), cwd=self.directory)

    @property
    def id(self) -> str:
        return self.draft.session

    @property
    def file(self) -> Path:
        return self.folder / f"{self.id}.jsonl"

    @property
    def key(self) -> SessionKey:
        return {"project_key": self.project, "session_id": self.id}

    def write(self, content: bytes | None = None) -> None:
        self.file.write_bytes(self.draft.to_bytes() if content is None else content)

    def mirrored(self, store: Store) -> Store:
        """Another store with the rows of the file, as the SDK's mirror would have put them there."""
        rows = [json.loads(line) for line in self.file.read_bytes().split(b"\n") if line]
        run(store.claude().append(self.key, rows))
        return store

    def texts(self, id_: str | None = None) -> list[Any]:
        return [message.content for message in self.store.session(id_ or self.id).messages()]


@pytest.fixture(scope="module")
def sdk() -> Any:
    return sdks.python_sdk()


@pytest.fixture
def place(sdk: Any, config_dir: Path, tmp_path: Path) -> Place:
    return Place(sdk, config_dir, tmp_path / "app")


@pytest.fixture(params=ENGINES)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    (tmp_path / "other").mkdir()
    return store_on(ENGINES[request.param](tmp_path / "other"))


def test_1_a_line_separator_inside_of_a_text_ends_no_row(place: Place, sdk: Any, other: Store) -> None:
    prompts = ["first", "second \u2028 line", "third \x85 line"]
    for prompt in prompts:
        place.draft.user(prompt)
    place.write()
    forked = sdk.fork_session(place.id, place.directory).session_id
    assert len(sdk.get_session_messages(forked, place.directory)) == 1, "the SDK loses two of three without a word"
    place.mirrored(other)
    forked = run(sdk.fork_session_via_store(other.claude(), place.id, place.directory)).session_id
    assert [message.content for message in other.session(place.id).messages()] == place.texts()
    assert [_typed(row) for row in run(other.claude().load({**place.key, "session_id": forked})) or []] == [
        *prompts, None]  # fmt: skip


def test_2_messages_that_a_compaction_preserved_are_there(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("long ago")
    kept = place.draft.user("kept")
    place.draft.compaction(kept=[kept])
    place.draft.user("new")
    place.write()
    place.mirrored(other)
    theirs = run(sdk.get_session_messages_from_store(other.claude(), place.id, place.directory))
    ours = [uuid for message in other.session(place.id).messages() for uuid in message.uuids]
    assert kept not in [message.uuid for message in theirs]
    assert kept in ours


def test_3_a_byte_that_is_no_utf_8_stops_nobody(place: Place, sdk: Any) -> None:
    place.draft.user("caf?")
    place.draft.assistant("yes")
    place.write(place.draft.to_bytes().replace(b"caf?", b"caf\xe9"))
    with pytest.raises(UnicodeDecodeError):
        sdk.get_session_messages(place.id, place.directory)
    assert len(place.texts()) == 2
    theirs = run(sdk.get_session_messages_from_store(place.store.claude(), place.id, place.directory))
    assert [message.message["content"] for message in theirs][:1] == ["caf\ufffd"]


def test_4_a_tag_after_a_torn_line_stands_on_a_line_of_its_own(place: Place, sdk: Any) -> None:
    place.draft.user("one")
    torn = place.draft.to_bytes() + b'{"type":"user","uuid":"'
    place.write(torn)
    sdk.tag_session(place.id, "lost", place.directory)
    assert sdk.get_session_info(place.id, place.directory).tag is None
    place.write(torn)
    _make_still(place.file)
    run(sdk.tag_session_via_store(place.store.claude(), place.id, "kept", place.directory))
    assert sdk.get_session_info(place.id, place.directory).tag == "kept"
    assert [info.tag for info in place.store.sessions()] == ["kept"]


def test_5_the_input_of_a_tool_names_no_session(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("the prompt")
    place.draft.tool_use("Bash", {"customTitle": "EVIL", "summary": "EVIL", "aiTitle": "EVIL", "lastPrompt": "EVIL"})
    place.write()
    assert sdk.get_session_info(place.id, place.directory).summary == "EVIL"
    place.mirrored(other)
    (info,) = run(sdk.list_sessions_from_store(other.claude(), place.directory))
    assert info.summary == "the prompt"
    assert [each.title for each in place.store.sessions()] == ["the prompt"]


def test_6_a_session_that_begins_with_a_long_prompt_is_in_the_list(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("word " * 30_000)
    place.write()
    assert sdk.list_sessions(place.directory) == []
    place.mirrored(other)
    (info,) = run(sdk.list_sessions_from_store(other.claude(), place.directory))
    assert info.summary.startswith("word word")
    assert [each.id for each in place.store.sessions()] == [place.id]


def test_7_a_title_in_the_middle_of_a_long_session_is_found(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("first")
    place.draft.assistant("x" * 100_000)
    place.draft.note("custom-title", customTitle="in the middle")
    place.draft.assistant("y" * 100_000)
    place.write()
    assert sdk.get_session_info(place.id, place.directory).custom_title is None
    place.mirrored(other)
    (info,) = run(sdk.list_sessions_from_store(other.claude(), place.directory))
    assert info.custom_title == "in the middle"
    assert [each.title for each in place.store.sessions()] == ["in the middle"]


def test_8_a_corrupt_line_costs_itself_and_not_the_session(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("one")
    place.draft.assistant("two")
    first, second, _ = place.draft.to_bytes().split(b"\n")
    place.write(b"\n".join([first, b'{"type":"user","me', second, b""]))
    with pytest.raises(json.JSONDecodeError):
        run(sdk.import_session_to_store(place.id, other.claude(), directory=place.directory))
    adapter = place.store.claude()
    assert run(adapter.load(place.key)) == [json.loads(first), json.loads(second)]
    assert "line 2" in adapter.problems[0].reason


def test_9_a_directory_with_an_astral_character_has_the_key_of_the_client(
    sdk: Any, client: Path, config_dir: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "a\U0001f600b"
    directory.mkdir()
    keys = {"ours": ClaudeKeys().key(str(directory)), "the SDK's": sdk.project_key_for_directory(str(directory))}
    assert keys["ours"] != keys["the SDK's"]
    for name, key in keys.items():
        draft = SessionDraft(str(uuid4()), cwd=str(directory))
        draft.user(f"kept under {name} key")
        file = config_dir / "projects" / key / f"{draft.session}.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(draft.to_bytes())
        if name == "ours":
            _make_still(file)
    (sent,) = resume(client, [Case(files={}, session=None, config=config_dir, cwd=directory)], tmp_path)
    said = json.dumps(sent.messages)
    assert "kept under ours key" in said, "the client goes on with this one, although the other is newer"
    assert "kept under the SDK" not in said


def test_10_a_row_that_comes_twice_is_there_once(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("one")
    place.write()
    theirs = sdk.InMemorySessionStore()
    for _ in range(2):
        for store in (theirs, other.claude()):
            run(sdk.import_session_to_store(place.id, store, directory=place.directory))
    assert len(run(theirs.load(place.key)) or []) == 2
    assert len(run(other.claude().load(place.key)) or []) == 1


def test_11_renaming_or_tagging_an_unknown_session_makes_none(place: Place, sdk: Any, other: Store) -> None:
    theirs = sdk.InMemorySessionStore()
    run(sdk.rename_session_via_store(theirs, place.id, "ghost", place.directory))
    assert len(run(sdk.list_sessions_from_store(theirs, place.directory))) == 1
    with pytest.raises(NotFound, match="renamed or tagged"):
        run(sdk.rename_session_via_store(other.claude(), place.id, "ghost", place.directory))
    with pytest.raises(NotFound, match="renamed or tagged"):
        run(sdk.tag_session_via_store(other.claude(), place.id, "ghost", place.directory))
    assert run(sdk.list_sessions_from_store(other.claude(), place.directory)) == []
    assert list(other.sessions()) == []


def test_12_rows_of_progress_in_a_circle_end(place: Place) -> None:
    circle: list[Row] = [
        {"type": "progress", "uuid": "p1", "parentUuid": "p2", "sessionId": place.id},
        {"type": "progress", "uuid": "p2", "parentUuid": "p1", "sessionId": place.id},
    ]
    place.draft.user("one")
    place.draft.rows += circle
    place.draft.at = "p1"
    place.draft.user("two")
    place.write()
    program = "import sys, claude_agent_sdk as sdk; sdk.fork_session(sys.argv[1], sys.argv[2])"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, place.id, place.directory], capture_output=True,
            env={**os.environ, "PYTHONPATH": os.environ["CLEW_AGENT_SDK"]}, timeout=HANGS_SECONDS, check=False,
        )  # fmt: skip
    assert place.texts()
    assert [each.id for each in place.store.sessions()] == [place.id]


def test_13_one_summary_is_read_by_the_sdk_of_either_language(place: Place, sdk: Any, other: Store) -> None:
    place.draft.user("the prompt")
    place.write()
    python = sdk.fold_session_summary(None, place.key, run(place.store.claude().load(place.key)))
    assert "firstPrompt" not in python["data"]
    place.mirrored(other)
    (ours,) = run(other.claude().list_session_summaries(place.project))
    assert python["data"].items() <= ours["data"].items()
    assert ours["data"]["firstPrompt"] == ours["data"]["first_prompt"] == "the prompt"


def _typed(row: Any) -> Any:
    return row["message"]["content"] if row["type"] == "user" else None


def _make_still(file: Path) -> None:
    """A torn line that nobody writes any more: its file has not changed for a while."""
    past = file.stat().st_mtime - 3600
    os.utime(file, (past, past))
