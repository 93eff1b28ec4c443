"""The list to choose a session from, at a terminal of its own."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import clew
from clew.cli.picker import Rows
from clew.resume.look import Look
from continuing import project_folder
from session_files import Row, assistant, session_id, two_turns, user, write
from terminal import Terminal

DOWN, UP, ESCAPE = "\x1b[B", "\x1b[A", "\x1b"
STARTED = "STARTED"


def titled(title: str) -> Row:
    return {"type": "custom-title", "customTitle": title, "sessionId": "s"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder.resolve()


@pytest.fixture
def sessions(config_dir: Path, work: Path) -> Path:
    """Three with titles, the first the newest; one has a tag, one nothing but its prompt."""
    for number, title in enumerate(("Fix the login", "Write \x1b[2Jdocs", "Fix the logout"), 1):
        rows = [row | {"cwd": str(work)} for row in two_turns()]
        write(config_dir, number, *rows, titled(title), at=-number, project=project_folder(work))
    tagged: Row = {"type": "tag", "tag": "urgent", "sessionId": "s"}
    said = [user("u1", "count the\nsheep"), assistant("a2", "There are three.", "u1", 1)]
    write(config_dir, 4, *(row | {"cwd": str(work)} for row in said), tagged, at=-4, project=project_folder(work))
    return config_dir


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    client = tmp_path / "claude"
    client.write_text(f'#!/bin/sh\necho "{STARTED} $@"\n')
    client.chmod(0o700)
    return os.environ | {
        "PYTHONPATH": str(Path(clew.__file__).parent.parent), "TERM": "xterm-256color", "CLEW_CLAUDE": str(client),
    }  # fmt: skip


@pytest.fixture
def terminal(sessions: Path, environment: dict[str, str]) -> Iterator[Terminal]:
    assert sessions.is_dir()
    command = [sys.executable, "-m", "clew", "resume"]
    with closing(Terminal(command, environment, size=(30, 100))) as found:
        yield found


def test_typing_filters_and_enter_starts_the_client(terminal: Terminal) -> None:
    terminal.sees("count the sheep")
    terminal.type("logo")
    terminal.sees("1 of 4 sessions")
    terminal.type("\r")
    terminal.sees(f"{STARTED} --resume {session_id(3)}")
    assert terminal.ends()[0] == 0


def test_arrows_choose_and_the_end_of_the_conversation_is_shown(terminal: Terminal) -> None:
    terminal.sees("second answer")
    terminal.type(DOWN * 9 + UP + DOWN)
    terminal.sees("There are three.")
    terminal.type("\r")
    terminal.sees(f"{STARTED} --resume {session_id(4)}")


@pytest.mark.parametrize("key", [ESCAPE, "\x03"])
def test_leaving_starts_nothing(terminal: Terminal, key: str) -> None:
    terminal.sees("count the sheep")
    terminal.type(key)
    code, seen = terminal.ends()
    assert (code, STARTED.encode() in seen) == (0, False)


def test_where_nothing_is_left_enter_does_nothing(terminal: Terminal) -> None:
    terminal.sees("count the sheep")
    terminal.type("zzz\r")
    terminal.sees("0 of 4 sessions")
    terminal.type("\x7f\x7f\x7furgent\r")
    terminal.sees(f"{STARTED} --resume {session_id(4)}")


def test_a_title_cannot_control_the_terminal(terminal: Terminal) -> None:
    assert "Write \\x1b[2Jdocs" in terminal.sees("count the sheep")


def test_a_smaller_window_is_filled_anew(terminal: Terminal) -> None:
    terminal.sees("count the sheep")
    terminal.resize(8, 50)
    terminal.sees("Fix the login")
    terminal.type(DOWN * 3 + "\r")
    terminal.sees(f"{STARTED} --resume {session_id(4)}")


def test_a_query_that_several_answer_to_is_what_is_typed_at_first(sessions: Path, environment: dict[str, str]) -> None:
    assert sessions.is_dir()
    command = [sys.executable, "-m", "clew", "resume", "fix the"]
    with closing(Terminal(command, environment, size=(30, 100))) as terminal:
        terminal.sees("2 of 4 sessions")
        terminal.type(DOWN + "\r")
        terminal.sees(f"{STARTED} --resume {session_id(3)}")


def test_without_colour_there_is_none(sessions: Path, environment: dict[str, str]) -> None:
    assert sessions.is_dir()
    command = [sys.executable, "-m", "clew", "resume"]
    with closing(Terminal(command, environment | {"NO_COLOR": "1"}, size=(30, 100))) as terminal:
        terminal.sees("count the sheep")
        terminal.type(ESCAPE)
        seen = terminal.ends()[1]
    assert b"[36m" not in seen
    assert b"[38;" not in seen


def test_rows_say_what_is_known_and_the_chosen_one_stays_chosen(sessions: Path) -> None:
    rows = Rows(Look(clew.open(sessions)))
    assert [row.says for row in rows.all] == ["", "", "", ""]
    rows.move(2)
    rows.fill(rows.again, threading.Event())
    assert rows.chosen is rows.all[2]
    assert [row.says for row in rows.all][2:] == ["Fix the logout", "count the sheep"]
    rows.filter("URGENT sheep")
    assert rows.shown == rows.all[3:]
    rows.filter("main fix")
    assert [row.title for row in rows.shown] == ["Fix the login", "Fix the logout"]
    assert [*rows.visible(1)] == rows.shown[:1]
    rows.move(1)
    assert [*rows.visible(1)] == rows.shown[1:]
