"""Rows without their bytes, for whoever asks of a long log only where its conversation goes.

What places a row is decoded already, and a content is only asked for its calls and results. A row of which more may be
asked, such as the note of a compaction, keeps its bytes; so does one that had to be read by the tolerant parser.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from clew.records.line import Line
from clew.records.record import MessageHead, Record
from clew.transcript.beside import NO_IDS, content_of_ids
from clew.transcript.tree import CHAIN_TYPES

_SAME = {kind: kind for kind in CHAIN_TYPES}
_NOTHING = MessageHead(None, None, NO_IDS)
_GONE = Line(b"", 0, 0, 0)


class Slimmer:
    """Lets go of the bytes of rows that a tree has taken, and knows where they are.

    It is shown every record of the log, in the order in which the tree gets them.
    """

    def __init__(self) -> None:
        self._positions = array("q")
        self._sizes = array("q")
        self._session: str | None = None
        self._subtypes: dict[str, str] = {}

    def keep(self, record: Record) -> None:
        """For a row that keeps its bytes, as one that is no line of its own must."""
        self._positions.append(record.line.position)
        self._sizes.append(record.line.size)

    def let_go(self, record: Record) -> None:
        line = record.line
        self._positions.append(line.position)
        self._sizes.append(line.size)
        kind = record.type
        if kind not in _SAME or record.subtype == "compact_boundary":
            return
        message = record.message
        if message is not None:
            ids = content_of_ids(message.content, line.data)
            if ids is None:
                return
            if ids is NO_IDS and message.id is None:
                record.message = _NOTHING
            else:
                message.content, message.role = ids, None
        record.line = _GONE
        # The same few words stand in every row.
        record.type = _SAME[kind]
        if record.session_id == self._session:
            record.session_id = self._session
        else:
            self._session = record.session_id
        if record.subtype is not None:
            record.subtype = self._subtypes.setdefault(record.subtype, record.subtype)
        if record.source_tool_assistant_uuid == record.parent_uuid:
            record.source_tool_assistant_uuid = record.parent_uuid

    def place(self, ordinals: Mapping[str, int], records: Iterable[Record]) -> None:
        """Gives these rows a line once more: one without data, that says where the bytes are. `ordinals` are those of
        the tree, which itself may be gone by now.
        """
        for record in records:
            if record.line is _GONE:
                at = ordinals[record.uuid or ""] - 1
                record.line = Line(b"", self._positions[at], 0, self._sizes[at])
