"""`clew show`: the conversation of a session."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

import click
import msgspec

from clew.cli import output, render
from clew.cli.completion import session_names
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of, warn
from clew.cli.preview import argument, media, result_text
from clew.cli.render import Paint, neutral, plural
from clew.records.views import JsonObject, JsonValue
from clew.session import Session
from clew.store import iso_time_of
from clew.transcript.digest import DigestFold
from clew.transcript.message import Message, text_of
from clew.transcript.messages import Conversation, State, conversation
from clew.transcript.prompts import is_client_text

SUMMARY_LINES_MAX = 12
"""So much of a compaction's summary is shown; `--json` has all of it."""
MALFORMED_SHOWN_MAX = 50
"""So many malformed lines are listed for people; `--json` lists all."""
RULE = "─" * 60
LARGE_BYTES = 8 * 1024 * 1024
"""Of a longer log the first screens are printed before all of it is made into messages."""
EARLY_ROWS = 400
"""So many rows are a few screens."""
EARLY_MESSAGES_LEFT = 40
"""So many of the messages made of them wait for the rows further on, which may belong to them."""

# A slash command stands in the log as tags, and a text that the client wrote in one pair of tags.
_COMMAND = re.compile(r"<command-name>/?(.*?)</command-name>(?:.*<command-args>(.*?)</command-args>)?", re.DOTALL)
_COMMAND_CHARACTERS_MAX = 10_000
_OUTER_TAG = re.compile(r"\s*<([a-z-]+)>")


class Heading(msgspec.Struct, frozen=True):
    """What the first lines say of a session, beside its id, size and age."""

    title: str | None
    cwd: str | None
    git_branch: str | None
    model: str | None
    counts: Sequence[str] = ()


@click.command("show", cls=Command, short_help="Show the conversation of a session.")
@click.argument("session", metavar="SESSION", shell_complete=session_names)
@click.option("--at", metavar="POINT", help="Up to there: UUID, msg:MESSAGE_ID, time:ISO or turn:N (-1 is the last).")
@click.option("--reminders", is_flag=True, help="With the reminders that the client adds for the model.")
@click.option("--no-pager", is_flag=True, help="Print it all, also to a terminal.")
@click.pass_context
def command(context: click.Context, session: str, at: str | None, reminders: bool, no_pager: bool) -> None:
    """Show a conversation as Claude Code would go on with it.

    Calls of tools take one line each; `--json` has them in full.
    """
    settings = settings_of(context)
    found = settings.session(session)
    if settings.is_json:
        output.write_chunks(document(found, found.conversation(at, reminders=reminders)))
    else:
        paint = Paint(is_on=settings.has_color)
        pages = conversation_text(found, settings, paint, at=at, reminders=reminders)
        if no_pager or not sys.stdout.isatty():
            print_all(pages)
        else:
            # -F: a short conversation stays on the screen. -R: our colours, and only those, since all else is neutral.
            os.environ.setdefault("LESS", "-FRX")
            click.echo_via_pager(pages, color=None if paint.is_on else False)
    if at is None and found.head.refused:
        warn(settings, f"Claude Code finds no conversation in this session: {found.head.why}")
        if not settings.is_quiet:
            click.echo(f"  hint: clew tree {found.id}; then clew show {found.id} --at UUID", err=True)


def print_all(pages: Iterator[str]) -> None:
    """Writes text as it comes."""
    for text in pages:
        sys.stdout.write(text)
        sys.stdout.flush()


def document(session: Session, told: Conversation) -> Iterator[bytes]:
    """The JSON document in pieces, a message on a line."""
    head = {"session": session.id, "head": session.head.uuid, "state": told.state.value}
    yield output.encoded(head)[:-1] + b',"messages":'
    yield from output.array(
        {"role": each.role, "content": each.content, "uuids": each.uuids, "timestamp": each.timestamp}
        for each in told.messages
    )
    yield b',\n"malformed":'
    yield from output.array(
        {"line": row.line.number, "offset": row.line.position, "reason": row.reason} for row in session.malformed
    )
    yield b"}"


def conversation_text(
    session: Session, settings: Settings, paint: Paint, *, at: str | None = None, reminders: bool = False
) -> Iterator[str]:
    """The conversation for people, a piece for each message, so that the first is seen before the last is made."""
    if session.stat().size_bytes > LARGE_BYTES:
        yield from large_text(session, settings, paint, at=at, reminders=reminders)
        return
    info = session.info()  # Asked for first, so that the log is read once for the heading and for the conversation.
    told = session.conversation(at, reminders=reminders)
    counts = (plural(len(told.messages), "message"), plural(info.agents, "agent") if info.agents else "")
    yield header(session, settings, paint, Heading(info.title, info.cwd, info.git_branch, info.model, counts))
    yield from messages_text(session, told.messages, paint)
    yield ending(session, told, paint)


def large_text(session: Session, settings: Settings, paint: Paint, *, at: str | None, reminders: bool) -> Iterator[str]:
    """The same of a large session, whose first screens are made of the first rows alone, before all others are read.

    Rows further on may say more of the last messages made so: those are left out of it. Should they change an earlier
    one after all, the conversation is printed once more, and that is said.
    """
    chain = session.chain(at).records
    fold = DigestFold()
    for record in (*chain[:EARLY_ROWS], *chain[-EARLY_ROWS:], *session.names.values()):
        fold.add(record)
    facts = fold.digest()
    yield header(session, settings, paint, Heading(facts.title, facts.cwd, facts.git_branch, facts.model))
    early = conversation(chain[:EARLY_ROWS], reminders=reminders).messages
    early = early[: max(0, len(early) - EARLY_MESSAGES_LEFT)]
    yield from messages_text(session, early, paint)
    told = conversation(chain, reminders=reminders)
    if told.messages[: len(early)] != early:
        yield f"\n{paint('Rows further on change what was printed so far. It begins again:', 'magenta')}\n"
        early = []
    yield from messages_text(session, told.messages, paint, start=len(early))
    yield f"\n{paint(plural(len(told.messages), 'message'), dim=True)}\n"
    yield ending(session, told, paint)


def messages_text(session: Session, messages: Sequence[Message], paint: Paint, *, start: int = 0) -> Iterator[str]:
    """The messages from `start` on, a piece for each."""
    for at, message in enumerate(messages[start:], start + 1):
        results = results_in(messages[at]) if at < len(messages) else {}
        if message.role == "assistant":
            yield "".join(answer(message, results, paint))
        else:
            yield "".join(prompt(session, message, paint))


def header(session: Session, settings: Settings, paint: Paint, heading: Heading) -> str:
    """What session this is."""
    stat = session.stat()
    age = render.age(iso_time_of(stat.modified_ns), settings.store().now())
    facts = [
        render.line(render.home_as_tilde(heading.cwd or session.project)),
        render.line("" if heading.git_branch in (None, "HEAD") else str(heading.git_branch)),
        render.line(heading.model or ""),
        *heading.counts,
        render.size(stat.size_bytes),
        f"{age} ago" if age not in ("now", "?") else "now",
    ]
    return (
        f"{paint(render.line(heading.title or '(no title)', 200), bold=True)}\n{paint(neutral(session.id), 'cyan')}\n"
        f"{paint(' · '.join(fact for fact in facts if fact), dim=True)}\n"
    )


def prompt(session: Session, message: Message, paint: Paint) -> Iterator[str]:
    """What the person said. Results of tools are shown with their calls, and a message of nothing else not at all."""
    kinds = kinds_in(session, message)
    for block in message.content:
        kind = text_of(block, "type")
        if kind == "tool_result":
            continue
        text = text_of(block) if kind == "text" else media(block)
        of_client = kinds.get(_beginning(text), "note" if kind == "text" and is_client_text(text) else "")
        if of_client == "summary":
            yield from summary(text, paint)
            continue
        command = _command(text)
        text, is_note = command or text, bool(of_client) and not command
        first, *others = neutral(_untagged(text) if is_note else text).strip("\n").split("\n")
        mark = " " if is_note else "❯"
        yield f"\n{paint(mark, 'cyan', bold=True)} {paint(first, bold=not is_note, dim=is_note)}".rstrip() + "\n"
        for each in others:
            yield f"  {paint(each, bold=not is_note, dim=is_note)}".rstrip() + "\n"


def kinds_in(session: Session, message: Message) -> dict[str, str]:
    """Which texts of the message are no person's: "summary" or "note", by how they begin."""
    found: dict[str, str] = {}
    for uuid in message.uuids:
        record = session.tree.records.get(uuid)
        if record is not None and (record.is_compact_summary or record.is_meta):
            content = record.content()
            kind = "summary" if record.is_compact_summary else "note"
            texts = [content] if isinstance(content, str) else []
            if isinstance(content, list):
                texts = [text_of(block) for block in content if isinstance(block, dict)]
            found.update((_beginning(text), kind) for text in texts)
    return found


def _command(text: str) -> str:
    """A slash command as it was typed; "" for every other text."""
    found = _COMMAND.search(text[:_COMMAND_CHARACTERS_MAX]) if text.lstrip().startswith("<command-") else None
    return f"/{found[1].strip()} {(found[2] or '').strip()}".rstrip() if found else ""


def _untagged(text: str) -> str:
    tag, end = _OUTER_TAG.match(text), text.rstrip()
    return end[tag.end() :].removesuffix(f"</{tag[1]}>") if tag and end.endswith(f"</{tag[1]}>") else text


def _beginning(text: str) -> str:
    # The messages may differ from the rows further on, where reminders were cut out.
    return text.strip()[:80]


def summary(text: str, paint: Paint) -> Iterator[str]:
    """A compaction: from here on the model knew this text instead of what was said before."""
    lines = neutral(text).strip().split("\n")
    yield f"\n{paint(RULE, dim=True)}\n{paint('Compacted: the model goes on from this summary.', 'magenta')}\n"
    for each in lines[:SUMMARY_LINES_MAX]:
        yield f"{paint(each, dim=True)}\n"
    if len(lines) > SUMMARY_LINES_MAX:
        more = plural(len(lines) - SUMMARY_LINES_MAX, "more line")
        yield f"{paint(f'… {more}', dim=True)}\n"
    yield f"{paint(RULE, dim=True)}\n"


def answer(message: Message, results: dict[str, JsonObject], paint: Paint) -> Iterator[str]:
    """What the model said and did."""
    for block in message.content:
        kind = text_of(block, "type")
        if kind == "text":
            yield f"\n{styled(neutral(text_of(block)).strip(chr(10)), paint)}\n"
        elif kind == "thinking":
            told = thought(text_of(block, "thinking"))
            yield f"\n{paint(f'∴ {told}', dim=True)}\n"
        elif kind == "redacted_thinking":
            yield f"\n{paint('∴ thinking, hidden by the API', dim=True)}\n"
        elif kind in ("tool_use", "server_tool_use"):
            yield f"{call(block, results.get(text_of(block, 'id')), paint)}\n"
        else:
            yield f"{paint(render.line(media(block)), dim=True)}\n"


def thought(text: str) -> str:
    """A thought, folded to one line."""
    first = render.line(text, max(20, render.width() - 40))
    return f"thinking ({plural(len(text), 'character')}): {first}" if first else "thinking"


def styled(text: str, paint: Paint) -> str:
    """An answer as it is; on a terminal its headings and its code stand out."""
    if not paint.is_on:
        return text
    lines, is_code = [], False
    for each in text.split("\n"):
        if each.lstrip().startswith("```"):
            is_code = not is_code
            lines.append(paint(each, dim=True))
        elif is_code:
            lines.append(paint(each, "cyan"))
        else:
            lines.append(paint(each, bold=True) if each.startswith("#") else each)
    return "\n".join(lines)


def call(block: JsonObject, result: JsonObject | None, paint: Paint) -> str:
    """A call on one line: the tool, its most telling argument, and what came of it."""
    if result is None:
        mark, outcome = paint("○", "magenta"), "no result"
    elif result.get("is_error") is True:
        mark, outcome = paint("✗", "red"), f"error: {render.line(result_text(result.get('content')), 60)}"
    else:
        mark, outcome = paint("✓", "green"), amount(result.get("content"))
    name = render.line(text_of(block, "name") or "a tool", 40)
    room = max(20, render.width() - render.cells(name) - render.cells(outcome) - 8)
    told = render.fitted(render.line(argument(block.get("input")), 200), room)
    return f"  {mark} {paint(name, bold=True)} {told}{'  ' if told else ''}{paint(outcome, dim=True)}".rstrip()


def amount(content: JsonValue) -> str:
    """How much a result is, and which pictures are in it."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    pictures = [render.line(media(block), 80) for block in blocks if block.get("type") != "text"]
    text = result_text([block for block in blocks if block.get("type") == "text"] if blocks else content)
    lines = text.count("\n") + 1 if text.strip() else 0
    sized = [plural(lines, "line") if lines > 1 else render.line(text, 40)] if lines else []
    return ", ".join([*sized, *pictures]) or "nothing"


def results_in(message: Message) -> dict[str, JsonObject]:
    """The results in a message, by the call that each answers."""
    return {text_of(block, "tool_use_id"): block for block in message.content if block.get("type") == "tool_result"}


def ending(session: Session, told: Conversation, paint: Paint) -> str:
    """How the conversation ends, where not with an answer, and the lines of the log that are no records."""
    lines = []
    if told.state is State.INTERRUPTED:
        lines.append(paint("Interrupted: the last call has no result.", "magenta"))
    elif told.state is State.UNANSWERED:
        lines.append(paint("Unanswered: the last prompt has no answer.", "magenta"))
    rows = session.malformed
    if rows:
        is_are = "is no record" if len(rows) == 1 else "are no records"
        lines.append(paint(f"{plural(len(rows), 'line')} of the log {is_are}:", "red"))
        lines += [
            f"  line {row.line.number}, byte {row.line.position}: {neutral(row.reason)}"
            for row in rows[:MALFORMED_SHOWN_MAX]
        ]
        if len(rows) > MALFORMED_SHOWN_MAX:
            lines.append(f"  … {plural(len(rows) - MALFORMED_SHOWN_MAX, 'more line')}")
    return "".join(f"\n{each}" if at == 0 else each for at, each in enumerate(f"{each}\n" for each in lines))
