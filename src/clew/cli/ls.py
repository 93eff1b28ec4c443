"""`clew ls`: the sessions of a project, or of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice

import click

from clew.cli import filters, output, render
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn_of_problems
from clew.cli.render import Column, Paint
from clew.engines.contract import LogStat
from clew.session_info import SessionInfo

SOON_DAYS = 7
"""A session with so many days left, or fewer, is marked."""
CLOCK = "◷"
STAR = "★"
NO_MATCH = "No session here is like that."
FRAME_LINES = 8
"""Lines of a page that are not sessions: heading, hints, and the prompt before and after."""

Sorted = Callable[[LogStat], tuple[int, ...]]
SORTS: dict[str, Sorted | None] = {
    "newest": None,
    "oldest": lambda stat: (stat.modified_ns,),
    "size": lambda stat: (-stat.size_bytes,),
    "title": None,
}

COLUMNS = (
    Column("ID", "cyan", most=36),
    Column("AGE", is_right=True),
    Column("TITLE", most=200, least=16),
    Column("MARKS", "yellow", most=48, least=8),
    Column("MSGS", is_right=True),
    Column("SIZE", is_right=True, is_dim=True, may_go=True),
    Column("BRANCH", "green", most=24, least=8, may_go=True),
    Column("AGENTS", is_right=True, may_go=True),
    Column("LEFT", "magenta"),
    Column("PROJECT", is_dim=True, is_path=True, most=48, least=14),
)


@click.command("ls", cls=Command, short_help="List sessions, newest first.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Show only the first N.")
@click.option("--sort", type=click.Choice([*SORTS]), default="newest", help="What comes first.  [default: newest]")
@filters.options
@click.pass_context
def command(context: click.Context, /, limit: int | None, sort: str, **given: object) -> None:
    """List the sessions of this directory and of the worktrees of its repository, newest first.

    The ID is as much of the full id as is needed to name the session. ★ marks pinned sessions, # a tag, + a label,
    and ◷ sessions that Claude Code will delete within a week. Of several filters all must hold.
    """
    settings = settings_of(context)
    chosen = filters.chosen(given)
    stats = ordered(settings.store().logs(settings.scope()), sort)
    if settings.is_json:
        shown = stats[:limit] if sort != "title" and chosen is None else stats
        infos = filter(chosen, settings.store().describe(shown)) if chosen else settings.store().describe(shown)
        listed = infos if sort != "title" else by_title([*infos])
        output.write_chunks(output.array(islice(listed, limit)))
    elif not stats:
        nothing(settings)
    else:
        page(settings, stats, limit, sort, given)
    warn_of_problems(settings)


def overview(settings: Settings) -> None:
    """`clew` alone: this directory's sessions, or everything where it has none."""
    store = settings.store()
    stats = store.logs(settings.scope())
    if settings.is_json:
        output.write_chunks(output.array(store.describe(stats)))
        warn_of_problems(settings)
        return
    if not stats and not settings.is_all and settings.project is None:
        stats = store.logs()
        if stats:
            click.echo("No sessions in this directory; these are from all of them.\n")
            settings.is_all = True
    if not stats:
        nothing(settings)
        return
    page(settings, stats, None, "newest")
    warn_of_problems(settings)
    if not settings.is_quiet:
        dim = Paint(is_on=settings.has_color)
        click.echo(dim("Read one: clew show ID    The newest: clew show latest    More: clew --help", dim=True))


def ordered(stats: list[LogStat], sort: str) -> list[LogStat]:
    """The logs in the order that the person asked for, as far as it can be told without reading them."""
    key = SORTS[sort]
    return stats if key is None else sorted(stats, key=key)


def by_title(infos: Sequence[SessionInfo]) -> list[SessionInfo]:
    """By title, whatever its case; those without one come last."""
    return sorted(infos, key=lambda info: (not info.title, (info.title or "").casefold(), info.id))


def nothing(settings: Settings) -> None:
    """What to say where there is no session."""
    store = settings.store()
    everywhere = len(store.logs()) if settings.scope() is not None else 0
    click.echo("No sessions here.")
    if settings.is_quiet:
        return
    if everywhere:
        there = "is 1 session" if everywhere == 1 else f"are {everywhere:,} sessions"
        click.echo(f"There {there} in other directories: clew ls{render.neutral(settings.words)} --all")
    elif store.engine.capabilities.is_clients:
        click.echo(f"Claude Code keeps its sessions in {render.neutral(render.home_as_tilde(store.place))};")
        click.echo("start it in a project, and its sessions show up here.")


def page(
    settings: Settings, stats: list[LogStat], limit: int | None, sort: str, given: Mapping[str, object] | None = None
) -> None:
    """A table for people. A terminal gets as many rows as fit, a file or a pipe all of them."""
    store, lines, chosen = settings.store(), render.height(), filters.chosen(given or {})
    most = limit if limit is not None else max(5, lines - FRAME_LINES) if lines is not None else None
    wanted = stats if sort == "title" or chosen else stats[:most]
    found = [*filter(chosen, render.with_progress(store.describe(wanted), len(wanted), "reading sessions"))]
    count = len(found) if chosen else len(stats)
    infos = (by_title(found) if sort == "title" else found)[:most]
    paint, now = Paint(is_on=settings.has_color), store.now()
    ids = render.short_ids(stat.key.session for stat in stats)
    rows = [row(info, ids[info.id], now, is_all=settings.is_all) for info in infos]
    if rows:
        for text in render.table(COLUMNS, rows, paint, render.width()):
            click.echo(text)
    footer(settings, paint, infos, count, now, filters.words(given or {}))


def row(info: SessionInfo, short_id: str, now: datetime, *, is_all: bool) -> list[str]:
    """The cells of one session."""
    left = days_left(info, now)
    return [
        short_id,
        render.age(info.updated_at, now),
        render.line(info.title or "", 200) or "(no title)",
        render.line(marks(info), 200),
        f"{info.message_count:,}",
        render.size(info.size_bytes),
        render.line("" if info.git_branch in (None, "HEAD") else str(info.git_branch), 60),
        str(info.agents) if info.agents else "",
        f"{CLOCK} {left}d" if left is not None and left <= SOON_DAYS else "",
        render.line(render.home_as_tilde(info.cwd or info.project), 200) if is_all else "",
    ]


def marks(info: SessionInfo) -> str:
    """What a person set, in signs that need no colour."""
    signs = [STAR] if info.pinned else []
    signs += ["archived"] if info.archived else []
    signs += [f"#{info.tag}"] if info.tag else []
    return " ".join([*signs, *(f"+{label}" for label in info.labels)])


def days_left(info: SessionInfo, now: datetime) -> int | None:
    """Whole days until the client may delete it, 0 when that is due."""
    seconds = render.seconds_since(info.expires_at, now)
    return None if seconds is None else max(0, int(-seconds // 86_400))


def footer(
    settings: Settings, paint: Paint, infos: Sequence[SessionInfo], count: int, now: datetime, words: str
) -> None:
    """How many more there are, and what the marks mean."""
    if settings.is_quiet:
        return
    lines = []
    if count > len(infos) > 0:
        call = f"clew ls{settings.words}{settings.where}{words} --limit {count}"
        lines.append(f"… {count - len(infos):,} more of {count:,}: {render.neutral(call)}")
    if any((left := days_left(info, now)) is not None and left <= SOON_DAYS for info in infos):
        place = render.neutral(render.home_as_tilde(f"{settings.store().place}/settings.json"))
        lines.append(f"{CLOCK} Claude Code deletes these soon. To keep sessions longer, put into")
        lines.append(f'  {place}: {{"cleanupPeriodDays": 3650}}')
    if lines:
        click.echo("\n" + "\n".join(paint(text, dim=True) for text in lines))
    elif not infos:
        click.echo(f"{render.plural(count, 'session')}, none shown." if count or not words else NO_MATCH)
