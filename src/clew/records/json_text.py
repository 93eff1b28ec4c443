"""Where a JSON value ends in bytes that may hold more, or less, than one.

The fast decoders answer yes or no about a whole line. This scanner is asked only about the lines they refuse: it walks
tokens with a stack of its own, so depth costs no recursion, and it tells a value that is cut off from one that is wrong.
"""

from __future__ import annotations

import re
from enum import Enum

import msgspec

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+")
# What `json` of the standard library takes beside JSON proper; other programs write it, so such lines are records.
_WORD = re.compile(rb"true|false|null|NaN|-?Infinity")
_CUT_SCALAR = re.compile(
    rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+(?:\\(?:u[0-9a-fA-F]{0,3})?)?'
    rb"|-?[0-9.eE+-]*|-?[A-Za-z]*"
)


class End(Enum):
    """How a scan ended."""

    WHOLE = "whole"
    OPEN = "open"
    """The text ends between two tokens of the value: the next line may go on with it."""
    CUT = "cut"
    """The text ends inside a token: a string, a number or a word."""
    WRONG = "wrong"


class Want(Enum):
    """What may come next."""

    VALUE = 0
    VALUE_OR_CLOSE = 1
    KEY = 2
    KEY_OR_CLOSE = 3
    COLON = 4
    COMMA_OR_CLOSE = 5
    NOTHING = 6


class Scanner:
    """Follows one JSON value over one or several pieces of text.

    `feed` takes the next piece and says how it stands; `at` is then how far it came in that piece: behind a whole value.
    A piece must not be fed after anything but `OPEN`.
    """

    def __init__(self) -> None:
        self.at = 0
        self._stack = bytearray()
        self._want = Want.VALUE

    def feed(self, text: bytes, start: int = 0) -> End:
        at, end = start, len(text)
        while True:
            self.at = at = _skip_space(text, at)
            if at == end:
                return End.OPEN
            step = self._step(text, at)
            if step is None:
                return End.CUT if _is_cut(text, at) else End.WRONG
            self.at = at = step
            if self._want is Want.NOTHING:
                return End.WHOLE

    def _step(self, text: bytes, at: int) -> int | None:
        """Takes one token. Returns the offset behind it, or None when it may not stand here."""
        char, want = text[at], self._want
        if char == 0x22 and want in (Want.KEY, Want.KEY_OR_CLOSE):
            match = _STRING.match(text, at)
            self._want = Want.COLON
            return match.end() if match else None
        if char == 0x3A and want is Want.COLON:
            self._want = Want.VALUE
            return at + 1
        if char == 0x2C and want is Want.COMMA_OR_CLOSE:
            self._want = Want.KEY if self._stack[-1] == 0x7D else Want.VALUE
            return at + 1
        if char in b"]}" and want in (Want.COMMA_OR_CLOSE, Want.KEY_OR_CLOSE, Want.VALUE_OR_CLOSE):
            if self._stack.pop() != char:
                return None
            self._after_value()
            return at + 1
        if want in (Want.VALUE, Want.VALUE_OR_CLOSE):
            return self._value(text, at, char)
        return None

    def _value(self, text: bytes, at: int, char: int) -> int | None:
        if char in b"{[":
            # The stack holds what closes each level: both closing signs stand two behind their opening one.
            self._stack.append(char + 2)
            self._want = Want.KEY_OR_CLOSE if char == 0x7B else Want.VALUE_OR_CLOSE
            return at + 1
        pattern = _STRING if char == 0x22 else _NUMBER if char in b"-0123456789" else _WORD
        match = pattern.match(text, at) or _WORD.match(text, at)
        if not match:
            return None
        self._after_value()
        return match.end()

    def _after_value(self) -> None:
        self._want = Want.COMMA_OR_CLOSE if self._stack else Want.NOTHING


def _is_cut(text: bytes, at: int) -> bool:
    """Whether the rest of the text is the beginning of a string, a number or a word."""
    rest = text[at:].rstrip(b"\r\n")
    return bool(rest) and _CUT_SCALAR.fullmatch(rest) is not None


def _skip_space(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def scan(text: bytes, start: int = 0) -> tuple[End, int]:
    """How the value that begins at `start` ends, and the offset behind it, or where it stopped being one."""
    scanner = Scanner()
    end = scanner.feed(text, start)
    return end, scanner.at


def top_level(text: bytes) -> dict[str, bytes]:
    """The fields of an object as the bytes of their values, at any depth below. The text must be a whole object."""
    fields: dict[str, bytes] = {}
    at = _skip_space(text, text.index(b"{") + 1)
    while text[at : at + 1] == b'"':
        name_end = scan(text, at)[1]
        value_start = _skip_space(text, _skip_space(text, name_end) + 1)
        value_end = scan(text, value_start)[1]
        fields[_plain_string(text[at:name_end])] = text[value_start:value_end]
        at = _skip_space(text, value_end)
        at = _skip_space(text, at + 1) if text[at : at + 1] == b"," else at
    return fields


def _plain_string(quoted: bytes) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return quoted[1:-1].decode("utf-8", "replace")
