"""Attached forks on SQLite: making one, which must not depend on the size of the parent, and reading a deep one.

The baselines are a copy of the parent's bytes to another session of the same file, and the same messages in one log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

from benchmarks.corpus import write_one
from benchmarks.harness import SESSION_ROWS, Bench, Goal, Measured
from clew import Session, Store
from clew.engines.contract import LogKey
from clew.engines.files import FilesEngine
from clew.engines.sqlite import SqliteEngine
from clew.transcript.prompts import is_prompt

BIG_ROWS = 100_000
LEVELS = 50
MESSAGES = 10_000
TEXT = "The cookie is set on another domain, so the browser drops it. " * 10


def measure(bench: Bench) -> Iterator[Measured]:
    """Forks of one large session, then the reading of a deep one."""
    place = bench.place / "attaching"
    place.mkdir()
    share = bench.session_rows / SESSION_ROWS
    store = Store(SqliteEngine(place / "forks.db"), clock=lambda: datetime.now(UTC))
    write_one(place / "config", rows=round(BIG_ROWS * share))
    yield from _made(bench, store, next(FilesEngine(place / "config").list()).key, FilesEngine(place / "config"))
    yield from _resolved(bench, store, max(2, round(MESSAGES * share / LEVELS / 2)))
    store.close()


def _made(bench: Bench, store: Store, key: LogKey, source: FilesEngine) -> Iterator[Measured]:
    stat = source.stat(key)
    size = 0 if stat is None else stat.size_bytes
    store.engine.extend(key, source.read_range(key, position=0, size=size), start=0)
    big = store.session(key.session)
    big.append({"role": "user", "content": "What is appended makes the ids known."})
    prompts = [record.uuid for record in big.chain().records if record.uuid and is_prompt(record)]
    uuid, numbers = prompts[len(prompts) // 2], count()

    def copied() -> None:
        copy = LogKey(key.project, f"copy-{next(numbers)}")
        store.engine.extend(copy, store.engine.read_range(key, position=0, size=size), start=0)
        store.engine.delete(copy)

    taken = bench.seconds(
        row=lambda: store.session(key.session).fork(uuid, kind="attached"),
        head=lambda: store.session(key.session).fork(kind="attached"),
        copied=copied,
    )
    told = f"attached fork of {size / 1e6:.1f} MB, sqlite, durable"
    against = "copy of the bytes"
    yield Measured(f"{told}, at a prompt", taken["row"], taken["copied"], against, Goal(0.005))
    yield Measured(f"{told}, at the head", taken["head"], taken["copied"], against, Goal(0.005))


def _resolved(bench: Bench, store: Store, turns: int) -> Iterator[Measured]:
    """A chain of forks, each with so many turns, and a session that has all of them itself."""
    plain, deep = store.create("/home/user/plain"), store.create("/home/user/deep")
    for level in range(LEVELS):
        deep = deep.fork(kind="attached") if level else deep
        said = [message for turn in range(turns) for message in _turn(level, turn)]
        plain.append_many(said)
        deep.append_many(said)

    def read(session: Session) -> object:
        return store.session(session.id).messages()

    taken = bench.processor_seconds(deep=lambda: read(deep), plain=lambda: read(plain))
    yield Measured(
        f"messages of a fork {LEVELS} deep, {LEVELS * turns * 2:,} messages, sqlite", taken["deep"], taken["plain"],
        "the same in one log", Goal(0.1),
    )  # fmt: skip


def _turn(level: int, turn: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{level}.{turn} {TEXT}"}, {"role": "assistant", "content": TEXT}]
