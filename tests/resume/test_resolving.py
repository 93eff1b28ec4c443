"""What a text names: each resolver, their order, and that none of them ever guesses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew import Ambiguous, ClewError, NotFound, Session, Store, UsageError, plugins
from clew.resume.answers import Candidate, Resolved
from clew.resume.look import Look
from clew.resume.resolvers.table import ENTRY_POINTS, RESOLVERS
from clew.resume.resolving import only
from session_files import PROJECT, Row, session_id, two_turns, write
from stores import ENGINES, store_on

HOSTILE = [
    "\x1b[2J", "../x", "a\0b", "\ud800", "title:\ud800", "tag:\0", "x" * 99_999, "#", "project:#", "pr:-1",
    "~", "-", "%s", "a\nb", "https://\x1b[0m/x", "branch:\n", "project:\0#x", "project:\ud800#x", "title:\x07",
]  # fmt: skip


@pytest.fixture
def store(config_dir: Path) -> Store:
    return clew.open(config_dir)


def titled(title: str, kind: str = "custom-title") -> Row:
    return {"type": kind, {"custom-title": "customTitle", "ai-title": "aiTitle"}[kind]: title, "sessionId": "s"}


def tagged(tag: str) -> Row:
    return {"type": "tag", "tag": tag, "sessionId": "s"}


def names(store: Store, text: str, **options: Any) -> str:
    """The first digits of the session that the text names."""
    return store.resume(text, **options).id[:8].lstrip("0")


def test_ids_and_their_beginnings_name_sessions_of_every_project(store: Store, config_dir: Path) -> None:
    write(config_dir, 0xA1, *two_turns(), project="-a")
    write(config_dir, 0xA2, *two_turns(), project="-b")
    for text in (session_id(0xA1), "000000a1", "000000A1-"):
        found = store.resolve(text, scope="-b")
        assert (found.kind, found.session and found.session.project) == ("session", "-a")
    with pytest.raises(Ambiguous, match="2 ids begin so") as caught:
        store.resume("000000a")
    assert set(caught.value.candidates) == {session_id(0xA1), session_id(0xA2)}


def test_a_path_names_its_session_and_one_that_lies_elsewhere_is_a_file(
    store: Store, config_dir: Path, tmp_path: Path
) -> None:
    own = write(config_dir, 1, *two_turns())
    assert store.resolve(str(own)).kind == "session"
    copied = tmp_path / "copied.jsonl"
    copied.write_bytes(own.read_bytes())
    found = store.resolve(str(copied))
    assert found.kind == "file"
    assert found.session is not None
    assert len(found.session.messages()) == 4
    with pytest.raises(NotFound):
        store.resolve(str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("word", ["latest", "recent", "last"])
def test_the_newest_is_that_of_the_scope(store: Store, config_dir: Path, word: str) -> None:
    write(config_dir, 1, *two_turns(), at=1)
    write(config_dir, 2, *two_turns(), at=2, project="-other")
    assert names(store, word) == "2"
    assert names(store, word, scope=PROJECT) == "1"
    with pytest.raises(NotFound):
        store.resume(word, scope="/nowhere")


def test_the_last_custom_title_counts_wherever_it_stands_and_else_the_last_of_a_model(
    store: Store, config_dir: Path
) -> None:
    far = [tagged("x" * 900) for _ in range(200)]
    write(config_dir, 1, *two_turns(), titled("First"), titled("Second"), *far)
    write(config_dir, 2, *far, titled("Made by a model", "ai-title"), *two_turns(), *far)
    write(config_dir, 3, *two_turns(), titled("Hidden", "ai-title"), titled("Shown"))
    write(config_dir, 4, *two_turns(), titled("Taken off"), titled(""))
    assert names(store, "title:second") == "1"
    assert names(store, "  MADE by a model ") == "2"
    assert names(store, "Shown") == "3"
    for gone in ("First", "Hidden", "Taken off", "Made by", "title:Made by", "title:Taken off"):
        with pytest.raises(NotFound):
            store.resume(gone)


def test_titles_are_compared_as_the_client_does(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), titled("  Äpfel straße "))
    assert names(store, "äPFEL STRAßE") == "1"
    with pytest.raises(NotFound):
        store.resume("ÄPFEL STRASSE")


def test_the_title_in_the_clients_sidecar_counts_where_the_row_is_gone(store: Store, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns(), titled("By a model", "ai-title"))
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "custom-title.json").write_text('{"customTitle":"Kept beside"}')
    assert names(store, "kept beside") == "1"
    with pytest.raises(NotFound):
        store.resume("By a model")


def test_a_title_that_was_taken_off_does_not_come_back_from_the_sidecar(store: Store, config_dir: Path) -> None:
    path = write(config_dir, 1, *two_turns(), titled("By a model", "ai-title"), titled(""))
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "custom-title.json").write_text('{"customTitle":"Old"}')
    assert names(store, "By a model") == "1"
    with pytest.raises(NotFound):
        store.resume("Old")


def test_a_title_that_two_share_is_ambiguous_newest_first(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), titled("Same"), at=1)
    write(config_dir, 2, *two_turns(), titled("same", "ai-title"), at=2)
    found = store.resolve("SAME")
    assert (found.kind, found.query, found.is_ambiguous) == ("picker", "SAME", True)
    assert found.candidates == (Candidate(session_id(2), "same"), Candidate(session_id(1), "Same"))
    for text in ("SAME", "title:Same"):
        with pytest.raises(Ambiguous, match="2 sessions have this title") as caught:
            store.resume(text)
        assert caught.value.candidates == (session_id(2), session_id(1))


def test_titles_count_in_the_scope_alone(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), titled("Same"), project="-a")
    write(config_dir, 2, *two_turns(), titled("Same"), project="-b")
    assert names(store, "Same", scope="-a") == "1"
    assert names(store, "title:Same", scope="-b") == "2"
    with pytest.raises(Ambiguous):
        store.resume("Same")


@pytest.mark.parametrize("text", ["title:x", "tag:x", "label:x", "owner:x", "workspace:x", "branch:x", "pr:1", "x y"])
def test_elsewhere_is_proposed_only_to_those_who_looked_here(store: Store, config_dir: Path, text: str) -> None:
    write(config_dir, 1, *two_turns(), project="-a")
    for scope, is_proposed in (("-a", True), (None, False)):
        with pytest.raises(NotFound) as caught:
            only(store.resolve(text, scope=scope))
        assert ("add --all" in caught.value.hint) == is_proposed
        assert "clew ls --all" in caught.value.hint


def test_the_same_id_in_two_projects_is_told_apart_by_path(store: Store, config_dir: Path) -> None:
    paths = {str(write(config_dir, 1, *two_turns(), titled("T"), project=project)) for project in ("-a", "-b")}
    with pytest.raises(Ambiguous) as caught:
        store.resume("title:T")
    assert set(caught.value.candidates) == paths


def test_a_tag_is_the_last_one_and_a_branch_that_of_the_last_row(store: Store, config_dir: Path) -> None:
    on = [row | {"gitBranch": "fix/login"} for row in two_turns("b")]
    write(config_dir, 1, *two_turns(), tagged("old"), tagged("active"))
    write(config_dir, 2, *two_turns(), *on, tagged("old"), tagged(""))
    assert names(store, "tag:active") == "1"
    assert names(store, "branch:fix/login") == "2"
    assert names(store, "branch:main") == "1"
    for text, candidate in (("tag:old", "tag:active"), ("branch:fix", "branch:fix/login")):
        with pytest.raises(NotFound) as caught:
            store.resume(text)
        assert candidate in caught.value.candidates


def test_marks_name_sessions(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns())
    write(config_dir, 2, *two_turns())
    store.session(session_id(1)).set(labels=["red", "blue"], owner="me")
    store.session(session_id(2)).set(labels=["blue"], owner="you", workspace="w")
    for text, number in (("label:red", "1"), ("owner:you", "2"), ("workspace:w", "2")):
        assert names(store, text) == number
    with pytest.raises(Ambiguous, match="2 sessions have this label"):
        store.resume("label:blue")
    store.session(session_id(2)).set(workspace=None, labels=None)
    assert names(store, "label:blue") == "1"
    for text in ("workspace:w", "label:green", "owner:m"):
        with pytest.raises(NotFound):
            store.resume(text)
    with pytest.raises(UsageError):
        store.resume("label: ")


def test_a_session_is_named_in_a_project(store: Store, config_dir: Path) -> None:
    write(config_dir, 0xA1, *two_turns(), titled("Same"), project="-a")
    write(config_dir, 0xA2, *two_turns(), titled("Same"), tagged("t"), project="-b")
    for text in ("project:-b#000000a", "project:/b#000000a2", "project:-b#latest", "project:-b#Same",
                 "project:/b#tag:t"):  # fmt: skip
        assert names(store, text, scope="-a") == "a2"
    for text in ("project:-b#000000a1", "project:-b#nope", "project:/nowhere#latest"):
        with pytest.raises(NotFound):
            store.resume(text)
    for text in ("project:-b", "project:-b#", "project:#x"):
        with pytest.raises(UsageError):
            store.resume(text)


def linked(number: int, repository: str) -> Row:
    url = f"https://github.com/{repository}/pull/{number}"
    return {"type": "pr-link", "sessionId": "s", "prNumber": number, "prUrl": url, "prRepository": repository}


def test_a_pull_request_is_named_by_number_repository_or_url(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), linked(12, "me/one"), linked(13, "me/one"))
    write(config_dir, 2, *two_turns(), linked(12, "me/Two"))
    for text in ("pr:13", "pr:#13", "pr:me/one#12", "pr:https://github.com/me/one/pull/12/files?w=1"):
        assert names(store, text) == "1"
    assert names(store, "pr:ME/two#12") == "2"
    with pytest.raises(Ambiguous, match="2 sessions are linked"):
        store.resume("pr:12")
    with pytest.raises(NotFound):
        store.resume("pr:14")
    with pytest.raises(UsageError):
        store.resume("pr:twelve")


def test_a_url_needs_an_ingress_and_keeps_its_url(store: Store) -> None:
    url = "https://example.org/s/1"
    with pytest.raises(UsageError, match=url):
        store.resolve(url)
    found = store.resolve(url, ingress=lambda text: text.rpartition("/")[2])
    assert found == Resolved("remote", url=url, session_id="1")
    with pytest.raises(UsageError, match="does not know it"):
        store.resolve(url, ingress=lambda _: None)


def test_what_nothing_answers_to_comes_with_the_titles_that_hold_it(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), titled("Fix the login"))
    found = store.resolve("login")
    assert (found.kind, found.query, found.is_ambiguous) == ("picker", "login", False)
    assert found.candidates == (Candidate(session_id(1), "Fix the login"),)
    with pytest.raises(NotFound) as caught:
        store.resume("login")
    assert not isinstance(caught.value, Ambiguous)
    assert caught.value.candidates == (session_id(1),)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_refused_in_one_line(store: Store, config_dir: Path, text: str) -> None:
    write(config_dir, 1, *two_turns())
    with pytest.raises(ClewError) as caught:
        store.resume(text)
    assert caught.value.exit_code in (2, 4)
    assert caught.value.hint
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize("text", ["", "  \n", "x" * 1_000_000])
def test_what_can_name_nothing_is_a_wrong_call(store: Store, text: str) -> None:
    with pytest.raises(UsageError):
        store.resolve(text)


@given(st.text(max_size=40))
def test_any_text_is_answered_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    config = tmp_path_factory.mktemp("config")
    write(config, 1, *two_turns(), titled("T"))
    try:
        assert clew.open(config).resolve(text).kind in {"session", "file", "remote", "picker"}
    except ClewError as error:
        code = error.exit_code
    else:
        return
    assert code in (2, 4, 6)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_names_are_found_on_every_engine(engine: Callable[[Path], Any], tmp_path: Path) -> None:
    store = store_on(engine(tmp_path))
    session = store.create("/p", title="Fix it", git_branch="dev")
    session.append_many([{"role": "user", "content": "hi"}, {"type": "tag", "tag": "active"}])
    for text in ("fix IT", "title:Fix it", "tag:active", "branch:dev", "latest", session.id, session.id[:8]):
        assert store.resume(text).key == session.key
    with pytest.raises(NotFound):
        store.resume("tag:none")


def test_an_id_that_is_given_whole_is_no_beginning_of_another(tmp_path: Path) -> None:
    store = store_on(ENGINES["memory"](tmp_path))
    for name in ("a", "ab"):
        store.create("/p", id=name).append({"role": "user", "content": "hi"})
    assert store.resume("a").id == store.resume("project:/p#a").id == "a"
    assert store.resume("project:/p#ab").id == "ab"


@pytest.mark.usefixtures("permissions_count")
def test_a_log_that_cannot_be_read_is_left_out_and_told(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), titled("Mine"))
    path = write(config_dir, 2, *two_turns(), titled("Other"))
    looked = store.logs()
    path.chmod(0)
    look = Look(store)
    look._logs = looked
    assert [title for _, title in look.titles() if title] == ["Mine"]
    assert str(path) in {problem.path for problem in store.problems}


class _Point:
    """An entry point, as far as it is asked."""

    dist = None

    def __init__(self, name: str, found: object) -> None:
        self.name, self.value, self._found = name, f"package:{name}", found

    def load(self) -> object:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def registered(monkeypatch: pytest.MonkeyPatch, **found: object) -> None:
    points = {name: _Point(name, each) for name, each in found.items()}
    real = plugins.entry_points_of
    monkeypatch.setattr(plugins, "entry_points_of", lambda group: points if group == ENTRY_POINTS else real(group))
    monkeypatch.setattr("clew.resume.resolving.entry_points_of", plugins.entry_points_of)


def test_a_resolver_of_another_package_is_asked_after_ours_and_before_titles(
    store: Store, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(config_dir, 1, *two_turns(), at=1)
    write(config_dir, 2, *two_turns(), titled("ticket:7"), at=2)

    def ticket(text: str, look: Look) -> Resolved | None:
        if text != "ticket:7" and not text.startswith("tag:"):
            return None
        return Resolved("session", look.session(look.logs()[-1]))

    registered(monkeypatch, ticket=ticket)
    assert names(store, "ticket:7") == "1"
    with pytest.raises(NotFound):
        store.resume("tag:7")


@pytest.mark.parametrize("broken", [ImportError("gone"), "no function", dict])
def test_a_resolver_that_does_not_load_is_named(
    store: Store, config_dir: Path, monkeypatch: pytest.MonkeyPatch, broken: object
) -> None:
    write(config_dir, 1, *two_turns())
    registered(monkeypatch, mine=broken)
    with pytest.raises(UsageError, match="package:mine"):
        store.resume("anything")
    assert names(store, session_id(1)) == "1"


def test_no_resolver_of_ours_is_imported_before_it_is_asked() -> None:
    assert [*RESOLVERS][:4] == ["url", "path", "id", "keyword"]


def test_a_session_that_was_named_is_the_stores_own(store: Store, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns())
    session = store.resume("latest")
    assert isinstance(session, Session)
    session.append({"role": "user", "content": "more"})
    assert os.path.getsize(session.where) == session.stat().size_bytes
