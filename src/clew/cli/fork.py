"""`clew fork`: a new session that begins with the conversation of another."""

from __future__ import annotations

import shlex

import click

from clew.cli import output, render
from clew.cli.completion import session_names
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn
from clew.cli.render import Paint, plural
from clew.forks.kind import Forked
from clew.session import Session

MALFORMED_SHOWN = 10
"""So many lines that were left out are named for people; `--json` names all."""


@click.command("fork", cls=Command, short_help="Begin a new session with the conversation of another.")
@click.argument("session", metavar="SESSION", shell_complete=session_names)
@click.option(
    "--at", metavar="POINT",
    help="Where the new one goes on: UUID, msg:MESSAGE_ID, time:ISO or turn:N.  [default: the end]",
)  # fmt: skip
@click.option("--title", metavar="TEXT", help="A title of its own.  [default: that of the session]")
@click.option("--id", "new_id", metavar="UUID", help="The id of the new session.")
@click.option("--new-ids", is_flag=True, help="Give every row a new id, with a note which row it was.")
@click.option("--rewrite-paths", is_flag=True, help="Let texts name the new session's copies of tool results.")
@click.option("--kind", metavar="KIND", help="copy, attached or detached; attached and detached not on Claude's files.")
@click.pass_context
def command(
    context: click.Context,
    session: str,
    at: str | None,
    title: str | None,
    new_id: str | None,
    new_ids: bool,
    rewrite_paths: bool,
    kind: str | None,
) -> None:
    """Begin a new session with the conversation of another, up to its end or to a point, which is included.

    The other session is not changed. The new one has the rows as Claude Code's own forks have them, the states of
    files for its prompts, and copies of subagents, tool results and sidecars.
    """
    settings = settings_of(context)
    found = settings.session(session)
    with render.waiting(f"forking {render.neutral(found.id)}"):
        fork = found.fork(at, kind=kind, new_ids=new_ids, id=new_id, title=title, rewrite_paths=rewrite_paths)
    forked = fork.forked
    assert forked is not None
    if settings.is_json:
        output.write_json(told(fork, forked))
    else:
        say(fork, forked, settings)
    for note in forked.notes:
        warn(settings, note)
    if forked.malformed:
        lines = ", ".join(map(str, forked.malformed[:MALFORMED_SHOWN]))
        more = len(forked.malformed) - MALFORMED_SHOWN
        shown = f"{lines} and {more} more" if more > 0 else lines
        warn(settings, f"left out, since they are no records: line{'s'[: len(forked.malformed) > 1]} {shown}")


def told(fork: Session, forked: Forked) -> dict[str, object]:
    """What came of it, for programs."""
    return {
        "session_id": fork.id, "path": fork.where, "records": forked.records, "parent_id": forked.parent.session,
        "kind": forked.kind, "at": forked.at, "agents": forked.agents, "blobs": forked.blobs,
        "left_out": forked.left_out, "malformed": forked.malformed, "live": forked.is_live, "notes": forked.notes,
    }  # fmt: skip


def say(fork: Session, forked: Forked, settings: Settings) -> None:
    """The same for people."""
    paint = Paint(is_on=settings.has_color)
    click.echo(f"Forked {paint(render.neutral(fork.id), bold=True)}: {plural(forked.records, 'record')}.")
    if not settings.is_quiet:
        click.echo(paint(f"It is {render.neutral(fork.where)}", dim=True))
        # A session that was named by its path, elsewhere, is found by its path alone.
        name = fork.id if fork.engine.url == settings.store().engine.url else shlex.quote(fork.where)
        # Where the client cannot go on, a program of the person's own does.
        way = "Go on there: clew resume" if fork.engine.capabilities.is_clients else "Read it: clew show"
        click.echo(paint(f"{way}{settings.words} {render.neutral(name)}", dim=True))
