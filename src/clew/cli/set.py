"""`clew set`: whose a session is, and what it belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec import UNSET

from clew.cli.group import Command
from clew.cli.marking import mark, off_option, session_argument
from clew.errors import UsageError

FIELDS = ("owner", "workspace")


@click.command("set", cls=Command, short_help="Set the owner or the workspace of a session.")
@session_argument
@click.argument("fields", metavar="FIELD=VALUE...", nargs=-1, required=True)
@off_option
@click.pass_context
def command(context: click.Context, name: str, fields: Sequence[str], is_off: bool) -> None:
    """Set the owner and the workspace of a session, as owner=ada workspace=api.

    `clew ls --owner ada` finds it. With --off the fields that are named are taken off.
    """
    said = dict(given := [_field(text, is_off=is_off) for text in fields])
    if len(said) < len(given):
        raise UsageError("a field is named twice", hint="give each field one value")
    owner, workspace = (said.get(field, UNSET) for field in FIELDS)
    mark(context, name, lambda session: session.set(owner=owner, workspace=workspace))


def _field(text: str, *, is_off: bool) -> tuple[str, str | None]:
    field, equals, value = text.partition("=")
    if field not in FIELDS:
        raise UsageError(f"{field!r:.60} is no field that can be set", hint=f"set one of {', '.join(FIELDS)}")
    if is_off == bool(equals):
        hint = f"name the field alone: {field}" if is_off else f"give it a value: {field}=VALUE"
        raise UsageError(f"{text!r:.60} is not what {'--off' if is_off else 'set'} takes", hint=hint)
    return field, None if is_off else value
