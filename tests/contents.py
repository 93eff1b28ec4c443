"""What is in a store, as bytes, to be compared before and after; and a session with something of everything."""

from __future__ import annotations

import os
from pathlib import Path

from clew.engines.contract import BlobKey, Engine, Entry, LogKey
from session_files import PROJECT, in_bytes, session_id, two_turns

Contents = dict[LogKey | BlobKey, tuple[bytes, int, int]]
"""By key: the bytes, the time of the last change, and the mode (0 for logs)."""

FILLED_NS = 1_790_000_000_000_000_000


def contents(engine: Engine) -> Contents:
    """Every session with all that belongs to it. Blobs of the whole store are not sessions."""
    found: Contents = {}
    for project in engine.projects():
        keys = {stat.key for stat in engine.list(project)}
        keys |= {LogKey(project, session) for session in engine.list_subs(project)}
        for key in keys:
            stats = [stat for stat in (engine.stat(key), *engine.list_sub(key)) if stat is not None]
            for stat in stats:
                data = b"".join(engine.read_range(stat.key, position=0, size=stat.size_bytes))
                found[stat.key] = (data, stat.modified_ns, 0)
            for blob in engine.blobs(key):
                found[blob.key] = (b"".join(engine.open(blob.key)), blob.modified_ns, blob.mode)
    return found


def fill(engine: Engine, number: int, *, project: str = PROJECT, raw: bytes | None = None) -> LogKey:
    """A session with a main log, two sublogs, and a blob of each kind; one is empty, one cannot be text."""
    key = LogKey(project, session_id(number))
    name = key.session
    data = in_bytes(*two_turns(f"{number}")) if raw is None else raw
    engine.extend(key, [data], start=0, modified_ns=FILLED_NS + number, make=True)
    flat = f"agent-b{number}"
    agents = in_bytes({"type": "user", "uuid": "x", "sessionId": name, "isSidechain": True, "agentId": flat[6:]})
    for at, subpath in enumerate(("subagents/agent-a1", flat)):
        engine.extend(LogKey(project, name, subpath), [agents], start=0, modified_ns=FILLED_NS + 10 + at, make=True)
    for at, (kind, blob, content) in enumerate((
        ("tool result", "tool-results/t1.txt", b"\xff\x00 output"),
        ("meta", "subagents/agent-a1.meta.json", b"{}"),
        ("meta", f"{flat}.meta.json", b'{"agentType":"x"}'),
        ("custom title", "custom-title.json", b'{"title":"T"}'),
        ("sidecar", "notes/empty", b""),
        ("backup", "0123456789abcdef@v1", b"before"),
        ("label", "own", b"of clew"),
    )):  # fmt: skip
        mode = 0o644 if kind == "backup" else 0o600
        engine.put(BlobKey(project, name, kind, blob), [content], mode=mode, modified_ns=FILLED_NS + 20 + at)
    return key


def add_session(engine: Engine, number: int) -> LogKey:
    """A session with a main log alone."""
    key = LogKey(PROJECT, session_id(number))
    engine.append(key, [Entry(row) for row in in_bytes(*two_turns(f"{number}")).splitlines()])
    return key


def set_live(root: Path, session: str) -> None:
    """A note as the client keeps it while it runs; this process stands for the client."""
    folder = root / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}.json").write_text(f'{{"pid":{os.getpid()},"sessionId":"{session}"}}')
