"""Asks the real client what it makes of every odd file, and writes down its answers.

    python scripts/measure_odd_files.py "$(python scripts/client.py install)" [--new]

The files are those of tests/odd_files, the answers go to tests/data/odd_files.json, which the fast tests compare clew
with. Answers that are there are asked for again, and the cases whose answer changed are named. It takes some minutes;
with --new only cases without an answer are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ANSWERS = ROOT / "tests" / "data" / "odd_files.json"
AT_ONCE = 50
"""So many cases share one namespace and one mock of the API, so that a progress line comes now and then."""

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "compat")]

from odd_files import CASES  # noqa: E402
from odd_files.answers import clients, packed  # noqa: E402
from odd_files.rows import SESSION  # noqa: E402
from real_client import Case, Sent, conversation, resume  # noqa: E402


def main(arguments: list[str]) -> int:
    only_new = "--new" in arguments
    if len(arguments) != 1 + only_new:
        print(__doc__, file=sys.stderr)
        return 2
    binary = Path(arguments[0]).absolute()
    old: dict[str, Any] = json.loads(ANSWERS.read_text())["cases"] if ANSWERS.exists() else {}
    asked = measured(binary, [name for name in CASES if not (only_new and name in old)])
    new = {name: asked[name] if name in asked else old[name] for name in CASES}
    ANSWERS.write_text(document(version(binary), new))
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            print(f"changed: {name}")
    return 0


def measured(binary: Path, names: list[str]) -> dict[str, Any]:
    answers = {}
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        with tempfile.TemporaryDirectory(prefix="clew-measure-") as root:
            cases = [Case(files={f"{SESSION}.jsonl": CASES[name]}, session=SESSION) for name in some]
            for name, sent in zip(some, resume(binary, cases, Path(root)), strict=True):
                answers[name] = answer(sent, CASES[name])
        print(f"{len(answers)} of {len(names)}", file=sys.stderr)
    return answers


def answer(sent: Sent, content: bytes) -> list[list[Any]] | dict[str, str]:
    """The messages, or `{"refused": what the client said}` when it sent nothing."""
    messages = clients(conversation(sent.messages), content)
    if messages is not None:
        return packed(messages)
    return {"refused": sent.stderr.strip().replace(SESSION, "SESSION") or f"exit code {sent.exit_code}"}


def version(binary: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="clew-home-") as home:
        done = subprocess.run([binary, "--version"], env={"HOME": home, "PATH": os.defpath}, cwd=home,
                              capture_output=True, text=True, check=True)  # fmt: skip
    return done.stdout.split()[0]


def document(client: str, answers: dict[str, Any]) -> str:
    """JSON with one case a line, so that a change of the client shows as changed lines."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'), sort_keys=True)}"
        for name, value in answers.items()
    ]
    return f'{{"client": {json.dumps(client)}, "cases": {{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
