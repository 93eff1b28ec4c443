"""`copy`: the new session has rows of its own, as in the client's own forks, and everything that they speak of.

    read     the log once, keeping of each row only what places it
    plan     the chain at the point, and what goes along with it (`transcript.fork`)
    write    blobs, then the logs of subagents, then the main log, which appears whole or not at all

A crash leaves the blobs and logs of subagents of a session that is not there: no list shows them, and a fork of the
same id writes them anew.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from clew.engines.contract import BlobKey, Engine, LogKey
from clew.engines.filesystem import shown_path
from clew.errors import UsageError
from clew.forks.kind import Forked, Parent, Wanted
from clew.forks.materialised import copied
from clew.forks.rows import Ahead, Rewriter, log_rewritten, name_of, rows_of
from clew.layouts.claude import Kind, is_flat
from clew.lineage import fork_point_of
from clew.records.codec import decode, decode_lines
from clew.records.compact import compact
from clew.records.line import Line
from clew.records.own import FORK_TYPE, NOTE_TYPE
from clew.records.record import Malformed, Record
from clew.records.slim import decode_slim
from clew.records.splice import Change, quoted, spliced
from clew.records.views import JsonObject
from clew.transcript.chain import Chain, chain_to
from clew.transcript.fork import (
    CARRIED_BEFORE,
    CARRIED_BEHIND,
    Carried,
    ForkPlan,
    backups_of,
    fork_plan,
    snapshot_folded,
)
from clew.transcript.head import find_head
from clew.transcript.ids import IdMap, id_changes, ids_from
from clew.transcript.links import links_of
from clew.transcript.points import Point, chain_at, parse_point
from clew.transcript.slim import Slimmer
from clew.transcript.tree import CHAIN_TYPES, Tree

IS_LIVE = "a running client holds the parent: what it says from now on is not in the fork"
TITLES = ("custom-title", "agent-name")


class _Read(NamedTuple):
    """What a log is, as far as a fork asks."""

    tree: Tree
    slimmer: Slimmer
    carried: Carried
    malformed: tuple[int, ...]


class _State(NamedTuple):
    """The files at a prompt."""

    row: bytes
    backups: set[str]


class Copy:
    """The default: rows of its own. Of an attached fork they are those of its ancestors, too."""

    def make(self, parent: Parent, wanted: Wanted) -> Forked:
        if fork_point_of(parent.engine, parent.key) is not None:
            return copied(parent, wanted)
        return _Making(parent, wanted).make()


class _Making:
    """One fork."""

    def __init__(self, parent: Parent, wanted: Wanted) -> None:
        self._parent = parent
        self._wanted = wanted
        self._engine: Engine = parent.engine
        self._old = parent.key.main
        self._key = LogKey(self._old.project, wanted.session)
        self._new_id = ids_from(wanted.session) if wanted.new_ids else None
        self._rewriter = Rewriter(self._old, wanted.session, new_id=self._new_id, rewrite_paths=wanted.rewrite_paths)
        self._name_then = name_of(parent.engine, self._old)
        self._lines = 0
        self._blobs = 0

    def make(self) -> Forked:
        is_live = self._parent.is_live
        with _nothing_collected():
            plan, carried, left_out, malformed = self._look()
        states = self._states(carried, plan)
        self._put_blobs(states)
        agents = self._put_agents()
        self._engine.extend(self._key, self._main(carried, plan, states), start=0)
        return Forked(
            key=self._key, parent=self._old, kind="copy", at=plan.leaf, records=self._lines, agents=agents,
            blobs=self._blobs, left_out=left_out, malformed=malformed,
            is_live=is_live, notes=(IS_LIVE,) if is_live else (),
        )  # fmt: skip

    def _look(self) -> tuple[ForkPlan, Carried, int, tuple[int, ...]]:
        """What to write, and what is left out. The tree of the whole log is let go of when it returns."""
        at = self._wanted.at
        point = parse_point(at) if isinstance(at, str) else at
        tree, slimmer, carried, malformed = _read(self._engine, self._old, keeps_prompts=point is not None)
        chain, leaf = self._chain(tree, point)
        plan = fork_plan(chain, leaf)
        ordinals, left_out = tree.ordinals, len(tree.records) - len(plan.rows)
        del tree, chain
        slimmer.place(ordinals, plan.rows)
        return plan, carried, left_out, malformed

    def _chain(self, tree: Tree, point: Point | None) -> tuple[Chain, str]:
        """The rows to take, and the row that the fork goes on from. Raises `UsageError` where nothing is there."""
        links = links_of(tree)
        if point is not None:
            chain = chain_at(tree, links, point)
            leaf = chain.records[-1].uuid if chain.records else None
        else:
            head = find_head(tree, links)
            chain, leaf = chain_to(tree, head.uuid, links), head.uuid
            if not chain.records:
                where = shown_path(self._parent.where)
                raise UsageError(
                    f"{where} holds no conversation to go on from: {head.why}",
                    hint="`clew tree SESSION` shows its branches; name a row of one with --at",
                )
        return chain, leaf or ""

    # The main log.

    def _main(self, carried: Carried, plan: ForkPlan, states: list[_State]) -> Iterator[bytes]:
        """The new log, in chunks of whole lines."""
        self._lines = len(plan.rows)
        yield self._line(self._fork_note(plan.leaf))
        if carried.notes:
            yield self._line(compact({"type": NOTE_TYPE, **carried.notes, "sessionId": self._key.session}))
        for kind in CARRIED_BEFORE:
            yield from self._name(carried, kind)
        for state in states:
            yield self._line(state.row)
        for kind in CARRIED_BEHIND:
            yield from self._name(carried, kind)
        for record in carried.replacements:
            yield self._line(self._own(record))
        yield from rows_of(self._engine, self._old, plan, self._rewriter, name=self._name_then)
        if plan.needs_head:
            leaf = plan.leaf if self._new_id is None else self._new_id(plan.leaf)
            where: JsonObject = {"leafUuid": leaf, "explicit": True, "sessionId": self._key.session}
            yield self._line(compact({"type": "last-prompt", **where}))

    def _line(self, row: bytes) -> bytes:
        self._lines += 1
        return row if row.endswith(b"\n") else row + b"\n"

    def _fork_note(self, leaf: str) -> bytes:
        return compact({
            "type": FORK_TYPE, "kind": "copy", "parentSessionId": self._old.session,
            "parentProject": self._old.project, "at": leaf, "forkedAt": self._wanted.timestamp,
            "sessionId": self._key.session,
        })  # fmt: skip

    def _name(self, carried: Carried, kind: str) -> Iterator[bytes]:
        """The last row of a type; of the titles the new one, where one is wanted."""
        title = self._wanted.title
        if title is not None and kind in TITLES:
            field = "customTitle" if kind == "custom-title" else "agentName"
            yield self._line(compact({"type": kind, field: title, "sessionId": self._key.session}))
        elif kind in carried.names:
            yield self._line(self._own(carried.names[kind]))

    def _own(self, record: Record) -> bytes:
        """A row beside the conversation, as one of the fork."""
        change = Change("sessionId", record.session_id, quoted(self._key.session))
        changes = [change] if record.session_id is not None else []
        if self._new_id is not None and record.uuid:
            changes.append(Change("uuid", record.uuid, quoted(self._new_id(record.uuid))))
        return spliced(record.raw, changes)

    # What belongs to it.

    def _states(self, carried: Carried, plan: ForkPlan) -> list[_State]:
        """The states of files at the prompts of the chain, in its order, each in one row."""
        states = []
        ahead = Ahead(self._engine, self._old)
        for record in plan.rows:
            prompt = record.uuid or ""
            snapshot, deltas = carried.snapshots.get(prompt), carried.deltas.get(prompt, ())
            if snapshot is None and not deltas:
                continue
            first = None if snapshot is None else ahead.row(snapshot)
            row = snapshot_folded(prompt, first, [ahead.row(line) for line in deltas])
            backups = backups_of(row)
            if self._new_id is not None:
                row = _renamed(row, prompt, self._new_id)
            states.append(_State(row, backups))
        return states

    def _put_blobs(self, states: list[_State]) -> None:
        """Backups that a state speaks of, tool results, notes about subagents and sidecars."""
        backups = set[str]().union(*(state.backups for state in states))
        for blob in self._engine.blobs(self._old):
            kind, name = blob.key.kind, blob.key.name
            if kind == Kind.BACKUP.value and name not in backups:
                continue
            if kind == Kind.META.value and "/" not in name:
                name = f"subagents/{name}"
            elif kind == Kind.CUSTOM_TITLE.value and self._wanted.title is not None:
                continue
            if kind in _CARRIED_BLOBS:
                self._engine.link(blob.key, BlobKey(self._key.project, self._key.session, kind, name))
                self._blobs += 1
        if self._wanted.title is not None and self._engine.capabilities.is_clients:
            # The client keeps a note of the title beside the row.
            key = BlobKey(self._key.project, self._key.session, Kind.CUSTOM_TITLE.value, _TITLE_NAME)
            self._engine.put(key, [compact({"customTitle": self._wanted.title})])
            self._blobs += 1

    def _put_agents(self) -> int:
        """The logs of subagents and workflows. Those beside the session, where older clients put them, go into its
        folder, since that place belongs to all sessions of the project.
        """
        agents = 0
        for stat in list(self._engine.list_sub(self._old)):
            subpath = f"subagents/{stat.key.subpath}" if is_flat(stat.key.subpath) else stat.key.subpath
            key = LogKey(self._key.project, self._key.session, subpath)
            left = self._engine.stat(key)
            if left is not None:
                self._engine.delete(key)
            self._engine.extend(key, log_rewritten(self._engine, stat.key, self._rewriter), start=0, make=True)
            agents += 1
        return agents


_CARRIED_BLOBS = frozenset(
    kind.value for kind in (Kind.BACKUP, Kind.TOOL_RESULT, Kind.META, Kind.CUSTOM_TITLE, Kind.SIDECAR)
)
_TITLE_NAME = "custom-title.json"


def _read(engine: Engine, key: LogKey, *, keeps_prompts: bool = False) -> _Read:
    """One pass over the log; of a row of a conversation only what places it stays in memory."""
    carried = Carried()
    malformed: list[int] = []
    slimmer = Slimmer(keeps_prompts=keeps_prompts)

    def records() -> Iterator[Record]:
        add, beside = carried.add, CHAIN_TYPES
        for row in decode_lines(engine.read(key), by=decode_slim):
            if isinstance(row, Record):
                if row.type not in beside:
                    add(row)
                yield row
            elif isinstance(row, Malformed):
                malformed.append(row.line.number)
                for record in row.loaded:
                    add(record)
                    yield record

    return _Read(Tree(slimmer.slimmed(records())), slimmer, carried, tuple(malformed))


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Without looks for cycles: hundreds of thousands of rows are held and none of them is in one. Each look goes
    through all of them, a tenth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _renamed(row: bytes, prompt: str, new_id: IdMap) -> bytes:
    """A state of files with new ids. Nearly always it names its prompt twice and nothing else."""
    named = b'"messageId":%s'
    if row.count(named % quoted(prompt)) == 2:
        return row.replace(named % quoted(prompt), named % quoted(new_id(prompt)))
    fresh = decode(Line(row, 0, 1, len(row)))
    return spliced(row, id_changes(fresh, new_id)) if isinstance(fresh, Record) else row
