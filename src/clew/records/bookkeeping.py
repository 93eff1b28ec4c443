"""What the client notes for itself. No row of these is part of the conversation."""

from __future__ import annotations

import msgspec

from clew.records.views import JsonValue, Number, Part, View


class Mode(View, frozen=True):
    mode: str | None = None


class PermissionMode(View, frozen=True):
    permission_mode: str | None = None


class QueueOperation(View, frozen=True):
    """A prompt that waits, or no longer does. `operation` is enqueue, dequeue, remove or popAll; a removal says why."""

    operation: str | None = None
    content: JsonValue = None
    reason: str | None = None
    command_uuid: str | None = None
    delivery_id: str | None = None


class ModelUsage(Part, frozen=True):
    """The tokens and the price of one model, over the whole session."""

    input_tokens: Number | None = None
    output_tokens: Number | None = None
    thinking_tokens: Number | None = None
    cache_read_input_tokens: Number | None = None
    cache_creation_input_tokens: Number | None = None
    cache_creation_ephemeral_5m_input_tokens: Number | None = msgspec.field(
        default=None, name="cacheCreationEphemeral5mInputTokens"
    )
    cache_creation_ephemeral_1h_input_tokens: Number | None = msgspec.field(
        default=None, name="cacheCreationEphemeral1hInputTokens"
    )
    web_search_requests: Number | None = None
    cost_usd: Number | None = msgspec.field(default=None, name="costUSD")


class CostState(View, frozen=True):
    """Running totals of the session; durations and `start_time` are milliseconds."""

    total_cost_usd: Number | None = msgspec.field(default=None, name="totalCostUSD")
    total_api_duration: Number | None = msgspec.field(default=None, name="totalAPIDuration")
    total_api_duration_without_retries: Number | None = msgspec.field(
        default=None, name="totalAPIDurationWithoutRetries"
    )
    total_tool_duration: Number | None = None
    total_lines_added: Number | None = None
    total_lines_removed: Number | None = None
    total_duration: Number | None = None
    start_time: Number | None = None
    model_usage: dict[str, ModelUsage] = msgspec.field(default_factory=dict)
    has_unknown_model_cost: bool | None = None


class ToolsUsed(View, frozen=True):
    tools: tuple[str, ...] = ()


class AtisLatch(View, frozen=True):
    atis: str | None = None


class AgentColor(View, frozen=True):
    """The colour of a session in lists."""

    agent_color: str | None = None


class AgentSetting(View, frozen=True):
    """The kind of agent that the session runs as."""

    agent_setting: str | None = None


class HistorySuppression(View, frozen=True):
    """`ts` is the client's own notion of a time, of which the type is not known."""

    cause: str | None = None
    vetoed_against_account_uuid: str | None = None
    ts: JsonValue = None


class DataFlowRecords(View, frozen=True):
    v: int | None = None
    records: tuple[JsonValue, ...] = ()
    snapshot: JsonValue = None


class DataFlowIncomplete(View, frozen=True):
    v: int | None = None
