"""Points in a conversation: where it is cut, read up to, branched or rewound.

    UUID              the record with that uuid, or with the only one that begins so (6 characters at least)
    msg:MESSAGE_ID    the last record of that answer, so that all rows of the answer are kept; the results of its calls
                      come after the point unless they stand between its rows
    time:ISO          the last record that is not later; without an offset the time is UTC
    turn:N            the end of a turn: prompts of the chain count from 1; -1 is the last turn and keeps everything,
                      -2 drops the last

A point is always inclusive. Times and turns belong to the conversation that the client would go on with; a uuid or a
message id may also lie on another branch, or before a compaction: what is in the log can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from clew.errors import Ambiguous, NotFound, UsageError
from clew.records.record import Record
from clew.transcript.chain import Chain, chain_to
from clew.transcript.head import find_head
from clew.transcript.links import Links
from clew.transcript.prompts import is_prompt
from clew.transcript.times import milliseconds
from clew.transcript.tree import Tree

PREFIX_CHARACTERS_MIN = 6
"""A shorter beginning of a uuid is not looked up: it is more likely a typing error."""
CANDIDATES_MAX = 10
"""So many candidates an error names."""

_FORMS = "a point is UUID, msg:MESSAGE_ID, time:ISO or turn:N"
_TURN = re.compile(r"[+-]?[0-9]{1,9}")
_SCHEME = re.compile(r"[A-Za-z]+(?=:)")
_BLANK_OR_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")


class AtRecord(msgspec.Struct, frozen=True):
    """The record with this uuid, or the only one whose uuid begins so."""

    uuid: str


class AtMessage(msgspec.Struct, frozen=True):
    """The last record of the answer with this API message id."""

    id: str


class AtTime(msgspec.Struct, frozen=True):
    """The last record that is not later than these milliseconds since 1970."""

    ms: float


class Turn(msgspec.Struct, frozen=True):
    """The end of a turn: from 1 on, or from -1 backwards."""

    n: int


Point = AtRecord | AtMessage | AtTime | Turn


def parse_point(text: str) -> Point:
    """The point that the text names. Raises UsageError for a text that can name none."""
    scheme = _SCHEME.match(text)
    if scheme:
        kind, value = scheme[0].lower(), text[scheme.end() + 1 :].strip()
        make = _KINDS.get(kind)
        if make is None:
            raise UsageError(f"{text!r} is no point: there is no {kind}:…", hint=_FORMS)
        return make(value, text)
    if not text or _BLANK_OR_CONTROL.search(text):
        raise UsageError(f"{text!r} is no point", hint=_FORMS)
    return AtRecord(text)


def _message_point(value: str, text: str) -> Point:
    if not value:
        raise UsageError(f"{text!r} names no message", hint="write msg:ID, the message.id in the rows of an answer")
    return AtMessage(value)


def _time_point(value: str, text: str) -> Point:
    moment = milliseconds(value)
    if moment is None:
        raise UsageError(f"{text!r} names no time that can be read", hint="write time:2026-01-31T12:00:00Z")
    return AtTime(moment)


def _turn_point(value: str, text: str) -> Point:
    if not _TURN.fullmatch(value) or int(value) == 0:
        raise UsageError(f"{text!r} names no turn", hint="turns count from turn:1; turn:-1 is the last one")
    return Turn(int(value))


_KINDS: dict[str, Callable[[str, str], Point]] = {"msg": _message_point, "time": _time_point, "turn": _turn_point}


def cut(chain: Sequence[Record], point: Point) -> list[Record]:
    """The records of a chain up to the point, the point itself included.

    Raises NotFound when the chain has no such point, Ambiguous when the beginning of a uuid fits several, UsageError
    for turn 0.
    """
    return list(chain[: _place(chain, point) + 1])


def chain_at(tree: Tree, links: Links, point: Point) -> Chain:
    """The chain that ends at the point.

    It is the chain of the head, cut there. A record or answer that is not on it, but in the log, is taken with its own
    branch; one that a compaction took out of the conversation with the records as they were before.
    """
    chain = chain_to(tree, find_head(tree, links).uuid, links)
    elsewhere = _elsewhere(tree, chain.records, point)
    if elsewhere is not None:
        leaf, point = elsewhere
        chain = chain_to(tree, leaf, links if leaf in links else Links(tree, tree.parents))
    records = cut(chain.records, point)
    kept = {record.uuid for record in records}
    repairs = [repair for repair in chain.repairs if repair.uuid in kept]
    return Chain(records, repairs, frozenset(uuid for uuid in chain.put_back if uuid in kept))


def _elsewhere(tree: Tree, chain: Sequence[Record], point: Point) -> tuple[str, Point] | None:
    """The row to walk from, and the point on its chain, when the point lies beside this chain."""
    if isinstance(point, AtRecord):
        on_chain = {record.uuid for record in chain if record.uuid}
        if point.uuid in on_chain:
            return None
        if point.uuid in tree.records:
            return point.uuid, point
        if _beginning_with(on_chain, point.uuid):
            return None
        uuid = _one_of(tree.records, point.uuid)
        return (uuid, AtRecord(uuid)) if uuid else None
    if isinstance(point, AtMessage) and not any(_message_id(record) == point.id for record in chain):
        rows = tree.siblings.get(point.id)
        return (rows[-1], point) if rows else None
    return None


def _place(chain: Sequence[Record], point: Point) -> int:
    if isinstance(point, AtRecord):
        return _place_of_record(chain, point.uuid)
    if isinstance(point, AtMessage):
        return _place_of_message(chain, point.id)
    if isinstance(point, AtTime):
        return _place_of_time(chain, point.ms)
    return _place_of_turn(chain, point.n)


def _place_of_record(chain: Sequence[Record], uuid: str) -> int:
    places = {record.uuid: place for place, record in enumerate(chain) if record.uuid}
    found = uuid if uuid in places else _one_of(places, uuid)
    if found is None:
        prompts = [record.uuid for record in chain if record.uuid and is_prompt(record)]
        raise NotFound(
            f"no record {uuid!r} in this session",
            hint="`clew tree SESSION` shows its branches, `clew show SESSION --json` the uuids of its messages",
            candidates=prompts[-CANDIDATES_MAX:],
        )
    return places[found]


def _place_of_message(chain: Sequence[Record], message_id: str) -> int:
    for place in range(len(chain) - 1, -1, -1):
        if _message_id(chain[place]) == message_id:
            return place
    ids = dict.fromkeys(found for record in chain if (found := _message_id(record)))
    raise NotFound(
        f"no answer with the message id {message_id!r} in this session",
        hint="a message id stands in `message.id` of the rows of an answer",
        candidates=list(ids)[-CANDIDATES_MAX:],
    )


def _place_of_time(chain: Sequence[Record], moment: float) -> int:
    times = [milliseconds(record.timestamp) for record in chain]
    # Rows that a compaction kept are older than its boundary; before that moment there was another conversation.
    start = times[0] if times and _is_boundary(chain[0]) else None
    if start is not None and moment < start:
        raise NotFound(
            f"the conversation was compacted at {chain[0].timestamp}, which is later",
            hint="`clew tree SESSION` shows the records before that; name one by its uuid",
        )
    earlier = (at for at in range(len(chain) - 1, -1, -1) if (when := times[at]) is not None and when <= moment)
    place = next(earlier, None)
    if place is None:
        first = next((record.timestamp for record, when in zip(chain, times, strict=True) if when is not None), None)
        raise NotFound(
            f"this conversation begins later, at {first}" if first else "no record of this conversation has a time",
            hint=f"time:{first} is its first record" if first else "name a record by its uuid, or a turn",
        )
    while place + 1 < len(chain) and times[place + 1] is None:
        place += 1  # A row without a time belongs to the one before it.
    return place


def _place_of_turn(chain: Sequence[Record], n: int) -> int:
    if n == 0:
        raise UsageError("there is no turn 0", hint="turns count from 1; -1 is the last one")
    starts = [place for place, record in enumerate(chain) if is_prompt(record)]
    number = n if n > 0 else len(starts) + n + 1
    if not 1 <= number <= len(starts):
        count = len(starts)
        raise NotFound(
            f"no turn {n}: this conversation has {count} turn{'' if count == 1 else 's'}",
            hint=f"turn:1 to turn:{count} exist" if count else "name a record by its uuid",
        )
    return (starts[number] if number < len(starts) else len(chain)) - 1


def _one_of(uuids: Iterable[str], beginning: str) -> str | None:
    """The only uuid that begins so, None when none does. Raises Ambiguous."""
    found = _beginning_with(uuids, beginning)
    if len(found) > 1:
        raise Ambiguous(
            f"{len(found)} records begin with {beginning!r}",
            hint="write more of the uuid",
            candidates=sorted(found)[:CANDIDATES_MAX],
        )
    return next(iter(found), None)


def _beginning_with(uuids: Iterable[str], beginning: str) -> Collection[str]:
    if len(beginning) < PREFIX_CHARACTERS_MIN:
        return ()
    return [uuid for uuid in uuids if uuid.startswith(beginning)]


def _message_id(record: Record) -> str | None:
    return record.message.id if record.type == "assistant" and record.message else None


def _is_boundary(record: Record) -> bool:
    return record.type == "system" and record.subtype == "compact_boundary"
