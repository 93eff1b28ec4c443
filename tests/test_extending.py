"""What docs/extending.md shows, installed as a package is: clew finds and uses it, by the command line alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
from session_files import session_id, two_turns, user, write

PAGE = Path(__file__).resolve().parent.parent / "docs" / "extending.md"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The page's module, and what an installer makes of the page's entry points."""
    blocks = dict(
        re.findall(r"^```(toml|python)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
    groups = re.sub(r'\[project\.entry-points\."(.+)"\]', r"[\1]", blocks["toml"]).replace('"', "")
    folder = tmp_path / "package"
    (folder / "ours-1.dist-info").mkdir(parents=True)
    (folder / "ours.py").write_text(blocks["python"])
    (folder / "ours-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (folder / "ours-1.dist-info" / "entry_points.txt").write_text(groups)
    return folder


def told(package: Path, *words: str) -> tuple[int, Any]:
    path = os.pathsep.join([str(package), str(Path(clew.__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, "-m", "clew", "--all", "--json", *words], env=os.environ | {"PYTHONPATH": path}, check=False,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


def test_the_page_works_as_a_package_that_is_installed(package: Path, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), at=-2)
    write(config_dir, 2, user("u1", "hello"), at=-1)
    told(package, "tag", session_id(1), "T7")

    assert told(package, "show", "ticket:7")[1]["session"] == session_id(1)
    code, error = told(package, "show", "ticket:8")
    assert (code, error["error"]) == (4, "no session is of the ticket 'T8'")
    assert told(package, "continue", "--policy", "shortest")[1]["session_id"] == session_id(2)
    choice = told(package, "continue", "--policy", "shortest:2")[1]
    assert choice["session_id"] == session_id(1)
    assert choice["reason"].startswith("it has 4 messages")
    assert choice["passed_over"] == [{"id": session_id(2), "why": "it is too short"}]
    assert len(told(package, "show", session_id(1), "--at", "half:")[1]["messages"]) == 2
    assert told(package, "show", session_id(1), "--at", "half:2")[0] == 2
    fork = told(package, "fork", "ticket:7", "--kind", "scratch", "--at", "half:")[1]
    assert fork["kind"] == "copy"
    assert told(package, "show", "title:scratch: " + session_id(1)[:8])[1]["session"] == fork["session_id"]


def test_words_of_other_packages_are_named_where_one_is_not_known(package: Path, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns())
    assert "scratch" in told(package, "fork", session_id(1), "--kind", "scrach")[1]["hint"]
    assert "half:" in told(package, "show", session_id(1), "--at", "hlf:")[1]["hint"]
    assert "shortest" in told(package, "continue", "--policy", "shortst")[1]["hint"]
