"""Engines do what a plain dict does, whatever is done to them in whatever order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import settings

from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.testing.model import model_of

Memory = model_of(lambda _: MemoryEngine(clock=lambda: datetime.now(UTC)), is_kept=False)
Files = model_of(lambda place: FilesEngine(place, durability="none"))


class TestMemory(Memory.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=60, stateful_step_count=30)


class TestFiles(Files.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=40, stateful_step_count=30)


@pytest.mark.slow
class TestMemoryLong(Memory.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=600, stateful_step_count=60)


@pytest.mark.slow
class TestFilesLong(Files.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=400, stateful_step_count=60)
