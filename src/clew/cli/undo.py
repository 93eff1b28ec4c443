"""`clew undo`: brings back what an operation changed."""

from __future__ import annotations

import click

from clew.cli import output, render
from clew.cli.completion import operation_names
from clew.cli.group import Command
from clew.cli.options import settings_of
from clew.cli.render import Paint, plural


@click.command("undo", cls=Command, short_help="Undo the newest operation, or the one named.")
@click.argument("operation", metavar="[OPERATION]", default=None, shell_complete=operation_names)
@click.pass_context
def command(context: click.Context, operation: str | None) -> None:
    """Undo an operation: what it took away is back where it was, byte for byte and with its times, and a session that
    was truncated goes on where it ended before.

    OPERATION is an id of `clew operations`, or the beginning of one; without it the newest that can be undone is
    meant. Where something stands in the way now, nothing is changed.
    """
    settings = settings_of(context)
    store = settings.store()
    with render.waiting("bringing back"):
        # An empty name, as of a variable that is not set, is not the same as none.
        undone = store.undo() if operation is None else store.undo(store.operation_log.find(operation).id)
    if settings.is_json:
        output.write_json(undone)
        return
    paint = Paint(is_on=settings.has_color)
    title = render.line(store.operation_log.title(undone), 100)
    click.echo(f"Undid {undone.kind} {paint(title, bold=True)}: {plural(undone.sessions, 'session')} brought back.")
