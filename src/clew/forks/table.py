"""The kinds of forks by the name that `--kind` takes; outside packages add theirs by the entry point `clew.fork_kinds`.

Imported when they are used.
"""

from __future__ import annotations

FORK_KINDS: dict[str, str] = {
    "attached": "clew.forks.attached:Attached",
    "detached": "clew.forks.detached:Detached",
}

NOT_IN_TABLE = frozenset({"beginning", "kind", "materialised", "places"})
"""The modules of this folder that are no kinds: what they keep to, and where a point stands."""
