"""A list of sessions to choose from, in a terminal: arrow keys, typing filters, the conversation's end below.

It comes up at once with ids and ages; titles, tags and first prompts come in from a thread, newest session first. No
session is read whole for it. What a session says is made harmless before it is shown.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from itertools import islice

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from clew.cli import render
from clew.cli.options import Settings
from clew.cli.preview import preview_of
from clew.engines.contract import LogStat
from clew.errors import ClewError, NotFound
from clew.records.codec import decode_lines
from clew.records.record import Record, records_in
from clew.resume.look import TAGS, Look
from clew.session import Session
from clew.store import iso_time_of
from clew.transcript.digest import DigestFold
from clew.transcript.prompts import preview, prompt_of

HEAD_LINES = 40
"""So many lines from the beginning of a log may hold its first prompt."""
TAIL_LINES = 400
"""So many from its end the preview is made of."""
PREVIEW_MESSAGES = 12
ESCAPE_SECONDS = 0.05
"""A key that sends more than Esc sends it sooner."""
_BREAKS = re.compile(r"[\r\n]+")
FORMS = ("title:", "tag:", "branch:", "pr:")
STYLE = {
    "id": "ansicyan", "age": "", "branch": "ansigreen", "tag": "ansimagenta", "dim": "ansibrightblack",
    "here": "reverse", "role": "bold",
}  # fmt: skip
PLAIN = {"here": "reverse", "role": "bold"}


class Row:
    """A session in the list. All but the first two come in later."""

    def __init__(self, stat: LogStat, short_id: str) -> None:
        self.stat = stat
        self.id = short_id
        self.title = ""
        self.prompt = ""
        self.tag = ""
        self.branch = ""

    @property
    def says(self) -> str:
        return self.title or self.prompt

    def has(self, words: Sequence[str]) -> bool:
        """Whether all of the words stand in what is known of it."""
        text = f"{self.title}\n{self.prompt}\n{self.tag}\n{self.branch}\n{self.stat.key.session}".lower()
        return all(word in text for word in words)


class Rows:
    """The sessions, what is typed, and which one is chosen. Knows no terminal."""

    def __init__(self, look: Look) -> None:
        self.look = look
        stats = look.logs()
        ids = render.short_ids(stat.key.session for stat in stats)
        self.all = [Row(stat, ids[stat.key.session]) for stat in stats]
        self.shown = self.all
        self.at = 0
        self.top = 0
        self._words: tuple[str, ...] = ()

    def filter(self, text: str) -> None:
        """Shows those that hold all the words; the first of them is chosen."""
        words = tuple(text.lower().split())
        if words != self._words:
            self._words, self.at, self.top = words, 0, 0
        self.again()

    def again(self) -> None:
        """Once more what is shown, since more of the rows is known now. The chosen one stays so."""
        chosen = self.chosen
        self.shown = [row for row in self.all if row.has(self._words)] if self._words else self.all
        if chosen is not None and self.at and chosen in self.shown:
            self.at = self.shown.index(chosen)
        self.move(0)

    def move(self, by: int) -> None:
        self.at = max(0, min(self.at + by, len(self.shown) - 1))

    @property
    def chosen(self) -> Row | None:
        return self.shown[self.at] if self.at < len(self.shown) else None

    def visible(self, height: int) -> Sequence[Row]:
        """As many as there is room for, the chosen one among them."""
        self.top = max(min(self.top, self.at), self.at - height + 1, 0)
        return self.shown[self.top : self.top + height]

    def fill(self, changed: Callable[[], None], stop: threading.Event) -> None:
        """Finds out what the rows say: names of all at once, then the first prompts."""
        rows = {row.stat.key: row for row in self.all}
        for stat, title in self.look.titles():
            rows[stat.key].title = render.line(title or "", 200)
        for stat, digest in self.look.digests(TAGS):
            rows[stat.key].tag = render.line(digest.tag or "", 60)
        changed()
        for number, row in enumerate(self.all, 1):
            if stop.is_set():
                return
            try:
                self._read_ends(row)
            except ClewError:
                continue  # It is shown with its id, and opening it says what is wrong.
            if number % 50 == 0:
                changed()
        changed()

    def _read_ends(self, row: Row) -> None:
        engine = self.look.store.engine
        head = DigestFold(records_in(decode_lines(islice(engine.read(row.stat.key), HEAD_LINES)))).digest()
        row.prompt = render.line(head.first_prompt or "", 200)
        branch = head.git_branch if row.stat.size_bytes < 65_536 else self.look.branch(row.stat)
        row.branch = "" if branch in (None, "HEAD") else render.line(str(branch), 60)

    def ending(self, row: Row) -> list[tuple[str, str]]:
        """Who said what last in that session, oldest first."""
        lines = islice(self.look.store.engine.read_back(row.stat.key), TAIL_LINES)
        said: list[tuple[str, str]] = []
        try:
            for record in records_in(decode_lines(lines)):
                if (text := render.line(_said(record), 1000)) != "":
                    said.append((str(record.type), text))
                if len(said) == PREVIEW_MESSAGES:
                    break
        except ClewError as error:
            return [("", render.line(error.message))]
        return said[::-1]


def _said(record: Record) -> str:
    """What a person or the model said in that row; "" for results of tools and notes of the client."""
    if record.is_sidechain:
        return ""
    if record.type == "assistant":
        return preview_of(record)
    prompt = prompt_of(record) if record.type == "user" else None
    return "" if prompt is None else preview(prompt.text)


def pick(settings: Settings, query: str) -> Session | None:
    """The session that the person chooses; None when the list is left. Raises `NotFound` where there is none."""
    look = Look(settings.store(), settings.scope)
    if not look.logs():
        look = Look(settings.store())
    if not look.logs():
        raise NotFound("there are no sessions to choose from", hint="start Claude Code in a project, then come back")
    row = _Screen(settings, Rows(look), _bare(query)).run()
    return None if row is None else look.session(row.stat)


def _bare(query: str) -> str:
    form = next((form for form in FORMS if query.startswith(form)), "")
    return render.line(query.removeprefix(form), 200)


class _Screen:
    def __init__(self, settings: Settings, rows: Rows, query: str) -> None:
        self._rows = rows
        self._now = settings.store().now()
        self._endings: dict[str, list[tuple[str, str]]] = {}
        self._stop = threading.Event()
        self._is_filled = False
        self._typed = Buffer(multiline=False, on_text_changed=self._filter)
        self._typed.text = query
        self._typed.cursor_position = len(query)
        self._list = Window(FormattedTextControl(self._list_text), height=Dimension(min=3, weight=3), wrap_lines=False)
        # The preview goes where there is no room for it.
        preview = Window(FormattedTextControl(self._ending_text), height=Dimension(min=0, weight=2), wrap_lines=True)
        prompt = VSplit([
            Window(FormattedTextControl([("class:role", "> ")]), width=2),
            Window(BufferControl(self._typed), height=1),
        ])  # fmt: skip
        status = Window(FormattedTextControl(self._status), height=1)
        is_high = Condition(lambda: self.app.output.get_size().rows >= 14)
        below = ConditionalContainer(HSplit([Window(height=1, char="─", style="class:dim"), preview]), is_high)
        self.app: Application[Row | None] = Application(
            Layout(HSplit([prompt, status, self._list, below]), focused_element=self._typed),
            key_bindings=self._keys(), full_screen=True, style=Style.from_dict(STYLE if settings.has_color else PLAIN),
            color_depth=None if settings.has_color else ColorDepth.DEPTH_1_BIT,
        )  # fmt: skip
        # One wait is for the rest of a key, the other for another key behind it, for which Esc would wait a second.
        self.app.ttimeoutlen = self.app.timeoutlen = ESCAPE_SECONDS

    def run(self) -> Row | None:
        # Not before the loop runs: what is found sooner could not be shown.
        filling = threading.Thread(target=self._fill, daemon=True)
        try:
            return self.app.run(pre_run=filling.start)
        finally:
            self._stop.set()

    def _fill(self) -> None:
        def changed() -> None:
            loop = self.app.loop
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._refresh)

        self._rows.fill(changed, self._stop)
        self._is_filled = True
        changed()

    def _refresh(self) -> None:
        self._rows.again()
        self.app.invalidate()

    def _filter(self, typed: Buffer) -> None:
        """What was pasted may have lines; of these a person would see the last alone."""
        text = _BREAKS.sub(" ", typed.text)
        if text != typed.text:
            typed.text = text  # Which comes here once more.
            typed.cursor_position = len(text)
        else:
            self._rows.filter(text)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        def moves(by: Callable[[], int], *names: str) -> None:
            for name in names:
                keys.add(name)(lambda _: self._rows.move(by()))

        moves(lambda: -1, "up", "c-p")
        moves(lambda: 1, "down", "c-n")
        moves(lambda: -self._height(), "pageup")
        moves(lambda: self._height(), "pagedown")

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            if self._rows.chosen is not None:
                event.app.exit(result=self._rows.chosen)

        @keys.add("escape")
        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt)

        return keys

    def _height(self) -> int:
        info = self._list.render_info
        return max(1, info.window_height) if info is not None else self.app.output.get_size().rows - 2

    def _status(self) -> StyleAndTextTuples:
        count, shown = len(self._rows.all), len(self._rows.shown)
        found = f"{shown:,} of {render.plural(count, 'session')}" + ("" if self._is_filled else " …")
        return [("class:dim", f"  {found}   ↑↓ choose   Enter starts Claude Code   Esc leaves")]

    def _list_text(self) -> StyleAndTextTuples:
        width = self.app.output.get_size().columns
        text: StyleAndTextTuples = []
        for row in self._rows.visible(self._height()):
            here = " class:here" if row is self._rows.chosen else ""
            age = render.age(iso_time_of(row.stat.modified_ns), self._now)
            beside = "  ".join(filter(None, (row.tag and f"#{row.tag}", row.branch)))
            room = max(10, width - len(row.id) - 9 - (render.cells(beside) + 2 if beside else 0))
            says = render.fitted(row.says or ("(no title)" if self._is_filled else "…"), room)
            blanks = " " * max(0, room - render.cells(says))
            text += [
                (f"class:id{here}", f" {row.id}"), (here, f" {age:>4}  {says}{blanks}"),
                (f"class:branch{here}", f"  {render.fitted(beside, width // 3)}" if beside else ""), ("", "\n"),
            ]  # fmt: skip
        return text

    def _ending_text(self) -> StyleAndTextTuples:
        row = self._rows.chosen
        if row is None:
            return [("class:dim", "  nothing here holds that")]
        name = self._rows.look.store.engine.where(row.stat.key)
        if name not in self._endings:
            self._endings[name] = self._rows.ending(row)
        text: StyleAndTextTuples = []
        info = self.app.output.get_size()
        for who, said in self._endings[name][-max(2, info.rows // 5) :]:
            mark = {"user": "> ", "assistant": "  "}.get(who, "")
            text += [("class:role" if who == "user" else "", f"{mark}{render.fitted(said, 3 * info.columns)}\n")]
        return text or [("class:dim", "  nothing was said in it")]
