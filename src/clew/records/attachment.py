"""Attachments: what the client told the model beside the prompt. They are rows of the chain, not notes on it."""

from __future__ import annotations

import msgspec
from msgspec.structs import force_setattr

from clew.records.views import Content, Envelope, JsonObject, JsonValue, Part, part_of


class Payload(Part, frozen=True):
    """What an attachment says; each kind has a class of its own."""


class UnknownAttachment(Payload, frozen=True):
    """A kind that nobody here has heard of. `fields` is the whole payload, its `type` included."""

    fields: JsonObject = msgspec.field(default_factory=dict)


class EnvironmentSnapshot(Part, frozen=True):
    """Where the client runs."""

    working_directory: str | None = None
    is_worktree: bool | None = None
    is_git_repo: bool | None = None
    additional_working_directories: tuple[str, ...] = ()
    platform: str | None = None
    shell: str | None = None
    os_version: str | None = None


class EnvironmentNote(Payload, frozen=True):
    snapshot: EnvironmentSnapshot | None = None


class ModelIdentity(Part, frozen=True):
    """Which model answers, and what it is called."""

    model_id: str | None = None
    marketing_name: str | None = None
    knowledge_cutoff: str | None = None


class ModelNote(Payload, frozen=True):
    identity: ModelIdentity | None = None
    text: str | None = None


class DateNote(Payload, frozen=True):
    date: str | None = None


class SessionContext(Payload, frozen=True):
    context: JsonObject = msgspec.field(default_factory=dict)


class TotalTokensReminder(Payload, frozen=True):
    text: str | None = None


class DeferredToolsDelta(Payload, frozen=True):
    """Which tools can be looked up, and which servers are not there yet."""

    added_names: tuple[str, ...] = ()
    added_lines: tuple[str, ...] = ()
    removed_names: tuple[str, ...] = ()
    readded_names: tuple[str, ...] = ()
    wire_hidden_names: tuple[str, ...] = ()
    pending_mcp_servers: tuple[JsonValue, ...] = ()
    needs_auth_mcp_servers: tuple[JsonValue, ...] = ()
    failed_mcp_servers: tuple[JsonValue, ...] = ()


class AgentListingDelta(Payload, frozen=True):
    """Which kinds of subagents there are."""

    added_types: tuple[str, ...] = ()
    added_lines: tuple[str, ...] = ()
    removed_types: tuple[str, ...] = ()
    built_in_types: tuple[str, ...] = ()
    built_in_plugin_types: tuple[str, ...] = ()
    is_initial: bool | None = None
    show_concurrency_note: bool | None = None


class SkillListing(Payload, frozen=True):
    content: str | None = None
    names: tuple[str, ...] = ()
    skill_count: int | None = None
    digests: tuple[str, ...] = ()
    is_initial: bool | None = None


class RemoteSessionChange(Payload, frozen=True):
    """What the model is told to write under commits and pull requests."""

    url: str | None = None
    commit: str | None = None
    pr: str | None = None
    send_user_file_hint: bool | None = None
    managed_commit: bool | None = None
    managed_pr: bool | None = None


class ToolDescription(Part, frozen=True):
    name: str | None = None
    description: str | None = None
    schema: JsonValue = None


class PromptSnapshot(Payload, frozen=True):
    """The system prompt of this turn."""

    system_prompt: tuple[str, ...] = ()
    reminder_fold: bool | None = None
    echo_wire_tool_inputs: bool | None = None
    context_rendering: str | None = None
    cli_prefix: str | None = None
    tools: tuple[ToolDescription, ...] = ()


class QueuedCommand(Payload, frozen=True):
    """A prompt that was sent while the model worked: it has no user row of its own."""

    prompt: Content = None
    source_uuid: str | None = msgspec.field(default=None, name="source_uuid")
    delivery_id: str | None = msgspec.field(default=None, name="delivery_id")
    command_mode: str | None = None
    timestamp: str | None = None


class UnknownCommandFallback(Payload, frozen=True):
    """A slash command that does not exist."""

    command_name: str | None = None
    available_command_names: tuple[str, ...] = ()
    available_command_count: int | None = None


PAYLOADS: dict[str, type[Payload]] = {
    "environment": EnvironmentNote,
    "model": ModelNote,
    "date": DateNote,
    "session_context": SessionContext,
    "total_tokens_reminder": TotalTokensReminder,
    "deferred_tools_delta": DeferredToolsDelta,
    "agent_listing_delta": AgentListingDelta,
    "skill_listing": SkillListing,
    "remote_session_change": RemoteSessionChange,
    "prompt_snapshot": PromptSnapshot,
    "queued_command": QueuedCommand,
    "unknown_command_fallback": UnknownCommandFallback,
}
"""Which class reads which kind. The set is open: any other kind is an `UnknownAttachment`."""


class Rendered(Part, frozen=True):
    """The words that the model gets for an attachment."""

    content: Content = None


class Attachment(Envelope, frozen=True):
    """An attachment row. `payload` is read by its kind; `fields` is the same object as it stands on the line."""

    fields: JsonObject = msgspec.field(default_factory=dict, name="attachment")
    rendered: tuple[Rendered, ...] = ()
    rendered_role: str | None = None
    rendered_beside_tool_result: bool | None = None
    payload: Payload = msgspec.field(default_factory=UnknownAttachment, name="<payload>")

    @property
    def kind(self) -> str | None:
        """What the payload calls itself; None when it says nothing, or nothing that is a string."""
        kind = self.fields.get("type")
        return kind if isinstance(kind, str) else None

    def derive(self) -> tuple[str, ...]:
        cls = PAYLOADS.get(self.kind or "")
        if cls is None:
            force_setattr(self, "payload", UnknownAttachment(self.fields))
            return ("attachment.type",) if self.kind is None and self.fields else ()
        payload, misfits = part_of(cls, self.fields)
        force_setattr(self, "payload", payload)
        return tuple(f"attachment.{name}" for name in misfits)
