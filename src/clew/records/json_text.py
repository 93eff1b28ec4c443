"""Where a JSON value ends in bytes that may hold more, or less, than one.

The fast decoders answer yes or no about a whole line. What is here is asked only about the lines they refuse, and tells
a value that is cut off from one that is wrong. `scan` lets the parser of the standard library find the place where it
stops; deeper than that parser goes (about 1,000 levels), and over several pieces of text, a `Scanner` walks with a
stack of its own. Both take linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum

import msgspec

INTEGER_DIGITS_MAX = 4_300
"""Python refuses to read a longer integer. Here it reads as the nearest float, which is infinite from 309 digits on."""

AT_ONCE_MAX = 1_000
"""So many repetitions one match takes: each keeps its way back, about 150 bytes, until the match is over."""

# A group is repeated possessively only where a try that fails cannot have moved behind its first byte: before Python
# 3.11.5 the match goes on from where the last try failed. So the digits of an escape stand here one by one.
_HEX4 = rb"[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]"
_SPACE = re.compile(rb"[ \t\r\n]*+")
_CHARACTERS_TEXT = rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u%s))' % _HEX4
_STRING_TEXT = b'"%s*+"' % _CHARACTERS_TEXT
_NUMBER_TEXT = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
# What `json` of the standard library takes beside JSON proper; other programs write it, so such lines are records.
_WORD_TEXT = rb"true|false|null|NaN|-?Infinity"
_STRING = re.compile(_STRING_TEXT)
_NUMBER = re.compile(_NUMBER_TEXT)
_WORD = re.compile(_WORD_TEXT)
_WS = rb"[ \t\r\n]*+"
# Many tokens at once, so that only what nests twice costs a step.
_NAME_TEXT = b"%s%s:%s" % (_STRING_TEXT, _WS, _WS)
_COMMA_TEXT = b"%s,%s" % (_WS, _WS)
_SCALAR_TEXT = b"(?:%s|%s|%s)" % (_STRING_TEXT, _WORD_TEXT, _NUMBER_TEXT)
_MEMBER_TEXT = _NAME_TEXT + _SCALAR_TEXT
_MORE = b"{0,%d}" % AT_ONCE_MAX
_FLAT_OBJECT_TEXT = rb"\{%s(?:%s(?:%s%s)%s)?%s\}" % (_WS, _MEMBER_TEXT, _COMMA_TEXT, _MEMBER_TEXT, _MORE, _WS)
_FLAT_ARRAY_TEXT = rb"\[%s(?:%s(?:%s%s)%s)?%s\]" % (_WS, _SCALAR_TEXT, _COMMA_TEXT, _SCALAR_TEXT, _MORE, _WS)
_FLAT_TEXT = b"(?:%s|%s|%s)" % (_SCALAR_TEXT, _FLAT_OBJECT_TEXT, _FLAT_ARRAY_TEXT)
_MEMBERS = re.compile(b"(?:%s%s%s){1,%d}" % (_NAME_TEXT, _FLAT_TEXT, _COMMA_TEXT, AT_ONCE_MAX))
_ITEMS = re.compile(b"(?:%s%s){1,%d}" % (_FLAT_TEXT, _COMMA_TEXT, AT_ONCE_MAX))
_NAME = re.compile(_NAME_TEXT)
_OPENING_OBJECT = re.compile(rb"\{%s%s" % (_WS, _NAME_TEXT))
_OPENING_ARRAYS = re.compile(rb"\[++")
_CLOSING = re.compile(rb"[\]}]++")
_CHARACTERS = re.compile(b"%s{1,%d}" % (_CHARACTERS_TEXT, AT_ONCE_MAX))
_CUT_CHARACTER = re.compile(rb"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
_CUT_SCALAR = re.compile(rb"-?[0-9.eE+-]*|-?[A-Za-z]*")
_CUT_ESCAPE = re.compile(rb"u[0-9a-fA-F]{0,4}")
# Everything up to the next run of brackets, strings skipped; and that run.
_TO_BRACKETS = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"){1,%d}' % AT_ONCE_MAX, re.DOTALL)
_OPENING = re.compile(rb"[\[{]++")


class End(Enum):
    """How a scan ended."""

    WHOLE = "whole"
    OPEN = "open"
    """The text ends between two tokens of the value: the next line may go on with it."""
    CUT = "cut"
    """The text ends inside a token: a string, a number or a word."""
    WRONG = "wrong"


def loads(text: str) -> object:
    """The value in the text, however long its integers. Raises ValueError, or RecursionError where it nests deeply."""
    return _LENIENT.decode(text)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= INTEGER_DIGITS_MAX else float(digits)


_LENIENT = json.JSONDecoder(parse_int=_integer)
# For finding ends only: numbers are not made, and `len` is the cheapest thing to call instead.
_ENDS = json.JSONDecoder(parse_int=len, parse_float=len)


def scan(text: bytes, start: int = 0) -> tuple[End, int]:
    """How the value that begins at `start` ends, and the offset behind it, or where it stopped being one."""
    try:
        return _scan(text, text.decode("latin-1"), start)
    except RecursionError:
        scanner = Scanner()
        return scanner.feed(text, start), scanner.at


def scan_shallow(text: bytes, decoded: str, start: int) -> tuple[End, int]:
    """The same for many scans of one text, which is given a second time, byte for character (`text.decode("latin-1")`).

    A value that nests deeper than the parser goes is WRONG.
    """
    try:
        return _scan(text, decoded, start)
    except RecursionError:
        return End.WRONG, start


def _scan(text: bytes, decoded: str, start: int) -> tuple[End, int]:
    try:
        return End.WHOLE, _ENDS.raw_decode(decoded, _skip_space(text, start))[1]
    except json.JSONDecodeError as error:
        return _end_at(text, error), error.pos


def _end_at(text: bytes, error: json.JSONDecodeError) -> End:
    """What it means that the parser stopped there: it says the same of what is cut off and of what is wrong."""
    at = error.pos
    if error.msg.startswith("Invalid control"):
        # The parser takes the newline that ends the line for a part of the string that it stands in.
        return End.WRONG if text[at:].strip(b"\r\n") else End.CUT
    if _skip_space(text, at) == len(text):
        return End.OPEN
    if error.msg.startswith("Invalid \\uXXXX"):
        return End.CUT if _CUT_ESCAPE.fullmatch(text[at:].rstrip(b"\r\n")) else End.WRONG
    if error.msg.startswith("Invalid \\"):
        return End.WRONG if text[at + 1 :].strip(b"\r\n") else End.CUT
    return End.CUT if _is_cut(text, at) else End.WRONG


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
    """Follows one JSON value over one or several pieces of text, to any depth.

    `feed` takes the next piece and says how it stands; `at` is then how far it came in it: behind a whole value.
    A piece must not be fed after anything but `OPEN`.
    """

    def __init__(self) -> None:
        self.at = 0
        # What closes each level, the innermost last.
        self._stack = bytearray()
        self._want = Want.VALUE

    def feed(self, text: bytes, start: int = 0) -> End:
        at, end = start, len(text)
        while True:
            if at < end and text[at] <= 0x20:
                at = _skip_space(text, at)
            self.at = at
            if at >= end:
                return End.OPEN
            step = self._step(text, at)
            if step is None:
                return End.CUT if _is_cut(text, at) else End.WRONG
            self.at = at = step
            if self._want is Want.NOTHING:
                return End.WHOLE

    def _step(self, text: bytes, at: int) -> int | None:
        """Takes one token or several. Returns the offset behind them, or None when the first may not stand here."""
        char, want = text[at], self._want
        if want in (Want.COMMA_OR_CLOSE, Want.KEY_OR_CLOSE, Want.VALUE_OR_CLOSE) and char in b"]}":
            return self._close(text, at)
        if char == 0x2C and want is Want.COMMA_OR_CLOSE:
            self._want = Want.KEY if self._stack[-1] == 0x7D else Want.VALUE
            return at + 1
        if want is Want.KEY or want is Want.KEY_OR_CLOSE:
            return self._key(text, at)
        if char == 0x3A and want is Want.COLON:
            self._want = Want.VALUE
            return at + 1
        if want is Want.VALUE or want is Want.VALUE_OR_CLOSE:
            return self._value(text, at, char)
        return None

    def _key(self, text: bytes, at: int) -> int | None:
        members = _MEMBERS.match(text, at)
        if members:
            self._want = Want.KEY
            return members.end()
        name = _NAME.match(text, at)
        if name:
            self._want = Want.VALUE
            return name.end()
        alone = _STRING.match(text, at)
        self._want = Want.COLON
        return alone.end() if alone else None

    def _value(self, text: bytes, at: int, char: int) -> int | None:
        items = _ITEMS.match(text, at) if self._stack[-1:] == b"]" else None
        if items:
            self._want = Want.VALUE
            return items.end()
        if char == 0x7B:
            self._stack.append(0x7D)
            named = _OPENING_OBJECT.match(text, at)
            self._want = Want.VALUE if named else Want.KEY_OR_CLOSE
            return named.end() if named else at + 1
        if char == 0x5B:
            end = _end_of(_OPENING_ARRAYS, text, at)
            self._stack += b"]" * (end - at)
            self._want = Want.VALUE_OR_CLOSE
            return end
        pattern = _STRING if char == 0x22 else _NUMBER if char in b"-0123456789" else _WORD
        match = pattern.match(text, at) or _WORD.match(text, at)
        if not match:
            return None
        self._want = Want.COMMA_OR_CLOSE if self._stack else Want.NOTHING
        return match.end()

    def _close(self, text: bytes, at: int) -> int | None:
        run = text[at : min(_end_of(_CLOSING, text, at), at + len(self._stack))]
        if self._stack[-1] != run[0]:
            return None
        if self._stack[-len(run) :] == run[::-1]:
            count = len(run)
        else:
            count = next(place for place, char in enumerate(run) if self._stack[-1 - place] != char)
        del self._stack[len(self._stack) - count :]
        self._want = Want.COMMA_OR_CLOSE if self._stack else Want.NOTHING
        return at + count


def top_level(text: bytes) -> dict[str, bytes]:
    """The fields of an object as the bytes of their values, at any depth below. Empty for what is no object.

    The text must be one whole JSON value.
    """
    return {name: text[start:end] for name, start, end in spans(text)}


def spans(text: bytes) -> Iterator[tuple[str, int, int]]:
    """The fields of an object, in order: the name, and where the value begins and ends. A name may come twice.

    The text must be one whole JSON value.
    """
    at = _skip_space(text, 0)
    if text[at : at + 1] != b"{":
        return
    at = _skip_space(text, at + 1)
    while text[at : at + 1] == b'"':
        name_end = _end_of(_STRING, text, at)
        value_start = _skip_space(text, _skip_space(text, name_end) + 1)
        value_end = _end_of_value(text, value_start)
        yield _plain_string(text[at:name_end]), value_start, value_end
        at = _skip_space(text, value_end)
        at = _skip_space(text, at + 1) if text[at : at + 1] == b"," else at


def items(text: bytes) -> list[bytes]:
    """The items of an array as their bytes, at any depth below. Empty for what is no array.

    The text must be one whole JSON value.
    """
    found: list[bytes] = []
    at = _skip_space(text, 0)
    if text[at : at + 1] != b"[":
        return found
    at = _skip_space(text, at + 1)
    while at < len(text) and text[at : at + 1] != b"]":
        end = _end_of_value(text, at)
        found.append(text[at:end])
        at = _skip_space(text, end)
        at = _skip_space(text, at + 1) if text[at : at + 1] == b"," else at
    return found


def _end_of_value(text: bytes, at: int) -> int:
    """The offset behind a value that is known to be whole: counting brackets will do."""
    if text[at] not in b"[{":
        scalar = (_STRING if text[at] == 0x22 else _WORD).match(text, at) or _NUMBER.match(text, at)
        return scalar.end() if scalar else len(text)
    depth, end = 0, len(text)
    before = -1
    while before < at < end:
        before = at
        opening = _OPENING.match(text, at)
        if opening:
            depth += opening.end() - at
            at = opening.end()
        closing = _CLOSING.match(text, at)
        if closing:
            if closing.end() - at >= depth:
                return at + depth
            depth -= closing.end() - at
            at = closing.end()
        at = _end_of(_TO_BRACKETS, text, at)
    return end


def _is_cut(text: bytes, at: int) -> bool:
    """Whether the rest of the text is the beginning of a string, a number or a word."""
    rest = text[at:].rstrip(b"\r\n")
    if not rest.startswith(b'"'):
        return bool(rest) and _CUT_SCALAR.fullmatch(rest) is not None
    end = 1
    while characters := _CHARACTERS.match(rest, end):
        end = characters.end()
    return _CUT_CHARACTER.fullmatch(rest, end) is not None


def _end_of(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _skip_space(text: bytes, at: int) -> int:
    return _end_of(_SPACE, text, at)


def _plain_string(quoted: bytes) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return quoted[1:-1].decode("utf-8", "replace")
