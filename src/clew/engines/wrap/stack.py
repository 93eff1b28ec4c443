"""The wrappers that a store is opened with, in the order that makes sense."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from clew.engines.contract import Engine
from clew.engines.wrap.mirror import Mirror
from clew.engines.wrap.remote import RemoteWriter
from clew.engines.wrap.scratch import Scratch


def stacked(
    engine: Engine,
    *,
    persist: bool = True,
    mirror: Engine | RemoteWriter | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Engine:
    """The engine, with what the arguments ask for around it; without any, the engine itself.

    With `persist=False` nothing is written to it; a mirror still gets what would have been, since it was asked for.
    """
    if not persist:
        engine = Scratch(engine, clock=clock)
    return engine if mirror is None else Mirror(engine, mirror)
