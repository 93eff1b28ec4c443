"""`truncate`: the head of a session is moved by an explicit head record, and moved back to where it was.

Nothing is taken away: both ways are one row that is appended. What stands behind the record tells whether undo still
means what it meant: rows that were said since would be cut off by it, so then it is refused.
"""

from __future__ import annotations

from itertools import takewhile

import msgspec
from msgspec import UnsetType

from clew.engines.contract import Aside, Engine, Entry, LogKey, LogStat
from clew.errors import Conflict, NotFound
from clew.operations.operation import Operation, Planned
from clew.records.codec import decode
from clew.records.compact import compact
from clew.records.heads import LastPrompt, head_record
from clew.records.record import Record, records_in
from clew.transcript.tree import CHAIN_TYPES
from clew.transcript.truncate import Cut

TRIES_MAX = 1_000
"""So often undo looks again because somebody appended meanwhile. Each time somebody else got on."""


class Plan(msgspec.Struct, frozen=True):
    """The head record, and how the log was when it was planned. `leaf` is what the record names, `head` where the
    conversation goes on with it, `before` what a record has to name that brings back what was there before.
    """

    project: str
    session: str
    revision: str
    size_bytes: int
    leaf: str
    head: str
    before: str | None
    prompt: str | None
    prompt_before: str | None
    title: str

    @property
    def key(self) -> LogKey:
        return LogKey(self.project, self.session)

    def record(self) -> Entry:
        """The head record that truncates."""
        return Entry(compact(head_record(self.leaf, self.prompt, self.session, is_explicit=True)))

    def record_back(self) -> Entry:
        """The head record that undoes it."""
        return Entry(compact(head_record(self.before, self.prompt_before, self.session, is_explicit=True)))


def planned(stat: LogStat, cut: Cut) -> Planned:
    """The plan for a log that is as `stat` says."""
    title = cut.first_dropped or cut.last_prompt or stat.key.session
    plan = Plan(
        stat.key.project, stat.key.session, stat.revision, stat.size_bytes,
        cut.leaf, cut.head, cut.before, cut.last_prompt, cut.prompt_before, title,
    )  # fmt: skip
    return Planned(msgspec.to_builtins(plan), 1, 0, 0)


class Truncate:
    """A head record is appended, for a log that is still as it was when that was planned."""

    def apply(self, engine: Engine, operation: Operation) -> Aside:
        plan = operation.plan_as(Plan)
        # Made again after a crash, the batch adds only what is not there yet. Another plan is another batch.
        batch = f"truncate {operation.id} {plan.revision}"
        try:
            engine.append(plan.key, [plan.record()], batch_id=batch, expect=plan.revision, keep_time=True)
        except Conflict as error:
            # After a crash the same record may be there by another truncation, with rows behind it, or the session may
            # be gone. Undo is refused then, so without this there would be no way on.
            if not _is_done(engine, plan):
                error.hint = f"somebody was faster: clew undo {operation.id}, and truncate again"
                raise
        return Aside()

    def undo(self, engine: Engine, operation: Operation) -> Aside:
        plan = operation.plan_as(Plan)
        for _ in range(TRIES_MAX):
            stat = engine.stat(plan.key)
            if stat is None:
                raise _in_the_way(plan, "is not there any more", "see where it went: clew operations")
            if not _must_go_back(engine, stat, plan):
                return Aside()
            try:
                engine.append(plan.key, [plan.record_back()], expect=stat.revision, keep_time=True)
            except Conflict:
                continue
            return Aside()
        raise _in_the_way(plan, "is appended to without a pause", "try again when the others are done")

    def must_be_needless(self, engine: Engine, operation: Operation) -> None:
        """Nothing is kept that anybody could need."""

    def free(self, engine: Engine, operation: Operation) -> Aside:  # noqa: ARG002 - Nothing was taken away.
        return Aside()

    def title(self, operation: Operation) -> str:
        return operation.plan_as(Plan).title


def _is_done(engine: Engine, plan: Plan) -> bool:
    """Whether the record stands behind the log that was planned for, or there is no session any more."""
    if engine.stat(plan.key) is None:
        return True
    ours = plan.record().data
    try:
        since = takewhile(lambda line: line.position >= plan.size_bytes, engine.read_back(plan.key))
        return any(line.data.rstrip(b"\r\n") == ours for line in since)
    except NotFound:
        return True


def _must_go_back(engine: Engine, stat: LogStat, plan: Plan) -> bool:
    """Whether the head stands where the operation left it. False where it was moved back since, or never moved.

    Raises `Conflict` where the conversation went on since, or the head was moved once more.
    """
    newest: LastPrompt | None = None
    has_gone_on = was_moved = is_back = False
    ours = plan.record().data
    try:
        for line in engine.read_back(plan.key):
            if line.position < plan.size_bytes:
                break
            for record in records_in(iter([decode(line)])):
                has_gone_on |= record.type in CHAIN_TYPES and record.is_sidechain is not True
                head = _head_in(record)
                if head is not None:
                    newest = newest or head
                    is_back |= head.leaf_uuid == plan.before and head.explicit is True
            # Not only the first row since: the client takes no lock, and may have written right before us.
            was_moved |= line.data.rstrip(b"\r\n") == ours
    except NotFound:
        return False
    if not was_moved and stat.revision.partition("-")[0] != plan.revision.partition("-")[0]:
        raise _in_the_way(plan, "was written anew by another program", _by_hand(plan))
    if not was_moved or is_back or newest is None:
        return False
    if has_gone_on:
        raise _in_the_way(plan, "went on since, and that would be cut off", _by_hand(plan))
    if newest.leaf_uuid not in (plan.leaf, plan.head):
        raise _in_the_way(plan, "was truncated once more", f"undo that first, or: {_by_hand(plan)}")
    return True


def _head_in(record: Record) -> LastPrompt | None:
    """The head record that this row is, if it names a leaf or empties the conversation."""
    view = record.view() if record.type == "last-prompt" else None
    if not isinstance(view, LastPrompt) or isinstance(view.leaf_uuid, UnsetType):
        return None
    return view if view.leaf_uuid or view.explicit else None


def _in_the_way(plan: Plan, what: str, hint: str) -> Conflict:
    return Conflict(f"the session {plan.session} {what}: nothing was changed", hint=hint)


def _by_hand(plan: Plan) -> str:
    if plan.before is None:
        return f"see what is there: clew tree {plan.session}"
    at = f"{plan.session} --at {plan.before}"
    return f"go there all the same: clew truncate {at}; or keep both: clew fork {at}"
