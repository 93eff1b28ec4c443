"""The list to choose a session from, at a terminal of its own."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyte
import pytest

import clew
from clew.cli import picker
from clew.cli.options import Settings
from clew.cli.picker import Rows
from clew.resume.look import Look
from continuing import project_folder
from session_files import Row, assistant, session_id, two_turns, user, write
from terminal import SECONDS_MAX, Terminal

DOWN, UP, ESCAPE = "\x1b[B", "\x1b[A", "\x1b"
STARTED = "STARTED"


class Screen(Terminal):
    """What stands on the screen in the end, as a person sees it."""

    def __init__(self, environment: dict[str, str], *words: str) -> None:
        self._screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self._screen)
        super().__init__([sys.executable, "-m", "clew", "resume", *words], environment, size=(30, 100))

    def resize(self, lines: int, columns: int) -> None:
        self._screen.resize(lines, columns)
        super().resize(lines, columns)

    def shows(self, *texts: str) -> str:
        """The screen, once all of the texts stand there."""
        return self.waits(lambda screen: all(text in screen for text in texts))

    def waits(self, until: Callable[[str], bool]) -> str:
        end = time.monotonic() + SECONDS_MAX
        while not until(screen := "\n".join(self._screen.display)):
            ready, _, _ = select.select([self.number], [], [], max(0, end - time.monotonic()))
            assert ready, f"that did not come:\n{screen}"
            data = os.read(self.number, 65536)
            self.seen += data
            self._stream.feed(data)
        return screen


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
def terminal(sessions: Path, environment: dict[str, str]) -> Iterator[Screen]:
    assert sessions.is_dir()
    with closing(Screen(environment)) as found:
        found.shows("4 of 4 sessions ", "count the sheep")
        yield found


def test_typing_filters_and_enter_starts_the_client(terminal: Screen) -> None:
    terminal.type("logo")
    terminal.shows("1 of 4 sessions")
    terminal.type("\r")
    terminal.shows(f"{STARTED} --resume {session_id(3)}")
    assert terminal.ends()[0] == 0


def test_arrows_choose_and_the_end_of_the_conversation_is_shown(terminal: Screen) -> None:
    terminal.shows("> second question", "second answer")
    terminal.type(DOWN * 9 + UP + DOWN)
    terminal.shows("> count the sheep", "There are three.")
    terminal.type("\r")
    terminal.shows(f"{STARTED} --resume {session_id(4)}")


@pytest.mark.parametrize(("key", "code"), [(ESCAPE, 0), ("\x04", 0), ("\x03", 130)])
def test_leaving_starts_nothing(terminal: Screen, key: str, code: int) -> None:
    terminal.type(key)
    ended, seen = terminal.ends()
    assert (ended, STARTED.encode() in seen) == (code, False)


def test_esc_waits_for_no_other_key(sessions: Path) -> None:
    settings = Settings()
    settings.config_dir = str(sessions)
    app = picker._Screen(settings, Rows(Look(settings.store())), "").app
    # What is typed behind a sooner Esc would be one key with it: Alt-c does not leave.
    assert (app.timeoutlen, app.ttimeoutlen) == (picker.ESCAPE_SECONDS,) * 2


def test_lines_that_are_pasted_are_words_to_look_for(terminal: Screen) -> None:
    terminal.type("\x1b[200~sheep\r\n count\r\n\x1b[201~")
    terminal.shows("> sheep  count", "1 of 4 sessions")
    terminal.type("\r")
    terminal.shows(f"{STARTED} --resume {session_id(4)}")


def test_where_nothing_is_left_enter_does_nothing(terminal: Screen) -> None:
    terminal.type("zzz\r")
    terminal.shows("0 of 4 sessions")
    terminal.type("\x7f\x7f\x7furgent\r")
    terminal.shows(f"{STARTED} --resume {session_id(4)}")


def test_a_title_cannot_control_the_terminal(terminal: Screen) -> None:
    terminal.shows("Write \\x1b[2Jdocs", "Fix the login")


def test_a_smaller_window_is_filled_anew(terminal: Screen) -> None:
    terminal.resize(6, 50)
    terminal.waits(lambda screen: "Fix the login" in screen and "─" not in screen)
    terminal.type(DOWN * 3 + "\r")
    terminal.shows(STARTED)


def test_a_query_that_several_answer_to_is_what_is_typed_at_first(sessions: Path, environment: dict[str, str]) -> None:
    assert sessions.is_dir()
    with closing(Screen(environment, "fix the")) as terminal:
        terminal.shows("> fix the", "2 of 4 sessions")
        terminal.type(DOWN + "\r")
        terminal.shows(f"{STARTED} --resume {session_id(3)}")


def test_without_colour_there_is_none(sessions: Path, environment: dict[str, str]) -> None:
    assert sessions.is_dir()
    with closing(Screen(environment | {"NO_COLOR": "1"})) as terminal:
        terminal.shows("count the sheep")
        terminal.type(ESCAPE)
        seen = terminal.ends()[1]
    assert b"[36m" not in seen
    assert b"[38;" not in seen


def test_the_end_of_a_conversation_is_what_was_said_and_no_result_of_a_tool(sessions: Path, work: Path) -> None:
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "a page"}]
    rows = [*two_turns(), user("u5", result, "a4", 5), assistant("a6", "It is a page.", "u5", 6)]
    write(sessions, 9, *rows, at=1, project=project_folder(work))
    found = Rows(Look(clew.open(sessions)))
    said = found.ending(found.all[0])
    assert said[-2:] == [("assistant", "second answer"), ("assistant", "It is a page.")]
    assert said[0] == ("user", "first question")


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
