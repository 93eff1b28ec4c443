"""`clew resume`: starts Claude Code on the session that is meant, in its own directory."""

from __future__ import annotations

import click

from clew.cli import output
from clew.cli.completion import session_names
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of
from clew.cli.starting import Wish, checked, document, is_terminal, rehearse, start, why_unread
from clew.errors import NotFound, UsageError
from clew.resume.answers import Resolved
from clew.resume.look import Look
from clew.session import Session

NOTHING = "no session was named"


class WithArguments(Command):
    """What stands behind `--` is for the client: it is no argument of ours, whether or not a session was named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["for the client"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("resume", cls=WithArguments, short_help="Start Claude Code on a session.")
@click.argument("what", metavar="[WHAT]", required=False, shell_complete=session_names)
@click.option("--at", metavar="POINT", help="Go on from there: UUID, msg:MESSAGE_ID, time:ISO or turn:N.")
@click.option("--fork", "is_fork", is_flag=True, help="In a new session, which begins with this one's conversation.")
@click.option("--id", "new_id", metavar="UUID", help="The id of the new session.")
@click.option("--in", "directory", metavar="DIR", help="Start it there, not in the session's own directory.")
@click.option("--client", metavar="PATH", help="Claude Code's program.  [default: $CLEW_CLAUDE, claude]")
@click.option("--dry-run", is_flag=True, help="Only print what would be typed.")
@click.pass_context
def command(
    context: click.Context,
    what: str | None,
    at: str | None,
    is_fork: bool,
    new_id: str | None,
    directory: str | None,
    client: str | None,
    dry_run: bool,
) -> int:
    """Start Claude Code on a session, in the directory of that session.

    Without WHAT, or where several sessions are meant, a list comes up to choose from. What stands behind `--` is passed
    to Claude Code, as in `clew resume 3f2a -- -p hello`.
    """
    settings = settings_of(context)
    arguments = context.meta["for the client"]
    wish = checked(Wish(at, is_fork, new_id, directory, client, arguments))
    resolved = _resolved(what, settings)
    if resolved.session is None and not is_terminal(settings):
        return _unclear(resolved, settings, wish)
    session = resolved.session or _picked(resolved, settings)
    if session is None:
        return 0
    if settings.is_json:
        output.write_json(document(session, settings, wish))
    elif dry_run:
        rehearse(session, settings, wish)
    else:
        start(session, settings, wish)
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
