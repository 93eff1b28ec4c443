"""`clew copy`: the sessions of one store to another, byte for byte."""

from __future__ import annotations

import os

import click

from clew import defaults
from clew.cli import output, render
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn
from clew.cli.render import plural
from clew.copying import Copied
from clew.errors import NotFound, UsageError
from clew.store import Store

LEFT_OUT_SHOWN = 20
"""So much of what was left out is listed for people; `--json` lists all."""


@click.command("copy", cls=Command, short_help="Copy sessions from one store to another.")
@click.argument("source_url", metavar="SRC_URL")
@click.argument("target_url", metavar="DST_URL")
@click.option("--verify", "is_verified", is_flag=True, help="Read back what was written, and compare.")
@click.pass_context
def command(context: click.Context, source_url: str, target_url: str, is_verified: bool) -> int:
    """Copy every session with all that belongs to it, byte for byte; --project copies those of one project.

    SRC_URL and DST_URL are stores: claude:DIR, or the path of a config directory. What is there already is not copied
    again, and logs that grew are gone on with, so the same command makes a backup and brings it up to date. A session
    that both stores changed is a conflict: it is listed and nothing of it is overwritten. A copy that was broken off
    goes on when it is called again. Ends with 1 when anything was left out.
    """
    settings = settings_of(context)
    if settings.config_dir is not None or settings.store_url is not None:
        raise UsageError("copy is told both stores by their URLs", hint="clew copy claude:DIR claude:OTHER")
    source, target = defaults.open(source_url), defaults.open(target_url)
    scope = scope_of(settings, source)
    with render.progress_of_bytes("copying") as advance:
        copied = source.copy_to(
            target,
            project=scope,
            is_verified=is_verified,
            on_progress=lambda at: advance(at.size_bytes, at.size_bytes_total),
        )
    if settings.is_json:
        output.write_json(told(copied))
    else:
        say(copied)
    for each in copied.left_out[:LEFT_OUT_SHOWN]:
        warn(settings, f"{'conflict' if each.is_conflict else 'left out'}: {each.where}: {each.reason}")
    if len(copied.left_out) > LEFT_OUT_SHOWN:
        warn(settings, f"and {len(copied.left_out) - LEFT_OUT_SHOWN} more: --json lists them")
    return 1 if copied.left_out else 0


def scope_of(settings: Settings, source: Store) -> str | None:
    """The project that was named, as a key or a directory; None for all."""
    named = settings.project
    if named is None:
        return None
    if settings.is_all:
        raise UsageError("--all and --project contradict each other", hint="leave one of them out")
    scope = named if named in source.engine.projects() else os.path.abspath(named)
    if not source.logs(scope, limit=1):
        raise NotFound(f"there is no session of {named!r} in {source.place}", hint="see every project: clew ls --all")
    return scope


def told(copied: Copied) -> dict[str, object]:
    """What came of it, for programs."""
    return {
        "sessions": copied.sessions, "records": copied.records, "blobs": copied.blobs, "skipped": copied.skipped,
        "conflicts": copied.conflicts, "left_out": copied.left_out,
    }  # fmt: skip


def say(copied: Copied) -> None:
    """The same for people."""
    if not copied.sessions and not copied.left_out:
        click.echo(f"Nothing is new: {plural(copied.skipped, 'session')} had everything already.")
        return
    what = f"{plural(copied.records, 'record')}, {plural(copied.blobs, 'file')}, {render.size(copied.size_bytes)}"
    there = f" {plural(copied.skipped, 'session')} had everything already." if copied.skipped else ""
    wrong = f" {plural(copied.conflicts, 'conflict')}." if copied.conflicts else ""
    click.echo(f"Copied {plural(copied.sessions, 'session')}: {what}.{there}{wrong}")
