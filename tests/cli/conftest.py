"""Every test of a command gets `run`: `clew` with this test's config directory, in an empty directory, at one noon."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew_calls import Run, runner

NOW = "2026-11-18T12:00:00Z"


@pytest.fixture
def run(config_dir: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("CLEW_NOW", NOW)
    work = config_dir.parent / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return runner(capfdbinary)
