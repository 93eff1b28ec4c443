"""`clew pin`: marks a session that is to be seen at once."""

from __future__ import annotations

import click

from clew.cli.group import Command
from clew.cli.marking import mark, off_option, session_argument


@click.command("pin", cls=Command, short_help="Pin a session.")
@session_argument
@off_option
@click.pass_context
def command(context: click.Context, name: str, is_off: bool) -> None:
    """Pin a session: `clew ls` marks it, and `clew ls --pinned` shows only those.

    The order of a list stays what it is, newest first.
    """
    mark(context, name, lambda session: session.set(pinned=not is_off))
