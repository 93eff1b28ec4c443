"""Child processes for tests: copies of this one, each of which does one call and ends."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence

SECONDS_MAX = 300


def forked(call: Callable[[], object], *, seconds: int = SECONDS_MAX) -> int:
    """Does the call in a child process and returns its pid: a copy of this one, which is ended after so many seconds.
    No other thread should run here meanwhile. The child ends with 0, or with 3 and a traceback on stderr.
    """
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 3
    try:
        signal.alarm(seconds)
        call()
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def in_processes(calls: Sequence[Callable[[], object]], *, seconds: int = SECONDS_MAX) -> None:
    """Does each call in a child process, all at the same time. Raises `AssertionError` when one of them fails."""
    children = [forked(call, seconds=seconds) for call in calls]
    ended = [os.waitpid(child, 0)[1] for child in children]
    failed = [at for at, status in enumerate(ended) if status != 0]
    assert not failed, f"of {len(calls)} processes these failed, and said why above: {failed}"
