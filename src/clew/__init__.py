"""clew keeps, finds, resumes, branches, rewinds and shares the sessions of coding agents.

    import clew

    store = clew.open()
    for info in store.sessions():
        print(info.id, info.title)

Names are imported when they are first used, so that `import clew` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.copying import Copied
    from clew.defaults import open  # noqa: A004 - This is clew.open.
    from clew.engines.contract import LogKey, LogStat
    from clew.engines.files import FilesEngine
    from clew.errors import Ambiguous, Busy, ClewError, Conflict, DamagedData, NotFound, StorageError, UsageError
    from clew.layouts.keys import ClaudeKeys, DigestKeys, GitRootKeys
    from clew.loading import ClientIndex, IndexBuilder, Loaded, Maps
    from clew.marks import Marked
    from clew.operations.operation import Operation
    from clew.records.codec import decode, decode_lines, encode
    from clew.records.line import Line
    from clew.records.record import Malformed, Record
    from clew.session import Session
    from clew.session_info import SessionInfo, Transcript
    from clew.session_writer import Written
    from clew.store import Store
    from clew.transcript.chain import Chain
    from clew.transcript.head import Head
    from clew.transcript.message import Message
    from clew.transcript.messages import State
    from clew.transcript.selectors.turn import Turn
    from clew.transcript.tree import Tree
    from clew.truncating import Truncated

__version__ = "0.1.0"

__all__ = [
    "Ambiguous",
    "Busy",
    "Chain",
    "ClaudeKeys",
    "ClewError",
    "ClientIndex",
    "Conflict",
    "Copied",
    "DamagedData",
    "DigestKeys",
    "FilesEngine",
    "GitRootKeys",
    "Head",
    "IndexBuilder",
    "Line",
    "Loaded",
    "LogKey",
    "LogStat",
    "Malformed",
    "Maps",
    "Marked",
    "Message",
    "NotFound",
    "Operation",
    "Record",
    "Session",
    "SessionInfo",
    "State",
    "StorageError",
    "Store",
    "Transcript",
    "Tree",
    "Truncated",
    "Turn",
    "UsageError",
    "Written",
    "decode",
    "decode_lines",
    "encode",
    "open",
]

_HOMES = {
    "clew.copying": ("Copied",),
    "clew.defaults": ("open",),
    "clew.engines.contract": ("LogKey", "LogStat"),
    "clew.engines.files": ("FilesEngine",),
    "clew.errors": (
        "Ambiguous", "Busy", "ClewError", "Conflict", "DamagedData", "NotFound", "StorageError", "UsageError",
    ),
    "clew.layouts.keys": ("ClaudeKeys", "DigestKeys", "GitRootKeys"),
    "clew.operations.operation": ("Operation",),
    "clew.records.codec": ("decode", "decode_lines", "encode"),
    "clew.records.line": ("Line",),
    "clew.records.record": ("Malformed", "Record"),
    "clew.loading": ("ClientIndex", "IndexBuilder", "Loaded", "Maps"),
    "clew.session": ("Session",),
    "clew.session_info": ("SessionInfo", "Transcript"),
    "clew.marks": ("Marked",),
    "clew.session_writer": ("Written",),
    "clew.store": ("Store",),
    "clew.transcript.chain": ("Chain",),
    "clew.transcript.head": ("Head",),
    "clew.transcript.message": ("Message",),
    "clew.transcript.messages": ("State",),
    "clew.transcript.selectors.turn": ("Turn",),
    "clew.transcript.tree": ("Tree",),
    "clew.truncating": ("Truncated",),
}  # fmt: skip


def __getattr__(name: str) -> object:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
