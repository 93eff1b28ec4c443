"""`detached`: a session that says where it came from, and starts empty."""

from __future__ import annotations

from clew.engines.contract import LogKey
from clew.forks.beginning import begin, must_be_possible
from clew.forks.kind import Forked, Parent, Wanted
from clew.forks.places import fork_point
from clew.lineage import fork_row

DETACHED = "detached"


class Detached:
    """Nothing is inherited: not a row, not a state. The parent may be deleted."""

    def make(self, parent: Parent, wanted: Wanted) -> Forked:
        must_be_possible(parent, wanted, DETACHED)
        key, point = LogKey(parent.key.project, wanted.session), fork_point(parent, wanted.at)
        first = fork_row(DETACHED, parent.key, key, point, wanted.timestamp)
        return Forked(key, parent.key, DETACHED, point.at, begin(parent.engine, key, first, wanted.title))
