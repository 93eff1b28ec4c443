"""The copy of an attached fork: what it inherits becomes its own, every row of its ancestors up to the point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from clew.engines.contract import LogKey
from clew.errors import UsageError
from clew.forks.beginning import titles
from clew.forks.kind import Forked, Parent, Wanted
from clew.forks.places import fork_point
from clew.lineage import fork_row, materialised

COPY = "copy"


def copied(parent: Parent, wanted: Wanted) -> Forked:
    """Makes the copy of a session that is an attached fork. Its log appears whole or not at all.

    Raises `UsageError` where ids or paths are to be other ones: rows of several sessions would have to agree on them.
    """
    if wanted.new_ids or wanted.rewrite_paths:
        raise UsageError(
            f"{parent.key.session} is an attached fork, whose rows stand in several sessions",
            hint=f"copy it as it is first, and then that: clew fork {parent.key.session} --kind copy",
        )
    engine, key = parent.engine, LogKey(parent.key.project, wanted.session)
    point = fork_point(parent, wanted.at)
    first = fork_row(COPY, parent.key, key, point, wanted.timestamp)
    count = _Count()
    rows = materialised(engine, key, point, first, names_of=parent.key.session)
    named = (row + b"\n" for row in titles(key, wanted.title))
    engine.extend(key, count.of(chain(rows, named)), start=0)
    return Forked(key, parent.key, COPY, point.at, count.lines)


class _Count:
    lines = 0

    def of(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.lines += chunk.count(b"\n")
            yield chunk
