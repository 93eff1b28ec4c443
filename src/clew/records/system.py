"""Rows of the client itself inside the conversation; `subtype` says which kind."""

from __future__ import annotations

from clew.records.views import Content, Envelope, Number, Part


class PreservedSegment(Part, frozen=True):
    """A run of old rows that stay in the conversation: its head hangs on the anchor, the rest goes on from its tail."""

    head_uuid: str | None = None
    anchor_uuid: str | None = None
    tail_uuid: str | None = None


class PreservedMessages(Part, frozen=True):
    """The same, row by row; where both stand, this one counts."""

    anchor_uuid: str | None = None
    uuids: tuple[str, ...] = ()
    all_uuids: tuple[str, ...] = ()


class CompactMetadata(Part, frozen=True):
    """What a compaction took out, and which rows it kept."""

    trigger: str | None = None
    pre_tokens: Number | None = None
    post_tokens: Number | None = None
    duration_ms: Number | None = None
    cumulative_dropped_tokens: Number | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None
    pre_compact_discovered_tools: tuple[str, ...] = ()


class CommandRun(Part, frozen=True):
    """A slash command, as it was typed."""

    command: str | None = None
    args: str | None = None


class System(Envelope, frozen=True):
    """A system row. The fields below `level` belong to the subtype in their comment."""

    subtype: str | None = None
    content: Content = None
    level: str | None = None
    compact_metadata: CompactMetadata | None = None  # compact_boundary
    command_run: CommandRun | None = None  # local_command
    duration_ms: Number | None = None  # turn_duration
    message_count: int | None = None  # turn_duration

    @property
    def is_compact_boundary(self) -> bool:
        """Whether the conversation starts anew here, before the summary."""
        return self.subtype == "compact_boundary"
