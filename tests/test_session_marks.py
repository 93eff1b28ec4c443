"""Titles, tags and marks of a session, as `Session.set` writes them, on every engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import NotFound, Session, Store, UsageError
from clew.engines.contract import Entry
from clew.engines.memory import MemoryEngine
from clew.marks import (
    LABEL_CHARACTERS_MAX,
    LABELS_MAX,
    SAYS_ITS_OWN,
    TEXT_CHARACTERS_MAX,
    archived_key,
    title_key,
)
from clew.records.compact import compact
from clew.session_writer import IS_LIVE, WINDOW_BYTES
from clew.testing.forks import in_processes
from contents import set_live
from stores import ENGINES, store_on


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_on(ENGINES[request.param](tmp_path)) as store:
        yield store


@pytest.fixture
def files(tmp_path: Path) -> Store:
    return store_on(ENGINES["files"](tmp_path))


def spoken(store: Store, tmp_path: Path) -> Session:
    session = store.create(tmp_path)
    session.append_many([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}])
    return session


def rows(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line.data) for line in session.lines()]


def last_rows(session: Session, count: int) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "sessionId"} for row in rows(session)[-count:]]


EVERYTHING: dict[str, Any] = {
    "title": "Fix the login", "tag": "wip", "pinned": True, "archived": True, "owner": "ada", "workspace": "api",
    "labels": ["flaky", "auth", "flaky"],
}  # fmt: skip
SEEN = {**EVERYTHING, "labels": ("auth", "flaky")}
NOTHING = {
    "title": "one",
    "tag": None,
    "pinned": False,
    "archived": False,
    "owner": None,
    "workspace": None,
    "labels": (),
}


def seen(session: Session) -> dict[str, Any]:
    info = session.info()
    return {name: getattr(info, name) for name in EVERYTHING}


def test_everything_that_was_set_is_in_the_list_and_can_be_taken_off(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    assert seen(session) == NOTHING
    marked = session.set(**EVERYTHING)
    assert (set(marked.changed), marked.is_live, marked.notes) == (set(EVERYTHING), False, ())
    assert seen(session) == seen(store.session(session.id)) == SEEN
    (info,) = store.sessions()
    assert (info.title, info.labels, info.archived) == ("Fix the login", ("auth", "flaky"), True)
    assert set(session.set(**dict.fromkeys(EVERYTHING)).changed) == set(EVERYTHING)
    assert seen(store.session(session.id)) == NOTHING
    assert store.engine.blob_stat(title_key(session.key)) is None


def test_rows_are_short_begin_with_their_type_and_are_one_append(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    before = session.stat()
    session.set(**EVERYTHING)
    assert last_rows(session, 4) == [
        {"type": "custom-title", "customTitle": "Fix the login"},
        {"type": "agent-name", "agentName": "Fix the login"},
        {"type": "tag", "tag": "wip"},
        {"type": "clew-session", "pinned": True, "owner": "ada", "workspace": "api", "labels": ["auth", "flaky"]},
    ]
    lines = [line.data for line in session.lines()][-4:]
    assert all(line.startswith(b'{"type":"') and b", " not in line and b'"sessionId":"' in line for line in lines)
    assert session.stat().modified_ns == before.modified_ns, "the time of the conversation moved"


@pytest.mark.parametrize("field", EVERYTHING)
def test_one_thing_leaves_the_others_and_what_is_so_already_is_not_written(
    store: Store, tmp_path: Path, field: str
) -> None:
    session = spoken(store, tmp_path)
    session.set(**EVERYTHING)
    there = session.stat().revision, [blob.modified_ns for blob in session.blobs()]
    assert session.set(**EVERYTHING).changed == ()
    assert (session.stat().revision, [blob.modified_ns for blob in session.blobs()]) == there
    assert session.set(**{field: None}).changed == (field,)
    assert seen(session) == {**SEEN, field: NOTHING[field]}


def test_nothing_is_said_of_a_session_that_has_no_marks(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    there = session.stat().revision
    assert session.set().changed == session.set(**dict.fromkeys(EVERYTHING, None)).changed == ()
    assert session.set(title=" ", tag="", labels=[], pinned=False, archived=False).changed == ()
    assert (session.stat().revision, session.blobs()) == (there, [])


def test_texts_are_set_without_blanks_around_them(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    session.set(title="  Fix  the login ", tag=" in review ")
    assert (session.info().title, session.info().tag) == ("Fix  the login", "in review")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"title": "two\nlines"}, "the title holds '.n'"),
    ({"tag": "\x1b[31m"}, "the tag holds '.x1b'"),
    ({"owner": "a\u2028b"}, "the owner holds"),
    ({"workspace": "\ud800"}, "the workspace holds"),
    ({"title": "x" * (TEXT_CHARACTERS_MAX + 1)}, "the title has 201 characters"),
    ({"labels": ["two words"]}, "'two words' is no label"),
    ({"labels": [""]}, "'' is no label"),
    ({"labels": ["x" * (LABEL_CHARACTERS_MAX + 1)]}, "is no label"),
    ({"labels": "auth"}, "one text and no list"),
    ({"labels": [str(number) for number in range(LABELS_MAX + 1)]}, "101 labels are too many"),
]


@pytest.mark.parametrize(("wrong", "says"), BAD)
def test_a_value_that_no_list_could_show_is_refused_and_nothing_is_written(
    store: Store, tmp_path: Path, wrong: dict[str, Any], says: str
) -> None:
    session = spoken(store, tmp_path)
    there = session.stat().revision
    with pytest.raises(UsageError, match=says) as caught:
        session.set(**{"pinned": True, **wrong})
    assert caught.value.hint
    assert (session.stat().revision, session.blobs()) == (there, [])


def test_a_title_at_the_start_keeps_the_same_rule(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the title holds"):
        store.create(tmp_path, title="two\nlines")
    assert [*store.sessions()] == []


def test_labels_are_added_and_taken_off_one_by_one(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    session.set(labels=["b", "a"])
    assert session.label("c", "a").changed == ("labels",)
    assert session.info().labels == ("a", "b", "c")
    assert session.label("b", "not-there", off=True).changed == ("labels",)
    assert session.label("b", off=True).changed == ()
    assert session.info().labels == ("a", "c")
    with pytest.raises(UsageError, match="too many"):
        session.label(*(f"more{number}" for number in range(LABELS_MAX)))


def test_the_log_of_a_subagent_has_no_marks(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    session.append_subagent("a1", [{"role": "user", "content": "go"}])
    session.set(archived=True)
    (agent,) = store.session(session.id).agents()
    assert agent.info().archived is False
    with pytest.raises(UsageError, match="no marks of its own") as caught:
        agent.set(pinned=True)
    assert session.id in str(caught.value.hint)


def test_a_session_that_nobody_has_spoken_in_can_be_named_but_not_archived(store: Store, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    with pytest.raises(NotFound):
        session.set(archived=True)
    assert session.set(title="Later").changed == ("title",)
    assert store.session(session.id).info().title == "Later"


def test_a_mark_of_a_session_that_was_deleted_meanwhile_does_not_begin_it_anew(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    store.delete(session.id)
    with pytest.raises(NotFound):
        session.set(pinned=True)
    assert [*store.sessions()] == []


def test_maps_of_a_loaded_store_have_them_too(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    session.set(**EVERYTHING)
    session.set(owner=None)
    marks = store.load().marks[session.id]
    assert (marks.pinned, marks.owner, marks.workspace, marks.labels) == (True, None, "api", ("auth", "flaky"))
    assert store.load().custom_titles == {session.id: "Fix the login"}
    session.set(title=None)
    note = compact({"type": "clew-fork", "kind": "copy", "parentSessionId": "other", "sessionId": session.id})
    store.engine.append(session.key, [Entry(note)])
    store.refresh()
    assert (store.load().custom_titles, store.load().parents) == ({}, {session.id: "other"})
    assert store.session(session.id).info().parent_id == "other"


WORDS = st.none() | st.sampled_from(["", "a", "b", "two words"])
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "title": WORDS, "tag": WORDS, "owner": WORDS, "workspace": WORDS, "pinned": st.none() | st.booleans(),
        "archived": st.none() | st.booleans(), "labels": st.none() | st.lists(st.sampled_from("abc")),
    },
)  # fmt: skip


@given(st.lists(CHANGES, max_size=8))
def test_whatever_is_set_in_whatever_order_the_last_of_each_counts(changes: list[dict[str, Any]]) -> None:
    store = store_on(MemoryEngine())
    session = spoken(store, Path("/home/me/app"))
    now = NOTHING
    for change in changes:
        after = {name: value or NOTHING[name] for name, value in change.items()}
        after |= {"labels": tuple(sorted({*(change["labels"] or ())}))} if "labels" in change else {}
        marked = session.set(**change)
        assert {*marked.changed} == {name for name, value in after.items() if value != now[name]}
        now = {**now, **after}
        assert seen(store.session(session.id)) == now


# Whoever else writes.


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_two_processes_that_set_different_things_at_once_are_both_there(kind: str, tmp_path: Path) -> None:
    session = spoken(store_on(ENGINES[kind](tmp_path)), tmp_path)
    changes: list[dict[str, Any]] = [{"pinned": True}, {"owner": "ada"}, {"title": "Both"}]

    def mark(writer: int) -> None:
        mine = store_on(ENGINES[kind](tmp_path)).session(session.id)
        for number in range(10):
            mine.label(f"label-{writer}-{number}")
        mine.set(**changes[writer])

    in_processes([partial(mark, writer) for writer in range(3)])
    info = store_on(ENGINES[kind](tmp_path)).session(session.id).info()
    assert (info.pinned, info.owner, info.title) == (True, "ada", "Both")
    assert info.labels == tuple(sorted(f"label-{writer}-{number}" for writer in range(3) for number in range(10)))


def test_labels_that_another_program_adds_between_look_and_append_stay(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = spoken(store, tmp_path)
    append, calls = store.engine.append, []

    def first_another(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            store.session(mine.id).label("theirs")
        return append(*arguments, **named)

    monkeypatch.setattr(store.engine, "append", first_another)
    marked = mine.label("mine")
    assert (marked.changed, len(calls)) == (("labels",), 3)
    assert store.session(mine.id).info().labels == ("mine", "theirs")


def test_a_session_that_is_live_is_named_and_written_all_the_same(files: Store, tmp_path: Path) -> None:
    session = spoken(files, tmp_path)
    set_live(tmp_path / "config", session.id)
    assert session.set(pinned=True).notes == (IS_LIVE,)
    marked = session.set(title="New", labels=["a"])
    assert (marked.is_live, marked.notes) == (True, (SAYS_ITS_OWN,))
    assert session.set(title="New").notes == (), "nothing was written, so there is nothing to tell"
    assert session.info().title == "New"


def test_a_row_of_another_program_that_says_nonsense_changes_nothing(files: Store, tmp_path: Path) -> None:
    session = spoken(files, tmp_path)
    session.set(**EVERYTHING)
    with Path(session.where).open("ab") as log:
        log.write(b'{"type":"clew-session","pinned":"yes","owner":7,"workspace":" ","labels":"all","exitReason":[]}\n')
        log.write(b'{"type":"clew-session","labels":["b",7,"b",null,"\\ud800"],"more":1}\n')
    assert seen(files.session(session.id)) == {**SEEN, "labels": ("b", "\ufffd")}


# Sidecars.


def test_on_the_clients_files_the_sidecars_are_the_clients_own(files: Store, tmp_path: Path) -> None:
    session = spoken(files, tmp_path)
    session.set(title='Say "hi"', archived=True)
    folder = Path(session.where).with_suffix("")
    assert (folder / "custom-title.json").read_text() == '{"customTitle":"Say \\"hi\\""}'
    archived = json.loads((folder / "archived.json").read_text())
    assert archived == {"archived": True, "at": archived["at"], "by": "clew"}
    session.set(title=None, archived=False)
    assert not (folder / "custom-title.json").exists()
    assert json.loads((folder / "archived.json").read_text())["archived"] is False
    assert {path.stat().st_mode & 0o77 for path in folder.iterdir()} == {0}


def test_a_title_in_a_sidecar_counts_only_where_the_log_has_none(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    store.engine.put(title_key(session.key), [b'{"customTitle":"Beside"}'])
    assert session.info().title == "Beside"
    session.append({"type": "custom-title", "customTitle": "In the log"})
    assert session.info().title == "In the log"
    session.append({"type": "custom-title", "customTitle": ""})
    assert session.info().title == "one", "the last row takes the title off, as it does in the client"


def test_a_sidecar_that_would_be_stale_goes_along_on_every_engine(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    store.engine.put(title_key(session.key), [b'{"customTitle":"Old"}'])
    assert session.set(title="New").changed == ("title",)
    assert b"".join(store.engine.open(title_key(session.key))) == b'{"customTitle":"New"}'


def test_a_title_that_stands_only_in_a_sidecar_is_taken_off(store: Store, tmp_path: Path) -> None:
    session = spoken(store, tmp_path)
    store.engine.put(title_key(session.key), [b'{"customTitle":"Old"}'])
    assert session.set(title=None).changed == ("title",)
    assert session.info().title == "one"


@pytest.mark.parametrize("said", [b"", b"not json", b"[]", b'{"archived":"yes"}', b'{"customTitle":7}', b"\xff" * 100])
def test_a_sidecar_that_says_nothing_changes_nothing(store: Store, tmp_path: Path, said: bytes) -> None:
    session = spoken(store, tmp_path)
    store.engine.put(title_key(session.key), [said])
    store.engine.put(archived_key(session.key), [said])
    assert seen(session) == NOTHING


def test_after_a_crash_between_the_rows_and_the_sidecars_the_rows_count(
    files: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spoken(files, tmp_path)
    session.set(title="Old")

    def crash(*_: Any, **__: Any) -> str:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(files.engine, "put", crash)
        with pytest.raises(SystemExit):
            session.set(title="New", archived=True)
    assert (files.session(session.id).info().title, files.session(session.id).info().archived) == ("New", False)
    assert files.session(session.id).set(title="New", archived=True).changed == ("archived",)
    folder = Path(session.where).with_suffix("")
    assert (folder / "custom-title.json").read_text() == '{"customTitle":"New"}'


# Near the end of the log.


def talk_on(session: Session, more: int) -> None:
    for _ in range(3):
        session.append_many([{"role": "user", "content": "x" * (more // 3)}, {"role": "assistant", "content": "ok"}])


def test_what_clew_noted_is_said_again_as_one_row_before_it_is_far_back(files: Store, tmp_path: Path) -> None:
    session = spoken(files, tmp_path)
    session.set(pinned=True)
    session.set(owner="ada", labels=["b", "a"])
    session.set(owner=None)
    talk_on(session, WINDOW_BYTES + 3_000)
    (again,) = [row for row in rows(session)[5:] if row["type"] == "clew-session" and len(row) > 3]
    assert again == {"type": "clew-session", "pinned": True, "labels": ["a", "b"], "sessionId": session.id}
    talk_on(files.session(session.id), WINDOW_BYTES + 3_000)
    found = [row for row in rows(session) if row["type"] == "clew-session"]
    assert (len(found), found[-1]) == (5, again)
    assert files.session(session.id).info().labels == ("a", "b")


def test_notes_that_were_all_taken_off_are_not_said_again(files: Store, tmp_path: Path) -> None:
    session = spoken(files, tmp_path)
    session.set(pinned=True)
    session.set(pinned=False)
    talk_on(session, WINDOW_BYTES + 3_000)
    assert [row["type"] for row in rows(session)].count("clew-session") == 2
    assert session.info().pinned is False


def test_a_note_that_another_program_wrote_meanwhile_is_not_undone(files: Store, tmp_path: Path) -> None:
    session = spoken(files, tmp_path)
    session.set(owner="ada")
    session.append({"role": "user", "content": "x" * (WINDOW_BYTES - 3_000)})
    files.session(session.id).set(owner="bob")
    talk_on(session, 10_000)
    assert files.session(session.id).info().owner == "bob"
