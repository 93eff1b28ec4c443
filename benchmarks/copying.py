"""Copying a store: all of it, against `cp -r` and against looking at every line; again with nothing new; the memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.harness import MEGABYTES, Bench, Goal, Measured, run_child
from benchmarks.streaming import PEAK
from benchmarks.streaming import PLAIN as LOOK
from clew.copying import copy
from clew.engines.files import FilesEngine

PEAK_GOAL = Goal(100e6)
OURS = """
import sys
from pathlib import Path
from clew.copying import copy
from clew.engines.files import FilesEngine
size = copy(FilesEngine(Path(sys.argv[1])), FilesEngine(Path(sys.argv[2]))).size_bytes
"""


def measure(bench: Bench) -> Iterator[Measured]:
    """Copies go to a new directory each time. `cp -r` alone waits for no disk; the second one flushes as we do."""
    config = bench.many_sessions()
    size = sum(path.stat().st_size for path in config.rglob("*") if path.is_file())
    done = bench.place / "copied once"
    copy(FilesEngine(config), FilesEngine(done))

    def timed(work: Callable[[Path], object]) -> Callable[[], float]:
        def run() -> float:
            place = bench.place / "copy"
            start = perf_counter()
            work(place)
            taken = perf_counter() - start
            shutil.rmtree(place)
            return taken

        return run

    taken = bench.values(
        {
            "ours": timed(lambda place: copy(FilesEngine(config), FilesEngine(place))),
            "plain": timed(lambda place: subprocess.run(["cp", "-r", config, place], check=True)),
            "flushed": timed(lambda place: _flushed_copy(config, place)),
        }
    )
    taken |= bench.seconds(
        looked=lambda: run_child("-c", LOOK + "print(size)", str(config)),
        again=lambda: copy(FilesEngine(config), FilesEngine(done)),
    )
    what = f"copying {size / 1e6:.0f} MB"
    yield Measured(what, taken["ours"], taken["plain"], "cp -r, which flushes nothing")
    yield Measured(what, taken["ours"], taken["flushed"], "cp -r and a flush of each file, one by one")
    yield Measured(what, taken["ours"], taken["looked"], "orjson.loads of each line")
    yield Measured("the same with nothing new", taken["again"])
    place = bench.place / "measured"
    peak = float(run_child("-c", OURS + PEAK, str(config), str(place)).split()[1])
    yield Measured(f"peak memory, {what}", [peak], goal=PEAK_GOAL, unit=MEGABYTES)


def _flushed_copy(config: Path, place: Path) -> None:
    subprocess.run(["cp", "-r", config, place], check=True)
    for path in place.rglob("*"):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
