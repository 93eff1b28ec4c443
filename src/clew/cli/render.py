"""Text for terminals: made harmless, measured in cells, coloured only where the person sees colour.

Everything that comes from a session goes through `neutral` or `line` before it is printed; no markup is read from it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TypeVar

import click
from rich.cells import cell_len, set_cell_size

T = TypeVar("T")
PROGRESS_AFTER_S = 1.0
"""What is done sooner needs no progress bar."""
WIDTH_MIN = 40
WIDTH_PIPED = 160
"""Where no terminal says how wide it is."""

# Control characters, also those of the second half; marks that change the direction of what follows; characters that
# cannot be seen, tags and lone surrogates among them. The joiners of emoji and scripts (U+200C, U+200D) stay.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_BLANKS = re.compile(r"\s+")
_SGR = re.compile("\x1b\\[[0-9;]*m")


def neutral(text: str) -> str:
    """The text with everything that a terminal could obey as a visible escape. Newlines and tabs stay."""
    return _HARMFUL.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def line(text: str, limit: int = 400) -> str:
    """The text on one line, harmless, and not longer than so many characters."""
    # A blank is folded before the cut: a title may begin with a page of empty lines.
    folded = _BLANKS.sub(" ", text[: limit * 20]).strip()
    cut = folded if len(folded) <= limit else folded[:limit].rstrip() + "…"
    return neutral(cut)


class Paint:
    """Styles text, or leaves it as it is where there is no colour."""

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on

    def __call__(self, text: str, color: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
        if not self.is_on or not text:
            return text
        return click.style(text, fg=color, bold=bold or None, dim=dim or None)


def width() -> int:
    """How many cells a line may have."""
    fallback = 80 if sys.stdout.isatty() else WIDTH_PIPED
    return max(WIDTH_MIN, shutil.get_terminal_size((fallback, 24)).columns)


def height() -> int | None:
    """How many lines the terminal has; None without one."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().lines


def cells(text: str) -> int:
    """How wide the text is, colours not counted."""
    return cell_len(_SGR.sub("", text))


def fitted(text: str, size: int) -> str:
    """The text cut to a width; what is cut ends with `…`. For text without colours."""
    return text if cell_len(text) <= size else set_cell_size(text, max(size - 1, 0)).rstrip() + "…"


class Column:
    """A column of a table: its heading, how its cells stand, and how they are coloured.

    It is `most` cells wide at most, and may be cut down to `least` where the room is small; without `least` it is not
    cut. One that `may_go` is left out where even that is too wide. `is_path` cuts at the front, since the end of a path
    tells more.
    """

    def __init__(
        self,
        heading: str,
        color: str | None = None,
        *,
        most: int = 40,
        least: int | None = None,
        is_right: bool = False,
        is_dim: bool = False,
        is_path: bool = False,
        may_go: bool = False,
    ) -> None:
        self.heading = heading
        self.color = color
        self.most = most
        self.least = least
        self.is_right = is_right
        self.is_dim = is_dim
        self.is_path = is_path
        self.may_go = may_go

    def cell(self, text: str, size: int) -> str:
        """The text at exactly this width."""
        cut = fitted(text[::-1], size)[::-1] if self.is_path else fitted(text, size)
        blanks = " " * (size - cell_len(cut))
        return blanks + cut if self.is_right else cut + blanks


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], paint: Paint, room: int) -> Iterator[str]:
    """Lines of a table no wider than the room, if the columns can be cut so far. An empty column is left out."""
    widest = {at: max(cell_len(row[at]) for row in rows) for at in range(len(columns))}
    sizes = {at: min(columns[at].most, max(size, cell_len(columns[at].heading))) for at, size in widest.items() if size}
    while sum(columns[at].least or size for at, size in sizes.items()) + 2 * len(sizes) - 2 > room:
        spare = [at for at in sizes if columns[at].may_go]
        if not spare:
            break
        del sizes[spare[-1]]
    over = sum(sizes.values()) + 2 * len(sizes) - 2 - room
    # The widest is cut first, so that no column is starved while another has room.
    while over > 0 and (able := [at for at, size in sizes.items() if size > (columns[at].least or size)]):
        sizes[max(able, key=sizes.__getitem__)] -= 1
        over -= 1
    yield "  ".join(paint(columns[at].cell(columns[at].heading, sizes[at]), dim=True) for at in sizes).rstrip()
    for row in rows:
        cut = [(columns[at], columns[at].cell(row[at], sizes[at])) for at in sizes]
        yield "  ".join(paint(text, column.color, dim=column.is_dim) for column, text in cut).rstrip()


def age(moment: str | None, now: datetime) -> str:
    """How long ago, in one short word."""
    seconds = seconds_since(moment, now)
    if seconds is None:
        return "?"
    for size, unit in ((31_557_600, "y"), (2_629_800, "mo"), (604_800, "w"), (86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def seconds_since(moment: str | None, now: datetime) -> float | None:
    """Seconds from an ISO time to now; negative for one that is to come, None for what is no time."""
    if moment is None:
        return None
    try:
        return (now - datetime.fromisoformat(moment)).total_seconds()
    except (ValueError, TypeError):
        return None


def size(count: int) -> str:
    """Bytes in a short form."""
    if count < 1000:
        return f"{count} B"
    value, unit = count / 1000, "KB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def plural(count: int, noun: str, several: str = "") -> str:
    """The number and the noun: 1 message, 2 messages."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def short_ids(ids: Iterable[str], least: int = 8) -> dict[str, str]:
    """The shortest beginnings that tell these ids apart, so that what is shown can be typed."""
    ordered = sorted(set(ids))
    found: dict[str, str] = {}
    for at, each in enumerate(ordered):
        beside = [ordered[other] for other in (at - 1, at + 1) if 0 <= other < len(ordered)]
        need = max((_common(each, other) + 1 for other in beside), default=0)
        found[each] = each[: max(least, need)]
    return found


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def home_as_tilde(path: str) -> str:
    """A path as people write it."""
    home = os.environ.get("HOME", "")
    return "~" + path[len(home) :] if home not in ("", "/") and (path + "/").startswith(home + "/") else path


def with_progress(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The items; on a terminal a bar shows on stderr once it takes more than a second, and goes away at the end."""
    if not sys.stderr.isatty():
        yield from items
        return
    start, done = time.monotonic(), 0
    waiting = iter(items)
    for item in waiting:
        yield item
        done += 1
        if time.monotonic() - start > PROGRESS_AFTER_S and done < total:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        for item in waiting:
            yield item
            bar.advance(task)


@contextmanager
def progress_of_bytes(what: str) -> Iterator[Callable[[int, int], None]]:
    """Takes how many bytes of how many are done; on a terminal a bar shows on stderr once it takes over a second."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task, start = bar.add_task(what, total=None), time.monotonic()

    def advance(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if not bar.live.is_started and time.monotonic() - start > PROGRESS_AFTER_S:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """While the block runs, a terminal shows on stderr what it is at, once it takes over a second."""
    if not sys.stderr.isatty():
        yield
        return
    with ExitStack() as shown:

        def show() -> None:
            from rich.console import Console

            shown.enter_context(Console(stderr=True).status(what))

        timer = threading.Timer(PROGRESS_AFTER_S, show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
