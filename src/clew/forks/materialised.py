"""The copy of an attached fork: what it inherits becomes its own, every row of its ancestors up to the point, with the
blobs and subagents of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from clew.engines.contract import Engine, LogKey
from clew.errors import UsageError
from clew.forks.beginning import titles
from clew.forks.belongings import blob_in, put_agents
from clew.forks.kind import Forked, Parent, Wanted
from clew.forks.places import fork_point
from clew.forks.rows import Rewriter
from clew.layouts.claude import Kind
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
    # A name is that of one session; of all else the nearest has the word, so its blobs come last.
    agents = blobs = 0
    for name in dict.fromkeys([*(each.session for each in point.lineage), parent.key.session]):
        old = LogKey(key.project, name)
        is_named = name == parent.key.session and wanted.title is None
        blobs += _link_blobs(engine, old, key, is_named=is_named)
        agents += put_agents(engine, old, key, Rewriter(old, key.session, new_id=None, rewrite_paths=False))
    engine.extend(key, count.of(chain(rows, named)), start=0)
    return Forked(key, parent.key, COPY, point.at, count.lines, agents, blobs)


def _link_blobs(engine: Engine, old: LogKey, key: LogKey, *, is_named: bool) -> int:
    count = 0
    for blob in engine.blobs(old):
        own = blob_in(blob.key, key)
        if own is not None and (is_named or own.kind != Kind.CUSTOM_TITLE.value):
            engine.link(blob.key, own)
            count += 1
    return count


class _Count:
    lines = 0

    def of(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.lines += chunk.count(b"\n")
            yield chunk
