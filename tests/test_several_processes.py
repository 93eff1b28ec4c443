"""Processes that truncate, undo, fork and append to one session at once: every result is whole, and nothing is lost.

Each process writes down what it was answered; afterwards the log is read row by row and compared with that.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from clew import ClewError, Conflict, Record, Session, Store, UsageError
from clew.defaults import open as open_store
from clew.operations.operation import State
from clew.operations.truncate import Plan
from clew.testing.forks import forked, in_processes
from clew.transcript.head import find_head
from clew.transcript.links import links_of
from clew.transcript.tree import CHAIN_TYPES, Tree

Told = list[dict[str, Any]]
Act = Callable[[Store, str, random.Random], dict[str, Any]]
KINDS = ("claude", "sqlite")
BUSY = {"Busy", "Conflict", "NotFound", "UsageError"}
"""What a call may be refused with while others are at it. A refusal must not have done anything."""


class Scene:
    """A store with one session, and a folder for what the processes write down."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.url = f"{kind}:{folder / 'store'}"
        (folder / "told").mkdir()
        with self.open() as store:
            session = store.create(folder)
            for number in range(4):
                session.append_many(turn(f"first {number}"))
            self.id = session.id
            self.first = [row.uuid or "" for row in session.chain().records]

    def open(self) -> Store:
        return open_store(self.url)

    def told(self) -> Told:
        return [json.loads(line) for file in (self.folder / "told").iterdir() for line in file.read_text().splitlines()]

    def worker(self, act: Act, seed: str, times: int) -> None:
        dice = random.Random(seed)
        with self.open() as store, (self.folder / "told" / seed).open("w") as told:
            for _ in range(times):
                try:
                    answer = act(store, self.id, dice)
                except ClewError as error:
                    if type(error).__name__ not in BUSY:
                        raise
                    answer = {"did": "refused", "why": type(error).__name__}
                told.write(json.dumps(answer) + "\n")


def turn(name: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": name}, {"role": "assistant", "content": f"answer to {name}"}]


def appends(store: Store, name: str, dice: random.Random) -> dict[str, Any]:
    written = store.session(name).append_many(turn(f"more {dice.random()}"))
    return {"did": "append", "uuids": written.uuids}


def truncates(store: Store, name: str, dice: random.Random) -> dict[str, Any]:
    session = store.session(name)
    rows = [row.uuid for row in session.tree.records.values()]
    at = dice.choice(["turn:-2", "turn:1", dice.choice(rows) or ""])
    done = session.truncate(at)
    return {"did": "truncate", "operation": done.operation, "head": done.head}


def forks(store: Store, name: str, dice: random.Random) -> dict[str, Any]:
    session = store.session(name)
    rows = [row.uuid or "" for row in session.tree.records.values()]
    at = dice.choice([None, dice.choice(rows)])
    return {"did": "fork", "at": at, "session": session.fork(at).id}


def undoes(store: Store, *_: object) -> dict[str, Any]:
    return {"did": "undo", "operation": store.undo().id}


def as_the_client(scene: Scene, seed: str, times: int) -> None:
    """Appends as the client does: its own head, one write in append mode, no lock, a head record after each turn."""
    with scene.open() as store:
        path, head = Path(store.session(scene.id).where), scene.first[-1]
    with (scene.folder / "told" / seed).open("w") as told:
        for number in range(times):
            prompt, answer = str(uuid4()), str(uuid4())
            common = {
                "isSidechain": False,
                "sessionId": scene.id,
                "timestamp": f"2099-01-01T00:00:{number % 60:02d}.000Z",
            }
            rows = [
                {"parentUuid": head, "type": "user", "uuid": prompt, **common,
                 "message": {"role": "user", "content": f"the client {number}"}},
                {"parentUuid": prompt, "type": "assistant", "uuid": answer, **common,
                 "message": {"id": answer, "role": "assistant", "content": [{"type": "text", "text": "yes"}]}},
                {"type": "last-prompt", "lastPrompt": "x", "leafUuid": answer, "sessionId": scene.id},
            ]  # fmt: skip
            with path.open("ab", buffering=0) as file:
                file.write(b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows))
            told.write(json.dumps({"did": "client", "uuids": [prompt, answer]}) + "\n")
            head = answer


def rows_of(session: Session) -> list[Record]:
    assert session.malformed == ()
    return list(session.records())


def assert_whole(scene: Scene, *, is_alone: bool) -> Counter[str]:
    """Nothing is lost, each append hangs on a head that was, each head record was written on purpose.

    `is_alone` says that no other program wrote, so that an append hangs on the head of the very moment.
    """
    told = scene.told()
    with scene.open() as store:
        session = store.session(scene.id)
        rows = rows_of(session)
        uuids = Counter(row.uuid for row in rows if row.uuid)
        assert set(uuids.values()) == {1}
        said = [uuid for answer in told for uuid in answer.get("uuids", ())]
        assert set(uuids) == {*scene.first, *said}
        assert len(said) == len(set(said))
        ours = {answer["uuids"][0] for answer in told if answer["did"] == "append"}
        heads: set[str | None] = set()
        tree = Tree()
        for row in rows:
            if row.uuid in ours or is_explicit(row) or not is_alone:
                heads.add(head := find_head(tree, links_of(tree)).uuid)
                if row.uuid in ours:
                    assert row.parent_uuid in ({head} if is_alone else heads), row.uuid
                elif is_explicit(row):
                    assert row.leaf_uuid in tree.records
            tree.add([row])
            heads.add(find_head(tree, links_of(tree)).uuid)
        assert_operations(store, rows, told, is_alone=is_alone)
        for answer in told:
            if answer["did"] == "fork":
                assert_fork(store.session(answer["session"]), tree, heads if answer["at"] is None else {answer["at"]})
        assert session.head == find_head(tree, links_of(tree))
        chain = session.chain().records
        assert chain[0].uuid == scene.first[0]
        assert all(one.uuid == two.parent_uuid for one, two in pairwise(chain))
    return Counter(answer["did"] for answer in told)


def is_explicit(row: Record) -> bool:
    return row.type == "last-prompt" and row.explicit is True


def assert_operations(store: Store, rows: list[Record], told: Told, *, is_alone: bool) -> None:
    """Every truncation that was answered is an operation, and every explicit head record belongs to one."""
    operations = {each.id: each for each in store.operations()}
    assert store.operation_log.unfinished() == []
    assert store.operation_log.problems == []
    answered = {answer["operation"] for answer in told if answer["did"] == "truncate"} - {None}
    undone = {answer["operation"] for answer in told if answer["did"] == "undo"}
    assert answered <= set(operations)
    assert undone == {name for name in answered if operations[name].state is State.UNDONE}
    assert {each.state for each in operations.values()} <= {State.DONE, State.UNDONE}
    plans = {name: operations[name].plan_as(Plan) for name in answered}
    places: set[int] = set()
    at = {row.line.position: row.raw.rstrip(b"\n") for row in rows if is_explicit(row)}
    for plan in sorted(plans.values(), key=lambda plan: plan.size_bytes):
        # Applied to the log as it was when it was planned: its record stands right behind that, but for what a client
        # without a lock wrote at the same moment.
        place = plan.size_bytes if is_alone else min(each for each in at if each >= plan.size_bytes)
        places.add(place)
        assert at.pop(place) == plan.record().data
    assert set(at.values()) <= {plans[name].record_back().data for name in undone}
    for name in undone:
        assert_nothing_between(rows, plans[name].size_bytes, plans[name].record_back().data, places)


def assert_fork(fork: Session, parent: Tree, ends: set[str | None]) -> None:
    """A fork is a whole beginning of a conversation that was: from the root to a head, or to the row that was named."""
    assert fork.malformed == ()
    chain = [row.uuid for row in fork.chain().records]
    assert chain[-1] in ends
    way, at = [], chain[-1]
    while at is not None:
        way.append(at)
        at = parent.parents[at]
    assert chain == way[::-1]


def assert_nothing_between(rows: list[Record], start: int, back: bytes, truncations: set[int]) -> None:
    """An undo cut nothing off: where its head record stands, nothing was said since the truncation.

    Somebody may have truncated to the old head before; then undo found it there, and wrote nothing.
    """
    since = [row for row in rows if row.line.position >= start]
    end = next(at for at, row in enumerate(since) if row.raw.rstrip(b"\n") == back)
    if since[end].line.position not in truncations:
        assert not [row.uuid for row in since[:end] if row.type in CHAIN_TYPES]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_processes_that_truncate_and_append_leave_a_session_in_which_nothing_is_lost(
    tmp_path: Path, kind: str, times: int
) -> None:
    scene = Scene(tmp_path, kind)
    acts: list[Act] = [appends, appends, truncates, truncates]
    in_processes([partial(scene.worker, act, f"process {at}", times) for at, act in enumerate(acts)])
    done = assert_whole(scene, is_alone=True)
    assert done["append"] == 2 * times
    assert done["truncate"] > times


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_a_fork_that_is_made_meanwhile_is_a_whole_beginning_of_what_was_said(
    tmp_path: Path, kind: str, times: int
) -> None:
    scene = Scene(tmp_path, kind)
    acts: list[Act] = [appends, truncates, forks, forks]
    in_processes([partial(scene.worker, act, f"process {at}", times) for at, act in enumerate(acts)])
    done = assert_whole(scene, is_alone=True)
    assert done["fork"] == 2 * times
    assert done["append"] == times


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_undo_never_cuts_off_what_was_appended_meanwhile(tmp_path: Path, kind: str, times: int) -> None:
    scene = Scene(tmp_path, kind)
    acts: list[Act] = [appends, truncates, undoes, undoes]
    in_processes([partial(scene.worker, act, f"process {at}", times) for at, act in enumerate(acts)])
    done = assert_whole(scene, is_alone=True)
    assert done["append"] == times


@pytest.mark.parametrize("times", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_nothing_is_lost_while_a_client_writes_the_same_file(tmp_path: Path, times: int) -> None:
    scene = Scene(tmp_path, "claude")
    acts: list[Act] = [appends, truncates, undoes, forks]
    workers = [partial(scene.worker, act, f"process {at}", times) for at, act in enumerate(acts)]
    in_processes([*workers, partial(as_the_client, scene, "client", times * 2)])
    done = assert_whole(scene, is_alone=False)
    assert done["client"] == times * 2
    assert done["append"] > 0


def test_this_process_sees_what_the_others_did(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "claude")
    with scene.open() as store:
        session = store.session(scene.id)
        assert len(session.messages()) == 8
        in_processes([partial(scene.worker, truncates, "one", 1)])
        session.refresh()
        assert session.head.uuid == scene.told()[0]["head"]


def marks(store: Store, name: str, dice: random.Random) -> dict[str, Any]:
    label = f"label-{dice.randrange(50)}"
    store.session(name).label(label)
    store.session(name).set(tag=f"tag {dice.random()}", archived=dice.random() < 0.5)
    return {"did": "label", "label": label}


def finishes(store: Store, *_: object) -> dict[str, Any]:
    for operation in store.operation_log.unfinished():
        store.operation_log.finish(operation.id)
    return {"did": "finish"}


def until_killed(scene: Scene, seed: str, acts: list[Act], begun: int) -> None:
    """One act after the other. A byte goes into the pipe before each, so that the end comes at any moment of it."""
    dice = random.Random(seed)
    with scene.open() as store, (scene.folder / "told" / seed).open("w", buffering=1) as told:
        while os.write(begun, b"."):
            try:
                told.write(json.dumps(dice.choice(acts)(store, scene.id, dice)) + "\n")
            except ClewError as error:
                if type(error).__name__ not in BUSY:
                    raise


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_are_killed_lose_nothing_that_was_answered_and_block_nobody(tmp_path: Path, kind: str) -> None:
    scene, dice = Scene(tmp_path, kind), random.Random(kind)
    acts: list[Act] = [appends, appends, truncates, forks, undoes, marks, finishes]
    if kind == "sqlite":
        acts.append(lambda store, name, _: {"did": "attach", "session": store.session(name).fork(kind="attached").id})
    for number in range(15):
        pipes = [os.pipe() for _ in range(3)]
        calls = [partial(until_killed, scene, f"{number} {at}", acts, pipe[1]) for at, pipe in enumerate(pipes)]
        children = [forked(call) for call in calls]
        for child, (reading, writing) in zip(children, pipes, strict=True):
            os.close(writing)
            for _ in range(dice.randrange(2, 12)):
                assert os.read(reading, 1), "it failed, and said why above"
            os.kill(child, signal.SIGKILL)
            assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
            os.close(reading)
    assert_usable(scene)


def assert_usable(scene: Scene) -> None:
    """All that was answered is there, what is unfinished has a way on, and the session takes whatever comes next."""
    told = scene.told()
    assert {"append", "truncate", "fork", "undo", "label"} <= {answer["did"] for answer in told}
    with scene.open() as store:
        for operation in store.operation_log.unfinished():
            try:
                store.operation_log.finish(operation.id)
            except Conflict:
                with suppress(Conflict, UsageError):
                    store.undo(operation.id)
        assert store.operation_log.unfinished() == []
        assert store.operation_log.problems == []
        session = store.session(scene.id)
        uuids = Counter(row.uuid for row in session.records() if row.uuid)
        assert set(uuids.values()) == {1}
        assert {*scene.first, *(uuid for answer in told for uuid in answer.get("uuids", ()))} <= set(uuids)
        assert {answer["label"] for answer in told if answer["did"] == "label"} <= set(session.info().labels)
        assert {answer["operation"] for answer in told if answer["did"] == "truncate"} - {None} <= {
            each.id for each in store.operations()
        }
        for answer in told:
            if "session" in answer:
                fork = store.session(answer["session"])
                chain = fork.chain().records
                assert fork.malformed == ()
                assert {row.uuid for row in chain} <= set(uuids)
                assert [row.parent_uuid for row in chain] == [None, *(row.uuid for row in chain[:-1])]
        session.append_many(turn("at the end"))
        assert session.truncate("turn:1").is_moved
        assert session.fork().messages() == session.messages()
        assert [info.id for info in store.sessions()]
        assert store.problems == ()
