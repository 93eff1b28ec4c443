"""What moving the head to an earlier point does to a conversation, before it is done. Pure.

The head record that will be appended is put into the tree, and the rules of the head and of the chain are asked again:
so what is told here is what every later reader says, the client included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from clew.errors import UsageError
from clew.records.record import Record
from clew.transcript.chain import Chain, chain_to
from clew.transcript.head import Head, find_head
from clew.transcript.links import Links
from clew.transcript.message import Message
from clew.transcript.messages import conversation
from clew.transcript.points import Point, chain_at
from clew.transcript.prompts import preview, prompt_of
from clew.transcript.trailing import nearest_said

FORK = "make a session of it: clew fork SESSION --at {}"


class Cut(msgspec.Struct, frozen=True):
    """A conversation whose head is moved. `leaf` is what the head record names, `head` where it will go on.

    `before` is the leaf that an explicit head record has to name to bring back what was there before, None where the
    conversation was empty.
    """

    leaf: str
    head: str
    before: str | None
    dropped: int
    """So many messages of before are not in the conversation any more."""
    first_dropped: str | None
    """The first prompt among them, as a preview."""
    last_prompt: str | None
    """The last prompt that stays, as a preview."""
    prompt_before: str | None
    """The last prompt of before."""
    is_moved: bool
    """False where the conversation stays as it is, so that no head record is needed."""
    notes: tuple[str, ...] = ()


def cut_at(links: Links, point: Point, messages: Sequence[Message] | None = None) -> Cut:
    """What an explicit head record at this point does. `messages` are those of before, where they are known already.

    Raises what `chain_at` raises, and `UsageError` for a point that is in the log, but where the client would not go
    on: before a compaction that took those rows away, or where no prompt or answer ends.
    """
    tree = links.tree
    old = find_head(tree, links)
    before = chain_to(tree, old.uuid, links)
    wanted = chain_at(tree, links, point, before)
    leaf, head, after = _best(links, before, wanted)
    kept, asked = _uuids(after), _uuids(wanted)
    gone = [record for record in before.records if record.uuid not in kept]
    if gone and messages is None:
        messages = conversation(before.records).messages
    return Cut(
        leaf, head, _named(links) if old.refused else old.uuid,
        sum(kept.isdisjoint(message.uuids) for message in messages or ()) if gone else 0,
        _first_prompt(gone), _first_prompt(reversed(after.records)), _first_prompt(reversed(before.records)),
        old.refused or old.uuid is None or bool(gone) or _uuids(before) != kept,
        _notes(more=len(kept - asked), fewer=len(asked - kept)),
    )  # fmt: skip


def _best(links: Links, before: Chain, wanted: Chain) -> tuple[str, str, Chain]:
    """Which row the head record names, with the head and the chain that follow.

    The last row up to the point; but where that one was put back from beside the chain, and the way up from it passes
    by rows before it, the last row of the chain proper.
    """
    named = [record.uuid for record in reversed(wanted.records) if record.uuid]
    if not named:
        raise UsageError("the rows up to that point have no uuid, so that no head record could name them")
    found = (named[0], *_moved(links, before, named[0]))
    proper = next((uuid for uuid in named if uuid not in wanted.put_back), None)
    if named[0] in wanted.put_back and proper is not None and not _holds(found[2], wanted):
        other = (proper, *_moved(links, before, proper))
        return other if _holds(other[2], wanted) else found
    return found


def _holds(chain: Chain, wanted: Chain) -> bool:
    return _uuids(wanted) <= _uuids(chain)


def _moved(links: Links, before: Chain, leaf: str) -> tuple[str, Chain]:
    """The head and the chain once the head record is there."""
    if leaf not in links or _is_compacted_away(links, before, leaf):
        raise UsageError(
            f"the row {leaf} stands before a compaction that took it out of the conversation: the client does not go "
            "back there",
            hint=FORK.format(leaf),
        )
    moved = _under(links, leaf)
    head = find_head(moved.tree, moved)
    if head.uuid is None:
        raise UsageError(f"the client would find no conversation up to {leaf}: {head.why}", hint=FORK.format(leaf))
    if nearest_said(moved, leaf, {}) is None:
        raise UsageError(
            f"nothing is said up to {leaf}, so the client would go on somewhere else: {_place(head)}",
            hint="name a prompt or an answer; `clew show SESSION --json` has their uuids",
        )
    return head.uuid, chain_to(moved.tree, head.uuid, moved)


def _named(links: Links) -> str | None:
    """The row that a conversation ends at which the client does not find."""
    tree = links.tree
    for uuid in (tree.last, None if tree.pointer is None else tree.pointer.leaf):
        if uuid is not None and _is_refused(_under(links, uuid)):
            return uuid
    return tree.last


def _is_refused(links: Links) -> bool:
    return find_head(links.tree, links).refused


def _under(links: Links, leaf: str) -> Links:
    """The same rows once a head record names this one."""
    return Links(links.tree.with_head(leaf), links.parents, links.has_kept)


def _is_compacted_away(links: Links, before: Chain, leaf: str) -> bool:
    """Whether the client reads the row only as long as the log is small.

    A compaction without a note of kept rows leaves the rows before it where they are, and the client goes back to them
    in a log of up to 5 MiB; in a longer one it does not read them at all (measured), so that whatever was said below
    would lose its beginning when the log grows.
    """
    tree = links.tree
    if links.has_kept or not tree.boundaries or tree.ordinals[leaf] > tree.ordinals[tree.boundaries[-1]]:
        return False
    return leaf not in _uuids(before)


def _place(head: Head) -> str:
    return f"at {head.uuid}, {head.why}"


def _uuids(chain: Chain) -> set[str | None]:
    return {record.uuid for record in chain.records}


def _first_prompt(records: Iterable[Record]) -> str | None:
    prompts = (prompt_of(record) for record in records)
    return next((preview(prompt.text) for prompt in prompts if prompt is not None and prompt.is_turn), None)


def _notes(*, more: int, fewer: int) -> tuple[str, ...]:
    notes = []
    if more:
        whole = "the client keeps an answer whole, with the results of its calls"
        notes.append(f"{_rows(more)} behind the point stay: {whole}")
    if fewer:
        notes.append(f"the client leaves out {_rows(fewer)} before the point, on which this end does not hang")
    return tuple(notes)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
