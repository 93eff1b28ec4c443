"""A model of an engine: a plain dict of lists, and a hypothesis machine that does the same to both and compares.

    TestMyEngine = model_of(lambda place: MyEngine(place)).TestCase

The machine appends, retries, copies, replaces, deletes, sets aside, brings back and opens the store again, in any
order, and after every step looks whether the engine shows what the dict does. What engines differ in is read from
`engine.capabilities`. It needs hypothesis.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clew.engines.contract import TICK_NS, Aside, BlobKey, Engine, Entry, LogKey, Order
from clew.errors import Conflict, NotFound
from clew.testing.conformance_base import LONG_AGO_NS, OTHER, PROJECT, S1, S2, blob, content_of, note, row

SUBPATHS = ("", "subagents/agent-a1", "subagents/workflows/run/agent-b2")
SESSIONS = (LogKey(PROJECT, S1), LogKey(PROJECT, S2), LogKey(OTHER, S1))
LOGS = tuple(LogKey(main.project, main.session, subpath) for main in SESSIONS for subpath in SUBPATHS)
BLOBS = tuple(blob(name, session=main.session, project=main.project) for main in SESSIONS for name in ("one", "two"))
OPERATIONS = ("op-1", "op-2")
ROWS_MAX = 12
"""So few rows there are that many come twice."""


@dataclass
class ModelLog:
    """What a log must hold. `ids` are those of the rows in it, `batches` what was appended under a name."""

    content: bytes = b""
    ids: set[str] = field(default_factory=set)
    batches: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    summary: bytes | None = None
    times: list[int] = field(default_factory=list)
    revisions: list[str] = field(default_factory=list)


@dataclass
class Model:
    """What a store must hold: what shows, and what is set aside by each operation."""

    logs: dict[LogKey, ModelLog] = field(default_factory=dict)
    blobs: dict[BlobKey, bytes] = field(default_factory=dict)
    aside: dict[str, tuple[dict[LogKey, ModelLog], dict[BlobKey, bytes]]] = field(default_factory=dict)


def entries_strategy() -> st.SearchStrategy[list[Entry]]:
    """A few lines: rows that are written once, many of which were there before, and lines without id."""
    one = st.integers(0, ROWS_MAX).map(row) | st.integers(0, 3).map(note)
    return st.lists(one, max_size=5)


class EngineMachine(RuleBasedStateMachine):
    """Does the same to an engine and to the model. `opened` makes an engine in a directory, or opens it again."""

    opened: Callable[[Path], Engine]
    is_kept = True
    """Whether an engine that is opened again in the same directory has what was written there."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="clew-model-"))
        self.engine = type(self).opened(self.place)
        self.model = Model()
        self.batches = 0

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.place)

    @initialize()
    def look_at_nothing(self) -> None:
        """An empty store shows nothing."""
        assert [*self.engine.list()] == []

    # Appending.

    def _append(
        self, key: LogKey, entries: list[Entry], *, batch: str | None, summary: bytes | None, keep_time: bool
    ) -> None:
        log = self.model.logs.get(key)
        done = self.engine.append(key, entries, batch_id=batch, summary=summary, keep_time=keep_time)
        if not entries:
            assert (done.written, done.duplicates) == (0, 0)
            return
        log = log or ModelLog()
        fresh = self._fresh(key, log, entries)
        assert (done.written, done.duplicates) == (len(fresh), len(entries) - len(fresh))
        assert fresh or done.revision == log.revisions[-1]
        self.model.logs[key] = log
        self._add(log, fresh)
        log.summary = summary if summary is not None else log.summary
        if batch is not None:
            log.batches[batch] = tuple(entries)
        self._noted(key, log, has_grown=bool(fresh) and not keep_time, revision=done.revision)

    def _fresh(self, key: LogKey, log: ModelLog, entries: list[Entry]) -> list[Entry]:
        if key.subpath and not self.engine.capabilities.dedupes_sublogs:
            return entries
        known, fresh = set(log.ids), []
        for entry in entries:
            if entry.dedupe_id not in known:
                fresh.append(entry)
            if entry.dedupe_id is not None:
                known.add(entry.dedupe_id)
        return fresh

    def _add(self, log: ModelLog, entries: list[Entry]) -> None:
        log.content += b"".join(entry.data + b"\n" for entry in entries)
        log.ids |= {entry.dedupe_id for entry in entries if entry.dedupe_id is not None}

    def _noted(self, key: LogKey, log: ModelLog, *, has_grown: bool, revision: str | None = None) -> None:
        """Remembers what the engine says of a log now; times grow where the model says so, and revisions are new."""
        stat = self.engine.stat(key)
        assert stat is not None
        assert revision is None or stat.revision == revision
        assert not has_grown or not log.times or stat.modified_ns >= log.times[-1] + TICK_NS
        if not log.revisions or stat.revision != log.revisions[-1]:
            assert stat.revision not in log.revisions
        log.times.append(stat.modified_ns)
        log.revisions.append(stat.revision)

    @rule(
        key=st.sampled_from(LOGS),
        entries=entries_strategy(),
        summary=st.none() | st.binary(max_size=4),
        has_batch=st.booleans(),
        keep_time=st.booleans(),
    )
    def append(
        self, key: LogKey, entries: list[Entry], summary: bytes | None, has_batch: bool, keep_time: bool
    ) -> None:
        """Some lines at the end of a log."""
        self.batches += 1
        batch = f"batch-{self.batches}" if has_batch else None
        keep_time = keep_time and key in self.model.logs
        self._append(key, entries, batch=batch, summary=summary, keep_time=keep_time)

    @precondition(lambda self: any(log.batches for log in self.model.logs.values()))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """A batch again, as a caller without an answer does: nothing is written."""
        known = [(key, batch) for key, log in self.model.logs.items() for batch in log.batches]
        key, batch = data.draw(st.sampled_from(known))
        entries = self.model.logs[key].batches[batch]
        done = self.engine.append(key, entries, batch_id=batch, expect="stale")
        assert (done.written, done.duplicates) == (0, len(entries))

    @rule(key=st.sampled_from(LOGS), entries=entries_strategy().filter(bool), is_right=st.booleans())
    def append_expecting(self, key: LogKey, entries: list[Entry], is_right: bool) -> None:
        """Lines for a log that must be at a revision."""
        log = self.model.logs.get(key)
        now = log.revisions[-1] if log is not None else ""
        if not is_right:
            wrong = log.revisions[0] if log is not None and log.revisions[0] != now else "never-was"
            try:
                self.engine.append(key, entries, expect=wrong)
            except Conflict:
                return
            raise AssertionError(f"the log was not at {wrong}, and it was not said")
        stat = self.engine.stat(key)
        assert (stat.revision if stat is not None else "") == now
        done = self.engine.append(key, entries, expect=now)
        log = log or ModelLog()
        fresh = self._fresh(key, log, entries)
        assert done.written == len(fresh)
        self.model.logs[key] = log
        self._add(log, fresh)
        self._noted(key, log, has_grown=bool(fresh))

    # Bytes.

    @rule(key=st.sampled_from(LOGS), entries=entries_strategy(), has_time=st.booleans())
    def extend(self, key: LogKey, entries: list[Entry], has_time: bool) -> None:
        """Raw bytes at the end of a log."""
        log = self.model.logs.get(key) or ModelLog()
        raw = b"".join(entry.data + b"\n" for entry in entries)
        time = LONG_AGO_NS if has_time else None
        chunks = [raw[at : at + 50] for at in range(0, len(raw), 50)]
        size = self.engine.extend(key, chunks, start=len(log.content), modified_ns=time)
        assert size == len(log.content) + len(raw)
        if not raw:
            if key in self.model.logs and has_time:
                # No bytes came, and still it says when the log was changed last: the end of an interrupted copy.
                log.revisions.clear()
                log.times.clear()
                self._noted(key, log, has_grown=False)
                assert log.times == [LONG_AGO_NS]
            return
        self.model.logs[key] = log
        self._add(log, entries)
        log.summary = None
        log.times.clear()
        # A batch may have been the end of the log, and counts no more than its lines do.
        self._noted(key, log, has_grown=False)

    @precondition(lambda self: self.model.logs)
    @rule(data=st.data(), entries=entries_strategy())
    def replace(self, data: st.DataObject, entries: list[Entry]) -> None:
        """Other bytes in the place of a log."""
        key = data.draw(st.sampled_from(sorted(self.model.logs)))
        before = self.model.logs[key]
        raw = b"".join(entry.data + b"\n" for entry in entries)
        now = self.engine.replace(key, [raw], expect=before.revisions[-1])
        assert now.partition("-")[0] != before.revisions[-1].partition("-")[0]
        log = self.model.logs[key] = ModelLog()
        self._add(log, entries)
        self._noted(key, log, has_grown=False, revision=now)

    @rule(key=st.sampled_from(LOGS))
    def delete(self, key: LogKey) -> None:
        """A log for good; a main log takes its sublogs along."""
        gone = [each for each in self.model.logs if key in (each, each.main)]
        assert self.engine.delete(key) is bool(gone)
        for each in gone:
            del self.model.logs[each]

    # Blobs.

    @rule(key=st.sampled_from(BLOBS), content=st.binary(max_size=20))
    def put(self, key: BlobKey, content: bytes) -> None:
        """Content under a name."""
        self.engine.put(key, [content])
        self.model.blobs[key] = content

    @rule(key=st.sampled_from(BLOBS))
    def delete_blob(self, key: BlobKey) -> None:
        """A name without its content."""
        assert self.engine.delete_blob(key) is (self.model.blobs.pop(key, None) is not None)

    # Setting aside.

    @rule(main=st.sampled_from(SESSIONS), operation=st.sampled_from(OPERATIONS))
    def set_aside(self, main: LogKey, operation: str) -> None:
        """A session out of sight, or a conflict with one of the same name that is kept."""
        logs = {key: log for key, log in self.model.logs.items() if key.main == main}
        blobs = {key: each for key, each in self.model.blobs.items() if LogKey(key.project, key.session) == main}
        kept_logs, kept_blobs = self.model.aside.get(operation, ({}, {}))
        if any(key.main == main for key in kept_logs) or any(_owner(key) == main for key in kept_blobs):
            # Whether parts of a session that stood there again can be added is the engine's affair.
            return
        told = self.engine.set_aside(main, operation)
        assert told == _told(logs, blobs)
        self.model.aside[operation] = (kept_logs | logs, kept_blobs | blobs)
        for log in logs:
            del self.model.logs[log]
        for name in blobs:
            del self.model.blobs[name]

    @rule(operation=st.sampled_from(OPERATIONS))
    def bring_back(self, operation: str) -> None:
        """Everything that an operation took, or a conflict and nothing."""
        logs, blobs = self.model.aside.get(operation, ({}, {}))
        mains = {key.main for key in logs} | {_owner(key) for key in blobs}
        there = {key.main for key in self.model.logs} | {_owner(key) for key in self.model.blobs}
        if mains & there:
            if set(logs) & set(self.model.logs) or set(blobs) & set(self.model.blobs):
                try:
                    self.engine.bring_back(operation)
                except Conflict:
                    return
                raise AssertionError("something stood in its place, and it was brought back")
            # Whether two halves of a session may meet again is the engine's affair.
            return
        assert self.engine.bring_back(operation) == _told(logs, blobs)
        self.model.aside.pop(operation, None)
        self.model.logs |= logs
        self.model.blobs |= blobs
        for key, log in logs.items():
            time = log.times[-1]
            log.revisions.clear()
            log.times.clear()
            log.batches.clear()
            log.summary = None
            self._noted(key, log, has_grown=False)
            assert log.times == [time]

    @rule(operation=st.sampled_from(OPERATIONS))
    def free_aside(self, operation: str) -> None:
        """What an operation took, for good."""
        logs, blobs = self.model.aside.pop(operation, ({}, {}))
        assert self.engine.free_aside(operation) == _told(logs, blobs)

    @precondition(lambda self: self.is_kept)
    @rule()
    def open_again(self) -> None:
        """Another start of the program."""
        self.engine.close()
        self.engine = type(self).opened(self.place)

    # What must always be so.

    @invariant()
    def logs_are_the_same(self) -> None:
        """Every log holds what the model does, and shows nothing else."""
        for key in LOGS:
            log, stat = self.model.logs.get(key), self.engine.stat(key)
            assert (log is None) == (stat is None)
            if log is None or stat is None:
                try:
                    self.engine.read(key)
                except NotFound:
                    continue
                raise AssertionError(f"{key} is not there and can be read")
            assert content_of(self.engine, key) == log.content
            assert (stat.size_bytes, stat.revision) == (len(log.content), log.revisions[-1])
            if stat.summary is not None or self.engine.capabilities.atomic_summary:
                assert log.summary is None or stat.summary == log.summary

    @invariant()
    def lists_are_the_same(self) -> None:
        """Lists show the logs and blobs of the model, in order."""
        mains = sorted(key for key in self.model.logs if not key.subpath)
        assert [stat.key for stat in self.engine.list(order=Order.BY_KEY)] == mains
        newest = [*self.engine.list()]
        assert newest == sorted(newest, key=lambda stat: (-stat.modified_ns, stat.key))
        for main in SESSIONS:
            subs = sorted(key for key in self.model.logs if key.subpath and key.main == main)
            assert [stat.key for stat in self.engine.list_sub(main)] == subs
            blobs = {key: content for key, content in self.model.blobs.items() if _owner(key) == main}
            assert [stat.key for stat in self.engine.blobs(main)] == sorted(blobs)
            assert {key: b"".join(self.engine.open(key)) for key in blobs} == blobs


def model_of(opened: Callable[[Path], Engine], *, is_kept: bool = True) -> type[EngineMachine]:
    """A machine for engines that are opened so; its `TestCase` is a test."""
    return type("EngineMachine", (EngineMachine,), {"opened": staticmethod(opened), "is_kept": is_kept})


def _owner(key: BlobKey) -> LogKey:
    return LogKey(key.project, key.session)


def _told(logs: dict[LogKey, ModelLog], blobs: dict[BlobKey, bytes]) -> Aside:
    size = sum(len(log.content) for log in logs.values()) + sum(map(len, blobs.values()))
    return Aside(len(logs), len(blobs), size)
