"""Sessions larger than any test should carry around: read, followed and appended to with bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import clew
from clew.records.codec import decode_lines, encode
from clew.testing.corpus import SessionDraft, lines_of
from clew.testing.strategies import sessions

pytestmark = pytest.mark.slow

TURNS = 20_000
STREAM_MIB_MAX = 60
"""What streaming a store may take at its highest, whatever the size of the store. Python alone takes a third of it."""
# Linux carries the peak of the parent into `ru_maxrss` of a child, but not into VmHWM.
PEAK = """
import os, re, resource, sys, clew
store, records = clew.open(sys.argv[1]), 0
for stat in store.logs():
    for record in store.session(stat.key.session).records():
        records += 1
if os.path.exists("/proc/self/status"):
    peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) // 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024)
print(records, peak)
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of four sessions with 20,000 turns each, 120 MB together."""
    place = tmp_path_factory.mktemp("large") / "config"
    for number in range(4):
        draft = SessionDraft(session=f"{number:08x}-0000-4000-8000-00000000000f")
        for turn in range(TURNS):
            draft.user(f"prompt {turn} of {number}: " + "why does the login fail " * 8)
            draft.assistant(f"answer {turn}: " + "because the cookie is never set " * 8)
        draft.head()
        draft.write(place)
    return place


def test_streaming_takes_no_memory_that_grows_with_the_store(config: Path) -> None:
    size = sum(path.stat().st_size for path in config.rglob("*.jsonl"))
    assert size > 100 * 1024 * 1024 > STREAM_MIB_MAX * 1024 * 1024
    answer = subprocess.run([sys.executable, "-c", PEAK, str(config)], capture_output=True, text=True, check=True)
    records, peak = map(int, answer.stdout.split())
    assert records == 4 * (2 * TURNS + 1)
    assert peak <= STREAM_MIB_MAX


def test_a_large_session_is_the_conversation_that_was_written(config: Path) -> None:
    session = clew.open(str(config)).session("00000002")
    messages = session.messages()
    assert len(messages) == 2 * TURNS
    (block,) = messages[-2].content
    assert str(block["text"]).startswith(f"prompt {TURNS - 1} of 2:")
    assert len(session.messages(up_to=clew.Turn(-2))) == 2 * TURNS - 2


def test_a_large_session_is_gone_on_with(config: Path) -> None:
    store = clew.open(str(config))
    session = store.session("00000001")
    before = len(session.messages())
    for turn in range(50):
        session.append_many([{"role": "user", "content": f"more {turn}"}, {"role": "assistant", "content": "yes"}])
    assert len(store.session("00000001").messages()) == before + 100


@settings(max_examples=3_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions())
def test_any_of_thousands_of_sessions_comes_back_as_it_was(data: bytes) -> None:
    assert b"".join(encode(row) for row in decode_lines(lines_of(data))) == data
