"""`clew operations`: what was done to sessions beyond appending, and finishing what a crash ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from clew.cli import output, render
from clew.cli.completion import operation_names
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn_of_problems
from clew.cli.render import Column, Paint
from clew.operations.operation import Operation

SHOWN = 50
"""So many are shown for people, the newest; `--json` has all."""
COLUMNS = (
    Column("ID", "cyan", most=36),
    Column("AGE", is_right=True),
    Column("KIND"),
    Column("STATE"),
    Column("WHAT", most=200, least=16),
    Column("SESSIONS", is_right=True, may_go=True),
    Column("FILES", is_right=True, may_go=True),
    Column("SIZE", is_right=True),
)


@click.command("operations", cls=Command, short_help="List what was deleted, truncated and undone, newest first.")
@click.option(
    "--finish", metavar="OPERATION", help="Go on with one that a crash ended.", shell_complete=operation_names
)
@click.pass_context
def command(context: click.Context, finish: str | None) -> None:
    """List every operation that changed sessions beyond appending, newest first, and how far it is.

    `begun`, `undoing` and `freeing` are unfinished: a crash came in between, or another process is at it now. Finish
    one with --finish, or undo it with `clew undo`. What is `done` can be undone until `clew gc` frees it.
    """
    settings = settings_of(context)
    store = settings.store()
    if finish is not None:
        with render.waiting("finishing"):
            finished = store.operation_log.finish(finish)
        if settings.is_json:
            output.write_json(finished)
        else:
            click.echo(f"The operation {render.neutral(finished.id)} is {finished.state.value}.")
        return
    found = store.operations()
    if settings.is_json:
        output.write_chunks(output.array(found))
    elif not found:
        click.echo("Nothing was changed here by clew beyond appending.")
    else:
        page(settings, found)
    warn_of_problems(settings)


def page(settings: Settings, found: Sequence[Operation]) -> None:
    """A table for people."""
    store, paint = settings.store(), Paint(is_on=settings.has_color)
    log, now = store.operation_log, store.now()
    ids = render.short_ids(each.id for each in found)
    rows = [row(each, ids[each.id], log.title(each), now) for each in found[:SHOWN]]
    for text in render.table(COLUMNS, rows, paint, render.width()):
        click.echo(text)
    if settings.is_quiet:
        return
    if len(found) > SHOWN:
        click.echo(paint(f"… {len(found) - SHOWN:,} more: clew operations --json", dim=True))
    if any(each.can_be_undone for each in found):
        words = render.neutral(settings.words)
        click.echo(paint(f"Undo one: clew undo{words} ID    Empty the trash: clew gc{words}", dim=True))


def row(operation: Operation, short_id: str, title: str, now: datetime) -> list[str]:
    """The cells of one operation."""
    return [
        render.line(short_id, 36),
        render.age(operation.changed_at, now),
        render.line(operation.kind, 20),
        operation.state.value + ("!" if operation.is_unfinished else ""),
        render.line(title, 200),
        f"{operation.sessions:,}",
        f"{operation.files:,}",
        render.size(operation.size_bytes),
    ]
