"""The client's own rule for `--continue`: the log that was changed last, without those that it does not show.

All of it was measured on 2.1.327. It looks at text, not at rows: a file of which only the beginning of a row is there
is taken, and a result of a tool that holds `"isSidechain":true` hides its session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from clew.engines.contract import LogKey, LogStat
from clew.records.codec import decode_lines
from clew.records.line import Line
from clew.records.record import Record, records_in
from clew.resume.choosing import Asked, Contender
from clew.resume.look import Look

WINDOW_BYTES = 65_536
"""So much of the beginning and of the end of a file the client looks at."""

_ROW = b'"parentUuid":'
_SIDECHAIN = re.compile(rb'"isSidechain": ?true')
_TEAM = re.compile(rb'"teamName": ?"[^"]')
_CONTINUED = b'"continued-in"'


def newest(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """In the order they come, as far as the client would take them. On other engines all of them."""
    is_clients = asked.look.store.engine.capabilities.is_clients
    for each in asked.unless(contenders, _against if is_clients else lambda _: None):
        each.reasons.append("the newest that Claude Code would continue" if is_clients else "the newest")
        yield each


def _against(contender: Contender) -> str | None:
    if contender.look.store.is_link(contender.session.where):
        return "its file is a link"
    if contender.stat.size_bytes == 0:
        return None
    head = b"".join(contender.piece(0, WINDOW_BYTES))
    if _SIDECHAIN.search(head):
        return "it begins with rows of a subagent"
    if _TEAM.search(head):
        return "it begins with rows of an agent of a team"
    if not _holds(contender.look, contender.stat):
        return "it holds no row of a conversation"
    return _continued(contender)


def _holds(look: Look, stat: LogStat) -> bool:
    """Whether there is a row of a conversation in the log, or what looks like the beginning of one."""
    before = b""
    for chunk in look.store.engine.read_range(stat.key, position=0, size=stat.size_bytes):
        if _ROW in before + chunk:
            return True
        before = chunk[-len(_ROW) :]
    return False


def _continued(contender: Contender) -> str | None:
    """Whether the conversation goes on in another session of the project, one that is there."""
    start = max(0, contender.stat.size_bytes - WINDOW_BYTES)
    tail = b"".join(contender.piece(start, WINDOW_BYTES))
    at = tail.rfind(_CONTINUED)
    if at < 0 or _ROW in tail[at:]:
        return None
    begin = tail.rfind(b"\n", 0, at) + 1
    data = tail[begin:].partition(b"\n")[0]
    for row in records_in(decode_lines([Line(data, start + begin, 1, len(data))])):
        name = _target(row)
        if name is not None and _is_there(contender.look, LogKey(contender.stat.key.project, name)):
            return f"its conversation goes on in {name}"
    return None


def _is_there(look: Look, key: LogKey) -> bool:
    """Whether the client knows such a session: no link, and not one with nothing but metadata. A subagent's counts."""
    stat = look.store.engine.stat(key)
    return stat is not None and not look.store.is_link(look.store.engine.where(key)) and _holds(look, stat)


def _target(row: Record) -> str | None:
    name = row.body().get("continuedInSessionId") if row.type == "continued-in" else None
    return name if isinstance(name, str) and name else None
