"""`clew gc`: frees for good what was deleted long ago. Nothing else does."""

from __future__ import annotations

import sys

import click

from clew.cli import output, render
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn
from clew.cli.render import plural
from clew.errors import UsageError
from clew.operations.log import TRASH_DAYS, Freed


@click.command("gc", cls=Command, short_help="Free for good what was deleted long ago.")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    default=TRASH_DAYS,
    help=f"What was deleted so many days ago.  [default: {TRASH_DAYS}]",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say what would be freed.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.pass_context
def command(context: click.Context, days: float, is_dry: bool, is_sure: bool) -> int:
    """Empty the trash of what was deleted more than 30 days ago. This cannot be undone.

    In a terminal it asks first; elsewhere it wants --yes.
    """
    settings = settings_of(context)
    log = settings.store().operation_log
    freed = log.free(days=days, is_dry=True)
    if not is_dry and freed.operations:
        if not is_sure and not agreed(freed, settings):
            click.echo("Nothing was freed.")
            return 1
        with render.waiting("freeing"):
            freed = log.free(days=days)
    if settings.is_json:
        output.write_json({"freed_bytes": freed.freed_bytes, "kept_bytes": freed.kept_bytes})
    else:
        say(freed, days, is_dry=is_dry)
    for problem in (*log.problems, *freed.failed):
        warn(settings, f"kept the operation {problem.path}: {problem.reason}")
    return 1 if freed.failed else 0


def agreed(freed: Freed, settings: Settings) -> bool:
    """Asks the person. Raises `UsageError` where there is nobody to ask."""
    what = f"{render.size(freed.freed_bytes)} of {plural(len(freed.operations), 'operation')}"
    if settings.is_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            f"{what} would be gone for good, and there is nobody to ask",
            hint="look first: clew gc --dry-run; then say so: clew gc --yes",
        )
    return click.confirm(f"{what} will be gone for good. Go on?", default=False)


def say(freed: Freed, days: float, *, is_dry: bool) -> None:
    """What came of it, for people."""
    kept = f"{render.size(freed.kept_bytes)} are kept" if freed.kept_bytes else "nothing else is in the trash"
    if not freed.operations:
        old = f"nothing was deleted more than {days:g} days ago" if days else "nothing is in the trash"
        click.echo(f"Nothing to free: {old}." + (f" {kept[0].upper()}{kept[1:]}." if freed.kept_bytes else ""))
        return
    did = "Would free" if is_dry else "Freed"
    click.echo(f"{did} {render.size(freed.freed_bytes)} of {plural(len(freed.operations), 'operation')}; {kept}.")
