"""What a list says of a session, folded from its records one by one.

The whole log counts, not a window of it. Of a title, a tag or a summary the last row counts; the title of a session
is the custom title, else the one a model made, else the last prompt, else the summary, else the first prompt.

`DigestFold.add` is called for every record of every session when an index is built, so it decodes only what it must:
rows of names, prompts, and answers without their content. Memory grows with the number of answers only (about 300
bytes each).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from clew.records.own import FORK_TYPE, NOTE_TYPE
from clew.records.record import Record, body_of, sendable_text
from clew.records.views import JsonObject, JsonValue
from clew.transcript.marks import UNMARKED, Marks
from clew.transcript.prompts import PREVIEW_CHARACTERS_MAX, preview, prompt_of
from clew.transcript.times import milliseconds
from clew.transcript.tree import CHAIN_TYPES

SYNTHETIC_MODEL = "<synthetic>"
"""Rows with this model were written by the client; nobody was paid for them."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLIENT_TIME = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:[0-2][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"
)
_TAIL_BYTES = 300
# The end, or the beginning, of a row as clients write it. Nothing nested can stand where these match, so the fields are
# the row's own.
_ENVELOPE_TAIL = re.compile(rb'"version":"[^"\\]++","gitBranch":"[^"\\]++"(?:,"slug":"[^"\\]*+")?\}\s*+\Z')
_ENVELOPE_HEAD = re.compile(
    rb'\{(?:"[A-Za-z_]++":(?:"[^"\\]*+"|null|true|false),){0,16}?"version":"[^"\\]++","gitBranch":"[^"\\]++"[,}]'
)


class AnswerUsage(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one answer. `day` is its UTC day; "" when its time cannot be read."""

    message_id: str | None
    model: str
    day: str
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


class Digest(msgspec.Struct, frozen=True):
    """The fields of a list row that follow from the records of the main log alone.

    Texts are as they stand in the log: never print one to a terminal as it is. Times are ISO with milliseconds and `Z`.
    """

    title: str | None = None
    """Where it is the first prompt, in the words of the client's own lists: newlines are spaces, other blanks stand."""
    title_source: str | None = None
    """custom-title, ai-title, last-prompt, summary or first-prompt."""
    custom_title: str | None = None
    """"" where the last row takes it off, None where no row gives one: then a sidecar of the client may."""
    ai_title: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    first_prompt: str | None = None
    """The first prompt a person typed on one line; a command or a picture only when no words were typed."""
    tag: str | None = None
    agent_name: str | None = None
    cwd: str | None = None
    """Where the session began, or was moved to; later rows name the directory that the shell happened to be in."""
    git_branch: str | None = None
    model: str | None = None
    version: str | None = None
    created_at: str | None = None
    """The earliest time in the log, whatever the order of its rows."""
    updated_at: str | None = None
    """The latest."""
    records: int = 0
    turn_count: int = 0
    """Prompts in the log, those on other branches too."""
    compactions: int = 0
    total_tokens: int = 0
    """Of all answers, each counted once; those of subagents stand in logs of their own."""
    parent_id: str | None = None
    """The session that this one was forked from, as our own row says, else as the first row does."""
    marks: Marks = UNMARKED
    """What clew noted of it, as why it was closed last."""
    continued_in: str | None = None
    """The session that the conversation goes on in; the client hides this one in lists."""


class FirstPrompt(msgspec.Struct, frozen=True, gc=False):
    """What lists show of the first prompt: on one line, and in the words of a title."""

    preview: str
    title: str
    is_fallback: bool = False


class DigestState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How far a fold has come, small enough to be kept beside a log and gone on from later.

    Everything but the tokens of answers, which are counted once per answer and would need all of their ids. A custom
    title and the like are held as they stand in the log, so a state is as long as these are.
    """

    names: dict[str, str] = {}
    """Titles, the tag and the like, by the type of row that says them; a custom title that was taken off is ""."""
    marks: Marks = UNMARKED
    first: FirstPrompt | None = None
    oldest: str = "~"
    newest: str = ""
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    model: str | None = None
    parent_id: str | None = None
    records: int = 0
    turn_count: int = 0
    compactions: int = 0
    is_first_row: bool = True


class _Place(msgspec.Struct, gc=False, rename="camel"):
    cwd: JsonValue = None
    version: JsonValue = None
    git_branch: JsonValue = None
    forked_from: JsonValue = None


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(msgspec.Struct, gc=False):
    model: str | None = None
    usage: _Tokens | None = None


class _AnswerRow(msgspec.Struct, gc=False):
    message: _Answer | None = None


_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_place_decode = msgspec.json.Decoder(_Place).decode
_answer_decode = msgspec.json.Decoder(_AnswerRow).decode
_COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_NAMES = {
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "agent-name": "agentName",
    "tag": "tag",
    "summary": "summary",
    "last-prompt": "lastPrompt",
    "relocated": "relocatedCwd",
    "continued-in": "continuedInSessionId",
    FORK_TYPE: "parentSessionId",
}
"""Rows of which the last one counts, and the field that it has."""
_CLEARED_BY_EMPTY = frozenset({"ai-title", "agent-name", "tag"})
_TITLES = ("custom-title", "ai-title", "last-prompt", "summary")


_NOTHING = DigestState()


class DigestFold:
    """Takes the records of a main log in file order. `digest()` may be asked for at any moment.

    With the state of an earlier fold it goes on from there, and its digest is that of all the records; only tokens are
    those of the records that it took itself.
    """

    def __init__(self, records: Iterable[Record] = (), state: DigestState = _NOTHING) -> None:
        self._records, self._turns, self._compactions = state.records, state.turn_count, state.compactions
        # In the client's form, so that they compare as texts. At first they are later and earlier than every time.
        self._oldest, self._newest = state.oldest, state.newest
        self._names = dict(state.names)
        self._marks = state.marks
        self._first = state.first
        self._usage: dict[str, AnswerUsage] = {}
        self._loose_usage: list[AnswerUsage] = []
        self._model = state.model
        self._cwd = state.cwd
        self._version = state.version
        self._branch = state.git_branch
        self._parent = state.parent_id
        self._is_first_row = state.is_first_row
        # The last row that surely has a version and a branch of its own. It is decoded when somebody asks.
        self._last_row: Record | None = None
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Takes the next record. Nothing that a record says makes it raise."""
        self._records += 1
        timestamp = record.timestamp
        if timestamp and (
            timestamp[-1] != "Z" or len(timestamp) != 24 or not self._oldest <= timestamp <= self._newest
        ):
            self._note_time(timestamp)
        kind = record.type
        if kind in CHAIN_TYPES:
            if kind == "assistant":
                self._note_answer(record)
            if record.is_sidechain:
                return
            self._note_place(record)
            if kind == "user" or kind == "attachment":
                self._note_prompt(record)
            elif kind == "system" and record.subtype == "compact_boundary":
                self._compactions += 1
        elif kind in _NAMES:
            self._note_name(record, kind)
        elif kind == NOTE_TYPE:
            self._marks = self._marks.after(record.body())

    def digest(self) -> Digest:
        """What the records taken so far say."""
        self._flush()
        names = self._names
        first = self._first.preview if self._first else None
        source = next((kind for kind in _TITLES if names.get(kind)), "first-prompt" if first else None)
        return Digest(
            title=names.get(source) or (self._first.title if self._first else None) if source else None,
            title_source=source,
            custom_title=names.get("custom-title"),
            ai_title=names.get("ai-title"),
            last_prompt=names.get("last-prompt"),
            summary=names.get("summary"),
            first_prompt=first,
            tag=names.get("tag"),
            agent_name=names.get("agent-name"),
            cwd=names.get("relocated", self._cwd),
            git_branch=self._branch,
            model=self._model,
            version=self._version,
            created_at=self._oldest if self._newest else None,
            updated_at=self._newest or None,
            records=self._records,
            turn_count=self._turns,
            compactions=self._compactions,
            total_tokens=sum(usage.total_tokens for usage in self.usage()),
            parent_id=names.get(FORK_TYPE, self._parent),
            marks=self._marks,
            continued_in=names.get("continued-in"),
        )

    def state(self) -> DigestState:
        """What another fold goes on from."""
        self._flush()
        return DigestState(
            names=dict(self._names),
            marks=self._marks,
            first=self._first,
            oldest=self._oldest,
            newest=self._newest,
            cwd=self._cwd,
            version=self._version,
            git_branch=self._branch,
            model=self._model,
            parent_id=self._parent,
            records=self._records,
            turn_count=self._turns,
            compactions=self._compactions,
            is_first_row=self._is_first_row,
        )

    def usage(self) -> Iterator[AnswerUsage]:
        """The tokens of every answer, one row for each message id: that with most output tokens.

        A copy of a session repeats the ids of the original, so a sum over sessions must count each id once as well.
        """
        yield from self._usage.values()
        yield from self._loose_usage

    def _note_time(self, timestamp: str) -> None:
        moment = _as_clients_write(timestamp)
        if moment:
            self._newest = max(self._newest, moment)
            self._oldest = min(self._oldest, moment)

    def _note_prompt(self, record: Record) -> None:
        prompt = prompt_of(record)
        if prompt is None:
            return
        self._turns += prompt.is_turn
        if self._first is None or (self._first.is_fallback and not prompt.is_fallback):
            self._first = FirstPrompt(preview(prompt.text), _title_of(prompt.text), prompt.is_fallback)

    def _note_name(self, record: Record, kind: str) -> None:
        value = record.body().get(_NAMES[kind])
        if not isinstance(value, str):
            return
        if value.strip() or kind == "custom-title":
            self._names[kind] = sendable_text(value.strip() and value)
        elif kind in _CLEARED_BY_EMPTY:
            self._names.pop(kind, None)

    def _note_answer(self, record: Record) -> None:
        model, tokens = _answer_of(record)
        if not model or model == SYNTHETIC_MODEL:
            return
        if not record.is_sidechain:
            self._model = model
        if not any(tokens):
            return
        message_id = record.message.id if record.message else None
        usage = AnswerUsage(message_id, model, _as_clients_write(record.timestamp or "")[:10], *tokens)
        if not message_id:
            self._loose_usage.append(usage)
            return
        known = self._usage.get(message_id)
        if known is None or usage.output_tokens > known.output_tokens:
            self._usage[message_id] = usage

    def _note_place(self, record: Record) -> None:
        if self._cwd is not None and not self._is_first_row and _has_envelope(record.raw):
            self._last_row = record
            return
        self._flush()
        self._take_place(record)
        self._is_first_row = False

    def _flush(self) -> None:
        if self._last_row is not None:
            self._take_place(self._last_row)
            self._last_row = None

    def _take_place(self, record: Record) -> None:
        place = _place_of(record)
        self._version = _text(place.version) or self._version
        self._branch = _text(place.git_branch) or self._branch
        self._cwd = self._cwd or _text(place.cwd)
        if self._is_first_row and isinstance(place.forked_from, dict):
            self._parent = _text(place.forked_from.get("sessionId"))


def _title_of(prompt: str) -> str:
    text = prompt.replace("\n", " ").strip()
    return text if len(text) <= PREVIEW_CHARACTERS_MAX else text[:PREVIEW_CHARACTERS_MAX].rstrip() + "…"


def _has_envelope(raw: bytes) -> bool:
    """Whether the row has a version and a branch where clients write them: then they need not be looked for now."""
    at = raw.rfind(b'"version":"', max(0, len(raw) - _TAIL_BYTES))
    return (at >= 0 and _ENVELOPE_TAIL.match(raw, at) is not None) or _ENVELOPE_HEAD.match(raw) is not None


def _place_of(record: Record) -> _Place:
    try:
        return _place_decode(record.raw)
    except _REFUSED:
        body = record.body()
        return _Place(*(body.get(name) for name in ("cwd", "version", "gitBranch", "forkedFrom")))


def _answer_of(record: Record) -> tuple[str | None, tuple[int, int, int, int]]:
    """The model of an answer and its four counts of tokens."""
    try:
        message = _answer_decode(record.raw).message
    except _REFUSED:
        return _odd_answer(body_of(record.raw))
    if message is None:
        return None, (0, 0, 0, 0)
    used = message.usage
    if used is None:
        return message.model, (0, 0, 0, 0)
    return message.model, (
        used.input_tokens or 0,
        used.output_tokens or 0,
        used.cache_creation_input_tokens or 0,
        used.cache_read_input_tokens or 0,
    )


def _odd_answer(body: JsonObject) -> tuple[str | None, tuple[int, int, int, int]]:
    message = body.get("message")
    fields: JsonObject = message if isinstance(message, dict) else {}
    found = fields.get("usage")
    used: JsonObject = found if isinstance(found, dict) else {}
    first, second, third, fourth = (_count(used.get(name)) for name in _COUNTED)
    return _text(fields.get("model")), (first, second, third, fourth)


def _count(value: JsonValue) -> int:
    """A number of tokens; what is no number counts nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        return 0
    return int(value)


def _text(value: JsonValue) -> str | None:
    return sendable_text(value) if isinstance(value, str) and value else None


def _as_clients_write(timestamp: str) -> str:
    """A time in the form that clients write; "" for what is none, or lies outside the years 1 to 9999."""
    if _CLIENT_TIME.fullmatch(timestamp):
        return timestamp
    moment = milliseconds(timestamp)
    if moment is None:
        return ""
    try:
        date = _EPOCH + timedelta(milliseconds=moment)
    except OverflowError:  # The zone of a date in the first or the last year can lead there.
        return ""
    return date.isoformat(timespec="milliseconds").replace("+00:00", "Z")
