"""Names of a session. Of each type the last row counts."""

from __future__ import annotations

from clew.records.views import JsonObject, View


class CustomTitle(View, frozen=True):
    """The title that a person gave. An SDK fork's row has a uuid and a timestamp, the client's has neither."""

    custom_title: str | None = None


class AgentName(View, frozen=True):
    """Always written together with a custom title, with the same text."""

    agent_name: str | None = None


class AiTitle(View, frozen=True):
    """A title that a model made."""

    ai_title: str | None = None


class Tag(View, frozen=True):
    """A tag; the empty string takes it off."""

    tag: str | None = None


class Summary(View, frozen=True):
    """A line about the conversation that ends at `leaf_uuid`. Older clients wrote it; it is still read."""

    summary: str | None = None
    leaf_uuid: str | None = None


def title_rows(title: str) -> list[JsonObject]:
    """The rows that name a session, as the client writes them. An empty title takes it off, in the client too."""
    return [{"type": "custom-title", "customTitle": title}, {"type": "agent-name", "agentName": title}]
