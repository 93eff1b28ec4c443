"""The chain: the records from the root to a row, as the client puts them in order.

behind         what hangs under the last prompt or answer, down to the row           trailing.py
walk up        by parents, from the row to the root, lost parents repaired            walk.py
put back       what parallel tool calls left beside the chain                         beside.py
cut            everything before the last compaction boundary
"""

from __future__ import annotations

import msgspec

from clew.records.record import Record
from clew.transcript.beside import with_rows_beside
from clew.transcript.links import Links, links_of
from clew.transcript.trailing import nearest_said, trailing
from clew.transcript.tree import Tree
from clew.transcript.walk import Repair, walk_up


class Chain(msgspec.Struct, frozen=True):
    """Records from the root to the leaf, with what was repaired and which rows were put back from beside the chain."""

    records: list[Record]
    repairs: list[Repair]
    put_back: frozenset[str]


def chain_to(tree: Tree, leaf: str | None, links: Links | None = None) -> Chain:
    """The chain that ends at `leaf`; empty for None and for a row that is not in the log or was compacted away."""
    links = links_of(tree) if links is None else links
    if leaf is None or leaf not in links:
        return Chain([], [], frozenset())
    repairs: list[Repair] = []
    said = nearest_said(links, leaf, {})
    behind = trailing(links, said) if said is not None and said != leaf else []
    walked = list(walk_up(links, leaf if said is None else said, repairs))
    walked.reverse()
    if behind:
        on_way = set(walked)
        walked.extend(uuid for uuid in behind[: behind.index(leaf) + 1] if uuid not in on_way)
        del on_way  # As large as the conversation, like what comes next.
    whole, put_back = with_rows_beside(links, walked)
    records = [tree.records[uuid] for uuid in whole]
    if tree.boundaries:
        records = records[max((place for place, record in enumerate(records) if _is_boundary(record)), default=0) :]
    return Chain(records, repairs, put_back)


def _is_boundary(record: Record) -> bool:
    return record.subtype == "compact_boundary" and record.type == "system"
