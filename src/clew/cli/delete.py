"""`clew delete`: takes sessions away, so that `clew undo` can bring them back."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clew.cli import output, render
from clew.cli.completion import session_names
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of
from clew.cli.render import Paint, plural
from clew.operations.log import TRASH_DAYS
from clew.operations.operation import Operation


@click.command("delete", cls=Command, short_help="Delete sessions; `clew undo` brings them back.")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True, shell_complete=session_names)
@click.option("--force", is_flag=True, help="Also a session that a running Claude Code holds.")
@click.option("--materialise", is_flag=True, help="Give attached forks their own copy of what they inherit first.")
@click.pass_context
def command(context: click.Context, sessions: Sequence[str], force: bool, materialise: bool) -> None:
    """Delete sessions with all that belongs to them: subagents, tool results, file backups, titles.

    They are moved to the trash of clew as one operation. `clew undo` brings them back, byte for byte; only `clew gc`
    empties the trash. A session that a running client holds is refused, since the client would go on writing it. So
    is one that attached forks go on from, unless they get their own copy of its rows.
    """
    settings = settings_of(context)
    store = settings.store()
    found = [settings.session(name) for name in render.with_progress(sessions, len(sessions), "finding sessions")]
    with render.waiting(f"deleting {plural(len(found), 'session')}"):
        operation = store.delete(*found, even_live=force, materialises=materialise)
    if settings.is_json:
        output.write_json(told(operation))
    else:
        say(operation, store.operation_log.title(operation), settings)


def told(operation: Operation) -> dict[str, object]:
    """What came of it, for programs."""
    return {
        "operation": operation.id, "sessions": operation.sessions, "files": operation.files,
        "bytes": operation.size_bytes,
    }  # fmt: skip


def say(operation: Operation, title: str, settings: Settings) -> None:
    """The same for people."""
    paint = Paint(is_on=settings.has_color)
    what = f"{plural(operation.sessions, 'session')}, {plural(operation.files, 'file')}, "
    click.echo(f"Deleted {paint(render.line(title, 100), bold=True)}: {what}{render.size(operation.size_bytes)}.")
    if not settings.is_quiet:
        kept = f"kept for {TRASH_DAYS} days at least, and until clew gc"
        undo = render.neutral(f"clew undo{settings.words} {operation.id[:8]}")
        click.echo(paint(f"Bring it back: {undo}  ({kept})", dim=True))
