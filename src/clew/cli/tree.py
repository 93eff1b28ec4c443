"""`clew tree`: the branches of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click
import msgspec

from clew.cli import output, render
from clew.cli.completion import session_names
from clew.cli.group import Command
from clew.cli.options import Settings, settings_of
from clew.cli.preview import preview_of
from clew.cli.render import Paint, plural
from clew.session import Session
from clew.transcript.tree import Tree

LINES_MAX = 60
"""So many rows are drawn for people; `--json` has every leaf."""
INDENT_MAX = 12
"""Deeper branches are drawn at this depth, so that their text stays on the screen."""
TEXT_LEAST = 8
"""So many cells of a row's text are drawn, however narrow the terminal is."""


class Leaf(msgspec.Struct, frozen=True):
    """The end of a branch."""

    uuid: str
    depth: int
    timestamp: str | None
    preview: str
    is_head: bool


@click.command("tree", cls=Command, short_help="Show the branches of a session.")
@click.argument("session", metavar="SESSION", shell_complete=session_names)
@click.pass_context
def command(context: click.Context, session: str) -> None:
    """Show where a session branches: prompts that were rewound and tried again, and calls that ran side by side.

    Each row that more than one row hangs on is a fork, each row that none hangs on a leaf. ● is the head, from which
    Claude Code goes on. To read a branch: clew show SESSION --at UUID.
    """
    settings = settings_of(context)
    found = settings.session(session)
    if settings.is_json:
        output.write_chunks(document(found))
        return
    for text in drawing(found, settings, Paint(is_on=settings.has_color)):
        click.echo(text)


def document(session: Session) -> Iterator[bytes]:
    """The JSON document in pieces."""
    tree = session.tree
    yield b'{"head":' + output.encoded(session.head.uuid) + b',"leaves":'
    yield from output.array(leaves(session))
    yield b',\n"forks":'
    yield from output.array({"uuid": uuid, "children": rows} for uuid, rows in tree.forks().items())
    yield b"}"


def leaves(session: Session) -> Iterator[Leaf]:
    """Every leaf in file order. The depth of a root is 1; a row whose parent is lost counts as one."""
    tree, head = session.tree, session.head.uuid
    depth_of = depths(tree)
    for uuid in tree.leaves():
        record = tree.records[uuid]
        yield Leaf(uuid, depth_of[uuid], record.timestamp, preview_of(record), uuid == head)


def depths(tree: Tree) -> dict[str, int]:
    """How many rows there are from the root to each row, itself included; each row is visited once."""
    found: dict[str, int] = {}
    for start in tree.records:
        way: list[str] = []
        at: str | None = start
        while at is not None and at in tree.records and at not in found:
            found[at] = 0
            way.append(at)
            at = tree.parents[at]
        # Of a circle the row that was met again counts as the root.
        depth = found[at] if at is not None and at in found else 0
        for uuid in reversed(way):
            depth += 1
            found[uuid] = depth
    return found


class Node(msgspec.Struct, frozen=True):
    """A row that is drawn: a root, a fork or a leaf."""

    uuid: str
    indent: int
    skipped: int
    """Rows between it and the one it hangs under."""


def drawing(session: Session, settings: Settings, paint: Paint) -> Iterator[str]:
    """The tree for people."""
    tree, head = session.tree, session.head
    count, forks = len(tree.leaves()), tree.forks()
    facts = [
        plural(len(tree.records), "row"),
        plural(count, "leaf", "leaves"),
        plural(len(forks), "fork"),
    ]
    yield f"{paint(render.neutral(session.id), 'cyan')}  {paint(' · '.join(facts), dim=True)}"
    where = "none" if head.uuid is None else render.neutral(head.uuid)
    yield f"{paint('head', dim=True)} {where} {paint(f'({render.neutral(head.why)})', dim=True)}\n"
    drawn = 0
    marked = {head.uuid} if head.uuid is not None else set()
    for node in nodes(tree, {*forks, *marked}):
        if drawn == LINES_MAX:
            yield paint(
                f"… and more: all {count:,} leaves are in clew tree --json {render.neutral(session.id)}", dim=True
            )
            break
        drawn += 1
        yield node_line(tree, node, forks, head.uuid, paint)
    if not settings.is_quiet and forks and drawn < LINES_MAX:
        yield ""
        yield paint(f"To read a branch: clew show {render.neutral(session.id)} --at UUID", dim=True)


def nodes(tree: Tree, told: set[str]) -> Iterator[Node]:
    """Roots, leaves and the rows in `told`, each under the one it hangs on, depth first, made as far as asked for."""
    children, seen = tree.children, set[str]()
    roots = (uuid for uuid, parent in tree.parents.items() if parent is None or parent not in tree.records)
    # Circles hang under no root. They are drawn from their first row, after everything else.
    for start in (*roots, *tree.records):
        waiting = [(start, 0, 0)]
        while waiting:
            uuid, indent, skipped = waiting.pop()
            if uuid in seen:
                continue
            seen.add(uuid)
            below = [child for child in children.get(uuid) if child not in seen]
            if uuid == start or uuid in told or not below:
                yield Node(uuid, indent, skipped)
                deeper = indent + (len(below) > 1)
                waiting.extend((child, deeper, 0) for child in reversed(below))
            else:
                waiting.extend((child, indent, skipped + 1) for child in reversed(below))


def node_line(tree: Tree, node: Node, forks: Iterable[str], head: str | None, paint: Paint) -> str:
    record = tree.records[node.uuid]
    is_head = node.uuid == head
    mark = "●" if is_head else "┬" if node.uuid in forks else "○" if node.uuid not in tree.children else "│"
    when = (record.timestamp or "")[:16].replace("T", " ")
    lead = "  " * min(node.indent, INDENT_MAX)
    left = f"{lead}{mark} {render.line(node.uuid[:8])} {render.line(when)} "
    text = render.line(preview_of(record), 200) or f"({render.line(record.type or 'row')})"
    between = f"  +{node.skipped}" if node.skipped else ""
    tail = "  ← head" if is_head else ""
    text = render.fitted(text, max(TEXT_LEAST, render.width() - render.cells(left + between + tail)))
    color = "green" if is_head else "cyan" if node.uuid in forks else None
    start = f"{lead}{paint(mark, color, bold=is_head)} {paint(left[len(lead) + 2 :], dim=True)}"
    return f"{start}{text}{paint(between, dim=True)}{paint(tail, 'green')}"
