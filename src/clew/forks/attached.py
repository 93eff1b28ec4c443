"""`attached`: a session of its own rows only, which inherits the rows of its parent up to a point."""

from __future__ import annotations

from clew.engines.contract import LogKey
from clew.forks.beginning import begin, must_be_possible
from clew.forks.kind import Forked, Parent, Wanted
from clew.forks.places import fork_point
from clew.lineage import fork_row, must_be_there
from clew.records.own import ATTACHED


class Attached:
    """One row, whatever the size of the parent. It names every ancestor, so that reading needs no recursion."""

    def make(self, parent: Parent, wanted: Wanted) -> Forked:
        must_be_possible(parent, wanted, ATTACHED)
        engine, key = parent.engine, LogKey(parent.key.project, wanted.session)
        point = fork_point(parent, wanted.at)
        first = fork_row(ATTACHED, parent.key, key, point, wanted.timestamp)
        # Whoever deletes a session looks for its children, and takes it away, while it holds the store alone.
        with engine.alone():
            for each in point.lineage:
                must_be_there(engine, key, each)
            records = begin(engine, key, first, wanted.title)
        return Forked(key, parent.key, ATTACHED, point.at, records)
