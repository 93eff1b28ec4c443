"""The most memory that a process takes which reads every log of a store, row by row."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import MEGABYTES, Bench, Goal, Measured, run_child

GOAL = Goal(60e6)

# Linux carries the peak of the parent into `ru_maxrss` of a child, but not into VmHWM.
PEAK = """
import os, re, resource, sys
if os.path.exists("/proc/self/status"):
    peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(size, peak)
"""
OURS = """
import sys
import clew
size, engine = 0, clew.open(sys.argv[1]).engine
for stat in engine.list():
    for log in [stat, *engine.list_sub(stat.key)]:
        for row in clew.decode_lines(engine.read(log.key)):
            size += row.line.size
"""
PLAIN = """
import pathlib, sys
import orjson
size = 0
for path in pathlib.Path(sys.argv[1]).glob("projects/**/*.jsonl"):
    for line in open(path, "rb"):
        try:
            orjson.loads(line)
        except ValueError:
            pass
        size += len(line)
"""


def measure(bench: Bench) -> Iterator[Measured]:
    """Each in a process of its own; the baseline does the same without clew."""
    config = bench.many_sessions()
    sizes: set[int] = set()

    def peak(script: str) -> float:
        size, bytes_ = map(int, run_child("-c", script + PEAK, str(config)).split())
        sizes.add(size)
        return bytes_

    taken = bench.values({"ours": lambda: peak(OURS), "plain": lambda: peak(PLAIN)}, at_most=2)
    (size,) = sizes  # Both have read the same.
    what = f"peak memory, streaming {size / 1e6:.0f} MB"
    against = "orjson.loads of each line"
    yield Measured(what, taken["ours"], taken["plain"], against, GOAL, MEGABYTES)
