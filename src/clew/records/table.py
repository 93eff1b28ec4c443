"""Which view reads which record type. A new type is one line here and one class in the file of its family.

The set of types is open: a type without a line is read as `clew.records.views.Unknown`. Families of names of which only
the prefix is known (`data-flow-…`, `artifact-…`) have a line for each name that somebody has seen.
"""

from __future__ import annotations

VIEWS: dict[str, str] = {
    # What is said.
    "user": "clew.records.messages:User",
    "assistant": "clew.records.messages:Assistant",
    "system": "clew.records.system:System",
    "attachment": "clew.records.attachment:Attachment",
    "progress": "clew.records.workflow:Progress",
    # What a session is called.
    "custom-title": "clew.records.titles:CustomTitle",
    "agent-name": "clew.records.titles:AgentName",
    "ai-title": "clew.records.titles:AiTitle",
    "tag": "clew.records.titles:Tag",
    "summary": "clew.records.titles:Summary",
    "task-summary": "clew.records.views:Opaque",
    # Where the conversation goes on.
    "last-prompt": "clew.records.heads:LastPrompt",
    "resume-head-vouch": "clew.records.views:Opaque",
    # What files were.
    "file-history-snapshot": "clew.records.file_history:FileHistorySnapshot",
    "file-history-delta": "clew.records.file_history:FileHistoryDelta",
    # The client's own notes.
    "mode": "clew.records.bookkeeping:Mode",
    "permission-mode": "clew.records.bookkeeping:PermissionMode",
    "queue-operation": "clew.records.bookkeeping:QueueOperation",
    "cost-state": "clew.records.bookkeeping:CostState",
    "tools-used": "clew.records.bookkeeping:ToolsUsed",
    "atis-latch": "clew.records.bookkeeping:AtisLatch",
    "agent-color": "clew.records.bookkeeping:AgentColor",
    "agent-setting": "clew.records.bookkeeping:AgentSetting",
    "history-suppression": "clew.records.bookkeeping:HistorySuppression",
    "data-flow-records": "clew.records.bookkeeping:DataFlowRecords",
    "data-flow-incomplete": "clew.records.bookkeeping:DataFlowIncomplete",
    "artifact-autoreact-ledger": "clew.records.views:Opaque",
    "artifact-comment-monitor": "clew.records.views:Opaque",
    "attribution-snapshot": "clew.records.views:Opaque",
    "dev-mods": "clew.records.views:Opaque",
    "ended-by-model": "clew.records.views:Opaque",
    "isolation-latch": "clew.records.views:Opaque",
    "marble-origami-commit": "clew.records.views:Opaque",
    "marble-origami-snapshot": "clew.records.views:Opaque",
    "memory-mode": "clew.records.views:Opaque",
    "repl-mode": "clew.records.views:Opaque",
    "session-owner": "clew.records.views:Opaque",
    "speculation-accept": "clew.records.views:Opaque",
    # What was sent to the API.
    "api-request-shape": "clew.records.request_log:ApiRequestShape",
    "api-request-blob": "clew.records.request_log:ApiRequestBlob",
    "api-request": "clew.records.request_log:ApiRequest",
    # What a session has to do with the world outside it.
    "pr-link": "clew.records.links:PrLink",
    "worktree-state": "clew.records.links:WorktreeState",
    "relocated": "clew.records.links:Relocated",
    "frame-link": "clew.records.links:FrameLink",
    "fork-context-ref": "clew.records.links:ForkContextRef",
    "continued-in": "clew.records.links:ContinuedIn",
    "derived-from": "clew.records.links:DerivedFrom",
    "content-replacement": "clew.records.links:ContentReplacement",
    "saved_hook_context": "clew.records.links:SavedHookContext",
    "bridge-session": "clew.records.views:Opaque",
    "observer-ref": "clew.records.views:Opaque",
    # What workflows and subagents note of themselves.
    "started": "clew.records.workflow:Started",
    "result": "clew.records.workflow:Result",
    "agent_metadata": "clew.records.workflow:AgentMetadata",
    # What clew notes of a session.
    "clew-session": "clew.records.own:SessionNote",
    "clew-fork": "clew.records.own:ForkNote",
}

NOT_IN_TABLE = frozenset({
    "line", "record", "codec", "compact", "envelope", "identity", "json_text", "slim", "splice", "views",
})  # fmt: skip
"""The modules of this folder that read no record type of their own: what the families stand on."""
