"""A call of `clew` in this process: how it is made and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from clew import cli


@dataclass(frozen=True)
class Done:
    """How a call ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout; raises when there is more or less than that."""
        return json.loads(self.out)


class Run(Protocol):
    """`run("ls", "--json")`."""

    def __call__(self, *arguments: str | Path) -> Done: ...


def runner(capture: pytest.CaptureFixture[bytes]) -> Run:
    """Calls `main` and takes what it wrote to the two streams."""

    def run(*arguments: str | Path) -> Done:
        capture.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        printed = capture.readouterr()
        return Done(code, printed.out.decode(), printed.err.decode())

    return run
