"""`clew title`: what a session is called."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clew.cli.group import Command
from clew.cli.marking import mark, off_option, session_argument, text_or_off


@click.command("title", cls=Command, short_help="Give a session a title.")
@session_argument
@click.argument("words", metavar="TEXT", nargs=-1)
@off_option
@click.pass_context
def command(context: click.Context, name: str, words: Sequence[str], is_off: bool) -> None:
    """Give a session a title, which Claude Code shows and finds too: `claude --resume "TEXT"`.

    With --off it goes by the title that a model made, or by its last prompt again.
    """
    text = text_or_off(words, "title", is_off=is_off)
    mark(context, name, lambda session: session.set(title=text))
