"""What a person's machine says: the environment, the home directory and the clock, read here for everyone.

CLAUDE_CONFIG_DIR   the client's config directory; without it `~/.claude`
CLEW_NOW            a fixed time instead of the clock, as an ISO date, for documents and tests
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from clew.engines.contract import Engine
from clew.engines.files import Durability, FilesEngine
from clew.engines.filesystem import FileSystem, OsFileSystem
from clew.engines.memory import MemoryEngine
from clew.errors import UsageError
from clew.layouts.keys import KeyStrategy
from clew.loading import IndexBuilder
from clew.store import Clock, Store

if TYPE_CHECKING:
    from clew.engines.wrap.remote import RemoteWriter

COMING = {
    "folder": "folder:PATH",
    "postgres": "postgresql://…",
    "postgresql": "postgresql://…",
    "s3": "s3://…",
}
"""Kinds of stores that later versions bring, by the first word of their URL."""

SQLITE = "sqlite:"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def open(  # noqa: A001 - It is called clew.open, as a database's is called connect.
    url: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    fs: FileSystem | None = None,
    keys: KeyStrategy | None = None,
    index_builder: IndexBuilder | None = None,
    clock: Clock | None = None,
    durability: Durability = "fsync",
    persist: bool = True,
    mirror: str | Engine | RemoteWriter | None = None,
) -> Store:
    """Opens a store; nothing is read, created or changed yet.

    `url` is "claude:DIR" or the path of a config directory; without one it is the directory that the client uses here.
    "sqlite:PATH" is one file, for agents of your own, that comes with the first session in it. "memory:" is a new and
    empty store that is gone with the process. `durability` says when what was appended is on the disk: when the call
    returns ("fsync"), when `flush` returns ("flush"), or when the system sees fit ("none"). With `persist=False` what
    is there is read and no disk is touched: changes live in this process. `mirror` is a second place that gets what is
    written, never in the way of the first: a URL, an engine or a writer; then close the store at the end. What is left
    out comes from this machine. Raises `UsageError` for a URL of another kind.
    """
    environ = os.environ if environment is None else environment
    clock = clock or clock_of(environ)
    engine, wrapped = _engine(url, environ, fs, clock, durability), None
    if not persist or mirror is not None:
        # Few programs need a wrapper, so the others do not import them.
        from clew.engines.wrap.stack import stacked

        to = _engine(mirror, environ, None, clock, durability) if isinstance(mirror, str) else mirror
        engine = stacked(engine, persist=persist, mirror=to, clock=clock)
        wrapped = partial(stacked, persist=persist, clock=clock)
    fs = fs or OsFileSystem()
    return Store(engine, keys=keys, fs=fs, index_builder=index_builder, clock=clock, wrapped=wrapped)


def _engine(
    url: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    fs: FileSystem | None,
    clock: Clock,
    durability: Durability,
) -> Engine:
    if url == "memory:":
        return MemoryEngine(clock=clock)
    if isinstance(url, str) and url[: len(SQLITE)].lower() == SQLITE:
        return _sqlite(url[len(SQLITE) :], environ, fs, clock, durability)
    return FilesEngine(_root(url, environ), fs=fs, durability=durability)


def _sqlite(
    path: str, environ: Mapping[str, str], fs: FileSystem | None, clock: Clock, durability: Durability
) -> Engine:
    # Most programs that read the client's files never need it, and sqlite3 takes a while to import.
    from clew.engines.sqlite import SqliteEngine

    if not path:
        raise UsageError("a sqlite: store needs a file", hint="name one; it is made where there is none: sqlite:PATH")
    return SqliteEngine(_place(path, environ), fs=fs, clock=clock, durability=durability)


def config_dir(environment: Mapping[str, str] | None = None) -> Path:
    """The client's config directory. Raises `UsageError` where there is neither a variable nor a home directory."""
    environ = os.environ if environment is None else environment
    named = environ.get("CLAUDE_CONFIG_DIR")
    return Path(os.path.abspath(named)) if named else _home(environ) / ".claude"


def clock_of(environment: Mapping[str, str] | None = None) -> Clock:
    """The clock of this machine, or one that always says what CLEW_NOW says."""
    environ = os.environ if environment is None else environment
    text = environ.get("CLEW_NOW")
    if not text:
        return lambda: datetime.now(UTC)
    try:
        fixed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"CLEW_NOW is no date: {text!r}", hint="unset it, or write 2026-11-18T12:00:00Z") from None
    fixed = fixed if fixed.tzinfo else fixed.replace(tzinfo=UTC)
    return lambda: fixed


def sample_dir() -> Path:
    """A small config directory with sessions of the real client that ships with this package."""
    return Path(__file__).parent / "sample"


def _root(url: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Path:
    if url is None:
        return config_dir(environ)
    text = os.fspath(url)
    scheme = _SCHEME.match(text) if isinstance(url, str) else None
    if scheme is not None:
        kind = scheme[1].lower()
        if kind == "claude":
            text = text[scheme.end() :]
            if not text:
                return config_dir(environ)
        elif kind in COMING or not Path(text).exists():
            raise _unknown(text, kind)
    if not text:
        raise UsageError("a store needs a directory", hint="leave it out for the client's own config directory")
    return _place(text, environ)


def _place(text: str, environ: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith("~/"):
        text = str(_home(environ)) + text[1:]
    return Path(os.path.abspath(text))


def _home(environ: Mapping[str, str]) -> Path:
    named = environ.get("HOME")
    if named:
        return Path(named)
    try:
        return Path.home()
    except RuntimeError:
        hint = "name the client's config directory: clew --config-dir DIR ls, or set CLAUDE_CONFIG_DIR"
        raise UsageError("there is no home directory to look for .claude in", hint=hint) from None


def _unknown(url: str, kind: str) -> UsageError:
    hint = "this version has Claude Code's own files (claude:DIR, or a directory) and sqlite:PATH"
    if kind in COMING:
        return UsageError(f"{COMING[kind]} stores come with a later version: {url!r}", hint=hint)
    return UsageError(f"no kind of store is called {kind!r}: {url!r}", hint=hint)
