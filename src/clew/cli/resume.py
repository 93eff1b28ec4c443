"""`clew resume`: starts Claude Code on the session that is meant, in its own directory."""

from __future__ import annotations

import click

from clew.cli import output
from clew.cli.completion import session_names
from clew.cli.options import Settings, settings_of
from clew.cli.starting import Wish, WithArguments, document, go_on, is_terminal, why_unread, wishing
from clew.errors import NotFound, UsageError
from clew.resume.answers import Resolved
from clew.resume.look import Look
from clew.session import Session

NOTHING = "no session was named"


@click.command("resume", cls=WithArguments, short_help="Start Claude Code on a session.")
@click.argument("what", metavar="[WHAT]", required=False, shell_complete=session_names)
@click.pass_context
@wishing
def command(context: click.Context, *, what: str | None, wish: Wish) -> int:
    """Start Claude Code on a session, in the directory of that session.

    Without WHAT, or where several sessions are meant, a list comes up to choose from. What stands behind `--` is passed
    to Claude Code, as in `clew resume 3f2a -- -p hello`.
    """
    settings = settings_of(context)
    resolved = _resolved(what, settings)
    if resolved.session is None and not is_terminal(settings):
        return _unclear(resolved, settings, wish)
    session = resolved.session or _picked(resolved, settings)
    if session is None:
        return 0
    if settings.is_json:
        output.write_json(document(session, settings, wish))
    else:
        go_on(session, settings, wish)
    return 0


def _resolved(what: str | None, settings: Settings) -> Resolved:
    if what is not None:
        return settings.store().resolve(what, scope=settings.scope)
    look = Look(settings.store(), settings.scope)
    near = () if is_terminal(settings) else look.candidates(look.logs())
    return Resolved(
        "picker", query="", candidates=near, why=NOTHING, hint="name one: clew resume ID; or `clew continue`"
    )


def _picked(resolved: Resolved, settings: Settings) -> Session | None:
    from clew.cli.picker import pick

    if (refused := why_unread(settings.store().engine)) is not None:
        raise refused  # Before a person looks for one in vain.
    return pick(settings, resolved.query or "")


def _unclear(resolved: Resolved, settings: Settings, wish: Wish) -> int:
    """Where nobody can be asked, the candidates are named."""
    if not settings.is_json:
        if not resolved.query:
            raise UsageError(NOTHING, hint=resolved.hint, candidates=[each.name for each in resolved.candidates])
        settings.only(resolved)
    told = document(None, settings, wish, kind=resolved.kind, query=resolved.query, url=resolved.url)
    told["candidates"] = [each.name for each in resolved.candidates]
    if resolved.why and resolved.query:
        told |= {"error": resolved.why, "hint": resolved.hint}
    output.write_json(told)
    return NotFound.exit_code if resolved.query else 0
