"""Which engines there are, by the word before the colon of a store's URL. Imported on use only."""

from __future__ import annotations

ENGINES = {
    "claude": "clew.engines.files:FilesEngine",
    "memory": "clew.engines.memory:MemoryEngine",
    "sqlite": "clew.engines.sqlite:SqliteEngine",
}

NOT_IN_TABLE = (
    "appending", "contract", "dedupe", "dedupe_disk", "files_live", "files_reader", "files_trash", "filesystem",
    "journal", "known_rows", "lines", "peek", "rounds", "scan", "shared_log", "sqlite_blobs", "sqlite_file",
    "sqlite_logs", "sqlite_removal", "sqlite_schema", "sqlite_search", "whole", "worktrees",
)  # fmt: skip
"""What the engines are made of."""
