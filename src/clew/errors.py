"""Every error that clew raises on purpose.

    ClewError
    ├── UsageError          the call is wrong: change it                              exit 2
    ├── NotFound            nothing answers to that name                              exit 4
    │   └── Ambiguous       more than one thing does; `candidates` lists them         exit 4
    ├── DamagedData         the bytes are not what they must be: look with `clew doctor`  exit 5
    └── StorageError        the place did not do it; `is_permanent` says if a retry helps  exit 6
        ├── Busy            another process is writing there now
        └── Conflict        the log is not at the revision that was expected

An error names the thing and the value in one sentence, and `hint` is the next command to type. A broken line of a
session is not an error: it is a `Malformed` row in the result. A bug is none of these and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class ClewError(Exception):
    """The root of the tree. `exit_code` is what the command line ends with."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.candidates = tuple(candidates)


class UsageError(ClewError):
    """The call itself is wrong; nothing was read or changed."""

    exit_code = 2


class NotFound(ClewError):
    """Nothing answers to the name that was given."""

    exit_code = 4


class Ambiguous(NotFound):
    """More than one thing answers to the name; `candidates` lists them."""


class DamagedData(ClewError):
    """Stored bytes are not what they must be."""

    exit_code = 5


class StorageError(ClewError):
    """A place that holds data failed. `is_permanent` is False where the same call may succeed later."""

    exit_code = 6

    def __init__(
        self, message: str, *, hint: str = "", candidates: Sequence[str] = (), is_permanent: bool = True
    ) -> None:
        super().__init__(message, hint=hint, candidates=candidates)
        self.is_permanent = is_permanent


class Busy(StorageError):
    """Another process is writing there now; try again."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, is_permanent=False)


class Conflict(StorageError):
    """The log is at another revision than the caller expected; the message names both."""
