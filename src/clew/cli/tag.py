"""`clew tag`: the one tag of a session."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clew.cli.group import Command
from clew.cli.marking import mark, off_option, session_argument, text_or_off


@click.command("tag", cls=Command, short_help="Tag a session.")
@session_argument
@click.argument("words", metavar="TEXT", nargs=-1)
@off_option
@click.pass_context
def command(context: click.Context, name: str, words: Sequence[str], is_off: bool) -> None:
    """Give a session a tag. It has one: a new one takes the place of the old. `clew ls --tag TEXT` finds it, and so do
    programs on the Agent SDK. For several words of your own there is `clew label`.
    """
    text = text_or_off(words, "tag", is_off=is_off)
    mark(context, name, lambda session: session.set(tag=text))
