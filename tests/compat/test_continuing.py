"""`clew continue` takes the session that `claude --continue` takes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import clew
from clew import NotFound
from continuing import SESSIONS, SITUATIONS, made
from real_client import Case, resume

pytestmark = pytest.mark.compat


def test_the_client_takes_what_we_take_in_every_situation(tmp_path: Path) -> None:
    binary = os.environ.get("CLEW_CLIENT")
    if not binary:
        pytest.skip("CLEW_CLIENT names no client: `make compat` installs one and sets it")
    situations = {name: made(name, tmp_path / str(at)) for at, name in enumerate(SITUATIONS)}
    ours: dict[str, str | None] = {}
    for name, of in situations.items():
        try:
            ours[name] = clew.open(of.config).continued(of.cwd).session.id
        except NotFound:
            ours[name] = None
    cases = [Case(files={}, session=None, config=of.config, cwd=of.cwd) for of in situations.values()]
    wrong = []
    for (name, of), sent in zip(situations.items(), resume(Path(binary), cases, tmp_path / "runs"), strict=True):
        assert sent.exit_code == 0, (name, sent.stderr)
        theirs = json.loads(sent.stdout.splitlines()[0])["session_id"]
        is_theirs = theirs in of.taken if of.taken and not of.is_new else theirs not in SESSIONS
        if not is_theirs or ours[name] not in (of.taken or (None,)):
            wrong.append(f"{name}: the client takes {theirs}, we take {ours[name]}")
    assert not wrong
