"""Which kinds of operations there are: the name that the record holds, and what applies, undoes and frees it."""

from __future__ import annotations

KINDS: dict[str, str] = {
    "delete": "clew.operations.delete:Delete",
    "truncate": "clew.operations.truncate:Truncate",
}

NOT_IN_TABLE = ("log", "operation")
"""What the kinds are made of."""
