"""Rows without their bytes, for whoever asks of a long log only where its conversation goes.

What places a row is decoded already, and so are the ids of its calls and results (`records.slim`). A row of which more
may be asked, such as the note of a compaction, keeps its bytes; so does one whose content is written in an odd way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping

from clew.records.line import Line
from clew.records.record import Record
from clew.records.slim import SlimHead, SlimRecord, without_texts
from clew.transcript.prompts import is_prompt
from clew.transcript.tree import CHAIN_TYPES

_SAME = {kind: kind for kind in CHAIN_TYPES}
_NOTHING = SlimHead(ids=())
_GONE = Line(b"", 0, 0, 0)


class Slimmer:
    """Lets go of the bytes of rows before a tree takes them, and knows where they are.

    Every record of the log goes through it, in the order in which the tree gets them. With `keeps_prompts` the bytes of
    what a person wrote stay until `place` is called, since turns count by it.
    """

    def __init__(self, *, keeps_prompts: bool = False) -> None:
        self._keeps_prompts = keeps_prompts
        self._positions = array("q")
        self._sizes = array("q")

    def slimmed(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records on their way into a tree, without what it does not ask for."""
        add_position, add_size, same, gone = self._positions.append, self._sizes.append, _SAME, _GONE
        keeps_prompts, session = self._keeps_prompts, ""
        subtypes: dict[str, str] = {}
        for record in records:
            line = record.line
            add_position(line.position)
            add_size(line.size)
            kind = same.get(record.type or "")
            if kind is None or not isinstance(record, SlimRecord):
                yield record
                continue
            message, subtype = record.message, record.subtype
            is_kept = keeps_prompts and is_prompt(record)
            if message is not None:
                without_texts(message)
                if message.id is None and not message.ids and message.ids is not None:
                    record.message = _NOTHING
            if subtype is None:
                record.line = line if is_kept else gone
            elif subtype != "compact_boundary":
                record.line, record.subtype = gone, subtypes.setdefault(subtype, subtype)
            # The same few words stand in every row.
            record.type = kind
            if record.session_id == session:
                record.session_id = session
            else:
                session = record.session_id or ""
            yield record
            # A result names the row of its call twice, and the tree has the text of it.
            if (
                record.source_tool_assistant_uuid is not None
                and record.source_tool_assistant_uuid == record.parent_uuid
            ):
                record.source_tool_assistant_uuid = record.parent_uuid

    def place(self, ordinals: Mapping[str, int], records: Iterable[Record]) -> None:
        """Gives these rows a line without data, that says where the bytes are. `ordinals` are those of
        the tree, which itself may be gone by now.
        """
        for record in records:
            line = record.line
            if line is _GONE:
                at = ordinals[record.uuid or ""] - 1
                record.line = Line(b"", self._positions[at], 0, self._sizes[at])
            elif isinstance(record, SlimRecord):
                record.line = Line(b"", line.position, 0, line.size)
