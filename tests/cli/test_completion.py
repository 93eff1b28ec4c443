"""Completion: the scripts, and the ids that they offer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import clew
from clew_calls import Run
from session_files import Row, session_id, two_turns, write
from terminal import Terminal


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(run: Run, shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("bash is asked for its version")
    done = run("completion", shell)
    assert done.code == 0
    assert "_CLEW_COMPLETE" in done.out
    assert f"{shell}_complete" in done.out
    assert run("completion", shell, "--json").json["shell"] == shell


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_can_read(run: Run, tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out)
    assert subprocess.run([program, "-n", str(script)], check=False).returncode == 0


def completed(*words: str) -> list[str]:
    """What bash would be offered for the last word."""
    return offered(" ".join(["clew", *words]))


def offered(line: str, breaks: str = "") -> list[str]:
    """What bash would be offered at the end of a line."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(clew.__file__).parent.parent), "_CLEW_COMPLETE": "bash_complete",
        "CLEW_COMP_LINE": line, "CLEW_COMP_BREAKS": breaks,
    }  # fmt: skip
    program = "import sys; from clew.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_and_options_are_offered() -> None:
    assert completed("sh") == ["show"]
    assert "welcome" not in completed("")
    assert {"--limit", "--sort", "--json"} <= set(completed("ls", "--"))
    assert completed("ls", "--sort", "t") == ["title"]


def test_ids_of_the_newest_sessions_are_offered_and_no_error_is_shown(config_dir: Path) -> None:
    for number in range(60):
        write(config_dir, 0xAB000000 + number, *two_turns(), at=number)
    offered = completed("show", "")
    assert len(offered) == 50
    assert offered[0] == session_id(0xAB000000 + 59)
    assert completed("show", "ab000007") == [session_id(0xAB000007)]
    assert completed("show", "la") == ["last", "latest"]
    assert completed("--config-dir", str(config_dir / "nowhere"), "show", "") == []


TITLES = ("Fix the login", 'It\'s $(touch pwned) `x` "q"', "a: b, c; *", "é日本", "two\nlines", "\x1b[2J", "-dash")
BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture
def titles(config_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of this directory for every title, newest first, and one with a tag."""
    monkeypatch.chdir(tmp_path)
    folder = "".join(c if c.isalnum() else "-" for c in os.path.realpath(tmp_path))
    for number, title in enumerate(TITLES, 1):
        row: Row = {"type": "custom-title", "customTitle": title, "sessionId": "s"}
        write(config_dir, number, *two_turns(), row, at=-number, project=folder)
    write(config_dir, 0x99, *two_turns(), {"type": "tag", "tag": "in progress"}, at=-100, project=folder)


@pytest.mark.usefixtures("titles")
def test_titles_are_offered_quoted_as_the_person_has_begun() -> None:
    assert offered("clew show title:") == [
        r"title:Fix\ the\ login", r"title:It\'s\ \$\(touch\ pwned\)\ \`x\`\ \"q\"", r"title:a:\ b,\ c\;\ \*",
        "title:é日本", "title:-dash",
    ]  # fmt: skip
    assert offered(r"clew show title:fix\ the") == [r"title:Fix\ the\ login"]
    assert offered('clew show "title:fix t') == ["title:Fix the login"]
    assert offered('clew show "title:It') == [r"title:It's \$(touch pwned) \`x\` \"q\"" + '"']
    assert offered("clew show 'title:fix t") == ["title:Fix the login"]
    assert offered("clew show fi") == [r"Fix\ the\ login"]
    assert offered("clew show tag:") == [r"tag:in\ progress"]


@pytest.mark.usefixtures("titles")
def test_only_what_stands_behind_the_last_break_is_replaced() -> None:
    assert offered("clew show title:fi", BREAKS) == [r"Fix\ the\ login"]
    assert offered(r"clew show title:a:\ b", BREAKS) == [r"\ b,\ c\;\ \*"]
    assert offered('clew show "title:a: b', BREAKS) == ["title:a: b, c; *"]


def test_policies_are_offered_one_after_the_other() -> None:
    assert offered("clew continue --policy skip-e") == ["skip-errors", "skip-empty"]
    assert offered("clew continue --policy skip-errors,ne", BREAKS) == ["skip-errors,newest"]


# The shells themselves: what is typed at a prompt, and what the key TAB makes of it.

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(clew completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -uD; eval "$(clew completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "clew completion fish | source"),
}


COMPLETED = [("title:Fi", 1), ("title:It", 2), ("title:a", 3), ("Fix", 1), ("tag:in", 0x99)]


@pytest.fixture
def shells(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell in which `clew` is ours."""
    program = tmp_path / "bin" / "clew"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clew "$@"\n')
    program.chmod(0o700)
    return os.environ | {
        "PYTHONPATH": str(Path(clew.__file__).parent.parent), "PATH": f"{program.parent}:{os.environ['PATH']}",
        "TERM": "xterm", "COLUMNS": "200",
    }  # fmt: skip


def loaded(name: str, environment: dict[str, str]) -> Terminal:
    command, load = SHELLS[name]
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    shell = Terminal(command, environment)
    shell.type(f"{load}; echo rea''dy\r")
    shell.sees("\nready")
    return shell


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_commands_options_and_ids(config_dir: Path, shells: dict[str, str], name: str) -> None:
    write(config_dir, 0xAB000001, *two_turns())
    with closing(loaded(name, shells)) as shell:
        shell.type("clew tre\tab0\t --jso\t\r")
        shell.sees(session_id(0xAB000001))
        shell.sees('{"head":')


@pytest.mark.usefixtures("titles")
@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize(
    ("typed", "number"), [("title:Fi", 1), ("title:It", 2), ("title:a", 3), ("Fix", 1), ("tag:in", 0x99)]
)
def test_a_shell_completes_titles_of_any_characters_and_runs_none_of_them(
    tmp_path: Path, shells: dict[str, str], name: str, typed: str, number: int
) -> None:
    with closing(loaded(name, shells)) as shell:
        shell.type(f"clew resume {typed}\t --json\r")
        shell.sees(f'"session_id":"{session_id(number)}"')
    assert not (tmp_path / "pwned").exists()


@pytest.mark.usefixtures("titles")
@pytest.mark.parametrize(
    ("typed", "number"),
    [('"title:Fix', 1), ('"title:It', 2), ("'title:a", 3), ('"title:a: b', 3)],
)
def test_bash_completes_within_quotation_marks(tmp_path: Path, shells: dict[str, str], typed: str, number: int) -> None:
    with closing(loaded("bash", shells)) as shell:
        shell.type(f"clew resume {typed}\t --json\r")
        shell.sees(f'"session_id":"{session_id(number)}"')
    assert not (tmp_path / "pwned").exists()
