"""What a store is opened with is put around its engine in one order."""

from __future__ import annotations

from clew.engines.contract import Entry, LogKey
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.mirror import Mirror
from clew.engines.wrap.scratch import Scratch
from clew.engines.wrap.stack import stacked
from stores import ticking

MAIN = LogKey("-home-a", "one")


def test_without_a_wish_the_engine_stays_as_it_is() -> None:
    engine = MemoryEngine()
    assert stacked(engine) is engine


def test_what_is_not_kept_here_still_reaches_the_mirror() -> None:
    inner, remote = MemoryEngine(), MemoryEngine()
    inner.append(MAIN, [Entry(b"1")])
    engine = stacked(inner, persist=False, mirror=remote, clock=ticking())
    assert isinstance(engine, Mirror)
    assert isinstance(engine.inner, Scratch)
    engine.append(MAIN, [Entry(b"2")])
    engine.close()
    assert [line.data for line in inner.read(MAIN)] == [b"1\n"]
    assert [line.data for line in remote.read(MAIN)] == [b"1\n", b"2\n"]
