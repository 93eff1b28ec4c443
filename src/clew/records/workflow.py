"""Rows of workflows and subagents: their journal, what a subagent is, and the progress rows of older clients."""

from __future__ import annotations

from clew.records.views import Envelope, JsonValue, View


class Started(View, frozen=True):
    """A step of a workflow has begun."""

    key: str | None = None
    agent_id: str | None = None


class Result(View, frozen=True):
    """A step of a workflow has ended; what it gave may be any JSON."""

    key: str | None = None
    agent_id: str | None = None
    result: JsonValue = None


class AgentMetadata(View, frozen=True):
    """What a subagent is. The client keeps it in `.meta.json`; SDK stores keep it as a row.

    `tool_use_id` names the call in the main log that started the subagent.
    """

    agent_type: str | None = None
    is_built_in: bool | None = None
    description: str | None = None
    tool_use_id: str | None = None
    spawn_depth: int | None = None
    request_shape: str | None = None
    request_non_interactive: bool | None = None
    model: str | None = None
    picked_effort_model: str | None = None
    finished: bool | None = None
    worktree_path: str | None = None
    parent_agent_id: str | None = None


class Progress(Envelope, frozen=True):
    """A row of older clients that says a tool still runs. The chain goes through it; it is no message."""
