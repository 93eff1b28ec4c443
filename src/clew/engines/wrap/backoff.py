"""What is tried again, how often, and how long one waits in between.

The rule for what is tried again is one: a `StorageError` that is not permanent, as `Busy` is. An engine marks its
errors so; a wrong call, a name that nothing answers to, damaged bytes and a `Conflict` come out at once.
"""

from __future__ import annotations

import msgspec

from clew.errors import ClewError, Conflict, StorageError


class Backoff(msgspec.Struct, frozen=True):
    """How often, and how long between: half of each wait is fixed, half is drawn, so that many do not come at once."""

    tries_max: int = 6
    first_seconds: float = 0.05
    seconds_max: float = 2.0
    factor: float = 2.0

    def seconds(self, failures: int, drawn: float) -> float:
        """How long to wait after so many failures in a row. `drawn` is from 0 to 1."""
        full = min(self.seconds_max, self.first_seconds * self.factor ** (failures - 1))
        return full / 2 + full / 2 * drawn


def may_pass(error: ClewError) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(error, StorageError) and not error.is_permanent and not isinstance(error, Conflict)
