"""From a name to its session before there is an index, against reading the digest of every session."""

from __future__ import annotations

from collections.abc import Iterator

import clew
from benchmarks.harness import Bench, Goal, Measured
from clew.errors import NotFound
from clew.transcript.digest import DigestFold

GOAL = Goal(0.15)
GOAL_SESSIONS_MAX = 1_200
"""The goal is meant for 1,000 sessions of 500 MB; more of them have none."""
DIGEST_ROUNDS = 3
"""Every record of every session takes so long that fewer rounds must do."""


def measure(bench: Bench) -> Iterator[Measured]:
    """The name is one that no session has, so all are asked to the end. Every round opens the store anew."""
    config = bench.many_sessions()
    logs = clew.open(config).logs()
    size = sum(stat.size_bytes for stat in logs) / 1e6

    def asked(text: str) -> None:
        try:
            clew.open(config).resume(text)
        except NotFound:
            return
        raise AssertionError(f"a session answers to {text}")

    def digests() -> None:
        store = clew.open(config)
        for stat in store.logs():
            DigestFold(store.session_on(store.engine, stat.key).records()).digest()

    texts = ("title:no such title", "tag:no such tag", "branch:no such branch", "pr:999999999")
    taken = bench.seconds(**{text.partition(":")[0]: (lambda text=text: asked(text)) for text in texts})
    baseline = bench.values({"digests": lambda: bench.seconds_of(digests)}, at_most=DIGEST_ROUNDS)["digests"]
    goal = GOAL if len(logs) <= GOAL_SESSIONS_MAX else None
    for form, seconds in taken.items():
        yield Measured(f"{form}: over {len(logs):,} sessions of {size:.0f} MB", seconds, baseline, "every digest", goal)
