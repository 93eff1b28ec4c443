"""Rows of file checkpoints. They stand outside the chain and name the prompt they belong to."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from clew.records.views import Part, View


class Backup(Part, frozen=True):
    """The state of one file at one time.

    `backup_file_name` is None when the file did not exist, so a rewind deletes it. UNSET is not that: the row does not
    say, or says it wrongly, and nothing may be deleted for it.
    """

    backup_file_name: str | UnsetType | None = UNSET
    version: int | None = None
    backup_time: str | None = None
    real_parent_dir: str | None = None


class Snapshot(Part, frozen=True):
    """Every tracked file at one prompt, by tracking path: relative to the session's first directory, or absolute."""

    message_id: str | None = None
    tracked_file_backups: dict[str, Backup] = msgspec.field(default_factory=dict)
    timestamp: str | None = None


class FileHistorySnapshot(View, frozen=True):
    """A checkpoint. `message_id` is the uuid of the prompt; `is_snapshot_update` replaces an earlier row of it."""

    message_id: str | None = None
    snapshot: Snapshot | None = None
    is_snapshot_update: bool | None = None


class FileHistoryDelta(View, frozen=True):
    """The first touch of a file after a checkpoint: its state before belongs to `snapshot_message_id`."""

    message_id: str | None = None
    snapshot_message_id: str | None = None
    tracking_path: str | None = None
    backup: Backup | None = None
