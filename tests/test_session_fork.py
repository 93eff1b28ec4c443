"""Session.fork by copy: what goes along, what stays, and what a crash leaves; the same on every engine."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from clew import Store
from clew.engines.contract import BlobKey, Engine, LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.errors import ClewError, Conflict, NotFound, UsageError
from clew.session import Session
from clew.testing.faults import Crash, Fault, FaultKind, FaultyFileSystem, steps_of
from contents import contents, fill, set_live
from session_files import PROJECT, Row, assistant, in_bytes, session_id, two_turns, user
from stores import ENGINES, ticking

ONE, NEW = session_id(1), session_id(99)
KEY = LogKey(PROJECT, ONE)
KINDS: tuple[FaultKind, ...] = ("crash", "torn", "fail", "lost")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return ENGINES[request.param](tmp_path)


def session(engine: Engine, *rows: Row, raw: bytes | None = None) -> Session:
    """A session of these rows."""
    data = in_bytes(*(row | {"sessionId": ONE} for row in rows)) if raw is None else raw
    engine.extend(KEY, [data], start=0)
    return Store(engine, clock=ticking()).session_on(engine, KEY)


def rows(session: Session) -> list[Row]:
    return [dict(record.body()) for record in session.records()]


def texts(session: Session) -> list[object]:
    return [message.content[0]["text"] for message in session.messages()]


def test_a_fork_has_the_rows_of_the_chain_and_the_parent_stays_as_it_was(engine: Engine) -> None:
    parent = session(engine, *two_turns())
    before = contents(engine)
    fork = parent.fork(id=NEW)
    assert {key: value for key, value in contents(engine).items() if key in before} == before
    assert rows(fork) == [
        {"type": "clew-fork", "kind": "copy", "parentSessionId": ONE, "parentProject": PROJECT, "at": "a4",
         "forkedAt": rows(fork)[0]["forkedAt"], "sessionId": NEW},
        *({**row, "sessionId": NEW} for row in two_turns()),
    ]  # fmt: skip
    assert (fork.key, fork.messages()) == (LogKey(PROJECT, NEW), parent.messages())
    assert fork.forked is not None
    assert (fork.forked.records, fork.forked.at, fork.forked.left_out) == (5, "a4", 0)


def test_a_fork_goes_on_and_its_parent_does_not_see_it(engine: Engine) -> None:
    parent = session(engine, *two_turns())
    fork = parent.fork("a2")
    fork.append({"role": "user", "content": "another way"})
    assert texts(fork) == ["first question", "first answer", "another way"]
    parent.refresh()
    assert texts(parent) == ["first question", "first answer", "second question", "second answer"]


def test_a_point_may_be_named_in_every_way_and_lie_on_another_branch(engine: Engine) -> None:
    branch = [user("u5", "second, otherwise", "a2", 5), assistant("a6", "so be it", "u5", 6)]
    parent = session(engine, *two_turns(), *branch)
    assert texts(parent.fork()) == ["first question", "first answer", "second, otherwise", "so be it"]
    assert texts(parent.fork("turn:1")) == texts(parent.fork("msg:msg_a2")) == ["first question", "first answer"]
    assert texts(parent.fork("time:2026-11-18T10:00:01Z")) == ["first question"]
    dead = parent.fork("a4")
    assert texts(dead) == ["first question", "first answer", "second question", "second answer"]
    assert dead.forked is not None
    assert dead.forked.left_out == 2
    with pytest.raises(NotFound):
        parent.fork("nothing-of-this")


def test_what_cannot_be_forked_says_why(engine: Engine) -> None:
    parent = session(engine, {"type": "mode", "mode": "normal"})
    with pytest.raises(UsageError, match="holds no conversation"):
        parent.fork()
    engine.delete(KEY)
    parent = session(engine, *two_turns())
    with pytest.raises(Conflict, match="there is a session"):
        parent.fork(id=ONE)
    with pytest.raises(UsageError, match="log of a subagent"):
        parent.agent("a1").fork()
    with pytest.raises(UsageError, match="no kind of fork"):
        parent.fork(kind="sideways")
    assert {key.session for key in contents(engine) if isinstance(key, LogKey)} == {ONE}


def test_everything_that_belongs_to_a_session_goes_along(engine: Engine) -> None:
    fill(engine, 1)
    parent = Store(engine, clock=ticking()).session_on(engine, KEY)
    state: Row = {"type": "file-history-snapshot", "messageId": "1u1", "isSnapshotUpdate": False, "snapshot": {
        "messageId": "1u1", "timestamp": "t", "trackedFileBackups": {"f": {"backupFileName": "0123456789abcdef@v1"}},
    }}  # fmt: skip
    data = in_bytes(state)
    engine.extend(KEY, [data], start=parent.stat().size_bytes)
    engine.put(BlobKey(PROJECT, ONE, "backup", "fedcba9876543210@v1"), [b"of no prompt of the chain"])
    fork = parent.fork(id=NEW)
    blobs = {(blob.key.kind, blob.key.name): b"".join(engine.open(blob.key)) for blob in fork.blobs()}
    assert blobs == {
        ("backup", "0123456789abcdef@v1"): b"before",
        ("custom title", "custom-title.json"): b'{"title":"T"}',
        ("meta", "subagents/agent-a1.meta.json"): b"{}",
        ("meta", "subagents/agent-b1.meta.json"): b'{"agentType":"x"}',
        ("sidecar", "notes/empty"): b"",
        ("tool result", "tool-results/t1.txt"): b"\xff\x00 output",
    }
    # Those beside the session go into its folder, since that place belongs to all of the project.
    assert [agent.key.subpath for agent in fork.agents()] == ["subagents/agent-a1", "subagents/agent-b1"]
    assert {row["sessionId"] for agent in fork.agents() for row in rows(agent)} == {NEW}
    assert state in rows(fork)
    if isinstance(engine, FilesEngine):
        history = Path(engine.root) / "file-history"
        name = "0123456789abcdef@v1"
        assert os.path.samefile(history / ONE / name, history / NEW / name)


def test_names_go_along_once_and_notes_that_are_true_of_the_fork_too(engine: Engine) -> None:
    names: list[Row] = [
        {"type": "custom-title", "customTitle": "old", "sessionId": ONE},
        {"type": "agent-name", "agentName": "mine", "sessionId": ONE},
        {"type": "tag", "tag": "t", "sessionId": ONE},
        {"type": "custom-title", "customTitle": "mine", "sessionId": ONE},
        {"type": "last-prompt", "lastPrompt": "x", "leafUuid": "a4", "sessionId": ONE},
        {"type": "cost-state", "totalCostUSD": 1, "sessionId": ONE},
        {"type": "clew-session", "owner": "me", "pinned": True, "exitReason": "done", "sessionId": ONE},
    ]
    parent = session(engine, *two_turns(), *names)
    beside = [row for row in rows(parent.fork(id=NEW)) if "uuid" not in row][1:]
    assert beside == [
        {"type": "clew-session", "owner": "me", "sessionId": NEW},
        {"type": "custom-title", "customTitle": "mine", "sessionId": NEW},
        {"type": "tag", "tag": "t", "sessionId": NEW},
        {"type": "agent-name", "agentName": "mine", "sessionId": NEW},
    ]
    titled = parent.fork(title="the other way")
    assert titled.digest.title == "the other way"
    assert [row["agentName"] for row in rows(titled) if row["type"] == "agent-name"] == ["the other way"]


def test_states_of_files_are_those_of_the_chain_with_later_touches_folded_in(engine: Engine) -> None:
    def backup(version: int) -> Row:
        return {"backupFileName": f"0123456789abcdef@v{version}", "version": version}

    def state(prompt: str, files: Row, *, is_update: bool = False) -> Row:
        inner = {"messageId": prompt, "trackedFileBackups": files, "timestamp": "t"}
        return {
            "type": "file-history-snapshot", "messageId": prompt, "snapshot": inner, "isSnapshotUpdate": is_update,
        }  # fmt: skip

    def touched(prompt: str, path: str, version: int) -> Row:
        return {"type": "file-history-delta", "messageId": "a2", "snapshotMessageId": prompt, "trackingPath": path,
                "backup": backup(version), "timestamp": "d"}  # fmt: skip

    data = in_bytes(
        *two_turns(), state("u3", {"b": backup(2)}), touched("u1", "a", 1), touched("u3", "c", 1),
        state("u3", {"b": backup(3)}, is_update=True), state("elsewhere", {"x": backup(9)}),
    )  # fmt: skip
    parent = session(engine, raw=data)
    fork = parent.fork()
    states = [row for row in rows(fork) if row["type"] == "file-history-snapshot"]
    assert states == [
        {**state("u1", {"a": backup(1)}), "snapshot": {
            "messageId": "u1", "trackedFileBackups": {"a": backup(1)}, "timestamp": "d",
        }},
        state("u3", {"b": backup(3), "c": backup(1)}),
    ]  # fmt: skip
    # As in the client's forks: with those of the prompts behind the point, but not on another branch.
    assert [row for row in rows(parent.fork("a2")) if row["type"] == "file-history-snapshot"] == states
    parent.append_many([{"role": "user", "content": "otherwise"}], parent="a2")
    assert [row for row in rows(parent.fork("a4")) if row["type"] == "file-history-snapshot"] == states
    assert [row for row in rows(parent.fork("a2")) if row["type"] == "file-history-snapshot"] == states[:1]


def test_new_ids_are_new_everywhere_and_name_the_row_they_were(engine: Engine) -> None:
    fill(engine, 1)
    parent = Store(engine, clock=ticking()).session_on(engine, KEY)
    fork = parent.fork(id=NEW, new_ids=True)
    said = [row for row in rows(fork) if row["type"] in ("user", "assistant")]
    assert [row["forkedFrom"] for row in said] == [
        {"sessionId": ONE, "messageUuid": uuid} for uuid in ("1u1", "1a2", "1u3", "1a4")
    ]
    uuids = [row["uuid"] for row in said]
    assert [row["parentUuid"] for row in said] == [None, *uuids[:-1]]
    assert len({*uuids, *parent.tree.records}) == 8
    (agent,) = (rows(agent) for agent in fork.agents()[:1])
    assert agent[0]["uuid"] not in ("x", None)
    assert texts(fork) == texts(parent)
    other = parent.fork(new_ids=True)
    assert not {*other.tree.records} & {*fork.tree.records}


def test_texts_name_the_copies_only_when_asked(engine: Engine) -> None:
    path = f"/c/projects/{PROJECT}/{ONE}/tool-results/t1.txt and /x/{ONE}/tool-results/y"
    parent = session(engine, user("u1", path, None, 1), assistant("a2", "read", "u1", 2))
    assert texts(parent.fork())[0] == path
    moved = path.replace(f"{PROJECT}/{ONE}/", f"{PROJECT}/{NEW}/")
    assert texts(parent.fork(id=NEW, rewrite_paths=True))[0] == moved


def test_odd_bytes_survive_and_lines_that_are_no_records_are_named(engine: Engine) -> None:
    lines = [json.dumps(row | {"sessionId": ONE}, separators=(",", ":")).encode() for row in two_turns()]
    lines[0] = lines[0].replace(b"first question", b"\\ud800\\u0000" + "\u2028\u0085".encode() + b"x" * 30_000_000)
    lines[1] = lines[1].replace(b'"isSidechain"', b'"n":' + b"9" * 500 + b',"isSidechain"')
    progress = b'{"type":"progress","uuid":"p1","parentUuid":"p2"}\n{"type":"progress","uuid":"p2","parentUuid":"p1"}'
    lines[2:2] = [progress, b"[1]", b"", b'{"torn":"', b'{"type":"x"} {"type":"x"}']
    parent = session(engine, raw=b"\n".join(lines))
    fork = parent.fork()
    assert fork.messages() == parent.messages()
    assert fork.forked is not None
    assert fork.forked.malformed == (5, 7, 8)
    copied = [record.raw.replace(fork.id.encode(), ONE.encode()).strip() for record in fork.records()][1:]
    assert copied == [line for line in lines if line.startswith(b'{"parentUuid"')]


@pytest.mark.parametrize("new_ids", [False, True], ids=["same ids", "new ids"])
@pytest.mark.parametrize("first", ["user", "custom-title"])
def test_a_mark_before_the_first_row_is_not_in_the_middle_of_the_fork(
    engine: Engine, first: str, new_ids: bool
) -> None:
    title: Row = {"type": "custom-title", "customTitle": "Marked", "sessionId": ONE}
    said = [row | {"sessionId": ONE} for row in two_turns()]
    data = in_bytes(title, *said) if first == "custom-title" else in_bytes(*said, title)
    fork = session(engine, raw=b"\xef\xbb\xbf" + data).fork(new_ids=new_ids)
    raws = [record.raw for record in fork.records()]
    assert len(raws) == 6
    assert all(raw.startswith(b"{") for raw in raws), "the client reads no row behind a mark in the middle of a log"


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_the_copy_of_an_attached_fork_has_what_it_inherits(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name](tmp_path)
    child = session(engine, *two_turns()).fork("a2", kind="attached")
    child.append_many([{"role": "user", "content": "mine"}, {"role": "assistant", "content": "yours"}])
    wanted = ["first question", "first answer", "mine", "yours"]
    copied = child.fork()
    assert texts(copied) == texts(child) == wanted
    assert texts(copied.fork(new_ids=True)) == wanted


def test_a_live_parent_is_named(tmp_path: Path) -> None:
    engine = ENGINES["files"](tmp_path)
    parent = session(engine, *two_turns())
    set_live(tmp_path / "config", ONE)
    forked = parent.fork().forked
    assert forked is not None
    assert forked.is_live
    assert "running client" in forked.notes[0]


def test_a_parent_that_is_replaced_meanwhile_gives_no_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ENGINES["files"](tmp_path)
    parent = session(engine, *two_turns())
    plain = engine.extend

    def replaced_first(key: LogKey, *arguments: object, **named: object) -> int:
        if key.session == NEW:
            path = Path(parent.where)
            path.with_suffix(".tmp").write_bytes(path.read_bytes())
            path.with_suffix(".tmp").rename(path)
        return plain(key, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "extend", replaced_first)
    with pytest.raises(Conflict, match="replaced by another program"):
        parent.fork(id=NEW)
    assert [stat.key.session for stat in engine.list()] == [ONE]


# Crashes.


def prepared(root: Path) -> Path:
    config = root / "config"
    config.mkdir(parents=True)
    engine = FilesEngine(config, durability="none")
    fill(engine, 1)
    return config


def forking(config: Path) -> Callable[[FileSystem], object]:
    def work(fs: FileSystem) -> object:
        engine = FilesEngine(config, fs=fs)
        return Store(engine, clock=ticking()).session_on(engine, KEY).fork(id=NEW, title="the fork")

    return work


@pytest.mark.slow
def test_a_crash_at_any_step_leaves_a_whole_fork_or_none_and_the_parent_as_it_was(tmp_path: Path) -> None:
    config = prepared(tmp_path / "first")
    steps = len(steps_of(forking(config)))
    assert steps > 20
    wanted = contents(FilesEngine(config))
    for kind in KINDS:
        for step in range(steps):
            place = tmp_path / f"{kind}{step}"
            config = prepared(place)
            before = contents(FilesEngine(config))
            with suppress(Crash, ClewError, OSError):
                forking(config)(FaultyFileSystem(Fault(kind, step)))
            engine = FilesEngine(config)
            now = contents(engine)
            assert {key: value for key, value in now.items() if key.session == ONE} == before, (kind, step)
            found = {stat.key.session for stat in engine.list()}
            if NEW in found:
                assert bytes_of(now) == bytes_of(wanted), (kind, step)
            else:
                assert [info.id for info in Store(engine, clock=ticking()).sessions()] == [ONE]
                forking(config)(OsFileSystem())
                assert bytes_of(contents(engine)) == bytes_of(wanted), (kind, step)
            shutil.rmtree(place)


def bytes_of(found: dict[LogKey | BlobKey, tuple[bytes, int, int]]) -> dict[LogKey | BlobKey, bytes]:
    return {key: value[0] for key, value in found.items() if key.session == NEW}


@pytest.mark.parametrize("title", ["two\nlines", "\x1b[2J", "x" * 201])
def test_a_title_that_cannot_be_set_cannot_be_given_to_a_fork(engine: Engine, title: str) -> None:
    parent = session(engine, *two_turns())
    before = contents(engine)
    with pytest.raises(UsageError, match="the title"):
        parent.fork(title=title)
    assert contents(engine) == before
