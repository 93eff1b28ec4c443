"""`clew completion`: what a shell needs to complete commands, options and ids, and the ids themselves."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from clew.cli import output
from clew.cli.group import Clew, Command
from clew.cli.options import Settings, settings_of
from clew.errors import ClewError
from clew.resume.resolvers.keyword import KEYWORDS

SHELLS = ("bash", "zsh", "fish")
SESSIONS_MAX = 50
"""So many ids are offered, the newest; a longer list helps nobody."""
VARIABLE = "_CLEW_COMPLETE"


@click.command("completion", cls=Command, short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and session ids.

    \b
    bash   eval "$(clew completion bash)"   in ~/.bashrc
    zsh    eval "$(clew completion zsh)"    in ~/.zshrc
    fish   clew completion fish | source    in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(Clew(), {}, "clew", VARIABLE).source()
    if settings_of(context).is_json:
        output.write_json({"shell": shell, "script": source})
    else:
        click.echo(source)


def session_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of the newest sessions that begin so, without reading any. A shell gets no errors, only fewer names."""
    settings = context.find_object(Settings) or Settings()
    try:
        logs = settings.store().logs(limit=None if incomplete else SESSIONS_MAX)
    except ClewError:
        return []
    ids = dict.fromkeys(stat.key.session for stat in logs)
    words = [word for word in sorted(KEYWORDS) if incomplete and word.startswith(incomplete)]
    found = [each for each in ids if each.lower().startswith(incomplete.lower())]
    return [CompletionItem(each) for each in [*words, *found[:SESSIONS_MAX]]]


def operation_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of operations that begin so, newest first."""
    settings = context.find_object(Settings) or Settings()
    try:
        found = settings.store().operations()
    except ClewError:
        return []
    return [CompletionItem(each.id, help=each.kind) for each in found if each.id.startswith(incomplete)][:SESSIONS_MAX]
