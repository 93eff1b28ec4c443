"""What a list of an agent SDK says of a session, folded row by row as they are appended and kept beside the log.

A summary names the size of the log that it is about. The engine may drop rows that were there already, and others may
append without a summary: then the sizes differ, and what is missing is folded from the log itself. So no answer depends
on what is kept, only its speed.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from threading import Lock

import msgspec

from clew.engines.contract import Engine, LogKey, LogStat
from clew.errors import Conflict
from clew.records.codec import decode, decode_lines
from clew.records.compact import compact
from clew.records.line import Line
from clew.records.record import Record, records_in
from clew.records.table import VIEWS
from clew.records.views import JsonObject, JsonValue
from clew.transcript.digest import DigestFold, DigestState
from clew.transcript.times import milliseconds

SUMMARY_BYTES_MAX = 64 * 1024
"""A longer summary, of a title as long as a book, is not kept with the log but folded again by whoever asks."""
RULES = 2
"""Raised whenever a log is summed up in another way: what an older version kept is folded again."""
SUMMARIES_HELD_MAX = 10_000
"""So many logs a process remembers; one has about 1 KB."""


class Summary(msgspec.Struct, frozen=True, gc=False):
    """What the first `size` bytes of a main log say."""

    size: int = 0
    is_sidechain: bool | None = None
    """Whether the first row is one of a subagent; None before there is one."""
    state: DigestState = DigestState()

    def after(self, lines: Iterable[Line]) -> Summary:
        """With the lines that follow. Their positions are not looked at."""
        size, is_sidechain = self.size, self.is_sidechain

        def counted() -> Iterator[Line]:
            nonlocal size
            for line in lines:
                size += line.size
                yield line

        fold = DigestFold(state=self.state)
        for record in records_in(decode_lines(counted())):
            if is_sidechain is None:
                is_sidechain = bool(record.is_sidechain)
            fold.add(record)
            for name in _names_in(record):
                fold.add(name)
        return Summary(size, is_sidechain, fold.state())

    def kept(self) -> bytes | None:
        """As it is kept with the log; None when it is too long for that."""
        data = msgspec.json.encode(_Kept(self, RULES))
        return data if len(data) <= SUMMARY_BYTES_MAX else None

    def data(self) -> JsonObject:
        """What the SDKs read from a summary, in the spelling of each: `first_prompt` in Python, else `firstPrompt`."""
        state = self.state
        names, first = state.names, state.first
        said: dict[str, JsonValue] = {"is_sidechain": bool(self.is_sidechain)}
        if state.newest and (created := milliseconds(state.oldest)) is not None:
            said["created_at"] = int(created)
        if cwd := names.get("relocated", state.cwd):
            said["cwd"] = cwd
        if first is not None and first.is_fallback:
            said["command_fallback"] = first.title
        elif first is not None:
            said |= {"first_prompt": first.title, "first_prompt_locked": True}
        said |= {field: names[kind] for kind, field in _NAMED.items() if names.get(kind)}
        if state.git_branch:
            said["git_branch"] = state.git_branch
        return {**said, **{_camel(field): value for field, value in said.items()}}


class _Kept(msgspec.Struct, frozen=True):
    """The summary under a name of its own: another program's derived state is not taken for it."""

    claude_agent_sdk: Summary
    rules: int = 0


_NAMED = {
    "custom-title": "custom_title",
    "ai-title": "ai_title",
    "last-prompt": "last_prompt",
    "summary": "summary_hint",
    "tag": "tag",
}
_ANYWHERE = {"custom-title": "customTitle", "ai-title": "aiTitle", "last-prompt": "lastPrompt", "summary": "summary"}
_MAY_NAME = re.compile(rb'"(?:customTitle|aiTitle|lastPrompt|summary)"')
_kept_decode = msgspec.json.Decoder(_Kept).decode


class Summaries:
    """The summaries of the logs of one engine. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._guard = Lock()
        self._held: OrderedDict[LogKey, tuple[str, Summary]] = OrderedDict()

    def of(self, stat: LogStat) -> Summary:
        """The summary of a log as `stat` saw it, or as it is by now. Reads what is in no summary yet."""
        with self._guard:
            revision, held = self._held.get(stat.key, ("", None))
        if held is None or revision != stat.revision:
            kept = kept_in(stat)
            is_same_log = revision.partition("-")[0] == stat.revision.partition("-")[0]
            held = kept or self._read(stat, held if is_same_log else None)
            self.hold(stat.key, stat.revision, held)
        return held

    def hold(self, key: LogKey, revision: str, summary: Summary) -> None:
        """Remembers the summary of a revision."""
        with self._guard:
            self._held[key] = (revision, summary)
            self._held.move_to_end(key)
            if len(self._held) > SUMMARIES_HELD_MAX:
                self._held.popitem(last=False)

    def forget(self, key: LogKey) -> None:
        with self._guard:
            self._held.pop(key, None)

    def _read(self, stat: LogStat, before: Summary | None) -> Summary:
        if before is not None and before.size <= stat.size_bytes:
            # There is a conflict where the last line was not whole yet: then it counted, but was not all of itself.
            try:
                return before.after(self._engine.read(stat.key, start=before.size, end=stat.size_bytes))
            except Conflict:
                pass
        return Summary().after(self._engine.read(stat.key, end=stat.size_bytes))


def kept_in(stat: LogStat) -> Summary | None:
    """The summary that is kept with a log, if there is one and it is about all of the log."""
    if stat.summary is None:
        return None
    try:
        kept = _kept_decode(stat.summary)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found = kept.claude_agent_sdk
    return found if kept.rules == RULES and found.size == stat.size_bytes else None


def _names_in(record: Record) -> Iterator[Record]:
    """What a row of a type that we do not know says besides: the SDK lets a row of any type name its session.

    Of the types that we do know, only those that are there for it do.
    """
    if record.type in VIEWS or not _MAY_NAME.search(record.raw):
        return
    body = record.body()
    for kind, field in _ANYWHERE.items():
        if isinstance(body.get(field), str):
            data = compact({"type": kind, field: body[field]})
            yield from records_in(iter([decode(Line(data, 0, 0, len(data)))]))


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)
