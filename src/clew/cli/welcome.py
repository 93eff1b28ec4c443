"""`clew welcome`: what `make run` shows - this person's sessions and the newest conversation, or the sample's."""

from __future__ import annotations

import click

from clew import defaults
from clew.cli import ls, show
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn_of_problems
from clew.cli.render import Paint, home_as_tilde, neutral
from clew.errors import NotFound, UsageError

SESSIONS_SHOWN = 10


@click.command("welcome", cls=Command, hidden=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show the sessions there are, newest first, and the newest conversation; the sample's where there are none."""
    settings = settings_of(context)
    if settings.is_json:
        raise UsageError("`clew welcome` is for people only", hint="for programs: clew ls --json")
    settings.is_all = settings.project is None
    if not has_sessions(settings):
        place = neutral(home_as_tilde(settings.store().place))
        click.echo(f"There are no sessions in {place} yet. This is the sample that comes with clew:\n")
        sample = Settings()
        sample.config_dir, sample.is_all = str(defaults.sample_dir()), True
        sample.is_plain, sample.is_quiet = settings.is_plain, settings.is_quiet
        settings = sample
    present(settings)


def has_sessions(settings: Settings) -> bool:
    try:
        return bool(settings.store().logs(settings.scope(), limit=1))
    except NotFound:
        return False


def present(settings: Settings) -> None:
    """The list, and the newest conversation below it."""
    store, paint = settings.store(), Paint(is_on=settings.has_color)
    ls.page(settings, store.logs(settings.scope()), SESSIONS_SHOWN, "newest")
    last = store.last(project=settings.scope())
    if last is None:
        return
    click.echo(f"\n{paint('The newest conversation', bold=True)}\n")
    warn_of_problems(settings)
    show.print_all(show.conversation_text(last.session, settings, paint))
    click.echo(f"\n{paint('Go on with: clew --help', dim=True)}")
