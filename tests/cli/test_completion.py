"""Completion: the scripts, and the ids that they offer."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import clew
from clew_calls import Run
from session_files import session_id, two_turns, write


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
    environment = os.environ | {
        "PYTHONPATH": str(Path(clew.__file__).parent.parent), "_CLEW_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["clew", *words]), "COMP_CWORD": str(len(words)),
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


# The shells themselves: what is typed at a prompt, and what the key TAB makes of it.

SHELL_SECONDS = 60
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(clew completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -uD; eval "$(clew completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "clew completion fish | source"),
}
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9]|[=>])|[\x07\r]")


class Shell:
    """A shell at a terminal: `type` sends keys, `sees` waits until a text has come back."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        pid, self._terminal = pty.fork()
        if pid == 0:
            os.execvpe(command[0], command, environment)
        self._pid = pid
        self._seen = b""

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def sees(self, text: str) -> None:
        end = time.monotonic() + SHELL_SECONDS
        while text.encode() not in _ESCAPES.sub(b"", self._seen):
            ready, _, _ = select.select([self._terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} did not come: {self._seen!r}"
            self._seen += os.read(self._terminal, 65536)
        self._seen = b""

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_commands_options_and_ids(config_dir: Path, tmp_path: Path, name: str) -> None:
    command, load = SHELLS[name]
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    write(config_dir, 0xAB000001, *two_turns())
    clew_script = tmp_path / "clew"
    clew_script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clew "$@"\n')
    clew_script.chmod(0o700)
    environment = os.environ | {
        "PYTHONPATH": str(Path(clew.__file__).parent.parent), "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TERM": "xterm", "COLUMNS": "200",
    }  # fmt: skip
    with closing(Shell(command, environment)) as shell:
        shell.type(f"{load}; echo rea''dy\r")
        shell.sees("\nready")
        shell.type("clew tre\tab0\t --jso\t\r")
        shell.sees(session_id(0xAB000001))
        shell.sees('{"head":')
