"""A fork by copy is the client's own fork, row by row, and the client resumes, continues, forks and rewinds on it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.session import Session
from odd_files import generated
from odd_files.answers import clients, plain
from odd_files.rows import SESSION
from real_client import PROBE, Case, conversation, project_folder, resume
from test_appending import Place, assistant, turns, user

pytestmark = pytest.mark.compat

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
CHECKPOINTS = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}
# The client answers the open call with rows of its own before it forks.
OPEN_CALL = "15_interrupted/config.killed"
# Whole answers of the model everywhere: the client drops rows from its fork that it cannot send.
SEEDS = (25, 29, 37)
OF_THE_RUN = frozenset({"mode", "atis-latch", "tools-used", "queue-operation", "last-prompt", "clew-fork"})
"""Beside the conversation: what the client says of its own run, and the row that is ours."""


@pytest.fixture
def place(client: Path, tmp_path: Path) -> Place:
    return Place(client, tmp_path)


def corpus() -> Iterator[tuple[str, str, Path]]:
    """Name, session and log of every session of the corpus."""
    golden: list[dict[str, Any]] = json.loads((CORPUS / "golden.json").read_text())
    # Eight sessions that differ in nothing but the name of their directory stand for one.
    alike = [entry for entry in golden if "20_paths" in entry["file"]]
    for entry in (entry for entry in golden if entry not in alike[1:]):
        yield f"{entry['config']} {entry['session'][:8]}", entry["session"], CORPUS / entry["file"]


class Twin:
    """A session in a config directory of its own, with what lies beside it, and a backup for every name in its rows."""

    def __init__(self, root: Path, name: str, session: str, content: bytes, beside: Path | None = None) -> None:
        self.name, self.session = name, session
        self.config, self.work = root / "config", root / "work"
        self.work.mkdir(parents=True)
        folder = self.config / "projects" / project_folder(self.work)
        folder.mkdir(parents=True)
        (folder / f"{session}.jsonl").write_bytes(content)
        if beside is not None and beside.is_dir():
            shutil.copytree(beside, folder / session)
        for line in content.splitlines():
            if b'"backupFileName":"' in line:
                for backup in backups_in(json.loads(line)):
                    path = self.config / "file-history" / session / backup
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(backup)

    def open(self) -> Session:
        return clew.open(str(self.config)).session(self.session)

    def case(self, session: str, *arguments: str) -> Case:
        return Case(
            files={}, session=session, arguments=arguments, config=self.config, cwd=self.work, environment=CHECKPOINTS
        )

    def linked(self, session: str) -> set[str]:
        """The backups of a session that are the very files of the first one."""
        folders = self.config / "file-history"
        theirs = {path.name: path for path in (folders / self.session).glob("*")}
        ours = (folders / session).glob("*")
        return {path.name for path in ours if path.name in theirs and path.samefile(theirs[path.name])}


def backups_in(row: dict[str, Any]) -> set[str]:
    states = row.get("snapshot", {}).get("trackedFileBackups", {}).values()
    names = [state.get("backupFileName") for state in [*states, row.get("backup", {})]]
    return {name for name in names if isinstance(name, str)}


def twins(root: Path) -> list[Twin]:
    found = [
        Twin(root / str(number), name, session, log.read_bytes(), log.with_suffix(""))
        for number, (name, session, log) in enumerate(corpus())
    ]
    return found + [Twin(root / f"seed{seed}", f"seed {seed}", SESSION, generated.session(seed)) for seed in SEEDS]


def until_probe(content: bytes) -> list[dict[str, Any]]:
    """The rows that a fork of the client began with."""
    rows: list[dict[str, Any]] = []
    for line in content.splitlines():
        row = json.loads(line)
        if row.get("type") == "user" and PROBE in json.dumps(row.get("message")):
            break
        rows.append(row)
    return rows


def facts(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Ids, order and links; states of files; and what the session is called."""
    return {
        "links": [(row["uuid"], row["parentUuid"]) for row in rows if "parentUuid" in row],
        "said": [(row["type"], (row.get("message") or {}).get("content")) for row in rows if "parentUuid" in row],
        "states": [row for row in rows if row["type"] == "file-history-snapshot"],
        "names": [
            {key: value for key, value in row.items() if key != "sessionId"}
            for row in rows
            if "parentUuid" not in row and row["type"] not in OF_THE_RUN | {"file-history-snapshot"}
        ],
    }


def test_a_fork_is_that_of_the_client_row_by_row(client: Path, tmp_path: Path) -> None:
    found = [twin for twin in twins(tmp_path) if not twin.name.startswith(OPEN_CALL)]
    sources = [Path(twin.open().where).read_bytes() for twin in found]
    answers = resume(client, [twin.case(twin.session, "--fork-session") for twin in found], tmp_path)
    compared = states = 0
    for twin, source, sent in zip(found, sources, answers, strict=True):
        assert sent.exit_code == 0, (twin.name, sent.stderr)
        (log,) = (name for name in sent.appended if name.endswith(".jsonl"))
        theirs = until_probe((twin.config / log).read_bytes())
        fork = twin.open().fork()
        ours = [dict(record.body()) for record in fork.records()]
        assert facts(ours) == facts(theirs), twin.name
        assert {row["sessionId"] for row in ours if "sessionId" in row} == {fork.id}
        assert twin.linked(fork.id) == twin.linked(Path(log).stem), twin.name
        assert Path(twin.open().where).read_bytes() == source, twin.name
        compared += len(facts(ours)["links"])
        states += len(facts(ours)["states"])
    assert compared > 500
    assert states > 10


def test_a_fork_at_an_earlier_row_is_that_of_the_client_too(client: Path, tmp_path: Path) -> None:
    """Also with the states of files behind that row, which the client takes along and does not look at any more."""
    found = [twin for twin in twins(tmp_path) if not twin.name.startswith((OPEN_CALL, "seed"))]
    points = []
    for twin in found:
        ends = [message.uuids[-1] for message in twin.open().messages() if message.role == "assistant"]
        points.append(ends[len(ends) // 2 - 1])
    cases = [
        twin.case(twin.session, "--resume-session-at", point, "--fork-session")
        for twin, point in zip(found, points, strict=True)
    ]
    behind = 0
    for twin, point, sent in zip(found, points, resume(client, cases, tmp_path), strict=True):
        assert sent.exit_code == 0, (twin.name, sent.stderr)
        (log,) = (name for name in sent.appended if name.endswith(".jsonl") and Path(name).stem != twin.session)
        theirs = facts(until_probe((twin.config / log).read_bytes()))
        fork = twin.open().fork(point)
        ours = facts([dict(record.body()) for record in fork.records()])
        # An open call at the end is answered first by the client.
        count = len(ours["links"])
        assert ours == {**theirs, "links": theirs["links"][:count], "said": theirs["said"][:count]}, twin.name
        assert twin.linked(fork.id) == twin.linked(Path(log).stem), twin.name
        prompts = {uuid for uuid, _ in ours["links"]}
        behind += sum(state["messageId"] not in prompts for state in ours["states"])
    assert behind > 5


@pytest.mark.parametrize("how", ["same ids", "new ids", "at a point"])
def test_the_client_goes_on_in_a_fork_and_forks_it_again(client: Path, tmp_path: Path, how: str) -> None:
    found = twins(tmp_path)
    cases, expected = [], []
    for twin in found:
        parent = twin.open()
        at = parent.messages()[len(parent.messages()) // 2].uuids[0] if how == "at a point" else None
        fork = parent.fork(at, new_ids=how == "new ids")
        told = plain([{"role": m.role, "content": m.content} for m in fork.messages()])
        assert told == plain([{"role": m.role, "content": m.content} for m in parent.messages(at)]), twin.name
        cases += [twin.case(fork.id, "--fork-session"), twin.case(fork.id)]
        expected += [(twin.name, told, Path(fork.where).read_bytes())] * 2
    # A fork first, which leaves ours as it is, and then a turn in ours.
    answers = [*resume(client, cases[::2], tmp_path), *resume(client, cases[1::2], tmp_path)]
    for (name, told, content), sent in zip([*expected[::2], *expected[1::2]], answers, strict=True):
        assert sent.exit_code == 0, (name, sent.stderr)
        said = clients(conversation(sent.messages), content)
        if not name.startswith(OPEN_CALL):
            assert said == told, name


def test_the_client_continues_the_newest_fork(place: Place) -> None:
    session = place.create()
    turns(session, ["one", "two"])
    fork = session.fork("turn:1", title="the other way")
    told = plain([{"role": m.role, "content": m.content} for m in fork.messages()])
    sent = place.ask(None)
    assert plain(conversation(sent.messages) or []) == told
    assert [Path(grown).name for grown in sent.appended] == [f"{fork.id}.jsonl"]
    place.agrees(fork, asked="the other way")


def test_a_fork_of_a_fork_that_was_gone_on_with(place: Place) -> None:
    session = place.create()
    turns(session, ["one", "two"])
    fork = session.fork("turn:1")
    fork.append_many([user("otherwise"), assistant("so be it")])
    place.agrees(fork)
    place.agrees(place.store.session(fork.id).fork(new_ids=True))
    place.agrees(session)


def test_the_client_reads_the_first_row_of_a_fork_whose_parent_began_with_a_mark(place: Place) -> None:
    session = place.create()
    turns(session, ["one", "two"])
    log = Path(session.where)
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes())
    session = place.store.session(session.id)
    place.agrees(session.fork())
    place.agrees(session.fork(new_ids=True))
    place.agrees(session)


@pytest.mark.parametrize("new_ids", [False, True], ids=["same ids", "new ids"])
def test_the_client_rewinds_files_on_a_fork(place: Place, new_ids: bool) -> None:
    session = place.create()
    (prompt,) = session.append(user("edit it")).uuids
    backup = "0123456789abcdef@v1"
    state: dict[str, Any] = {"messageId": prompt, "timestamp": "2026-11-18T10:00:00.000Z", "trackedFileBackups": {}}
    session.append({"type": "file-history-snapshot", "messageId": prompt, "snapshot": state, "isSnapshotUpdate": False})
    session.append(assistant("done"))
    session.append({
        "type": "file-history-delta", "messageId": prompt, "snapshotMessageId": prompt, "trackingPath": "f.txt",
        "backup": {"backupFileName": backup, "version": 1, "backupTime": "2026-11-18T10:00:00.000Z",
                   "realParentDir": str(place.work)}, "timestamp": "2026-11-18T10:00:01.000Z",
    })  # fmt: skip
    kept = place.config / "file-history" / session.id / backup
    kept.parent.mkdir(parents=True)
    kept.write_text("before")
    os.utime(kept, (1_000_000_000, 1_000_000_000))
    (place.work / "f.txt").write_text("after, and longer")
    fork = session.fork(new_ids=new_ids)
    target = fork.messages()[0].uuids[0]
    case = Case(
        files={}, session=fork.id, prompt="", arguments=("--rewind-files", target), config=place.config,
        cwd=place.work, environment=CHECKPOINTS,
    )  # fmt: skip
    (sent,) = resume(place.client, [case], place.root)
    assert sent.exit_code == 0, sent.stderr + sent.stdout
    assert (place.work / "f.txt").read_text() == "before"
