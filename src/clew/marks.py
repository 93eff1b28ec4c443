"""Names and marks of a session: how they are set, and what of them stands beside the log.

A title and a tag are rows of the client's types, what only clew has is a row `clew-session`; of each the last one in
the log counts. Two things stand in sidecars, where the client has them: that a session is archived stands nowhere
else, and a title stands in a sidecar besides its row, which counts more. docs/design/0015-names-and-marks.md says what
was measured.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from clew.engines.contract import BlobKey, Engine, LogKey, small_blob
from clew.errors import UsageError
from clew.layouts.claude import ARCHIVED_NAME, CUSTOM_TITLE_NAME, Kind
from clew.records.compact import compact
from clew.records.own import NOTE_TYPE
from clew.records.record import body_of, sendable_text
from clew.records.titles import title_rows
from clew.records.views import JsonObject
from clew.session_writer import IS_LIVE, SessionWriter
from clew.transcript.digest import Digest
from clew.transcript.marks import UNMARKED, Marks, labels_of

if TYPE_CHECKING:
    from clew.session import Session

TEXT_CHARACTERS_MAX = 200
"""A title, a tag, an owner and a workspace are no longer: lists cut there, the client's too."""
LABEL_CHARACTERS_MAX = 64
LABELS_MAX = 100
SAYS_ITS_OWN = (
    "a running client holds this session and says the title and the tag that it knows again and again: "
    "set them once more when it has ended"
)
"""Measured: it reads only the last 64 KiB before it does so, and one turn may be longer."""

Text: TypeAlias = str | UnsetType | None
Truth: TypeAlias = bool | UnsetType | None
_IN_NO_LINE = frozenset({"Cc", "Cs", "Zl", "Zp"})


class Marked(msgspec.Struct, frozen=True):
    """What came of setting marks. `changed` names those that were not so before; nothing is written for the others.

    `is_live` and `notes` are as in `Written`.
    """

    changed: tuple[str, ...]
    is_live: bool = False
    notes: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True):
    """What is to be set. An empty text takes it off, UNSET leaves it."""

    title: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    note: Callable[[Marks], Marks] = lambda marks: marks
    """From what is noted now to what is to be."""


class Beside(msgspec.Struct, frozen=True):
    """What the sidecars of a session say; None where there is none, or it cannot be read."""

    title: str | None = None
    archived: bool | None = None


def wanted(
    title: Text,
    tag: Text,
    pinned: Truth,
    archived: Truth,
    owner: Text,
    workspace: Text,
    labels: Collection[str] | UnsetType | None,
) -> Change:
    """The change that is asked for. Raises `UsageError` for a value that is none."""
    said: dict[str, object] = {}
    for field, text in (("owner", owner), ("workspace", workspace)):
        if not isinstance(text, UnsetType):
            said[field] = text_checked(text, f"the {field}") or None
    if not isinstance(pinned, UnsetType):
        said["pinned"] = bool(pinned)
    if not isinstance(labels, UnsetType):
        said["labels"] = labels_checked(labels or ())
    return Change(
        title if isinstance(title, UnsetType) else text_checked(title, "the title"),
        tag if isinstance(tag, UnsetType) else text_checked(tag, "the tag"),
        archived if isinstance(archived, UnsetType) else bool(archived),
        lambda marks: msgspec.structs.replace(marks, **said),
    )


def labelled(names: Collection[str], *, off: bool) -> Change:
    """With these labels too, or without them."""
    given = set(labels_checked(names))

    def note(marks: Marks) -> Marks:
        left = set(marks.labels) - given
        return msgspec.structs.replace(marks, labels=_not_too_many(left if off else left | given))

    return Change(note=note)


def text_checked(text: str | None, what: str) -> str:
    """The text as it is set: one line, without blanks around it; "" takes off. Raises `UsageError` for any other."""
    given = (text or "").strip()
    if len(given) > TEXT_CHARACTERS_MAX:
        raise UsageError(
            f"{what} has {len(given):,} characters, and {TEXT_CHARACTERS_MAX} are the most", hint="say it in fewer"
        )
    bad = next((character for character in given if unicodedata.category(character) in _IN_NO_LINE), None)
    if bad is not None:
        raise UsageError(f"{what} holds {bad!r}, and it is one line of text", hint="leave that character out")
    return given


def labels_checked(names: Collection[str]) -> tuple[str, ...]:
    """Sorted, each once. Raises `UsageError` for a label that is no word, and for too many."""
    if isinstance(names, str):
        raise UsageError(f"{names!r:.60} is one text and no list of labels", hint=f"pass [{names!r:.60}]")
    for name in names:
        if len(name) > LABEL_CHARACTERS_MAX or not name or text_checked(name, "a label") != "".join(name.split()):
            raise UsageError(
                f"{name!r:.100} is no label: a label is a word without blanks, of {LABEL_CHARACTERS_MAX} characters "
                "at most",
                hint="join its words with a dash",
            )
    return _not_too_many(names)


def _not_too_many(names: Collection[str]) -> tuple[str, ...]:
    found = labels_of(list(names))
    if len(found) > LABELS_MAX:
        raise UsageError(f"{len(found)} labels are too many: {LABELS_MAX} are the most", hint="take some off")
    return found


def apply(session: Session, writer: SessionWriter, change: Change, timestamp: Callable[[], str]) -> Marked:
    """Sets what is to be set: rows in one append, then the sidecars.

    After a crash in between the rows are there and count; the same call made again sees to the sidecars. Rows are
    planned anew where somebody else appended meanwhile.
    """
    changed: list[str] = []

    def rows() -> Sequence[JsonObject]:
        changed.clear()
        return _rows(session.digest, change, changed)

    if session.is_agent:
        raise UsageError(
            f"{session.id} is the log of a subagent, which has no marks of its own",
            hint=f"mark its session: {session.key.session}",
        )
    appended = writer.note(rows)
    changed += [name for name in _set_beside(session, change, timestamp) if name not in changed]
    is_live = session.is_live
    notes = () if appended is None else appended.notes
    if is_live and changed:
        notes += (SAYS_ITS_OWN,) if {"title", "tag"} & {*changed} else (IS_LIVE,)
    return Marked(tuple(changed), is_live, notes)


def _rows(digest: Digest, change: Change, changed: list[str]) -> list[JsonObject]:
    """The rows that are still to be written, and to `changed` what they change."""
    rows: list[JsonObject] = []
    if not isinstance(change.title, UnsetType) and change.title != (digest.custom_title or ""):
        changed.append("title")
        rows += title_rows(change.title)
    if not isinstance(change.tag, UnsetType) and change.tag != (digest.tag or ""):
        changed.append("tag")
        rows.append({"type": "tag", "tag": change.tag})
    before, after = digest.marks, change.note(digest.marks)
    differ = [name for name in UNMARKED.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    if differ:
        changed += differ
        # A mark that has its default stands in no row of all, so null takes it off.
        said = after.row()
        rows.append({"type": NOTE_TYPE, **{name: said.get(name) for name in differ}})
    return rows


def beside(engine: Engine, key: LogKey, *, is_titled: bool = False) -> Beside:
    """What the sidecars say; that of the title is looked for only where the log has none."""
    title = None if is_titled else _said_in(engine, title_key(key)).get("customTitle")
    archived = _said_in(engine, archived_key(key)).get("archived")
    return Beside(
        sendable_text(title) if isinstance(title, str) and title.strip() else None,
        archived if isinstance(archived, bool) else None,
    )


def title_key(key: LogKey) -> BlobKey:
    """Where the client has the title of a session besides the row."""
    return BlobKey(key.project, key.session, Kind.CUSTOM_TITLE.value, CUSTOM_TITLE_NAME)


def archived_key(key: LogKey) -> BlobKey:
    """Where the client has that a session is archived. A prompt there takes it out of the archive again."""
    return BlobKey(key.project, key.session, Kind.ARCHIVED.value, ARCHIVED_NAME)


def _said_in(engine: Engine, key: BlobKey) -> JsonObject:
    data = small_blob(engine, key)
    return {} if data is None else body_of(data)


def _set_beside(session: Session, change: Change, timestamp: Callable[[], str]) -> list[str]:
    """Sees to the sidecars. A title has one where the client looks for it, or has one already that would be stale."""
    engine, key = session.engine, session.key
    changed, said = [], beside(engine, key)
    if change.title == "":
        if engine.delete_blob(title_key(key)) and said.title:
            changed.append("title")
    elif not isinstance(change.title, UnsetType) and said.title != change.title:
        if engine.capabilities.is_clients or engine.blob_stat(title_key(key)) is not None:
            engine.put(title_key(key), [compact({"customTitle": change.title})])
    if not isinstance(change.archived, UnsetType) and change.archived != bool(said.archived):
        session.stat()
        engine.put(archived_key(key), [compact({"archived": change.archived, "at": timestamp(), "by": "clew"})])
        changed.append("archived")
    return changed
