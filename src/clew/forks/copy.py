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
from clew.forks.belongings import blob_in, put_agents
from clew.forks.kind import Forked, Parent, Wanted
from clew.forks.materialised import copied
from clew.forks.rows import Ahead, Rewriter, name_of, rows_of
from clew.layouts.claude import CUSTOM_TITLE_NAME, Kind
from clew.lineage import ForkPoint, fork_point_of, fork_row
from clew.records.codec import decode, decode_lines
from clew.records.compact import compact
from clew.records.line import Line
from clew.records.own import NOTE_TYPE
from clew.records.record import BOM, Malformed, Record
from clew.records.slim import decode_slim
from clew.records.splice import Change, quoted, spliced
from clew.records.titles import title_rows
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
            plan, carried, prompts, left_out, malformed = self._look()
        states = self._states(carried, prompts)
        self._put_blobs(states)
        agents = put_agents(self._engine, self._old, self._key, self._rewriter)
        self._engine.extend(self._key, self._main(carried, plan, states), start=0)
        return Forked(
            key=self._key, parent=self._old, kind="copy", at=plan.leaf, records=self._lines, agents=agents,
            blobs=self._blobs, left_out=left_out, malformed=malformed,
            is_live=is_live, notes=(IS_LIVE,) if is_live else (),
        )  # fmt: skip

    def _look(self) -> tuple[ForkPlan, Carried, list[str], int, tuple[int, ...]]:
        """What to write, the prompts whose files go along, and what is left out. The tree of the whole log is let go of
        when it returns.
        """
        at = self._wanted.at
        point = parse_point(at) if isinstance(at, str) else at
        tree, slimmer, carried, malformed = _read(self._engine, self._old, keeps_prompts=point is not None)
        chain, leaf, prompts = self._chain(tree, point, carried)
        plan = fork_plan(chain, leaf)
        ordinals, left_out = tree.ordinals, len(tree.records) - len(plan.rows)
        del tree, chain
        slimmer.place(ordinals, plan.rows)
        return plan, carried, prompts, left_out, malformed

    def _chain(self, tree: Tree, point: Point | None, carried: Carried) -> tuple[Chain, str, list[str]]:
        """The rows to take, the row that the fork goes on from, and the prompts that have a state of files. Raises
        `UsageError` where nothing is there.
        """
        links = links_of(tree)
        head = find_head(tree, links)
        whole = chain = chain_to(tree, head.uuid, links)
        leaf = head.uuid
        if point is not None:
            chain = chain_at(tree, links, point, whole)
            leaf = chain.records[-1].uuid if chain.records else None
        elif not chain.records:
            where = shown_path(self._parent.where)
            raise UsageError(
                f"{where} holds no conversation to go on from: {head.why}",
                hint="`clew tree SESSION` shows its branches; name a row of one with --at",
            )
        # A fork of the client at an earlier row has the states behind it, too.
        is_cut = any(record.uuid == leaf for record in whole.records)
        stated = carried.snapshots.keys() | carried.deltas.keys()
        prompts = [uuid for record in (whole if is_cut else chain).records if (uuid := record.uuid or "") in stated]
        return chain, leaf or "", prompts

    # The main log.

    def _main(self, carried: Carried, plan: ForkPlan, states: list[_State]) -> Iterator[bytes]:
        """The new log, in chunks of whole lines."""
        self._lines = len(plan.rows)
        point = ForkPoint(self._old.session, plan.leaf)
        yield self._line(fork_row("copy", self._old, self._key, point, self._wanted.timestamp))
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
        row = row.removeprefix(BOM)
        return row if row.endswith(b"\n") else row + b"\n"

    def _name(self, carried: Carried, kind: str) -> Iterator[bytes]:
        """The last row of a type; of the titles the new one, where one is wanted."""
        title = self._wanted.title
        wanted = {} if title is None else {row["type"]: row for row in title_rows(title)}
        if kind in wanted:
            yield self._line(compact({**wanted[kind], "sessionId": self._key.session}))
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

    def _states(self, carried: Carried, prompts: list[str]) -> list[_State]:
        """The states of files at these prompts, each in one row."""
        states = []
        ahead = Ahead(self._engine, self._old)
        for prompt in prompts:
            snapshot, deltas = carried.snapshots.get(prompt), carried.deltas.get(prompt, ())
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
            if kind == Kind.CUSTOM_TITLE.value and self._wanted.title is not None:
                continue
            own = blob_in(blob.key, self._key)
            if own is not None:
                self._engine.link(blob.key, own)
                self._blobs += 1
        if self._wanted.title is not None and self._engine.capabilities.is_clients:
            # The client keeps a note of the title beside the row.
            key = BlobKey(self._key.project, self._key.session, Kind.CUSTOM_TITLE.value, CUSTOM_TITLE_NAME)
            self._engine.put(key, [compact({"customTitle": self._wanted.title})])
            self._blobs += 1


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
