"""`clew label`: words of your own on a session, as many as you like."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clew.cli.group import Command
from clew.cli.marking import mark, off_option, session_argument
from clew.errors import UsageError


@click.command("label", cls=Command, short_help="Label a session.")
@session_argument
@click.argument("words", metavar="NAME...", nargs=-1)
@off_option
@click.pass_context
def command(context: click.Context, name: str, words: Sequence[str], is_off: bool) -> None:
    """Add labels to a session; those that it has stay. `clew ls --label NAME` finds it.

    With --off these labels are taken off, and without a NAME all of them.
    """
    if not words and not is_off:
        raise UsageError("there is no label to add", hint="give one or more words, or --off to take all off")
    if not words:
        mark(context, name, lambda session: session.set(labels=None))
    else:
        mark(context, name, lambda session: session.label(*words, off=is_off))
