"""Project keys: which folder of `projects/` holds the sessions of a directory.

The client's rule is lossy (`/a/b_c` and `/a/b-c` share one key) and cannot be undone: the directory of a project is
taken from the `cwd` of a row, never from the key. Measured on 2.1.327 with 12 directories; the rule here gives all 12
names.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable
from typing import Protocol

KEY_UNITS_MAX = 200
"""A longer key is cut after so many UTF-16 units and goes on with a dash and a hash."""

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_NOT_PLAIN = re.compile("[^a-zA-Z0-9]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class KeyStrategy(Protocol):
    """A rule from directories to project keys. `cwd` is the real, absolute path of a directory.

    A strategy is pure and never raises: any text has a key, and that key is a safe name of one folder.
    """

    def key(self, cwd: str) -> str:
        """The folder that a new session of this directory goes to."""
        ...

    def matches(self, folder: str, cwd: str) -> bool:
        """Whether the folder may hold sessions of this directory.

        A folder of another name than `key(cwd)` is only a candidate: it counts when the directory found in its rows
        `is_same` as `cwd`.
        """
        ...

    def is_same(self, found: str, cwd: str) -> bool:
        """Whether two directories share a project under this rule."""
        ...


class ClaudeKeys:
    """The client's rule: every UTF-16 unit outside `[a-zA-Z0-9]` becomes a dash; over 200 units it is cut and hashed.

    The path is taken as it is: no case folding, no collapsing of dashes, no Unicode normalisation. Bytes that are no
    UTF-8 count as the client's runtime decodes them, which is one U+FFFD for each broken sequence (not measured).
    """

    def key(self, cwd: str) -> str:
        plain = sanitised(cwd)
        if len(plain) <= KEY_UNITS_MAX:
            # Only the empty path has no key of its own; an empty name would be the folder of all projects.
            return plain or "-"
        return f"{plain[:KEY_UNITS_MAX]}-{base36(abs(java_hash(_as_the_client_sees(cwd))))}"

    def matches(self, folder: str, cwd: str) -> bool:
        """Over 200 units any suffix may hold: other versions of the client hashed in other ways."""
        plain = sanitised(cwd)
        if len(plain) <= KEY_UNITS_MAX:
            return folder == self.key(cwd)
        return folder.startswith(plain[:KEY_UNITS_MAX] + "-")

    def is_same(self, found: str, cwd: str) -> bool:
        return sanitised(found) == sanitised(cwd)


class DigestKeys:
    """Opaque keys that tell nothing of the path: its SHA-256 in hex. Two directories never share one."""

    def key(self, cwd: str) -> str:
        return hashlib.sha256(cwd.encode("utf-8", "surrogatepass")).hexdigest()

    def matches(self, folder: str, cwd: str) -> bool:
        return folder == self.key(cwd)

    def is_same(self, found: str, cwd: str) -> bool:
        return found == cwd


class GitRootKeys:
    """Gives all directories and worktrees of one repository the key that `inner` gives to its root.

    `git_root` answers with the root that stands for a directory, or None outside a repository, where `inner` decides
    alone. `clew.engines.worktrees.repository_root` is such a function once it has its file system.
    """

    def __init__(self, inner: KeyStrategy, git_root: Callable[[str], str | None]) -> None:
        self._inner = inner
        self._git_root = git_root

    def key(self, cwd: str) -> str:
        return self._inner.key(self._rooted(cwd))

    def matches(self, folder: str, cwd: str) -> bool:
        return self._inner.matches(folder, self._rooted(cwd))

    def is_same(self, found: str, cwd: str) -> bool:
        return self._inner.is_same(self._rooted(found), self._rooted(cwd))

    def _rooted(self, cwd: str) -> str:
        return self._git_root(cwd) or cwd


def sanitised(cwd: str) -> str:
    """The path with a dash for every UTF-16 unit that is no ASCII letter or digit, not cut."""
    return _NOT_PLAIN.sub("-", _ASTRAL.sub("--", _as_the_client_sees(cwd)))


def java_hash(text: str) -> int:
    """h * 31 + unit over the UTF-16 units, kept to a signed 32-bit number."""
    value = 0
    for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le", "surrogatepass")):
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def base36(number: int) -> str:
    """A number that is not negative, in the digits 0-9a-z."""
    digits = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return _DIGITS[number] + digits


def _as_the_client_sees(cwd: str) -> str:
    """Python keeps a byte that is no UTF-8 as a lone surrogate, one each; other runtimes decode the run to U+FFFD."""
    if not _SURROGATE.search(cwd):
        return cwd
    try:
        return cwd.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        # Surrogates that stand for no byte cannot be in a path of this machine; from elsewhere each is one unit.
        return cwd
