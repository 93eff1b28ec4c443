"""Attachments: what of them is sent, behind an answer, behind a result, and at the end."""

from __future__ import annotations

from typing import Any

from odd_files.rows import START, Block, Piece, answer, attachment, call, clock, end, files, result, text, user, uuid

QUEUED = {
    "type": "queued_command", "prompt": "q two", "source_uuid": uuid(71), "delivery_id": uuid(72),
    "commandMode": "prompt", "timestamp": clock(3),
}  # fmt: skip
DATE = {"type": "date", "date": "x"}
FILE = {
    "type": "file", "filename": "/a/b.txt", "displayPath": "b.txt",
    "content": {"type": "text", "file": {
        "filePath": "/a/b.txt", "content": "hello", "numLines": 1, "startLine": 1, "totalLines": 1}},
}  # fmt: skip


def shown(content: Any, role: str) -> Block:
    return {"rendered": [{"content": content}], "renderedRole": role}


KINDS: dict[str, tuple[Block, Block]] = {
    "a queued prompt": (QUEUED, {}),
    "a queued prompt shown to the system": (QUEUED, shown("REND", "system")),
    "a queued prompt shown to the user": (QUEUED, shown("REND", "user")),
    "a queued prompt shown as nothing": (QUEUED, {"rendered": [], "renderedRole": "user"}),
    "a queued prompt of two texts": (QUEUED | {"prompt": [text("qb"), text("qc")]}, {}),
    "a queued notice of a task": (QUEUED | {"commandMode": "task-notification"}, {}),
    "a date": (DATE, {}),
    "a date shown to the system": (DATE, shown("REND", "system")),
    "a date shown to the user": (DATE, shown("REND", "user")),
    "a date shown as a string": (DATE, {"rendered": "REND", "renderedRole": "user"}),
    "a date shown as blocks": (DATE, shown([text("RB")], "user")),
    "a date shown as a reminder": (DATE, shown("<system-reminder>\nRR\n</system-reminder>", "user")),
    "an unknown kind": ({"type": "never_seen_before", "x": 1}, {}),
    "an unknown kind shown to the user": ({"type": "never_seen_before", "x": 1}, shown("REND", "user")),
    "a file": (FILE, {}),
    "an edited file": ({"type": "edited_text_file", "filename": "/a/b.txt", "snippet": "1 x"}, {}),
    "the words of a hook": (
        {"type": "hook_additional_context", "content": ["HC"], "hookName": "h", "hookEvent": "PostToolUse",
         "toolUseID": "toolu_1"}, {}),
    "an unknown command": (
        {"type": "unknown_command_fallback", "commandName": "tag", "availableCommandNames": ["a"],
         "availableCommandCount": 1}, shown("REND", "user")),
}  # fmt: skip


def _behind_an_answer(payload: Block, fields: Block) -> list[Piece]:
    return [*START, attachment(3, 2, payload, **fields), *end(4, 3)]


def _at_the_end(payload: Block, fields: Block) -> list[Piece]:
    return [*START, attachment(3, 2, payload, **fields)]


def _behind_a_result(payload: Block, fields: Block) -> list[Piece]:
    called: list[Piece] = [user(1), answer(2, 1, [call(1)]), user(3, 2, [result(1)])]
    return [*called, attachment(4, 3, payload, **fields), answer(5, 4)]


CASES = files({
    f"{kind} {where}": build(payload, fields)
    for where, build in {
        "behind an answer": _behind_an_answer, "behind a result": _behind_a_result, "at the end": _at_the_end,
    }.items()
    for kind, (payload, fields) in KINDS.items()
})  # fmt: skip
