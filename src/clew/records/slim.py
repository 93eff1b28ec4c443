"""Rows decoded for whoever asks only where the conversation of a long log goes: of a content the calls and results.

Nothing of the text is held, and no content is decoded twice. What does not fit is decoded as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from clew.records.record import MessageHead, Record

_NO_CONTENT = msgspec.Raw(b"")


class CallIds(msgspec.Struct, gc=False):
    """A block of a content by what calls and results find each other by."""

    type: str | None = None
    id: str | None = None
    tool_use_id: str | None = None


class SlimHead(MessageHead):
    """A message without its content. `ids` are the calls and results in it, once `without_texts` went over it; None
    for a content that could not be sent.
    """

    # Never in the JSON: a hostile row may well have fields of these names.
    role: str | None = msgspec.field(default=None, name="<role>")
    content: msgspec.Raw = msgspec.field(default=_NO_CONTENT, name="<content>")
    ids: str | tuple[CallIds, ...] | None = msgspec.field(default=None, name="content")


class SlimRecord(Record):
    """A record whose content was read for its calls and results only. Its line still has all its bytes."""

    message: SlimHead | None = None


_decode: Callable[[bytes], SlimRecord] = msgspec.json.Decoder(SlimRecord).decode
_decode_whole: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode
_WITH_IDS = {kind: kind for kind in ("tool_use", "tool_result")}


def decode_slim(data: bytes) -> Record:
    """One row, slim where its content is written as the client writes one. Raises what `msgspec` does."""
    try:
        record = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_whole(data)
    if record.message is not None:
        record.message.content = _NO_CONTENT
    return record


def without_texts(head: SlimHead) -> None:
    """Leaves of the content that was decoded only the calls and results."""
    ids = head.ids
    if ids is None or not ids:
        return
    if isinstance(ids, str):
        head.ids = ()
    elif len(ids) == 1:
        kind = ids[0].type
        if kind in _WITH_IDS:
            # The same text once.
            ids[0].type = _WITH_IDS[kind]
        else:
            head.ids = () if kind is not None else None
    elif all(block.type is None for block in ids):
        head.ids = None
    else:
        kept = [block for block in ids if block.type in _WITH_IDS]
        for block in kept:
            block.type = _WITH_IDS[block.type or ""]
        head.ids = tuple(kept)
