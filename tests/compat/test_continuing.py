"""`clew continue` takes the session that `claude --continue` takes, and a title names the same to both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clew
from clew import NotFound
from clew.cli.options import Settings
from clew.cli.starting import Wish, command_of, point_of
from continuing import SESSIONS, SITUATIONS, A, B, C, Situation, made, turn
from real_client import Case, conversation, resume
from session_files import Row, user

pytestmark = pytest.mark.compat


def test_the_client_takes_what_we_take_in_every_situation(client: Path, tmp_path: Path) -> None:
    situations = {name: made(name, tmp_path / str(at)) for at, name in enumerate(SITUATIONS)}
    ours: dict[str, str | None] = {}
    for name, of in situations.items():
        try:
            ours[name] = clew.open(of.config).continued(of.cwd).session.id
        except NotFound:
            ours[name] = None
    cases = [Case(files={}, session=None, config=of.config, cwd=of.cwd) for of in situations.values()]
    wrong = []
    for (name, of), sent in zip(situations.items(), resume(client, cases, tmp_path / "runs"), strict=True):
        assert sent.exit_code == 0, (name, sent.stderr)
        theirs = json.loads(sent.stdout.splitlines()[0])["session_id"]
        is_theirs = theirs in of.taken if of.taken and not of.is_new else theirs not in SESSIONS
        if not is_theirs or ours[name] not in (of.taken or (None,)):
            wrong.append(f"{name}: the client takes {theirs}, we take {ours[name]}")
    assert not wrong


def custom(text: str) -> Row:
    return {"type": "custom-title", "customTitle": text, "sessionId": "s"}


def made_by_model(text: str) -> Row:
    return {"type": "ai-title", "aiTitle": text, "sessionId": "s"}


NAMES: dict[str, tuple[str, dict[str, list[Row]], dict[str, list[Row]]]] = {
    "a title in another case": ("fix IT", {A: [custom("Fix it")]}, {}),
    "a title that a model made": ("made", {A: [made_by_model("Made")]}, {}),
    "a model's title under a person's": ("Made", {A: [made_by_model("Made"), custom("Mine")]}, {}),
    "a title that was replaced": ("First", {A: [custom("First"), custom("Second")]}, {}),
    "a part of a title": ("Fix", {A: [custom("Fix it")]}, {}),
    "two with the same title": ("Same", {A: [custom("Same")], B: [custom("same")]}, {}),
    "a person's and a model's": ("Same", {A: [custom("Same")], B: [made_by_model("Same")]}, {}),
    "blanks around the title": ("Same", {A: [custom("  Same ")]}, {}),
    "blanks around the name": ("  Same ", {A: [custom("Same")]}, {}),
    "other letters in another case": ("ÄPFEL", {A: [custom("äpfel")]}, {}),
    "a letter that has no single capital": ("STRASSE", {A: [custom("straße")]}, {}),
    "a title of another project": ("Same", {}, {A: [custom("Same")]}),
    "a line break in it": ("a\nb", {A: [custom("a\nb")]}, {}),
    "the name of an agent": ("Agent", {A: [{"type": "agent-name", "agentName": "Agent", "sessionId": "s"}]}, {}),
    "an id of another project": (A, {}, {A: [custom("x")]}),
}


def test_a_title_names_the_session_that_it_names_to_the_client(client: Path, tmp_path: Path) -> None:
    cases: list[Case] = []
    ours: dict[str, str | None] = {}
    for at, (name, (text, here, elsewhere)) in enumerate(NAMES.items()):
        (tmp_path / str(at) / "work").mkdir(parents=True)
        of = Situation(tmp_path / str(at) / "config", tmp_path / str(at) / "work")
        for id_, rows in here.items():
            of.put(id_, *turn(id_), *rows)
        for id_, rows in elsewhere.items():
            of.put(id_, *turn(id_), *rows, folder=of.config / "projects" / "-other")
        cases.append(Case(files={}, session=text, config=of.config, cwd=of.cwd))
        try:
            ours[name] = clew.open(of.config).resume(text, scope=of.cwd).id
        except NotFound:
            ours[name] = None
    theirs = {
        name: json.loads(sent.stdout.splitlines()[0])["session_id"] if sent.exit_code == 0 else None
        for name, sent in zip(NAMES, resume(client, cases, tmp_path / "runs"), strict=True)
    }
    assert ours == theirs


def test_the_client_obeys_the_words_that_we_start_it_with(client: Path, tmp_path: Path) -> None:
    """By its id from another directory, at an earlier row, and as a fork under an id that we choose."""
    (tmp_path / "work").mkdir()
    of = Situation(tmp_path / "config", tmp_path / "work")
    of.put(A, *turn("one"), user("u3", "later", "onea2-0000", 3))
    store = clew.open(of.config)
    settings = Settings()
    settings.config_dir = str(of.config)
    wish = Wish(at="turn:1", is_fork=True, new_id=C, client=str(client), arguments=("-p",))
    session = store.session(A)
    words = command_of(session, settings, wish, uuid=point_of(session, wish))
    at = words.index("--resume")
    elsewhere = tmp_path / "elsewhere"
    case = Case(files={}, session=words[at + 1], arguments=tuple(words[at + 2 : -1]), config=of.config, cwd=elsewhere)
    (sent,) = resume(client, [case], tmp_path)
    assert sent.exit_code == 0, sent.stderr
    assert json.loads(sent.stdout.splitlines()[0])["session_id"] == C
    said = [block["text"] for message in conversation(sent.messages) or [] for block in message["content"]]
    assert said == ["prompt one", "answer one"]
