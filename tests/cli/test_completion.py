"""Completion: the scripts, and the ids that they offer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
    assert completed("s") == ["show"]
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
