"""Which sessions a running client holds: it notes them in `sessions/<pid>.json` while it lives.

Measured on 2.1.327: the note names `pid`, `sessionId` and `procStart`, on Linux the start of the process in ticks since
boot as /proc tells it. A client that was killed leaves its note behind, and its pid may belong to another process by
then; the start tells them apart. The `.key` files beside the notes are never opened.
"""

from __future__ import annotations

import os
import re

import msgspec

from clew.engines.filesystem import FileSystem, read_small

_NOTE = re.compile(r"[0-9]{1,10}\.json")
_NOTES_MAX = 1_000
_START_FIELD = 19
"""The start of a process in /proc/PID/stat, counted behind the name, which may hold spaces and brackets."""


class _Note(msgspec.Struct, rename="camel"):
    pid: int
    session_id: str
    proc_start: str | None = None


_decode = msgspec.json.Decoder(_Note).decode


def live_sessions(fs: FileSystem, folder: str) -> frozenset[str]:
    """The ids in the notes whose process is running. Notes that cannot be read count for nothing."""
    try:
        entries = fs.scan(folder)
    except OSError:
        return frozenset()
    found = set()
    for entry in entries[:_NOTES_MAX]:
        if not _NOTE.fullmatch(entry.name):
            continue
        data = read_small(fs, entry.path)
        try:
            note = _decode(data or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if entry.name == f"{note.pid}.json" and _is_running(fs, note):
            found.add(note.session_id)
    return frozenset(found)


def _is_running(fs: FileSystem, note: _Note) -> bool:
    try:
        os.kill(note.pid, 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    started = _started(fs, note.pid)
    return started is None or note.proc_start is None or started == note.proc_start


def _started(fs: FileSystem, pid: int) -> str | None:
    """None where the system does not tell."""
    data = read_small(fs, f"/proc/{pid}/stat")
    fields = (data or b"").rpartition(b")")[2].split()
    return fields[_START_FIELD].decode("ascii", "replace") if len(fields) > _START_FIELD else None
