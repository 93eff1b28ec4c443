"""`clew completion`: what a shell needs to complete commands, options and ids, and the ids themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click
from click.shell_completion import CompletionItem

from clew.cli import output
from clew.cli.group import COMPLETING, Clew, Command
from clew.cli.options import Settings, settings_of
from clew.cli.render import line, neutral
from clew.cli.shells import KINDS
from clew.errors import ClewError
from clew.plugins import entry_points_of
from clew.resume.look import TAGS, Look
from clew.resume.policies.table import ENTRY_POINTS, POLICIES
from clew.resume.resolvers.keyword import KEYWORDS

SHELLS = tuple(KINDS)
SESSIONS_MAX = 50
"""So many ids are offered, the newest; a longer list helps nobody."""
TITLE_CHARACTERS = 60
"""So much of a title stands beside an id."""


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
    source = KINDS[shell](Clew(), {}, "clew", COMPLETING).source()
    if settings_of(context).is_json:
        output.write_json({"shell": shell, "script": source})
    else:
        click.echo(source)


def session_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What names a session and begins so: ids of the newest, words, titles, `title:…` and `tag:…`.

    Each id comes with its title, where the shell shows such. A shell gets no errors, only fewer names.
    """
    settings = context.find_object(Settings) or Settings()
    try:
        return [*_names(Look(settings.store(), settings.scope), incomplete)][:SESSIONS_MAX]
    except ClewError:
        return []


def _names(look: Look, incomplete: str) -> Iterator[CompletionItem]:
    begun = incomplete.lower()
    if incomplete.startswith("title:"):
        titles = dict.fromkeys(title.strip() for _, title in look.titles() if title)
        yield from _offered((f"title:{title}" for title in titles), begun)
    elif incomplete.startswith("tag:"):
        tags = dict.fromkeys(digest.tag for _, digest in look.digests(TAGS) if digest.tag)
        yield from _offered((f"tag:{tag}" for tag in tags), begun)
    else:
        yield from _offered(sorted(KEYWORDS), begun) if begun else ()
        yield from _ids(look, begun)
        if begun:
            yield from _offered((title.strip() for _, title in look.titles() if title), begun)


def _ids(look: Look, begun: str) -> Iterator[CompletionItem]:
    """Of every project, as ids are looked up."""
    found = [stat for stat in look.store.logs() if stat.key.session.lower().startswith(begun)][:SESSIONS_MAX]
    titles = {stat.key: title for stat, title in look.titles(found)}
    for stat in found:
        yield CompletionItem(stat.key.session, help=line(titles.get(stat.key) or "", TITLE_CHARACTERS) or None)


def _offered(values: Iterable[str], begun: str) -> Iterator[CompletionItem]:
    """Those that begin so and are harmless on a command line: what a terminal could obey is not offered."""
    for value in values:
        if value.lower().startswith(begun) and "\n" not in value and "\t" not in value and neutral(value) == value:
            yield CompletionItem(value)


def policy_names(_context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The next policy behind the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    names = dict.fromkeys([*POLICIES, *entry_points_of(ENTRY_POINTS)])
    return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(begun)]


def operation_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of operations that begin so, newest first."""
    settings = context.find_object(Settings) or Settings()
    try:
        found = settings.store().operations()
    except ClewError:
        return []
    return [CompletionItem(each.id, help=each.kind) for each in found if each.id.startswith(incomplete)][:SESSIONS_MAX]
