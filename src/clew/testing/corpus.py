"""Rows of a session as the client writes them, and files made of them.

    draft = SessionDraft(cwd="/home/dev/project")
    draft.user("Fix the login")
    call = draft.tool_use("Read", {"file_path": "login.py"})
    draft.tool_result(call, "def login(): …")
    draft.assistant("Done.")
    draft.head()
    path = draft.write(tmp_path / "config")

A row is a plain dict with the envelope of client 2.1.327, in its order of keys; change it as you like before it is
written. The functions make one row each. A `SessionDraft` hangs each row on the one before and gives it an id and a
time; both are counted up, so the same calls give the same bytes. What `cwd` says never leads outside the directory that
`write` is given: it only names the project folder in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from clew.errors import UsageError
from clew.layouts.claude import ClaudeLayout
from clew.layouts.keys import ClaudeKeys, KeyStrategy
from clew.records.compact import compact
from clew.records.line import Line
from clew.records.views import JsonObject, JsonValue

SESSION = "5e551000-0000-4000-8000-000000000001"
"""The session that rows belong to unless told otherwise."""
CWD = "/home/dev/project"
VERSION = "2.1.327"
MODEL = "claude-sonnet-4-5-20250929"
START = "2026-01-02T03:04:05.000Z"

Row: TypeAlias = JsonObject
Content: TypeAlias = str | Sequence[JsonObject]


# ---- blocks ----


def text(words: str) -> JsonObject:
    """A text block."""
    return {"type": "text", "text": words}


def thinking(words: str) -> JsonObject:
    """A thinking block, with a signature that nobody signed."""
    return {"type": "thinking", "thinking": words, "signature": "c2lnbmF0dXJl"}


def tool_use(name: str, arguments: Mapping[str, JsonValue], call: str) -> JsonObject:
    """A call of a tool."""
    return {"type": "tool_use", "id": call, "name": name, "input": dict(arguments)}


def tool_result(call: str, content: Content, *, is_error: bool = False) -> JsonObject:
    """The result of a call."""
    block: JsonObject = {"type": "tool_result", "tool_use_id": call, "content": _json(content)}
    return {**block, "is_error": True} if is_error else block


# ---- rows ----


def user(content: Content, *, uuid: str, parent: str | None, timestamp: str = START, **fields: JsonValue) -> Row:
    """A user row: a prompt, or with `tool_result` blocks the results of calls."""
    message: JsonObject = {"role": "user", "content": _json(content)}
    return _enveloped({"type": "user", "message": message}, uuid, parent, timestamp, fields)


def assistant(
    content: Content,
    *,
    uuid: str,
    parent: str | None,
    message_id: str,
    timestamp: str = START,
    usage: Mapping[str, int] | None = None,
    **fields: JsonValue,
) -> Row:
    """A row of an answer. Rows with one `message_id` are one answer; the client writes one row for each block."""
    blocks = [text(content)] if isinstance(content, str) else list(content)
    tokens: JsonObject = {"input_tokens": 3, "output_tokens": 5, **(usage or {})}
    calls = any(block.get("type") == "tool_use" for block in blocks)
    message: JsonObject = {
        "id": message_id, "type": "message", "role": "assistant", "model": MODEL, "content": _json(blocks),
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": tokens,
    }  # fmt: skip
    return _enveloped({"message": message, "type": "assistant"}, uuid, parent, timestamp, fields)


def attachment(
    payload: Mapping[str, JsonValue], *, uuid: str, parent: str | None, timestamp: str = START, **fields: JsonValue
) -> Row:
    """An attachment: a row of the chain that tells the model something beside the prompt."""
    return _enveloped({"attachment": dict(payload), "type": "attachment"}, uuid, parent, timestamp, fields)


def queued_prompt(prompt: str, *, uuid: str, parent: str | None, timestamp: str = START, **fields: JsonValue) -> Row:
    """A prompt that was sent while the model worked: the client keeps it as an attachment."""
    payload: JsonObject = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", "timestamp": timestamp}
    return attachment(payload, uuid=uuid, parent=parent, timestamp=timestamp, **fields)


def boundary(
    *,
    uuid: str,
    logical_parent: str | None,
    timestamp: str = START,
    kept: Sequence[str] = (),
    anchor: str | None = None,
    **fields: JsonValue,
) -> Row:
    """The boundary of a compaction, a new root. `kept` are the rows that stay, which hang on `anchor`, the summary."""
    note: JsonObject = {"trigger": "manual", "preTokens": 15, "postTokens": 980}
    if kept:
        note["preservedSegment"] = {"headUuid": kept[0], "anchorUuid": anchor, "tailUuid": kept[-1]}
        note["preservedMessages"] = {"anchorUuid": anchor, "uuids": list(kept), "allUuids": list(kept)}
    payload: JsonObject = {
        "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False,
        "level": "info", "compactMetadata": note, "logicalParentUuid": logical_parent,
    }  # fmt: skip
    return _enveloped(payload, uuid, None, timestamp, fields)


def head(
    leaf: str | None = None, *, session: str = SESSION, prompt: str | None = None, explicit: bool | None = None
) -> Row:
    """A head record: where the conversation goes on. `leaf` None with `explicit` is an empty conversation."""
    row: Row = {"type": "last-prompt"}
    if prompt is not None:
        row["lastPrompt"] = prompt
    if leaf is not None or explicit:
        row["leafUuid"] = leaf
    if explicit is not None:
        row["explicit"] = explicit
    return {**row, "sessionId": session}


def _json(content: Content) -> JsonValue:
    return content if isinstance(content, str) else list(content)


def _enveloped(
    payload: JsonObject, uuid: str, parent: str | None, timestamp: str, fields: Mapping[str, JsonValue]
) -> Row:
    row: Row = {
        "parentUuid": parent, "isSidechain": False, **payload, "uuid": uuid, "timestamp": timestamp,
        "userType": "external", "entrypoint": "cli", "cwd": CWD, "sessionId": SESSION, "version": VERSION,
        "gitBranch": "main",
    }  # fmt: skip
    # A field that is there keeps its place, so that rows look as the client writes them.
    row.update(fields)
    return row


# ---- sessions ----


class SessionDraft:
    """The rows of a session in file order, each hung on the one before.

    Methods that add a row of the conversation return its uuid, and take any field of the row as a keyword, by the name
    it has on the line. `at` is the row that the next one hangs on: set it to an older uuid to begin a branch.
    `rows` may be changed freely.
    """

    def __init__(
        self,
        session: str = SESSION,
        *,
        cwd: str = CWD,
        start: str = START,
        seconds: float = 1.0,
        version: str = VERSION,
        git_branch: str = "main",
    ) -> None:
        self.session = session
        self.cwd = cwd
        self.rows: list[Row] = []
        self.at: str | None = None
        self._frame: JsonObject = {"cwd": cwd, "sessionId": session, "version": version, "gitBranch": git_branch}
        self._start = datetime.fromisoformat(start)
        self._step = timedelta(seconds=seconds)
        self._count = 0
        self._message = 0
        self._prompt: str | None = None

    def user(self, content: Content, **fields: JsonValue) -> str:
        """A prompt."""
        if isinstance(content, str):
            self._prompt = content
        return self._add(user(content, uuid="", parent=None), fields)

    def assistant(self, *blocks: str | JsonObject, message_id: str | None = None, **fields: JsonValue) -> str:
        """An answer, one row for each block as the client writes it. Returns the uuid of its last row."""
        message_id = message_id or self.next_message_id()
        uuid = ""
        for block in blocks or ("",):
            content = [text(block) if isinstance(block, str) else block]
            uuid = self._add(assistant(content, uuid="", parent=None, message_id=message_id), fields)
        return uuid

    def tool_use(
        self,
        name: str = "Bash",
        arguments: Mapping[str, JsonValue] | None = None,
        *,
        message_id: str | None = None,
        **fields: JsonValue,
    ) -> str:
        """A call of a tool in a row of its own. Returns the id of the call; the row's uuid is `at`."""
        call = f"toolu_{self._count + 1:024}"
        block = tool_use(name, {"command": "true"} if arguments is None else arguments, call)
        self.assistant(block, message_id=message_id, **fields)
        return call

    def tool_result(self, call: str, content: Content = "done", *, is_error: bool = False, **fields: JsonValue) -> str:
        """The result of a call, hung on the row of its call as the client does it."""
        source = self._row_of_call(call) or self.at
        row = user([tool_result(call, content, is_error=is_error)], uuid="", parent=None)
        row["toolUseResult"] = _json(content)
        row["sourceToolAssistantUUID"] = source
        return self._add(row, {"parentUuid": source, **fields})

    def attachment(self, payload: Mapping[str, JsonValue], **fields: JsonValue) -> str:
        """An attachment."""
        return self._add(attachment(payload, uuid="", parent=None), fields)

    def queued_prompt(self, prompt: str, **fields: JsonValue) -> str:
        """A prompt that was sent while the model worked."""
        return self._add(queued_prompt(prompt, uuid="", parent=None), fields)

    def compaction(self, summary: str = "What was said so far.", *, kept: Sequence[str] = ()) -> str:
        """A boundary and its summary; `kept` are uuids of older rows that stay. Returns the uuid of the summary."""
        before = self.at
        anchor = _uuid(self._count + 2)
        note = boundary(uuid="", logical_parent=before, kept=kept, anchor=anchor)
        self.at = None
        self._add(note, {})
        marks: dict[str, JsonValue] = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        return self._add(user(summary, uuid="", parent=None), marks)

    def head(self, leaf: str | None = None, *, explicit: bool | None = None) -> None:
        """A head record; without a `leaf` it names the row that the next one would hang on."""
        leaf = self.at if leaf is None and not explicit else leaf
        self.rows.append(head(leaf, session=self.session, prompt=self._prompt, explicit=explicit))

    def note(self, kind: str, **fields: JsonValue) -> None:
        """A row beside the conversation, such as `note("custom-title", customTitle="Fix the login")`."""
        self.rows.append({"type": kind, **fields, "sessionId": self.session})

    def next_message_id(self) -> str:
        """A message id that no answer has yet."""
        self._message += 1
        return f"msg_{self._message:024}"

    def to_bytes(self) -> bytes:
        """The rows as the bytes of a log."""
        return to_bytes(self.rows)

    def write(self, config: Path) -> Path:
        """Writes the main log into a config directory. Returns its path."""
        return write_session(config, self.rows, session=self.session, cwd=self.cwd)

    def _add(self, row: Row, fields: Mapping[str, JsonValue]) -> str:
        self._count += 1
        row.update(self._frame)
        row["uuid"] = _uuid(self._count)
        row["parentUuid"] = self.at
        row["timestamp"] = _iso(self._start + self._step * (self._count - 1))
        row.update(fields)
        self.rows.append(row)
        uuid = row["uuid"]
        # A test may give a row an id that is no string; the next row then hangs on nothing.
        self.at = uuid if isinstance(uuid, str) else None
        return self.at or ""

    def _row_of_call(self, call: str) -> str | None:
        for row in reversed(self.rows):
            message = row.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else ():
                if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("id") == call:
                    uuid = row.get("uuid")
                    return uuid if isinstance(uuid, str) else None
        return None


def _uuid(number: int) -> str:
    """Ids that differ in their first characters, as real ones do, so that beginnings of them can be looked up."""
    return str(UUID(int=(number * 2654435761 % 2**32) << 96 | 0x4000 << 64 | 0x8000 << 48 | number))


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ---- bytes and files ----


def to_bytes(rows: Iterable[Row | bytes]) -> bytes:
    """The rows as lines: compact JSON, UTF-8 not escaped, one newline each. Bytes stand as they are, with theirs."""
    return b"".join(row if isinstance(row, bytes) else compact(row) + b"\n" for row in rows)


def lines_of(data: bytes) -> Iterator[Line]:
    """The lines of a log that is held in memory, as an engine gives them."""
    position = 0
    for number, piece in enumerate(_split(data), 1):
        yield Line(piece, position, number, len(piece))
        position += len(piece)


def _split(data: bytes) -> list[bytes]:
    """Only a newline ends a line; `splitlines` also takes a carriage return for one."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def write_session(
    config: Path,
    rows: Iterable[Row | bytes] | bytes,
    *,
    session: str = SESSION,
    cwd: str = CWD,
    keys: KeyStrategy | None = None,
    mtime: float | None = None,
) -> Path:
    """Writes a main log where the client would put it under `config`. Returns its path.

    `mtime` is the time of the file in seconds since 1970, if it is not to be now. Raises UsageError when the session's
    name cannot be a file name, or the log exists.
    """
    return _write(config, (keys or ClaudeKeys()).key(cwd), session, "", rows, mtime)


def write_subagent(
    config: Path,
    rows: Iterable[Row | bytes] | bytes,
    *,
    agent: str,
    session: str = SESSION,
    cwd: str = CWD,
    keys: KeyStrategy | None = None,
    mtime: float | None = None,
) -> Path:
    """Writes the log of a subagent beside the main log of its session, whether or not that one is there."""
    return _write(config, (keys or ClaudeKeys()).key(cwd), session, f"subagents/agent-{agent}", rows, mtime)


def _write(
    config: Path, project: str, session: str, subpath: str, rows: Iterable[Row | bytes] | bytes, mtime: float | None
) -> Path:
    path = config / ClaudeLayout().log(project, session, subpath)
    data = rows if isinstance(rows, bytes) else to_bytes(rows)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with open(path, "xb", opener=_private) as file:
            file.write(data)
    except FileExistsError as error:
        raise UsageError(f"{path} exists", hint="write each session once, or give it another id") from error
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
