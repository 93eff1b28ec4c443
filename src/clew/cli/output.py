"""What goes out: JSON for programs, messages for people, and how an error is told in either."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator

import click
import msgspec

from clew.errors import ClewError

ERROR_CHARACTERS_MAX = 1_000
"""An error may quote what was typed, which may be a page; a path of the system's greatest length is four of these."""

_encode = msgspec.json.Encoder().encode
_REFUSED = (UnicodeEncodeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
LEVELS_MAX = 200
"""What is refused is written again so deep; only what nests nearly as deep as Python goes is refused for that."""


def prepare_streams() -> None:
    """Characters that the encoding of a stream lacks come out as escapes; nothing raises for them, nor for a stream
    that was closed before we began (`>&-`).
    """
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - It stays open as long as the process.
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - The same.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def encoded(value: object) -> bytes:
    """The value as JSON in UTF-8. With a lone surrogate in it all beyond ASCII is escaped; NaN is null, and what nests
    too deeply for the encoder is U+FFFD.
    """
    try:
        return _encode(value)
    except _REFUSED:
        plain = msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
        return json.dumps(_plain(plain, LEVELS_MAX), ensure_ascii=True, separators=(",", ":")).encode()


def _plain(value: object, levels: int) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, list | tuple | dict):
        return value
    if levels == 0:
        return "\ufffd"
    if isinstance(value, dict):
        return {name: _plain(item, levels - 1) for name, item in value.items()}
    return [_plain(item, levels - 1) for item in value]


def write_json(value: object) -> None:
    """One document."""
    write_chunks([encoded(value)])


def array(items: Iterable[object]) -> Iterator[bytes]:
    """A JSON array in pieces, one item on a line, so that a long one is never held whole."""
    yield b"["
    before = b""
    for item in items:
        yield before + encoded(item)
        before = b",\n"
    yield b"]"


def write_chunks(chunks: Iterable[bytes]) -> None:
    """Writes pieces of one document, and the newline at its end."""
    sys.stdout.flush()
    out = sys.stdout.buffer
    for chunk in chunks:
        out.write(chunk)
    out.write(b"\n")
    out.flush()


def let_go_of_stdout() -> None:
    """What is still to be written goes nowhere, so that the interpreter does not fail over it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(error: ClewError, *, is_json: bool) -> None:
    """Tells an error: as a document on stdout for programs, on stderr for people.

    What cannot be told, since the disk behind the stream is full, changes no exit code: a document that finds no room
    is told on stderr, and what finds none there is left out.
    """
    message, hint = _cut(error.message), _cut(error.hint)
    if is_json:
        try:
            write_json({"error": message, "hint": hint, "candidates": list(error.candidates)})
            return
        except BrokenPipeError:
            let_go_of_stdout()
            return
        except OSError:
            let_go_of_stdout()
    from clew.cli.render import neutral

    lines = [f"clew: {neutral(message)}", *(f"  {neutral(candidate)}" for candidate in error.candidates)]
    with contextlib.suppress(OSError):
        for line in [*lines, f"  hint: {neutral(hint)}"] if hint else lines:
            click.echo(line, err=True)


def _cut(text: str) -> str:
    return text if len(text) <= ERROR_CHARACTERS_MAX else text[:ERROR_CHARACTERS_MAX] + "…"
