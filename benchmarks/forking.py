"""Forking one long session, each in a process of its own: against copying its file, and against the Agent SDK's fork.

The SDK is measured where `CLEW_AGENT_SDK` names the directory that `make compat` installed it in.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness import MEGABYTES, Bench, Goal, Measured, largest_log, run_child
from benchmarks.streaming import PEAK

SAME_IDS = Goal(0.6)
NEW_IDS = Goal(1.0)
PEAK_GOAL = Goal(100e6)
CALLS_MAX = 5
"""The values hardly differ, and the SDK takes seconds for each."""

_OURS = """
import sys
import clew
from time import perf_counter, process_time
parent = clew.open(sys.argv[1]).session(sys.argv[2])
start, cpu = perf_counter(), process_time()
fork = parent.fork(new_ids=sys.argv[3] == "new")
size = f"{perf_counter() - start} {process_time() - cpu}"
sys.argv[3] = fork.id
"""
_COPY = """
import os, sys, uuid
from time import perf_counter, process_time
start, cpu = perf_counter(), process_time()
name = str(uuid.uuid4())
with open(sys.argv[3], "rb") as source, open(f"{os.path.dirname(sys.argv[3])}/{name}.jsonl", "wb") as target:
    while chunk := source.read(1 << 20):
        target.write(chunk)
    target.flush()
    os.fsync(target.fileno())
size = f"{perf_counter() - start} {process_time() - cpu}"
sys.argv[3] = name
"""
_THEIRS = """
import os, sys
os.environ["CLAUDE_CONFIG_DIR"] = sys.argv[1]
sys.path.append(sys.argv[3])
import claude_agent_sdk
from time import perf_counter, process_time
start, cpu = perf_counter(), process_time()
made = claude_agent_sdk.fork_session(sys.argv[2])
size = f"{perf_counter() - start} {process_time() - cpu}"
sys.argv[3] = made.session_id
"""


def measure(bench: Bench) -> Iterator[Measured]:
    """Each fork is taken away before the next one."""
    config = bench.long_session()
    stat = largest_log(config)
    log = next(config.rglob(f"{stat.key.session}.jsonl"))
    peaks: dict[str, float] = {}
    busy: dict[str, list[float]] = {}

    def forked(name: str, script: str, third: str) -> Callable[[], float]:
        def run() -> float:
            call = (script + PEAK + "print(sys.argv[3])", str(config), stat.key.session, third)
            seconds, processor, peak, made = run_child("-c", *call).split()
            peaks[name] = float(peak)
            busy.setdefault(name, []).append(float(processor))
            _take_away(config, made)
            return float(seconds)

        return run

    works = {
        "same": forked("same", _OURS, "same"),
        "new": forked("new", _OURS, "new"),
        "copy": forked("copy", _COPY, str(log)),
    }
    sdk = os.environ.get("CLEW_AGENT_SDK")
    if sdk:
        works["sdk"] = forked("sdk", _THEIRS, sdk)
    taken = bench.values(works, at_most=CALLS_MAX)
    what = f"{stat.size_bytes / 1e6:.0f} MB"
    against = "the Agent SDK's fork, which has new ids"
    yield Measured(f"forking {what}", taken["same"], taken["copy"], "a copy of the file, flushed", goal=SAME_IDS)
    yield Measured(f"forking {what}, new ids", taken["new"], taken.get("sdk", ()), against, goal=NEW_IDS)
    yield Measured(f"the same, processor time, {what}", busy["same"], busy["copy"], "a copy of the file, flushed")
    yield Measured(f"the same, processor time, {what}, new ids", busy["new"], busy.get("sdk", ()), against)
    peak = [peaks["sdk"]] if sdk else []
    yield Measured(f"peak memory, forking {what}", [peaks["same"]], peak, against, goal=PEAK_GOAL, unit=MEGABYTES)
    yield Measured(f"peak memory, forking {what}, new ids", [peaks["new"]], goal=PEAK_GOAL, unit=MEGABYTES)


def _take_away(config: Path, session: str) -> None:
    for path in [*config.rglob(session), *config.rglob(f"{session}.jsonl")]:
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
