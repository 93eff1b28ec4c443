"""The stores that tests of sessions run on, by the word that their URL begins with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from clew import Store
from clew.engines.contract import Engine
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.engines.sqlite import SqliteEngine

ENGINES: dict[str, Callable[[Path], Engine]] = {
    "memory": lambda _: MemoryEngine(clock=ticking()),
    "files": lambda place: FilesEngine(_made(place / "config"), durability="none"),
    "sqlite": lambda place: SqliteEngine(place / "sessions.db", clock=ticking(), durability="none"),
}
START = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def _made(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    return place


def ticking() -> Callable[[], datetime]:
    """A clock that goes on by a second whenever it is asked."""
    seconds = count()
    return lambda: START + timedelta(seconds=next(seconds))


def numbered() -> Callable[[], str]:
    """Ids that count."""
    numbers = count(1)
    return lambda: f"{next(numbers):08x}-0000-4000-8000-000000000000"


def store_on(engine: Engine) -> Store:
    """A store whose ids and times are the same in every run."""
    return Store(engine, clock=ticking(), new_id=numbered())
