"""Situations in which `continue` has to choose. Each puts files into a config directory and says what is taken.

The client was asked about every one of them; `compat/test_continuing.py` asks it again.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from real_client import project_folder
from session_files import Row, assistant, changed, in_bytes, session_id, user

A, B, C = session_id(0xA), session_id(0xB), session_id(0xC)
UPPER = "ABCDEF00-0000-4000-8000-00000000000A"
SESSIONS = frozenset({A, B, C, UPPER})
FAR = 100
"""So many rows of a kilobyte are more than the client's window of 64 KiB."""


@dataclass
class Situation:
    """`cwd` is where `continue` is called; `taken` are the sessions that may be taken, none for a new conversation.

    `is_new` says that the client takes it, finds it cleared, and goes on under a new id.
    """

    config: Path
    work: Path
    cwd: Path = field(init=False)
    taken: tuple[str, ...] = (B,)
    is_new: bool = False

    def __post_init__(self) -> None:
        self.cwd = self.work
        self.folder.mkdir(parents=True)

    @property
    def folder(self) -> Path:
        return self.config / "projects" / project_folder(self.work)

    def put(self, name: str, *rows: Row, raw: bytes | None = None, at: int = 0, folder: Path | None = None) -> Path:
        path = (folder or self.folder) / (name if "." in name else f"{name}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(in_bytes(*rows) if raw is None else raw)
        changed(path, at)
        return path

    def older(self) -> None:
        self.put(A, *turn("old"))


def turn(name: str, **more: object) -> list[Row]:
    """One prompt and its answer."""
    asked = user(f"{name}u1-0000", f"prompt {name}", None, 1, **more)
    return [asked, assistant(f"{name}a2-0000", f"answer {name}", f"{name}u1-0000", 2, **more)]


def title(text: str) -> Row:
    return {"type": "custom-title", "customTitle": text, "sessionId": B}


def continued_in(session: str) -> Row:
    return {"type": "continued-in", "continuedInSessionId": session, "sessionId": B}


SITUATIONS: dict[str, Callable[[Situation], object]] = {}


def situation(make: Callable[[Situation], object]) -> Callable[[Situation], object]:
    SITUATIONS[make.__name__] = make
    return make


def newer(*rows: Row, raw: bytes | None = None, taken: str = B) -> Callable[[Situation], object]:
    """An older session with a turn, and B with this."""

    def make(of: Situation) -> None:
        of.older()
        of.put(B, *rows, raw=raw, at=10)
        of.taken = (taken,)

    return make


_clear: Row = {"type": "last-prompt", "leafUuid": None, "explicit": True, "sessionId": B}
_snapshot: Row = {
    "type": "file-history-snapshot", "messageId": "u", "isSnapshotUpdate": False,
    "snapshot": {"messageId": "u", "trackedFileBackups": {}, "timestamp": "2026-11-18T10:00:00Z"},
}  # fmt: skip
_boundary: Row = {
    "parentUuid": None, "logicalParentUuid": "prea2-0000", "isSidechain": False, "type": "system",
    "subtype": "compact_boundary", "content": "Conversation compacted", "uuid": "bnd-0000",
    "timestamp": "2026-11-18T10:00:03.000Z", "compactMetadata": {"trigger": "manual", "preTokens": 15},
}  # fmt: skip
_summary = user("sum-0000", "SUMMARY", "bnd-0000", 4, isCompactSummary=True, isVisibleInTranscriptOnly=True)
_error = assistant("erre3-0000", "API Error: 500", "erra2-0000", 3, isApiErrorMessage=True)
_long = [title("t" * 900)] * FAR
_hiding = [turn("n")[0], turn("n")[1] | {"toolUseResult": {"isSidechain": True}}]
_quoting = [turn("n")[0], assistant("na2-0000", '"isSidechain":true', "nu1-0000", 2)]

SITUATIONS |= {
    "the newest": newer(*turn("new")),
    "an empty newer file": newer(raw=b""),
    "metadata only": newer(title("t"), _snapshot, taken=A),
    "metadata only, more than the window": newer(*_long, *_long, taken=A),
    "metadata around a conversation": newer(*_long, *turn("n"), *_long),
    "sidechains only": newer(*turn("side", isSidechain=True), taken=A),
    "a sidechain row after the first ones": newer(*turn("n"), *turn("side", isSidechain=True), taken=A),
    "a sidechain row beyond the window": newer(*turn("n"), *_long, *turn("s", isSidechain=True), *turn("e")),
    "a tool's result that reads like a sidechain row": newer(*_hiding, taken=A),
    "a text that quotes one": newer(*_quoting),
    "an agent of a team": newer(*turn("t", teamName="x"), taken=A),
    "garbage only": newer(raw=b"no json\n{{{{\n", taken=A),
    "blanks only": newer(raw=b"\n \n", taken=A),
    "the beginning of a row": newer(raw=in_bytes(turn("torn")[0])[:40]),
    "a torn tail": newer(raw=in_bytes(*turn("torn")) + b'{"parentUuid":"x","type":"user","mess'),
    "an API error at the end": newer(*turn("err"), _error),
    "a compacted one": newer(*turn("pre"), _boundary, _summary),
    "a fork": newer(*(row | {"forkedFrom": {"sessionId": A, "messageUuid": row["uuid"]}} for row in turn("frk"))),
    "a prompt without an answer": newer(turn("one")[0]),
    "one that goes on in another": newer(*turn("cont"), continued_in(A), title("t"), taken=A),
    "one that goes on in another and here": newer(*turn("cont"), continued_in(A), *turn("more")),
    "one that goes on in one that is gone": newer(*turn("cont"), continued_in(C)),
    "one that goes on in another, far from its end": newer(*turn("cont"), continued_in(A), *_long),
}


@situation
def one_that_goes_on_in_an_empty_one(of: Situation) -> None:
    of.older()
    of.put(C, raw=b"")
    of.put(B, *turn("cont"), continued_in(C), at=10)


@situation
def one_that_goes_on_in_one_with_nothing_but_metadata(of: Situation) -> None:
    of.older()
    of.put(C, title("t"))
    of.put(B, *turn("cont"), continued_in(C), at=10)


@situation
def one_that_goes_on_in_a_link(of: Situation) -> None:
    of.older()
    (of.folder / f"{C}.jsonl").symlink_to(of.put(C, *turn("linked"), folder=of.config / "elsewhere"))
    of.put(B, *turn("cont"), continued_in(C), at=10)


@situation
def one_that_goes_on_in_a_subagents(of: Situation) -> None:
    of.older()
    of.put(C, *turn("side", isSidechain=True), at=-5)
    of.put(B, *turn("cont"), continued_in(C), at=10)
    of.taken = (A,)


@situation
def a_future_time(of: Situation) -> None:
    of.older()
    of.put(B, *turn("new"), at=10**9)


@situation
def a_tag_appended_to_an_old_session(of: Situation) -> None:
    of.put(B, *turn("old"), {"type": "tag", "tag": "x", "sessionId": B}, at=20)
    of.put(A, *turn("new"), at=10)


@situation
def the_same_time(of: Situation) -> None:
    for name in (C, A, B):
        of.put(name, *turn("same"), at=5)
    of.taken = (A, B, C)


@situation
def wrong_names(of: Situation) -> None:
    of.put(B, *turn("new"))
    of.put("notes", *turn("wrong"), at=10)
    of.put("agent-a0123456789abcdef", *turn("agent", isSidechain=True, agentId="a0123456789abcdef"), at=20)
    of.put(f"{C}.JSONL", *turn("ending"), at=30)
    (of.folder / f"{C}.jsonl").mkdir()


@situation
def an_id_in_capitals(of: Situation) -> None:
    of.older()
    of.put(UPPER, *turn("upper"), at=10)
    of.taken = (UPPER,)


@situation
def a_link(of: Situation) -> None:
    of.older()
    (of.folder / f"{B}.jsonl").symlink_to(of.put(B, *turn("linked"), at=10, folder=of.config / "elsewhere"))
    of.taken = (A,)


@situation
def an_archived_one(of: Situation) -> None:
    of.older()
    (of.folder / B).mkdir()
    (of.folder / B / "archived.json").write_text('{"archived":true,"at":"2026-11-18T10:00:00Z","by":"sdk"}')
    of.put(B, *turn("archived"), at=10)


@situation
def a_newer_one_in_another_project(of: Situation) -> None:
    of.put(B, *turn("here"))
    of.put(A, *turn("other"), at=10, folder=of.config / "projects" / "-other")


@situation
def a_newer_one_in_a_worktree(of: Situation) -> None:
    beside = _worktree(of)
    of.put(B, *turn("main"))
    of.put(A, *turn("worktree"), at=10, folder=of.config / "projects" / project_folder(beside))


@situation
def a_worktree_without_sessions(of: Situation) -> None:
    of.cwd = _worktree(of)
    of.put(B, *turn("main"))
    of.taken = ()


@situation
def a_symlinked_directory(of: Situation) -> None:
    of.put(B, *turn("real"))
    of.cwd = of.work.parent / "link"
    of.cwd.symlink_to(of.work)


@situation
def a_conversation_that_was_cleared(of: Situation) -> None:
    of.older()
    of.put(B, *turn("n"), _clear, at=10)
    of.is_new = True


@situation
def no_sessions_at_all(of: Situation) -> None:
    of.taken = ()


def _worktree(of: Situation) -> Path:
    """A worktree of the repository that the directory is made into."""
    beside = of.work.parent / "worktree"
    git = ["git", "-c", "user.email=me@example.org", "-c", "user.name=me"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(of.work.parent)}
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", str(beside)]):
        subprocess.run([*git, *words], cwd=of.work, env=environment, check=True, capture_output=True)
    return beside


def made(name: str, root: Path) -> Situation:
    """The situation of that name, below `root`."""
    (root / "work").mkdir(parents=True)
    found = Situation(root / "config", root / "work")
    SITUATIONS[name](found)
    return found
