"""What the commands share that set names and marks: the way to the session, and how the change is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from clew.cli import output, render
from clew.cli.completion import session_names
from clew.cli.options import settings_of, warn
from clew.cli.render import Paint
from clew.errors import UsageError
from clew.marks import Marked
from clew.session import Session
from clew.session_info import SessionInfo

session_argument = click.argument("name", metavar="SESSION", shell_complete=session_names)
off_option = click.option("--off", "is_off", is_flag=True, help="Take it off instead.")

SAYS: dict[str, Callable[[SessionInfo], str]] = {
    "title": lambda info: "titled" if info.agent_name else "title taken off",
    "tag": lambda info: f"tag {info.tag}" if info.tag else "tag taken off",
    "pinned": lambda info: "pinned" if info.pinned else "no longer pinned",
    "archived": lambda info: "archived" if info.archived else "no longer archived",
    "owner": lambda info: f"owner {info.owner}" if info.owner else "owner taken off",
    "workspace": lambda info: f"workspace {info.workspace}" if info.workspace else "workspace taken off",
    "labels": lambda info: f"labels {', '.join(info.labels)}" if info.labels else "labels taken off",
}
"""What a person is told of each thing that changed."""


def mark(context: click.Context, name: str, change: Callable[[Session], Marked]) -> None:
    """Changes a session, and tells: for programs its row of `ls`, for people one line."""
    settings = settings_of(context)
    session = settings.session(name)
    marked = change(session)
    info = session.info()
    for note in marked.notes:
        warn(settings, note)
    if settings.is_json:
        output.write_json(info)
        return
    paint = Paint(is_on=settings.has_color)
    said = ", ".join(SAYS[each](info) for each in marked.changed) or "it is so already"
    title = render.line(info.title or "", 100) or "(no title)"
    click.echo(f"{info.id[:8]} {paint(title, bold=True)}: {render.line(said, 1_000)}.")


def text_or_off(words: Sequence[str], what: str, *, is_off: bool) -> str | None:
    """The text that was typed, None with --off. Raises `UsageError` for both and for neither."""
    text = " ".join(words)
    if is_off and words:
        raise UsageError(f"--off and a {what} contradict each other", hint="leave one of them out")
    if not is_off and not text.strip():
        raise UsageError(f"there is no {what} to set", hint=f"give a text, or --off to take the {what} off")
    return None if is_off else text
