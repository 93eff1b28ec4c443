"""`clew title`, `tag`, `label`, `pin`, `archive` and `set`: what they change, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew_calls import Run
from contents import set_live
from session_files import session_id, two_turns, write

ONE = session_id(1)
SHORT = ONE[:8]


@pytest.fixture(autouse=True)
def one(config_dir: Path) -> Path:
    return write(config_dir, 1, *two_turns())


CALLS: list[tuple[list[str], str, object, str]] = [
    (["title", ONE, "Fix the login"], "title", "Fix the login", f"{SHORT} Fix the login: titled."),
    (["title", ONE, "Fix", "the", "login"], "title", "Fix the login", f"{SHORT} Fix the login: titled."),
    (["tag", ONE, "wip"], "tag", "wip", "tag wip."),
    (["label", ONE, "b", "a"], "labels", ["a", "b"], "labels a, b."),
    (["pin", ONE], "pinned", True, "pinned."),
    (["archive", ONE], "archived", True, "archived."),
    (["set", ONE, "owner=ada"], "owner", "ada", "owner ada."),
    (["set", ONE, "workspace=a=b"], "workspace", "a=b", "workspace a=b."),
]
OFF: list[tuple[list[str], list[str], str, object, str]] = [
    (["title", ONE, "x"], ["title", ONE, "--off"], "agent_name", None, "title taken off."),
    (["tag", ONE, "wip"], ["tag", "--off", ONE], "tag", None, "tag taken off."),
    (["label", ONE, "b", "a"], ["label", ONE, "b", "--off"], "labels", ["a"], "labels a."),
    (["label", ONE, "b", "a"], ["label", ONE, "--off"], "labels", [], "labels taken off."),
    (["pin", ONE], ["pin", ONE, "--off"], "pinned", False, "no longer pinned."),
    (["archive", ONE], ["archive", ONE, "--off"], "archived", False, "no longer archived."),
    (["set", ONE, "owner=ada"], ["set", ONE, "owner", "--off"], "owner", None, "owner taken off."),
    (["set", ONE, "owner=ada"], ["set", ONE, "owner="], "owner", None, "owner taken off."),
]


@pytest.mark.parametrize(("call", "field", "value", "says"), CALLS)
def test_a_command_changes_one_thing_and_says_so_in_one_line(
    run: Run, call: list[str], field: str, value: object, says: str
) -> None:
    done = run(*call)
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.startswith(SHORT)
    assert done.out.endswith(f"{says}\n")
    (row,) = run("ls", "--all", "--json").json
    assert row[field] == value
    assert run(*call).out.endswith(": it is so already.\n")


@pytest.mark.parametrize(("on", "off", "field", "value", "says"), OFF)
def test_off_takes_it_off_again(run: Run, on: list[str], off: list[str], field: str, value: object, says: str) -> None:
    run(*on)
    done = run(*off)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f": {says}\n")
    assert run("ls", "--all", "--json").json[0][field] == value


@pytest.mark.parametrize("call", [call for call, *_ in CALLS])
def test_in_json_it_is_the_row_of_the_list(run: Run, call: list[str]) -> None:
    done = run(*call, "--json")
    assert (done.code, done.err) == (0, "")
    assert [done.json] == run("ls", "--all", "--json").json


WRONG = [
    (["title", ONE], "there is no title to set"),
    (["title", ONE, " "], "there is no title to set"),
    (["tag", ONE, "x", "--off"], "contradict each other"),
    (["title", ONE, "two\nlines"], "the title holds"),
    (["label", ONE], "there is no label to add"),
    (["label", ONE, "two words"], "is no label"),
    (["set", ONE, "colour=red"], "'colour' is no field"),
    (["set", ONE, "owner"], "is not what set takes"),
    (["set", ONE, "owner=ada", "owner=bob"], "named twice"),
    (["set", ONE, "owner=ada", "--off"], "is not what --off takes"),
]


@pytest.mark.parametrize(("call", "says"), WRONG)
def test_a_call_that_says_nothing_to_do_is_refused_with_a_hint(run: Run, one: Path, call: list[str], says: str) -> None:
    before = one.read_bytes()
    done = run(*call)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "hint: " in done.err
    assert one.read_bytes() == before


@pytest.mark.parametrize("call", [["title", "no-such", "x"], ["pin", "ffffffff"], ["set", "ffffffff", "owner=x"]])
def test_a_session_that_is_not_there_is_not_marked(run: Run, call: list[str]) -> None:
    assert run(*call).code == 4


def test_a_live_session_is_named_on_stderr_and_written_all_the_same(run: Run, config_dir: Path) -> None:
    set_live(config_dir, ONE)
    done = run("title", ONE, "New")
    assert (done.code, done.out) == (0, f"{SHORT} New: titled.\n")
    assert "a running client holds this session" in done.err
    assert run("title", ONE, "Newer", "-q").err == ""
    assert run("title", ONE, "Newest", "--json").json["title"] == "Newest"


def test_nothing_that_was_set_can_control_the_terminal(run: Run, one: Path) -> None:
    evil = "\\u001b[31m\\u202e"
    with one.open("a") as log:
        log.write(f'{{"type":"clew-session","owner":"{evil}","labels":["{evil}"]}}\n{{"type":"tag","tag":"{evil}"}}\n')
    out = run("ls", "--all").out + run("set", ONE, "workspace=x").out + run("label", ONE, "x").out
    assert "\\x1b" in out
    assert not set(out) & set("\x1b\u202e")


# ls


@pytest.fixture
def marked(run: Run, config_dir: Path) -> None:
    for number in (2, 3):
        write(config_dir, number, *two_turns(), at=number)
    run("pin", ONE)
    run("label", ONE, "a", "b")
    run("tag", session_id(2), "wip")
    run("archive", session_id(2))
    run("label", session_id(2), "b")
    run("set", session_id(3), "owner=ada", "workspace=api")


FILTERS: list[tuple[str, list[int]]] = [
    ("--pinned", [1]), ("--no-pinned", [3, 2]), ("--archived", [2]), ("--no-archived", [3, 1]), ("--tag wip", [2]),
    ("--tag WI", []), ("--label b", [2, 1]), ("--label a --label b", [1]), ("--owner ada", [3]),
    ("--workspace api", [3]), ("--workspace api --pinned", []), ("--branch main", [3, 2, 1]), ("--branch other", []),
    ("--model claude", [3, 2, 1]), ("--model gpt", []), ("--since 2026-11-18T10:00:02Z", [3, 2]),
    ("--until 2026-11-18T10:00:02Z", [2, 1]), ("--label b --limit 1", [2]), ("--label b --sort oldest", [1, 2]),
    ("--label b --sort title --limit 1", [1]),
]  # fmt: skip


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize(("words", "numbers"), FILTERS)
def test_a_list_shows_what_all_filters_keep(run: Run, words: str, numbers: list[int]) -> None:
    done = run("ls", "--all", "--json", *words.split())
    assert [int(row["id"][:8], 16) for row in done.json] == numbers
    shown = run("ls", "--all", *words.split()).out
    assert [number for number in (1, 2, 3) if session_id(number)[:8] in shown] == sorted(numbers)


@pytest.mark.usefixtures("marked")
def test_without_a_filter_every_session_is_listed_newest_first(run: Run) -> None:
    assert [int(row["id"][:8], 16) for row in run("ls", "--all", "--json").json] == [3, 2, 1]


@pytest.mark.usefixtures("marked")
def test_the_list_for_people_has_the_marks_without_colour(run: Run) -> None:
    out = run("ls", "--all").out
    assert "★ +a +b" in out
    assert "archived #wip +b" in out


@pytest.mark.usefixtures("marked")
def test_what_a_filter_leaves_out_is_not_counted(run: Run, config_dir: Path) -> None:
    out = run("ls", "--all", "--label", "b", "--limit", "1").out
    assert "… 1 more of 2: clew ls --all --label b --limit 2" in out
    out = run("ls", "--config-dir", config_dir, "--project", "-home-me-proj", "--label", "b", "--limit", "1").out
    assert f"clew ls --config-dir {config_dir} --project -home-me-proj --label b --limit 2" in out
    assert run("ls", "--all", "--tag", "none").out.strip() == "No session here is like that."


def test_a_time_that_is_none_is_refused(run: Run) -> None:
    done = run("ls", "--since", "yesterday")
    assert (done.code, "--since 'yesterday' is no time" in done.err) == (2, True)
