"""Which kinds of forks there are. Other packages name theirs in the entry point group `clew.fork_kinds`."""

from __future__ import annotations

FORK_KINDS: dict[str, str] = {
    "copy": "clew.forks.copy:Copy",
    "attached": "clew.forks.attached:Attached",
    "detached": "clew.forks.detached:Detached",
}

NOT_IN_TABLE = ("beginning", "belongings", "kind", "materialised", "places", "rows")
"""What the kinds are made of."""
