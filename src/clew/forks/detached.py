"""`detached`: a session that says where it came from, and starts empty."""

from __future__ import annotations

from clew.engines.contract import LogKey
from clew.forks.kind import Made, Parent, Wanted, begin, refuse
from clew.forks.places import fork_point
from clew.lineage import fork_row


class Detached:
    """Nothing is inherited: not a row, not a state. The parent may be deleted."""

    def fork(self, parent: Parent, wanted: Wanted) -> Made:
        refuse(parent, wanted, "detached")
        key = LogKey(parent.key.project, wanted.id)
        first = fork_row("detached", parent.key, key, fork_point(parent, wanted.at), wanted.timestamp)
        return Made(key, begin(parent.engine, key, first, wanted.title))
