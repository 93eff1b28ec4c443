"""What ties a session to other sessions, directories, pull requests and hooks. What they say is a claim."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from clew.records.views import JsonValue, Part, View


class PrLink(View, frozen=True):
    pr_number: int | None = None
    pr_url: str | None = None
    pr_repository: str | None = None


class WorktreeSession(Part, frozen=True):
    """The worktree that a session works in, and where it came from."""

    original_cwd: str | None = None
    pre_enter_original_cwd: str | None = None
    worktree_path: str | None = None
    worktree_name: str | None = None
    worktree_branch: str | None = None
    original_branch: str | None = None
    original_head_commit: str | None = None
    session_id: str | None = None


class WorktreeState(View, frozen=True):
    """`worktree_session` is None when the session has left its worktree, UNSET when the row does not say."""

    worktree_session: WorktreeSession | UnsetType | None = UNSET


class Relocated(View, frozen=True):
    """The session's directory has moved."""

    relocated_cwd: str | None = None


class FrameLink(View, frozen=True):
    path: str | None = None
    frame_url: str | None = None
    title: str | None = None


class ForkContextRef(View, frozen=True):
    """A subagent that began with the first `context_length` messages of its parent."""

    agent_id: str | None = None
    parent_session_id: str | None = None
    parent_last_uuid: str | None = None
    context_length: int | None = None


class ContinuedIn(View, frozen=True):
    """The conversation goes on in another session; the client hides this one in lists."""

    continued_in_session_id: str | None = None


class DerivedSession(Part, frozen=True):
    type: str | None = None
    id: str | None = None
    via: str | None = None


class DerivedFrom(View, frozen=True):
    """The sessions that this one was made of."""

    v: int | None = None
    sessions: tuple[DerivedSession, ...] = ()


class ContentReplacement(View, frozen=True):
    """Contents that the client replaces when it sends them."""

    replacements: tuple[JsonValue, ...] = ()


class SavedHookContext(View, frozen=True):
    """What a hook added to the conversation."""

    content: tuple[JsonValue, ...] = ()
    hook_event: str | None = None
    hook_name: str | None = None
    tool_use_id: str | None = msgspec.field(default=None, name="toolUseID")
