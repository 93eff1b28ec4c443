"""python -m benchmarks [SUBJECT…] [--corpus DIR] [--rounds N]"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from benchmarks.harness import APPENDS, CORPUS_BYTES, ROUNDS, SESSION_ROWS, Bench, Measured, table
from benchmarks.table import SUBJECTS

Subject = Callable[[Bench], Iterable[Measured]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs subjects and prints one table. Whether a goal is met is told by the table and not by the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast clew is, and against what.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; without one, all")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a config directory, instead of a generated one")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each thing is measured")
    parser.add_argument("--rows", type=int, default=SESSION_ROWS, help="rows of the one large session")
    parser.add_argument(
        "--megabytes", type=float, default=CORPUS_BYTES / 1e6, help="size of the corpus of many sessions"
    )
    parser.add_argument("--appends", type=int, default=APPENDS, help="how often something is appended in a round")
    given = parser.parse_args(arguments)
    names: list[str] = given.subjects or [*SUBJECTS]
    if unknown := sorted({*names} - {*SUBJECTS}):
        parser.error(f"there is no subject {', '.join(unknown)}: choose from {', '.join(SUBJECTS)}")
    if given.corpus is not None and not (given.corpus / "projects").is_dir():
        parser.error(f"{given.corpus} is no config directory: it has no projects/")
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: at least one is needed")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="clew-benchmarks-") as place:
        bench = Bench(
            Path(place),
            corpus=given.corpus,
            rounds=given.rounds,
            session_rows=given.rows,
            corpus_bytes=round(given.megabytes * 1e6),
            appends=given.appends,
        )
        busy = os.getloadavg()[0]
        if busy > 1:
            print(f"this machine does other work (load {busy:.1f}), which makes every time longer", file=sys.stderr)
        for name in names:
            print(f"measuring {name} …", file=sys.stderr)
            measured.extend(_subject(name)(bench))
    print(table(measured))


def _subject(name: str) -> Subject:
    module, _, function = SUBJECTS[name].partition(":")
    return cast(Subject, getattr(import_module(module), function))


if __name__ == "__main__":
    main()
