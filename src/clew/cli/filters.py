"""Which sessions `clew ls` shows: one line for each way to choose, in one of two tables.

Each may be given several times, and a session is shown when all of them hold.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from clew.errors import UsageError
from clew.session_info import SessionInfo
from clew.transcript.times import milliseconds

F = TypeVar("F", bound=Callable[..., object])
Keeps = Callable[[SessionInfo], bool]


def _since(text: str) -> Keeps:
    moment = _moment(text, "--since")
    return lambda info: (milliseconds(info.updated_at) or 0) >= moment


def _until(text: str) -> Keeps:
    moment = _moment(text, "--until")
    return lambda info: (milliseconds(info.updated_at) or 0) <= moment


def _moment(text: str, option: str) -> float:
    moment = milliseconds(text)
    if moment is None:
        raise UsageError(f"{option} {text!r:.60} is no time", hint="write it as 2026-11-18 or 2026-11-18T12:00:00Z")
    return moment


TEXTS: Mapping[str, tuple[str, str, Callable[[str], Keeps]]] = {
    "tag": ("TEXT", "With this tag.", lambda text: lambda info: info.tag == text),
    "label": ("NAME", "With this label.", lambda text: lambda info: text in info.labels),
    "branch": ("NAME", "Of this git branch.", lambda text: lambda info: info.git_branch == text),
    "owner": ("NAME", "Of this owner.", lambda text: lambda info: info.owner == text),
    "workspace": ("NAME", "Of this workspace.", lambda text: lambda info: info.workspace == text),
    "model": ("TEXT", "Whose last model has this in its name.", lambda text: lambda info: text in (info.model or "")),
    "since": ("TIME", "Changed then or later.", _since),
    "until": ("TIME", "Changed then or earlier.", _until),
}
"""What the option takes, its help, and which sessions it keeps."""
FLAGS: Mapping[str, tuple[str, Keeps]] = {
    "pinned": ("Pinned ones only, or none of them.", lambda info: info.pinned),
    "archived": ("Archived ones only, or none of them.", lambda info: info.archived),
}


def options(command: F) -> F:
    """Gives a command the options."""
    for name, (text, _) in reversed([*FLAGS.items()]):
        command = click.option(f"--{name}/--no-{name}", name, default=None, help=text)(command)
    for name, (metavar, text, _) in reversed([*TEXTS.items()]):
        command = click.option(f"--{name}", name, metavar=metavar, multiple=True, help=text)(command)
    return command


def chosen(given: Mapping[str, object]) -> Keeps | None:
    """What keeps the sessions that are asked for; None when all are."""
    found = [TEXTS[name][2](text) for name, text in _texts(given)] + [
        _is(FLAGS[name][1], is_wanted) for name, is_wanted in _flags(given)
    ]
    return (lambda info: all(keeps(info) for keeps in found)) if found else None


def words(given: Mapping[str, object]) -> str:
    """The options as a person types them; with a blank in front."""
    texts = [f" --{name} {shlex.quote(text)}" for name, text in _texts(given)]
    return "".join([*texts, *(f" --{'' if is_wanted else 'no-'}{name}" for name, is_wanted in _flags(given))])


def _texts(given: Mapping[str, object]) -> Sequence[tuple[str, str]]:
    return [(name, text) for name in TEXTS if isinstance(all_of := given.get(name), tuple) for text in all_of]


def _flags(given: Mapping[str, object]) -> Sequence[tuple[str, bool]]:
    return [(name, is_wanted) for name in FLAGS if isinstance(is_wanted := given.get(name), bool)]


def _is(keeps: Keeps, is_wanted: bool) -> Keeps:
    return lambda info: keeps(info) is is_wanted
