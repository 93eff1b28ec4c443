"""Which engines there are, by the word before the colon of a store's URL. Imported on use only."""

from __future__ import annotations

ENGINES = {
    "claude": "clew.engines.files:FilesEngine",
}

NOT_IN_TABLE = (
    "contract", "dedupe", "dedupe_disk", "files_reader", "filesystem", "lines", "peek", "worktrees",
)  # fmt: skip
"""What the engines are made of."""
