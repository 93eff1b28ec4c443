"""Rows of a chain that become parts of messages, and how the conversation ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from clew.records.attachment import Attachment, Rendered
from clew.records.record import Record, sendable, sendable_text
from clew.records.system import System
from clew.records.views import JsonObject
from clew.transcript.message import MADE_UP, NO_CONTENT, THOUGHTS, blocks_of, is_blank_text, text_block, text_of

_COMMAND_PARTS = ("<command-name>", "<local-command-stdout>", "<local-command-stderr>")


class State(Enum):
    """How a conversation ends: with an answer, with an open call, or with a prompt that has no answer."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    UNANSWERED = "unanswered"


class Row(msgspec.Struct, gc=False):
    """A row that becomes part of a message."""

    record: Record
    role: str
    blocks: list[JsonObject]
    message_id: str | None = None
    calls: Sequence[str] = ()
    results: Sequence[str] = ()
    speaks: bool = False
    """Whether it holds anything but thoughts and blank texts."""
    is_bare: bool = False
    is_beside: bool = False
    """A system row or an attachment: it may be sent, but says nothing about how the conversation ends."""
    is_glued: bool = False
    """Text of an attachment, which stands before the prompts it was written behind, or is glued to a result."""


def rows_of(chain: Iterable[Record]) -> list[Row]:
    """The rows of a chain that may be sent, in order. Answers that came to nothing are left out."""
    return _with_attachments_up(_without_idle(_sendable_rows(chain)))


def _sendable_rows(chain: Iterable[Record]) -> list[Row]:
    rows = []
    for record in chain:
        if record.type == "user" or record.type == "assistant":
            content = record.content()
            blocks = blocks_of(content)
            if blocks is not None:
                row = _row(record, record.type, blocks)
                row.is_bare = isinstance(content, str)
                rows.append(row)
        elif record.type == "system" and record.subtype == "local_command":
            row = _row(record, "user", [text_block(_local_command(record) or NO_CONTENT)])
            row.is_beside = True
            rows.append(row)
        elif record.type == "attachment":
            texts = _rendered(record)
            if texts:
                row = _row(record, "user", texts)
                row.is_beside = row.is_glued = True
                rows.append(row)
    return rows


def _row(record: Record, role: str, blocks: list[JsonObject]) -> Row:
    calls: list[str] = []
    results: list[str] = []
    speaks = False
    for block in blocks:
        kind = block["type"]
        if kind == "text":
            speaks = speaks or not is_blank_text(block)
            continue
        if kind == "tool_use":
            calls.append(text_of(block, "id"))
        elif kind == "tool_result":
            results.append(text_of(block, "tool_use_id"))
        speaks = speaks or kind not in THOUGHTS
    message_id = None if record.message is None else record.message.id
    return Row(record, role, blocks, message_id, calls or (), results or (), speaks)


def _local_command(record: Record) -> str:
    view = record.view()
    return sendable_text(view.content) if isinstance(view, System) and isinstance(view.content, str) else ""


class _Words(msgspec.Struct, gc=False):
    """What a whole view says of these words, at a third of the time, where they are written as they should be."""

    rendered: tuple[Rendered, ...] = ()


_words_of = msgspec.json.Decoder(_Words).decode


def _rendered(record: Record) -> list[JsonObject]:
    """The texts an attachment was sent as, where the client wrote them down; nothing where one is no text."""
    if b'"rendered"' not in record.raw:
        return []
    try:
        parts = _words_of(record.raw).rendered
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        view = record.view()
        parts = view.rendered if isinstance(view, Attachment) else ()
    blocks: list[JsonObject] = []
    for part in parts:
        content = part.content
        if isinstance(content, str):
            blocks.append(text_block(sendable_text(content)))
        elif content:
            blocks.extend(block for item in content if isinstance(block := sendable(item), dict))
    return blocks if all(block.get("type") == "text" for block in blocks) else []


# ---- rows that came to nothing ----


def _without_idle(rows: list[Row]) -> list[Row]:
    """Leaves out answers without effect: calls nobody answered, blank texts, thoughts that led to nothing."""
    rows = _without_thoughts(rows)
    answered = {result for row in rows for result in row.results}
    kept = {id(row) for row in _open_turn(rows)}
    useful = [row for row in rows if not row.calls or not answered.isdisjoint(row.calls) or id(row) in kept]
    return rows if len(useful) == len(rows) else _without_thoughts(useful)


def _without_thoughts(rows: list[Row]) -> list[Row]:
    """Leaves out rows of thoughts and blank texts only, unless another row of the same answer says something."""
    spoken = {row.message_id for row in rows if row.role == "assistant" and row.speaks} - {None}
    return [row for row in rows if row.role == "user" or not row.blocks or row.speaks or row.message_id in spoken]


def _open_turn(rows: list[Row]) -> list[Row]:
    """The rows at the end whose calls may stay open: the last answer, and where results end it all since the last
    prompt, texts between them or not.
    """
    calling = {row.message_id for row in rows if row.calls} - {None}
    turn: list[Row] = []
    has_results = False
    for row in reversed(rows):
        if row.is_beside:
            continue
        if row.role == "user" and not row.results:
            break
        if row.role == "assistant" and not row.calls and row.message_id not in calling and not has_results:
            break
        has_results = has_results or row.role == "user"
        turn.append(row)
    return turn if has_results else _last_answer(rows)


def _last_answer(rows: list[Row]) -> list[Row]:
    """The rows of the answer that the conversation ends with; results may stand behind and between them.

    Rows of one answer are one message, at the place of the first of them. So this is the answer that began last.
    """
    found: list[Row] = []
    for row in reversed(rows):
        if row.is_beside or (row.role == "user" and row.results):
            continue
        if row.role == "user":
            break
        found.append(row)
    found.reverse()
    began: dict[str | int, list[Row]] = {}
    for at, row in enumerate(found):
        began.setdefault(at if row.message_id is None else row.message_id, []).append(row)
    return next(reversed(began.values()), [])


def _with_attachments_up(rows: list[Row]) -> list[Row]:
    """Moves attachments up over prompts and commands, to the answer or the result before these."""
    moved: list[Row] = []
    waiting: list[Row] = []
    for row in reversed(rows):
        if row.is_glued:
            waiting.append(row)
            continue
        if row.role == "assistant" or row.results:
            moved.extend(waiting)
            waiting.clear()
        moved.append(row)
    moved.extend(waiting)
    moved.reverse()
    return moved


# ---- what the client makes up at the end ----


def closed(rows: list[Row]) -> tuple[State, list[Row]]:
    """How the conversation ends, and the rows with a made-up result and answer where the client makes them up."""
    state = State.COMPLETE
    answered = {result for row in rows for result in row.results}
    calls = [call for row in _last_answer(rows) for call in row.calls if call not in answered]
    if calls:
        state = State.INTERRUPTED
        results: list[JsonObject] = [
            {"type": "tool_result", "tool_use_id": call, "content": "", MADE_UP: True} for call in calls
        ]
        rows = [*rows, _row(Record(), "user", results)]
    place = next((at for at in range(len(rows) - 1, -1, -1) if not rows[at].is_beside), None)
    if place is None or rows[place].role == "assistant" or _is_local_command([r for r in rows if not r.is_beside]):
        return state, _sent(rows)
    while place + 1 < len(rows) and rows[place + 1].is_glued:
        place += 1
    answer: list[JsonObject] = [{"type": "text", "text": "-", MADE_UP: True}]
    rows = [*rows[: place + 1], _row(Record(), "assistant", answer), *rows[place + 1 :]]
    return (State.UNANSWERED if state is State.COMPLETE else state), _sent(rows)


def _sent(rows: list[Row]) -> list[Row]:
    """Leaves out what is shown to the person only: errors of the API that the client wrote as answers."""
    return [row for row in rows if not (row.record.is_api_error_message and _is_synthetic(row.record))]


def _is_synthetic(record: Record) -> bool:
    message = record.body().get("message")
    return isinstance(message, dict) and message.get("model") == "<synthetic>"


def _is_local_command(rows: list[Row]) -> bool:
    """Whether the rows end with a command of the client's own: a caveat, the command, its output. Nobody answers
    that.
    """
    at = len(rows) - 1
    for part in (_COMMAND_PARTS[1:], _COMMAND_PARTS[:1]):
        if at >= 0 and rows[at].role == "user" and _plain(rows[at]).startswith(part):
            at -= 1
    return at >= 0 and rows[at].record.is_meta is True and _plain(rows[at]).startswith("<local-command-caveat>")


def _plain(row: Row) -> str:
    return text_of(row.blocks[0], "text") if row.blocks else ""
