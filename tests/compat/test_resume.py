"""What the real client sends when it resumes a session is what we say the conversation is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from odd_files import SUBJECTS, damaged, generated
from odd_files.answers import clients, ours
from odd_files.rows import SESSION
from real_client import Case, Sent, conversation, resume

pytestmark = pytest.mark.compat

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
SPREAD = {
    f"{subject}: {name}": content for subject, cases in SUBJECTS.items() for name, content in [*cases.items()][::14]
}
"""Every fourteenth odd file of each subject; all of them were asked when tests/data/odd_files.json was measured."""
SEEDS = range(1, 49)
GENERATED = {f"seed {seed}": generated.session(seed) for seed in SEEDS}
DAMAGED_SEEDS = range(32)
DAMAGED = {f"damaged, seed {seed}": damaged.session(seed) for seed in DAMAGED_SEEDS}

# Our conversation keeps a row that the client loses; tests/transcript/test_odd_files.py says why.
KEPT_BY_US_ONLY = {
    "lines: a byte-order mark before a row in the middle",
    "lines: a run of NULs before a row",
    "lines: a run of NULs over a line and into a row",
    "lines: NaN in a row",
    "lines: all rows in one array over several lines",
}


def corpus() -> dict[str, tuple[str, bytes]]:
    """Session and content of every file that the golden list names."""
    golden: list[dict[str, Any]] = json.loads((CORPUS / "golden.json").read_text())
    return {entry["file"]: (entry["session"], (CORPUS / entry["file"]).read_bytes()) for entry in golden}


def disagreements(client: Path, files: Mapping[str, tuple[str, bytes]], root: Path) -> list[str]:
    cases = [Case(files={f"{session}.jsonl": content}, session=session) for session, content in files.values()]
    sent = resume(client, cases, root)
    return [
        f"{name}\n  the client: {_said(answer, content)}\n  clew:       {ours(content).messages}"
        for (name, (_, content)), answer in zip(files.items(), sent, strict=True)
        if _said(answer, content) != ours(content).messages
    ]


def _said(answer: Sent, content: bytes) -> list[dict[str, Any]] | None:
    assert answer.exit_code >= 0, answer.stderr
    return clients(conversation(answer.messages), content)


def same_session(files: Mapping[str, bytes]) -> dict[str, tuple[str, bytes]]:
    return {name: (SESSION, content) for name, content in files.items()}


def test_the_client_agrees_on_a_spread_of_odd_files(client: Path, tmp_path: Path) -> None:
    spread = {name: content for name, content in SPREAD.items() if name not in KEPT_BY_US_ONLY}
    assert len(spread) >= 80
    found = disagreements(client, same_session(spread), tmp_path)
    assert not found, "\n".join(found)


def test_the_client_agrees_on_every_session_of_the_corpus(client: Path, tmp_path: Path) -> None:
    files = corpus()
    assert len(files) >= 40
    found = disagreements(client, files, tmp_path)
    assert not found, "\n".join(found)


def test_the_client_agrees_on_generated_sessions(client: Path, tmp_path: Path) -> None:
    assert len(set(GENERATED.values())) >= 40
    found = disagreements(client, same_session(GENERATED), tmp_path)
    assert not found, "\n".join(found)


def test_the_client_agrees_on_damaged_sessions(client: Path, tmp_path: Path) -> None:
    assert len(set(DAMAGED.values())) >= 30
    found = disagreements(client, same_session(DAMAGED), tmp_path)
    assert not found, "\n".join(found)


def test_the_client_goes_on_in_the_file_it_resumed(client: Path, tmp_path: Path) -> None:
    name, content = next(iter(SPREAD.items()))
    (sent,) = resume(client, [Case(files={f"{SESSION}.jsonl": content}, session=SESSION)], tmp_path)
    assert [Path(grown).name for grown in sent.appended] == [f"{SESSION}.jsonl"], name
    assert sent.exit_code == 0
