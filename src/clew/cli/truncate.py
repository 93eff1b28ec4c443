"""`clew truncate`: moves the head of a session back to a point; nothing is deleted."""

from __future__ import annotations

import shlex

import click

from clew.cli import output, render
from clew.cli.completion import session_names
from clew.cli.fork import command as fork_command
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn
from clew.cli.render import Paint, plural
from clew.errors import UsageError
from clew.session import Session
from clew.truncating import Truncated


@click.command("truncate", cls=Command, short_help="Go back to an earlier point of a session.")
@click.argument("session", metavar="SESSION", shell_complete=session_names)
@click.option(
    "--at", metavar="POINT", required=True,
    help="What stays: UUID, msg:MESSAGE_ID, time:ISO or turn:N (turn:-2 drops the last turn).",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
@click.option("--fork", is_flag=True, help="Leave this session as it is, and begin a new one that ends there.")
@click.option("--id", "new_id", metavar="UUID", help="With --fork: the id of the new session.")
@click.option("--title", metavar="TEXT", help="With --fork: a title of its own.")
@click.pass_context
def command(
    context: click.Context, session: str, at: str, dry_run: bool, fork: bool, new_id: str | None, title: str | None
) -> None:
    """Move the head of a session back to a point, which stays: Claude Code goes on from there.

    Nothing is deleted. `clew undo` brings the rest back, and so does truncating to where it ended; `clew tree` shows
    what was cut off. A client that is running keeps its own head until it is started anew. With --fork it is `clew fork
    SESSION --at POINT`, and says the same.
    """
    if fork:
        if dry_run:
            raise UsageError("a fork has no dry run", hint="leave --fork or --dry-run out")
        context.invoke(fork_command, session=session, at=at, new_id=new_id, title=title)
        return
    if new_id is not None or title is not None:
        raise UsageError("--id and --title are for a new session", hint="add --fork")
    settings = settings_of(context)
    found = settings.session(session)
    truncated = found.truncate(at, dry_run=dry_run)
    if settings.is_json:
        output.write_json(told(truncated, is_dry=dry_run))
    else:
        say(truncated, found, settings, is_dry=dry_run)
    for note in truncated.notes:
        warn(settings, note)


def told(truncated: Truncated, *, is_dry: bool) -> dict[str, object]:
    """What came of it, for programs."""
    return {
        "session_id": truncated.session_id, "head": truncated.head, "dropped": truncated.dropped,
        "operation": truncated.operation, "live": truncated.is_live, "dry_run": is_dry, "notes": truncated.notes,
        "first_dropped": truncated.first_dropped, "before": truncated.before,
    }  # fmt: skip


def say(truncated: Truncated, session: Session, settings: Settings, *, is_dry: bool) -> None:
    """The same for people."""
    paint = Paint(is_on=settings.has_color)
    name = render.neutral(truncated.session_id)
    if not truncated.is_moved:
        click.echo(f"The session {name} ends there already: nothing was changed.")
        return
    words = render.line(truncated.first_dropped or "", 80)
    what = plural(truncated.dropped, "message") + (f", from {paint(words, bold=True)} on" if words else "")
    click.echo(f"{'Would drop' if is_dry else 'Dropped'} {what}.")
    if truncated.operation is not None and not settings.is_quiet:
        click.echo(paint(f"Bring it back: {way_back(truncated, session, settings)}  (nothing was deleted)", dim=True))


def way_back(truncated: Truncated, session: Session, settings: Settings) -> str:
    """The command that brings back what was dropped. An operation is undone where it was recorded."""
    url, words = session.engine.url, settings.words
    if url == settings.store().engine.url:
        return render.neutral(f"clew undo{words} {(truncated.operation or '')[:8]}")
    if session.project:
        return render.neutral(f"clew undo --store {shlex.quote(url)} {(truncated.operation or '')[:8]}")
    return render.neutral(f"clew truncate {shlex.quote(session.where)} --at {truncated.before}")
