"""Which wrappers there are, by what they are called in documents. Imported on use only."""

from __future__ import annotations

WRAPPERS = {
    "faulty": "clew.engines.wrap.faulty:Faulty",
    "logged": "clew.engines.wrap.logged:Logged",
    "mirror": "clew.engines.wrap.mirror:Mirror",
    "read-only": "clew.engines.wrap.read_only:ReadOnly",
    "retry": "clew.engines.wrap.retry:Retry",
    "scratch": "clew.engines.wrap.scratch:Scratch",
}

NOT_IN_TABLE = ("backoff", "base", "marks", "remote", "stack", "taken")
"""What they are made of, and what puts them together."""
