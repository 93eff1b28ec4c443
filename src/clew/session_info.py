"""What is told of a session: its row of a list, and one way through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from clew.records.record import Record
from clew.transcript.chain import Chain
from clew.transcript.message import Message
from clew.transcript.messages import conversation

if TYPE_CHECKING:
    from clew.session import Session


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a list says about a session; a row of `clew ls --json`.

    Texts come from the log and may hold any characters. `updated_at` is when the log was last changed and `created_at`
    the first time a row names. `expires_at` is when the client may delete it, or None where no client cleans up.
    """

    id: str
    project: str
    cwd: str | None
    title: str | None
    first_prompt: str | None
    tag: str | None
    git_branch: str | None
    model: str | None
    created_at: str | None
    updated_at: str | None
    message_count: int
    size_bytes: int
    agents: int
    version: str | None
    pinned: bool = False
    archived: bool = False
    parent_id: str | None
    path: str
    owner: str | None = None
    workspace: str | None = None
    labels: tuple[str, ...] = ()
    turn_count: int
    total_tokens: int
    exit_reason: str | None = None
    agent_name: str | None
    expires_at: str | None


class Transcript(msgspec.Struct, frozen=True):
    """One way through a session, from its root to a leaf. `is_head` says that the client goes on from this leaf."""

    session: Session
    leaf: str
    chain: Chain
    is_head: bool

    @property
    def records(self) -> list[Record]:
        """The records of the chain, root first."""
        return self.chain.records

    def messages(self, *, reminders: bool = False) -> list[Message]:
        """What the model would be sent of it."""
        return conversation(self.chain.records, reminders=reminders).messages
