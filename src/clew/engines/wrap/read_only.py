"""A store that nobody can change: looking into other people's sessions, or into a copy that must stay as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clew.engines.wrap.base import Call, Wrapper
from clew.errors import UsageError

T = TypeVar("T")


class ReadOnly(Wrapper):
    """Every method that may change something raises `UsageError`, whatever is passed to it, and nothing happens."""

    def _call(self, call: Call, do: Callable[[], T]) -> T:
        if call.is_change:
            raise UsageError(
                f"{self.url or 'this store'} is open for reading only: {call.method} is refused",
                hint="open the store without ReadOnly, or copy what you want to change to another one",
            )
        return do()
