"""The command `clew` itself: help, options before or after a command, and commands that load when they are called."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from importlib import import_module

import click

from clew import __version__
from clew.cli.options import GlobalOption, Settings, global_options, settings_of, warn_of_unfinished
from clew.cli.table import COMING, COMMANDS, HELP
from clew.errors import UsageError

INTRO = """clew finds, shows, resumes, forks and copies the sessions of Claude Code: every conversation that it had with
you, read from the files that it keeps. What it deletes it can bring back."""

SESSION = """SESSION is an id, the beginning of one, the path of a .jsonl, `latest`, a title, `title:…`, `tag:…`,
`label:…`, `owner:…`, `workspace:…`, `branch:…`, `pr:…` or `project:DIR#ID`. Ids and paths are looked up everywhere, all
else in this directory and its worktrees, or with --all."""
NAMES_SESSIONS = frozenset({"SESSION", "SESSION...", "[WHAT]"})
"""Arguments that do."""

EXAMPLES = (
    ("clew", "the sessions of this directory"),
    ("clew ls --all", "the sessions of every directory"),
    ("clew show latest", "the newest conversation"),
    ("clew show 3f2a", "the one whose id begins so"),
    ("clew show 3f2a --at turn:3", "what it was after the third prompt"),
    ("clew tree 3f2a", "its branches: rewound and retried prompts"),
    ("clew resume 3f2a", "goes on with it in Claude Code"),
    ("clew continue", "goes on with the newest of this directory"),
    ("clew fork 3f2a --at turn:3", "a new session that begins like it"),
    ("clew delete 3f2a", "and clew undo, which brings it back"),
    ("clew copy claude: DIR", "a backup of everything, or its update"),
    ("clew ls --json", "for programs"),
)


SAY_IT_THEMSELVES = frozenset({"operations", "completion"})
"""Commands that tell of unfinished operations anyway, or that no person reads."""


COMPLETING = "_CLEW_COMPLETE"
"""Set by the script of a shell that asks what may come next."""


class ReaderGone(Exception):
    """Nobody reads the output any more."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Lets a closed pipe out past click, which would end the process with 1; for us it is no failure."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.params.extend(global_options())

    def invoke(self, ctx: click.Context) -> object:
        result = super().invoke(ctx)
        if ctx.info_name not in SAY_IT_THEMSELVES:
            warn_of_unfinished(settings_of(ctx))
        return result

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if any(each.metavar in NAMES_SESSIONS for each in self.params):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(SESSION.replace("SESSION", "WHAT") if ctx.info_name == "resume" else SESSION)
        _sections(self, ctx, formatter)


class Clew(click.Group):
    """Knows its commands by name and imports one only to run it."""

    def __init__(self) -> None:
        super().__init__(
            "clew",
            callback=_without_command,
            invoke_without_command=True,
            params=[*global_options(), _version()],
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - This is how click calls it.
        return list(HELP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - The same.
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise unknown_command(args[0])
        return super().resolve_command(ctx, args)

    def make_context(self, *args: object, **extra: object) -> click.Context:
        with reading():
            return super().make_context(*args, **extra)  # type: ignore[arg-type]

    def invoke(self, ctx: click.Context) -> object:
        with reading():
            return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("clew", "[OPTIONS] COMMAND …")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(INTRO)
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES)
        with formatter.section("Commands"):
            formatter.write_dl([*HELP.items()])
        _sections(self, ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("`clew COMMAND --help` says more about one of them.")


def unknown_command(name: str) -> UsageError:
    """What to say about a command that is not there: that it is coming, or which one may be meant."""
    if name in COMING:
        return UsageError(f"`clew {name}` comes with a later version", hint="`clew --help` shows what there is")
    from difflib import get_close_matches

    close = get_close_matches(name, HELP, n=3)
    hint = f"did you mean `clew {close[0]}`?" if close else "`clew --help` shows the commands, `clew show ID` a session"
    return UsageError(f"there is no command {name[:80]!r}", hint=hint, candidates=close)


def _sections(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The options of the command, then those that all commands have."""
    own: list[tuple[str, str]] = []
    everywhere: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        # Newer versions of click list arguments, too, with nothing behind them; the usage names them.
        if record is not None and not isinstance(param, click.Argument):
            (everywhere if isinstance(param, GlobalOption) else own).append(record)
    for title, records in (("Options", own), ("Options of every command", everywhere)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _version() -> click.Option:
    def show(context: click.Context, _: click.Parameter, value: object) -> None:
        if value and not context.resilient_parsing:
            click.echo(f"clew {__version__}")
            context.exit()

    return click.Option(
        ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show, help="Print the version."
    )


def _without_command() -> None:
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        from clew.cli.ls import overview

        settings = context.ensure_object(Settings)
        overview(settings)
        warn_of_unfinished(settings)


def run(arguments: Sequence[str]) -> int:
    """Runs a command line. Returns the exit code; errors come out as exceptions."""
    if os.environ.get(COMPLETING):
        # click calls these names for a shell, and nobody else needs them.
        from clew.cli.shells import register

        register()
    result = Clew().main(list(arguments), prog_name="clew", standalone_mode=False, obj=Settings())
    return result if isinstance(result, int) else 0
