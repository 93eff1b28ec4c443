"""Which engines there are, by the word before the colon of a store's URL. Imported on use only."""

from __future__ import annotations

ENGINES = {
    "claude": "clew.engines.files:FilesEngine",
    "memory": "clew.engines.memory:MemoryEngine",
}

NOT_IN_TABLE = ("contract", "files_reader", "filesystem", "lines", "peek", "worktrees")
"""What the engines are made of."""
