"""Processes mirror into one session, each through its own adapter: nothing is lost, doubled or summed up wrong."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.adapters.claude_agent_sdk import ClaudeSessionStore, SessionKey
from clew.engines.table import ENGINES
from clew.records.codec import decode_lines
from clew.records.record import records_in
from clew.transcript.digest import DigestFold

pytestmark = pytest.mark.slow

PROCESSES = 4
BATCHES = 50
SECONDS_MAX = 240
KEY: SessionKey = {"project_key": "proj", "session_id": "11111111-1111-4111-8111-111111111111"}
SHARED = sorted({"claude", "sqlite"} & set(ENGINES))
WRITER = """
import asyncio, json, sys
import clew

async def mirror(url, writer, batches, key):
    with clew.open(url) as store:
        agent = store.claude()
        sys.stdin.readline()
        for number in range(batches):
            rows = [
                {"type": "user", "uuid": f"{writer}-{number}", "message": {"role": "user", "content": "mine"}},
                {"type": "ai-title", "aiTitle": f"{writer} {number}"},
                {"type": "user", "uuid": f"shared-{number}", "message": {"role": "user", "content": "of all"}},
            ]
            await agent.append(key, rows)
            if number % 10 == 0:
                await agent.list_session_summaries(key["project_key"])

asyncio.run(mirror(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])))
"""


@pytest.mark.parametrize("kind", SHARED)
def test_processes_mirror_into_one_session(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "store"
    if kind == "claude":
        place.mkdir()
    url = f"{kind}:{place}"
    with clew.open(url) as store:
        asyncio.run(store.claude().append(KEY, [{"type": "x"}]))
    arguments = [sys.executable, "-c", WRITER, url]
    running = [
        subprocess.Popen([*arguments, str(writer), str(BATCHES), json.dumps(KEY)], stdin=subprocess.PIPE)
        for writer in range(PROCESSES)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0
    with clew.open(url) as store:
        rows = asyncio.run(store.claude().load(KEY)) or []
        check_rows([str(row.get("uuid") or row.get("aiTitle") or "") for row in rows])
        check_summary(store, store.claude())


def check_rows(names: list[str]) -> None:
    assert len(names) == 1 + PROCESSES * BATCHES * 2 + BATCHES
    assert len(set(names)) == len(names)
    for writer in range(PROCESSES):
        for sign in "- ":
            own = [name for name in names if name.startswith(f"{writer}{sign}")]
            assert own == [f"{writer}{sign}{number}" for number in range(BATCHES)]


def check_summary(store: clew.Store, agent: ClaudeSessionStore) -> None:
    (found,) = asyncio.run(agent.list_session_summaries("proj"))
    digest = DigestFold(records_in(decode_lines(store.engine.read(store.logs()[0].key)))).digest()
    assert found["data"]["ai_title"] == digest.ai_title
    assert found["data"]["first_prompt"] == digest.first_prompt
