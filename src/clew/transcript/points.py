"""Points in a conversation: where it is cut, read up to, branched or rewound.

    UUID              the record with that uuid, or with the only one that begins so (6 characters at least)
    msg:MESSAGE_ID    the last record of that answer, so that all rows of the answer are kept; the results of its calls
                      come after the point unless they stand between its rows
    time:ISO          the last record that is not later; without an offset the time is UTC
    turn:N            the end of a turn: prompts of the chain count from 1; -1 is the last turn and keeps everything,
                      -2 drops the last

A point is always inclusive. Times and turns belong to the conversation that the client would go on with; a uuid or a
message id may also lie on another branch, or before a compaction: what is in the log can be reached. What reads each
form is in `selectors/`, and other packages may add theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Self, cast

import msgspec

from clew.errors import UsageError
from clew.plugins import entry_points_of, loaded, unusable
from clew.records.record import Record
from clew.transcript.chain import Chain, chain_to
from clew.transcript.head import find_head
from clew.transcript.links import Links
from clew.transcript.selectors.table import SELECTORS
from clew.transcript.tree import Tree

ENTRY_POINTS = "clew.points"
"""The group in which other packages name their selectors: the word before the colon, and a subclass of `Point`."""
CANDIDATES_MAX = 10
"""So many candidates an error names."""
FORMS = "a point is UUID, msg:MESSAGE_ID, time:ISO or turn:N"
_SCHEME = re.compile(r"[A-Za-z]+(?=:)")


class Point(msgspec.Struct, frozen=True):
    """A place in a conversation; what it names is included. A subclass is a selector: one way to name such a place."""

    @classmethod
    def parse(cls, value: str, text: str) -> Self:
        """The point that is named so. `value` stands behind the colon, `text` is the whole, for errors.

        Raises `UsageError` for a text that can name none.
        """
        raise NotImplementedError

    def place(self, chain: Sequence[Record]) -> int:
        """Which record of a chain is the last one up to here. Raises `NotFound` when the chain has no such point."""
        raise NotImplementedError

    def elsewhere(self, tree: Tree, chain: Sequence[Record]) -> tuple[str, Point] | None:  # noqa: ARG002
        """The row to walk up from, and the point on the way, when it lies beside this chain. None: only there."""
        return None


def parse_point(text: str) -> Point:
    """The point that the text names. Raises UsageError for a text that can name none."""
    scheme = _SCHEME.match(text)
    if not scheme:
        return _selector("", text).parse(text, text)
    return _selector(scheme[0].lower(), text).parse(text[scheme.end() + 1 :].strip(), text)


def cut(chain: Sequence[Record], point: Point) -> list[Record]:
    """The records of a chain up to the point, the point itself included.

    Raises NotFound when the chain has no such point, Ambiguous when the beginning of a uuid fits several, UsageError
    for turn 0.
    """
    return list(chain[: point.place(chain) + 1])


def chain_at(tree: Tree, links: Links, point: Point, chain: Chain | None = None) -> Chain:
    """The chain that ends at the point. `chain` is that of the head, where it is known already.

    It is the chain of the head, cut there. A record or answer that is not on it, but in the log, is taken with its own
    branch; one that a compaction took out of the conversation with the records as they were before.
    """
    chain = chain_to(tree, find_head(tree, links).uuid, links) if chain is None else chain
    elsewhere = point.elsewhere(tree, chain.records)
    if elsewhere is not None:
        leaf, point = elsewhere
        chain = chain_to(tree, leaf, links if leaf in links else Links(tree, tree.parents))
    records = cut(chain.records, point)
    kept = {record.uuid for record in records}
    repairs = [repair for repair in chain.repairs if repair.uuid in kept]
    return Chain(records, repairs, frozenset(uuid for uuid in chain.put_back if uuid in kept))


def _selector(word: str, text: str) -> type[Point]:
    where = SELECTORS.get(word)
    if where is not None:
        return _ours(where)
    found = _theirs(word)
    if found is None:
        theirs = [f", {name}:…" for name in entry_points_of(ENTRY_POINTS)]
        raise UsageError(f"{text!r} is no point: there is no {word}:…", hint="".join([FORMS, *theirs]))
    return found


@cache
def _ours(where: str) -> type[Point]:
    module, _, name = where.partition(":")
    return cast(type[Point], getattr(import_module(module), name))


@cache
def _theirs(word: str) -> type[Point] | None:
    """The selector of another package. Raises `UsageError` for one that does not load, or is none."""
    point = entry_points_of(ENTRY_POINTS).get(word)
    if point is None:
        return None
    what = f"the selector {point.value} for {word}:… points"
    found = loaded(point, what)
    if not (isinstance(found, type) and issubclass(found, Point)):
        raise unusable(point, f"{what} is no clew.transcript.points.Point")
    return found
