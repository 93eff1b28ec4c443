"""The options that every command takes, before its name or after it, and what follows from them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.errors import ClewError, NotFound, UsageError

if TYPE_CHECKING:
    from clew.resume.answers import Resolved
    from clew.session import Session
    from clew.store import Store


class Settings:
    """What the person asked for besides the command itself."""

    def __init__(self) -> None:
        self.config_dir: str | None = None
        self.store_url: str | None = None
        self.project: str | None = None
        self.is_all = False
        self.is_json = False
        self.is_plain = False
        self.is_quiet = False
        self._store: Store | None = None

    @property
    def has_color(self) -> bool:
        """Colour is for terminals that can, unless the person said no: https://no-color.org."""
        if self.is_plain or self.is_json or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        return sys.stdout.isatty()

    def store(self) -> Store:
        """The store that the options name, opened once."""
        from clew import defaults

        if self._store is None:
            if self.config_dir is not None and self.store_url is not None:
                raise UsageError("--config-dir and --store both name a store", hint="leave one of them out")
            if self.config_dir == "":
                raise UsageError("--config-dir names no directory", hint="leave it out for the client's own")
            directory = None if self.config_dir is None else Path(self.config_dir)
            self._store = defaults.open(self.store_url if directory is None else directory)
        return self._store

    @property
    def words(self) -> str:
        """The options that name the store, for a command that a person is told to type; with a blank in front."""
        given = [("--config-dir", self.config_dir), ("--store", self.store_url)]
        return "".join(f" {name} {shlex.quote(value)}" for name, value in given if value is not None)

    @property
    def where(self) -> str:
        """The same for the options that say whose sessions are meant."""
        project = "" if self.project is None else f" --project {shlex.quote(self.project)}"
        return " --all" if self.is_all else project

    @property
    def opened(self) -> Store | None:
        """The store, if the command opened it."""
        return self._store

    def scope(self) -> str | None:
        """The directory, or key, whose sessions are meant; None for every project."""
        if self.project is not None:
            if self.is_all:
                raise UsageError("--all and --project contradict each other", hint="leave one of them out")
            return self._checked(self.project)
        return None if self.is_all else os.path.abspath(".")

    def _checked(self, project: str) -> str:
        """What --project names. A directory that is gone may have sessions still; a typing error has none."""
        if not os.path.isdir(project) and not self.store().logs(project, limit=1):
            hint = "see every project with `clew ls --all`"
            raise NotFound(f"there is no directory {project!r} and no session of one", hint=hint)
        return project if project in self.store().engine.projects() else os.path.abspath(project)

    def session(self, name: str) -> Session:
        """The session that the person means, by the resolvers; the scope is where titles, tags and the like count."""
        return self.only(self.store().resolve(name, scope=self.scope))

    def only(self, resolved: Resolved) -> Session:
        """The session that was found. Where it is not just one, the error lists candidates, for people with titles."""
        from clew.cli.render import line
        from clew.resume.resolving import only

        if not self.is_json:
            told = [each.name + (f"  {line(each.title, 60)}" if each.title else "") for each in resolved.candidates]
            return only(resolved, told=told)
        return only(resolved)


def settings_of(context: click.Context) -> Settings:
    """The settings of this call."""
    return context.ensure_object(Settings)


class GlobalOption(click.Option):
    """One that every command has. Its value goes into the `Settings` of the call, not to the command."""

    def __init__(self, names: Sequence[str], text: str, *, metavar: str | None = None) -> None:
        # A value may begin with a dash, as keys of projects do, so click must not be told that this is no flag.
        is_flag = True if metavar is None else None
        super().__init__(names, help=text, metavar=metavar, is_flag=is_flag, expose_value=False, callback=_remember)


def global_options() -> list[click.Option]:
    """New options, as click wants them for each command."""
    return [
        GlobalOption(["--config-dir"], "The client's directory.  [default: ~/.claude]", metavar="DIR"),
        GlobalOption(["--store", "store_url"], "Another store, such as claude:DIR.", metavar="URL"),
        GlobalOption(["--project"], "Another project than this directory's.", metavar="DIR"),
        GlobalOption(["--all", "is_all"], "Every project."),
        GlobalOption(["--json", "is_json"], "One JSON document for programs."),
        GlobalOption(["--no-color", "is_plain"], "No colour; so does NO_COLOR=1."),
        GlobalOption(["-q", "--quiet", "is_quiet"], "No warnings and no hints."),
    ]


def _remember(context: click.Context, option: click.Parameter, value: object) -> None:
    """Keeps a value that was given. One that was not must not undo what stood before the command."""
    name = option.name or ""
    if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
        setattr(settings_of(context), name, value)


def warn(settings: Settings, message: str) -> None:
    """A line for people on stderr."""
    if not settings.is_quiet:
        from clew.cli.render import neutral

        click.echo(f"clew: {neutral(message)}", err=True)


def warn_of_problems(settings: Settings, shown: int = 5) -> None:
    """Says what looking around left out."""
    problems: Sequence[tuple[str, str]] = [(problem.path, problem.reason) for problem in settings.store().problems]
    for path, reason in problems[:shown]:
        warn(settings, f"left out {path}: {reason}")
    if len(problems) > shown:
        warn(settings, f"left out {len(problems) - shown} more")


def warn_of_unfinished(settings: Settings, shown: int = 3) -> None:
    """Says which operations a crash ended, and what to type. Another process may be at one of them right now."""
    store = settings.opened
    if store is None or settings.is_quiet:
        return
    try:
        unfinished = store.operation_log.unfinished()
    except ClewError:
        return  # What cannot be looked at was the business of the command itself.
    for each in unfinished[:shown]:
        ways = [f"finish it: clew operations{settings.words} --finish {each.id}"]
        ways += [f"undo it: clew undo{settings.words} {each.id}"] if each.can_be_undone else []
        warn(settings, f"the {each.kind} {each.id} is not finished: it is {each.state.value}; {', or '.join(ways)}")
    if len(unfinished) > shown:
        warn(settings, f"{len(unfinished) - shown} more are not finished: see clew operations")
