"""How long a process takes that only starts, Python itself included."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Bench, Goal, Measured, run_child

AGAINST = "python -c pass"


def measure(bench: Bench) -> Iterator[Measured]:
    """Whole processes. The names of clew are imported when they are first used, so opening a store is measured too."""
    config = bench.place / "empty"
    config.mkdir(exist_ok=True)
    program = Path(sys.executable).parent / "clew"
    command = [str(program)] if program.exists() else ["-m", "clew"]
    taken = bench.processor_seconds(
        bare=lambda: run_child("-c", "pass"),
        imported=lambda: run_child("-c", "import clew"),
        opened=lambda: run_child("-c", "import sys, clew; list(clew.open(sys.argv[1]).sessions())", str(config)),
        helped=lambda: run_child(*command, "--help"),
    )
    yield Measured("import clew", taken["imported"], taken["bare"], AGAINST, Goal(0.05))
    yield Measured("import clew, open an empty store and list it", taken["opened"], taken["bare"], AGAINST)
    yield Measured("clew --help", taken["helped"], taken["bare"], AGAINST, Goal(0.1))
