"""Which protocols of other programs a store can speak, by the package that has the protocol. Imported on use only."""

from __future__ import annotations

ADAPTERS = {
    "claude_agent_sdk": "clew.adapters.claude_agent_sdk:ClaudeSessionStore",
}

NOT_IN_TABLE = ("in_order", "summaries")
"""What the adapters are made of."""
