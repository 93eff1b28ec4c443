"""What goes along with the rows of a session when a fork has rows of its own: blobs, and the logs of its subagents."""

from __future__ import annotations

from clew.engines.contract import BlobKey, Engine, LogKey
from clew.forks.rows import Rewriter, log_rewritten
from clew.layouts.claude import Kind, is_flat

_CARRIED = frozenset(kind.value for kind in (Kind.BACKUP, Kind.TOOL_RESULT, Kind.META, Kind.CUSTOM_TITLE, Kind.SIDECAR))


def blob_in(blob: BlobKey, fork: LogKey) -> BlobKey | None:
    """Where a blob of the parent belongs in the fork; None for one that stays behind."""
    if blob.kind not in _CARRIED:
        return None
    flat = blob.kind == Kind.META.value and "/" not in blob.name
    return BlobKey(fork.project, fork.session, blob.kind, f"subagents/{blob.name}" if flat else blob.name)


def put_agents(engine: Engine, parent: LogKey, fork: LogKey, rewriter: Rewriter) -> int:
    """The logs of subagents and workflows. Those beside the session, where older clients put them, go into its
    folder, since that place belongs to all sessions of the project. Returns how many.
    """
    agents = 0
    for stat in list(engine.list_sub(parent)):
        subpath = f"subagents/{stat.key.subpath}" if is_flat(stat.key.subpath) else stat.key.subpath
        key = LogKey(fork.project, fork.session, subpath)
        left = engine.stat(key)
        if left is not None:
            engine.delete(key)
        engine.extend(key, log_rewritten(engine, stat.key, rewriter), start=0, make=True)
        agents += 1
    return agents
