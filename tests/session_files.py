"""Writes small session files as the client does, for tests of what stands above the engines."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

from clew.engines.filesystem import OsFileSystem

PROJECT = "-home-me-proj"
CWD = "/home/me/proj"
Row = dict[str, object]


def session_id(number: int) -> str:
    """An id that begins with its number, so that prefixes can be told apart."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def user(uuid: str, text: object, parent: str | None = None, second: int = 0, **more: object) -> Row:
    """A prompt; with `isSidechain` and the like in `more`."""
    return _row("user", uuid, parent, second, {"role": "user", "content": text}) | more


def assistant(uuid: str, text: object, parent: str | None, second: int = 0, **more: object) -> Row:
    """An answer of its own message id."""
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    message = {"id": f"msg_{uuid}", "role": "assistant", "model": "claude-x", "content": content,
               "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip
    return _row("assistant", uuid, parent, second, message) | more


def _row(kind: str, uuid: str, parent: str | None, second: int, message: Row) -> Row:
    return {"parentUuid": parent, "isSidechain": False, "type": kind, "message": message, "uuid": uuid,
            "timestamp": f"2026-11-18T10:00:{second:02d}.000Z", "cwd": CWD, "sessionId": "s", "version": "2.1.327",
            "gitBranch": "main"}  # fmt: skip


def two_turns(name: str = "") -> list[Row]:
    """Two prompts with their answers; the uuids begin with the name."""
    return [
        user(f"{name}u1", "first question", None, 1),
        assistant(f"{name}a2", "first answer", f"{name}u1", 2),
        user(f"{name}u3", "second question", f"{name}a2", 3),
        assistant(f"{name}a4", "second answer", f"{name}u3", 4),
    ]


def in_bytes(*rows: Row) -> bytes:
    """The rows as lines, as compact as the client writes them."""
    return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in rows)


def write(root: Path, number: int, *rows: Row, at: int = 0, project: str = PROJECT, raw: bytes | None = None) -> Path:
    """A session file whose last change was `at` seconds after some moment."""
    path = root / "projects" / project / f"{session_id(number)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(in_bytes(*rows) if raw is None else raw)
    changed(path, at)
    return path


def changed(path: Path, at: int) -> None:
    """Sets the time of the last change."""
    os.utime(path, (1_794_996_000 + at, 1_794_996_000 + at))


def append(path: Path, *rows: Row, raw: bytes = b"") -> None:
    """What another program writes to the end."""
    with path.open("ab") as file:
        file.write(in_bytes(*rows) + raw)


class CountingFileSystem(OsFileSystem):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        self.count = 0

    def open(self, path: str) -> io.RawIOBase:
        return _Counted(super().open(path), self)


class _Counted(io.RawIOBase):
    def __init__(self, file: io.RawIOBase, counter: CountingFileSystem) -> None:
        self._file, self._counter = file, counter

    def fileno(self) -> int:
        return self._file.fileno()

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer) or 0
        self._counter.count += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
