"""The replay log of API requests: most bytes of a session, and nothing of its conversation.

A request names its parts by digest: the shape (system prompt and tools) and the messages, each written once per
session. Rows of a subagent carry its `agent_id` and lie in its own log.
"""

from __future__ import annotations

from clew.records.messages import Message
from clew.records.views import JsonValue, Part, View


class Shape(Part, frozen=True):
    """The part of requests that stays the same."""

    system: tuple[JsonValue, ...] = ()
    tools: tuple[JsonValue, ...] = ()


class ApiRequestShape(View, frozen=True):
    agent_id: str | None = None
    shape_hash: str | None = None
    version: str | None = None
    shape: Shape | None = None


class ApiRequestBlob(View, frozen=True):
    """One message, under the digest that `ApiRequest.tail` names it by."""

    agent_id: str | None = None
    hash: str | None = None
    message: Message | None = None


class CacheControl(Part, frozen=True):
    """A cache mark, and the way of keys and indexes to the place that has it."""

    path: tuple[str | int, ...] = ()
    value: JsonValue = None


class ApiRequest(View, frozen=True):
    """A request: the first `keep` messages of the request `base`, then the blobs of `tail`."""

    agent_id: str | None = None
    id: str | None = None
    version: str | None = None
    query_source: str | None = None
    shape_hash: str | None = None
    params: JsonValue = None
    base: str | None = None
    keep: int | None = None
    tail: tuple[str, ...] = ()
    cache_control: tuple[CacheControl, ...] = ()
    request_digest: str | None = None
