"""Rows of the conversation: what the person and the tools said, and what the model answered."""

from __future__ import annotations

import msgspec

from clew.records.views import Content, Envelope, JsonValue, Number, Part


class CacheCreation(msgspec.Struct, frozen=True, gc=False):
    """Tokens written to the prompt cache, by how long they stay there."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What one API message cost. Every row of that message repeats it, so count it once per `message.id`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    service_tier: str | None = None
    inference_geo: str | None = None
    speed: str | None = None
    server_tool_use: JsonValue = None
    output_tokens_details: JsonValue = None
    iterations: JsonValue = None
    fallback_credit: JsonValue = None


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message in the words of the API; those of a person have a role and a content only."""

    role: str | None = None
    content: Content = None
    id: str | None = None
    type: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    stop_details: JsonValue = None
    container: JsonValue = None
    context_management: JsonValue = None
    diagnostics: JsonValue = None


class TurnPosition(Part, frozen=True):
    """Which prompt, and which turn, of the session this is."""

    prompt_index: int | None = None
    turn_index: int | None = None


class PromptOrigin(Part, frozen=True):
    """Who wrote a prompt that no person typed."""

    kind: str | None = None


class PermissionDecision(Part, frozen=True):
    """Why a tool was allowed to run, or was not."""

    decision: str | None = None
    source: str | None = None
    reason_type: str | None = None
    reason_code: str | None = None


class User(Envelope, frozen=True):
    """A prompt, the result of a tool, a note of the client (`is_meta`) or the summary of a compaction."""

    message: Message | None = None
    permission_mode: str | None = None
    prompt_source: str | None = None
    turn_origin: str | None = None
    turn_position: TurnPosition | None = None
    turn_attribution_key: str | None = None
    origin: PromptOrigin | None = None
    image_paste_ids: tuple[int, ...] = ()
    turn_companion: JsonValue = None
    # Of tool results. `tool_use_result` is an object of the tool's own shape, or a string for errors.
    tool_use_result: JsonValue = None
    source_tool_assistant_uuid: str | None = msgspec.field(default=None, name="sourceToolAssistantUUID")
    source_tool_use_id: str | None = msgspec.field(default=None, name="sourceToolUseID")
    permission_decision: PermissionDecision | None = None
    tool_denial_kind: str | None = None
    sandboxed: bool | None = None
    interrupted_message_id: str | None = None
    # Of the summary of a compaction.
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    summarized_turn_prompt_uuids: tuple[str, ...] = ()


class Assistant(Envelope, frozen=True):
    """One block of an API message; the rows of one message share `message.id`. Or a row that the client made up."""

    message: Message | None = None
    api_block_index: int | None = None
    request_id: str | None = None
    request_ref: str | None = None
    requested_model: str | None = None
    prompt_cache_requested: str | None = None
    made_by: str | None = None
    per_turn_effort: JsonValue = None
    effort: JsonValue = None
    thinking_duration_ms: Number | None = None
    thinking_display: str | None = None
    tool_input_stream_ms: Number | None = None
    attribution_agent: str | None = None
    attribution_skill: str | None = None
    attribution_plugin: str | None = None
    # Of rows that no model wrote.
    is_api_error_message: bool | None = None
    error: str | None = None
    api_error_status: int | None = None
    api_error_type: str | None = None
    failed_response_had_no_tool_call: bool | None = None

    @property
    def is_synthetic(self) -> bool:
        """Whether the client wrote this row itself, in place of an answer."""
        return self.message is not None and self.message.model == "<synthetic>"
