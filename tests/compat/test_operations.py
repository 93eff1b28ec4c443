"""The real client finds no session that clew deleted, and resumes one that was brought back or copied elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import clew
from real_client import Case, Sent, resume

pytestmark = pytest.mark.compat


def test_a_session_is_gone_when_deleted_and_resumed_when_undone_or_copied(client: Path, tmp_path: Path) -> None:
    work, config, other = tmp_path / "work", tmp_path / "config", tmp_path / "other"
    for folder in (work, config):
        folder.mkdir()
    store = clew.open(config)
    with store.create(work) as session:
        session.append({"role": "user", "content": "a prompt"})
        session.append({"role": "assistant", "content": "an answer"})

    def ask(place: Path) -> Sent:
        (sent,) = resume(client, [Case({}, session.id, config=place, cwd=work)], tmp_path)
        return sent

    operation = store.delete(session.id)
    gone = ask(config)
    assert (gone.exit_code, gone.messages) == (1, None)
    assert "No conversation found" in gone.stderr + gone.stdout
    assert store.undo(operation.id).sessions == 1
    store.copy_to(clew.open(other))
    for place in (config, other):
        sent = ask(place)
        assert sent.exit_code == 0, sent.stderr
        assert "an answer" in str(sent.messages)
        assert [Path(name).name for name in sent.appended] == [f"{session.id}.jsonl"]
    # Both went on: neither is the beginning of the other any more.
    assert store.copy_to(clew.open(other)).conflicts == 1
