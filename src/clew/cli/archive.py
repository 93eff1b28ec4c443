"""`clew archive`: puts a session away without deleting it."""

from __future__ import annotations

import click

from clew.cli.group import Command
from clew.cli.marking import mark, off_option, session_argument


@click.command("archive", cls=Command, short_help="Archive a session.")
@session_argument
@off_option
@click.pass_context
def command(context: click.Context, name: str, is_off: bool) -> None:
    """Archive a session: `clew ls --no-archived` leaves it out, and programs on the Agent SDK see that it is archived.

    Nothing is deleted. Claude Code takes a session out of the archive when you type a prompt in it again.
    """
    mark(context, name, lambda session: session.set(archived=not is_off))
