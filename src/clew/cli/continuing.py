"""`clew continue`: starts Claude Code on the newest session of this directory, or the one that policies choose."""

from __future__ import annotations

import os

import click

from clew.cli import output, render
from clew.cli.completion import policy_names
from clew.cli.options import Settings, settings_of
from clew.cli.starting import Wish, WithArguments, document, go_on, wishing
from clew.errors import UsageError
from clew.resume.choosing import DEFAULT, Choice

PASSED_OVER_SHOWN_MAX = 5


@click.command("continue", cls=WithArguments, short_help="Start Claude Code on the newest session.")
@click.option("--policy", metavar="P,…", default=DEFAULT, shell_complete=policy_names, help="Who is taken; see above.")
@click.pass_context
@wishing
def command(context: click.Context, *, policy: str, wish: Wish) -> None:
    """Start Claude Code on the session of this directory that was changed last, as `claude --continue` does.

    Policies pass sessions over or change the order, one after the other:

    \b
    newest           the client's own rule; it comes last where it is not named
    skip-errors      not those that end in an API error
    skip-empty       not those without a message
    skip-sidechains  not those that begin with a subagent's rows
    skip-live        not those that are running now
    skip-archived    not those that are archived
    prefer-tag:NAME  first those with this tag
    prefer-here      first those last at work in this directory; for --all
    """
    settings = settings_of(context)
    choice = chosen(settings, policy)
    if settings.is_json:
        passed_over = [{"id": each.id, "why": each.why} for each in choice.passed_over]
        output.write_json(document(choice.session, settings, wish, reason=choice.reason, passed_over=passed_over))
        return
    if not settings.is_quiet:
        for text in reasons(choice):
            click.echo(render.neutral(text), err=True)
    go_on(choice.session, settings, wish)


def chosen(settings: Settings, policy: str) -> Choice:
    """By the policies, in this directory alone; `--all` and `--project` say otherwise."""
    if settings.is_all and settings.project is not None:
        raise UsageError("--all and --project contradict each other", hint="leave one of them out")
    where = None if settings.is_all else settings.scope()
    here = where if settings.project is not None else os.path.abspath(".")
    return settings.store().continued(where, policy=policy, cwd=here)


def reasons(choice: Choice) -> list[str]:
    """What was taken and why, and what was not."""
    lines = [f"{choice.session.id}: {choice.reason}"]
    lines += [f"  not {each.id}: {each.why}" for each in choice.passed_over[:PASSED_OVER_SHOWN_MAX]]
    more = len(choice.passed_over) - PASSED_OVER_SHOWN_MAX
    return [*lines, f"  nor {more:,} more"] if more > 0 else lines
