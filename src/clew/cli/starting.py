"""How Claude Code is started on a session: in which directory, with which of its own flags, and on which store.

Measured on 2.1.327: it finds a session by its id from any directory, and notes the directory that it was started in
with every row from then on. `--resume-session-at` it obeys with `--print` alone; without it the flag is passed over in
silence. A row that is not of the conversation that it loads, as one of another branch, it refuses. In both cases the
head is moved before it is started.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import NoReturn, TypeVar
from uuid import uuid4

import click
import msgspec

from clew import defaults
from clew.cli import render
from clew.cli.group import Command
from clew.cli.options import Settings, warn
from clew.engines.contract import Engine
from clew.engines.peek import first_cwd
from clew.errors import ClewError, NotFound, StorageError, UsageError
from clew.layouts.claude import LOG_SUFFIX, is_session_id
from clew.resume.look import Look
from clew.session import Session
from clew.store import Store

CLIENT = "claude"
FOR_THE_CLIENT = "for the client"
"""Under this name a call has what stands behind `--`."""
CLIENT_VARIABLE = "CLEW_CLAUDE"
"""Names another program than the `claude` of the PATH."""
PRINT_FLAGS = frozenset({"-p", "--print"})
RELOCATED = b'"relocatedCwd"'


R = TypeVar("R")


class Wish(msgspec.Struct, frozen=True):
    """What the person asked for besides the session."""

    at: str | None = None
    is_fork: bool = False
    new_id: str | None = None
    directory: str | None = None
    client: str | None = None
    is_dry: bool = False
    """Whether what would be typed is only printed."""
    arguments: tuple[str, ...] = ()

    @property
    def prints(self) -> bool:
        """Whether the client answers one prompt and ends."""
        return not PRINT_FLAGS.isdisjoint(self.arguments)


class WithArguments(Command):
    """What stands behind `--` is for the client: it is no argument of ours, whether or not a session was named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[FOR_THE_CLIENT] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


OPTIONS = (
    click.option("--at", metavar="POINT", help="Go on from there: UUID, msg:MESSAGE_ID, time:ISO or turn:N."),
    click.option("--fork", "is_fork", is_flag=True, help="In a new session, which begins with this conversation."),
    click.option("--id", "new_id", metavar="UUID", help="The id of the new session."),
    click.option("--in", "directory", metavar="DIR", help="Start it there, not in the session's own directory."),
    click.option("--client", metavar="PATH", help="Claude Code's program.  [default: $CLEW_CLAUDE, claude]"),
    click.option("--dry-run", "is_dry", is_flag=True, help="Only print what would be typed."),
)


def wishing(function: Callable[..., R]) -> Callable[..., R]:
    """Gives a command the options that say how the client is started, and passes them on as one `wish`."""

    @wraps(function)
    def command(
        context: click.Context,
        *,
        at: str | None,
        is_fork: bool,
        new_id: str | None,
        directory: str | None,
        client: str | None,
        is_dry: bool,
        **named: object,
    ) -> R:
        arguments = context.meta[FOR_THE_CLIENT]
        wish = checked(Wish(at, is_fork, new_id, directory, client, is_dry, arguments))
        return function(context, wish=wish, **named)

    for option in reversed(OPTIONS):
        command = option(command)
    return command


class Place(msgspec.Struct, frozen=True):
    """Where the client is to be started; where that cannot be, `named` is what the rows say and `why` what is wrong."""

    directory: str | None
    named: str | None = None
    why: str = ""


def checked(wish: Wish) -> Wish:
    """The wish itself. Raises `UsageError` for one that contradicts itself."""
    if wish.new_id is not None and not wish.is_fork:
        raise UsageError("--id is the id of a fork, and --fork is not there", hint="add --fork")
    if wish.new_id is not None and not is_session_id(wish.new_id):
        raise UsageError(f"{wish.new_id!r:.80} is no id that Claude Code takes", hint="give a UUID, or no id at all")
    if wish.directory is not None and not os.path.isdir(wish.directory):
        raise NotFound(f"there is no directory {wish.directory!r:.400}", hint="name one that is there: --in DIR")
    return wish


def place_of(session: Session, settings: Settings, wish: Wish) -> Place:
    """The directory of a session, as its own rows name it.

    It counts only if it is the one that its project's key was made of: what a row says is a claim, and a file that lies
    elsewhere has no project that could confirm it.
    """
    if wish.directory is not None:
        return Place(os.path.abspath(wish.directory))
    store = settings.store()
    if session.engine.url != store.engine.url:
        return Place(os.path.abspath("."))
    place = _named_by(session, store)
    if place.directory is None and _is_here(session, store):
        # Where the person stands is a directory of the project, too: that of an empty log, or one that was moved.
        return Place(os.path.abspath("."))
    return place


def _named_by(session: Session, store: Store) -> Place:
    moved = next((digest.cwd for _, digest in Look(store).digests(RELOCATED, [session.stat()])), None)
    named = moved or first_cwd(session.lines())
    if named is None:
        return Place(None, None, "its rows name no directory")
    if not os.path.isabs(named) or "\0" in named or session.project not in store.own_projects(named):
        if session.project in store.engine.projects_for(named, store.keys) and os.path.islink(named):
            real = os.path.realpath(named)
            return Place(None, named, f"its directory {named!r:.400} is a link now, to {real!r:.400}")
        return Place(None, named, f"its rows name {named!r:.400}, which is not the directory of its project")
    if not os.path.isdir(named):
        is_other = os.path.lexists(named)
        return Place(None, named, f"its directory {'is no directory now' if is_other else 'is gone'}: {named!r:.400}")
    return Place(named)


def _is_here(session: Session, store: Store) -> bool:
    try:
        return session.project in store.own_projects(os.path.abspath("."))
    except OSError:  # The directory that we stand in was removed.
        return False


def command_of(session: Session, settings: Settings, wish: Wish, *, uuid: str | None = None) -> list[str]:
    """What is typed in the session's directory to go on with it; `uuid` is the row that it ends with then."""
    engine = session.engine
    is_own = engine.url == settings.store().engine.url
    what = ["--resume", session.id if is_own and session.project else os.path.abspath(session.where)]
    if is_own and session.stat().size_bytes == 0:
        what = ["--continue"]  # By its id the client finds no conversation in it; so it goes on with it all the same.
    at = [] if uuid is None else ["--resume-session-at", uuid]
    fork = ["--fork-session"] if wish.is_fork else []
    new_id = [] if wish.new_id is None else ["--session-id", wish.new_id]
    command = [_named_client(wish) or CLIENT, *what, *at, *fork, *new_id, *wish.arguments]
    config = _other_config_dir(settings)
    return command if config is None else ["env", f"CLAUDE_CONFIG_DIR={config}", *command]


def why_not(session: Session) -> UsageError | None:
    """Why the client cannot be started on a session at all."""
    if session.engine.capabilities.is_clients and session.is_agent:
        return UsageError(f"{session.id} is a subagent, which is not resumed", hint="resume the session that it is of")
    return why_unread(session.engine)


def why_unread(engine: Engine) -> UsageError | None:
    """Why the client can be started on no session of an engine."""
    if engine.capabilities.is_clients:
        return None
    return UsageError(
        f"Claude Code does not read {engine.url}, where this session is",
        hint=f"copy it to where the client looks: clew copy {shlex.quote(engine.url)} claude:",
    )


def point_of(session: Session, wish: Wish) -> str | None:
    """The uuid of the row that `--at` names, whatever it names it by."""
    if wish.at is None:
        return None
    records = session.chain(wish.at).records
    uuid = records[-1].uuid if records else None
    if uuid is None:
        raise NotFound(f"{wish.at!r:.80} is no row to go on from", hint=f"clew tree {session.id} shows its rows")
    return uuid


def obeys(session: Session, wish: Wish, uuid: str) -> bool:
    """Whether the client goes on at this row by its own flag."""
    return wish.prints and any(record.uuid == uuid for record in session.chain().records)


def go_on(session: Session, settings: Settings, wish: Wish) -> None:
    """Starts the client, or only prints what would be typed."""
    if wish.is_dry:
        _rehearse(session, settings, wish)
    else:
        _start(session, settings, wish)


def _start(session: Session, settings: Settings, wish: Wish) -> NoReturn:
    """Starts the client in the place of this process."""
    _check(session)
    uuid = point_of(session, wish)
    directory = _directory(session, settings, wish, may_ask=True)
    program = _named_client(wish) or shutil.which(CLIENT)
    if program is None:
        hint = "install Claude Code, or name it: --client PATH"
        raise NotFound(f"there is no program {CLIENT} on the PATH", hint=hint)
    if session.is_live and not wish.is_fork:
        warn(settings, f"{session.id} runs in another client already; each of them will have a head of its own")
    if uuid is not None and not obeys(session, wish, uuid):
        session, wish = _moved(session, settings, wish, uuid)
        uuid = None
    # A PATH may have relative places, and we go to another directory first.
    _become(command_of(session, settings, wish, uuid=uuid), os.path.abspath(program), directory)


def _rehearse(session: Session, settings: Settings, wish: Wish) -> None:
    """Prints what a person would type for the same."""
    _check(session)
    uuid = point_of(session, wish)
    lines = [f"cd {shlex.quote(_directory(session, settings, wish, may_ask=False))}"]
    if uuid is not None and not obeys(session, wish, uuid):
        call, name = "fork" if wish.is_fork else "truncate", shlex.quote(_named(session, settings, session.id))
        lines.append(f"clew {call}{settings.words} {name} --at {shlex.quote(uuid)}")
        if wish.is_fork:
            # The client forks only what it would resume, so clew forks, under an id that is known before.
            new_id = wish.new_id or str(uuid4())
            lines[-1] += f" --id {new_id}"
            words = [_named(session, settings, new_id), *_words_of(wish)]
            lines.append(f"clew resume{settings.words} {shlex.join(words)}")
            click.echo(render.neutral("\n".join(lines)))
            return
        uuid = None
    lines.append(shlex.join(command_of(session, settings, wish, uuid=uuid)))
    click.echo(render.neutral("\n".join(lines)))


def _named(session: Session, settings: Settings, id_: str) -> str:
    """What names that session, or a fork of it: beside a file that lies elsewhere its id would be another's."""
    if session.engine.url == settings.store().engine.url:
        return id_
    return os.path.join(os.path.dirname(os.path.abspath(session.where)), f"{id_}{LOG_SUFFIX}")


def _words_of(wish: Wish) -> list[str]:
    """What of it is for the start alone."""
    directory = [] if wish.directory is None else ["--in", os.path.abspath(wish.directory)]
    client = [] if wish.client is None else ["--client", wish.client]
    return [*directory, *client, *(["--", *wish.arguments] if wish.arguments else [])]


def _check(session: Session) -> None:
    refused = why_not(session)
    if refused is not None:
        raise refused


def _moved(session: Session, settings: Settings, wish: Wish, uuid: str) -> tuple[Session, Wish]:
    """What is started where the client does not obey its flag: the session with its head moved, or a fork of it."""
    if wish.is_fork:
        fork = session.fork(at=uuid, id=wish.new_id)
        return fork, msgspec.structs.replace(wish, is_fork=False, new_id=None)
    truncated = session.truncate(uuid)
    if truncated.operation is not None:
        undo = f"clew undo{settings.words} {truncated.operation[:8]}"
        warn(settings, f"moved the head back by {render.plural(truncated.dropped, 'message')}; undo it: {undo}")
    return session, wish


def _directory(session: Session, settings: Settings, wish: Wish, *, may_ask: bool) -> str:
    place = place_of(session, settings, wish)
    if place.directory is not None:
        return place.directory
    if may_ask and is_terminal(settings):
        click.echo(f"{render.neutral(session.id)}: {render.neutral(place.why)}")
        answer = str(
            click.prompt("Start Claude Code in which directory?", default=".", type=click.Path(file_okay=False))
        )
        if not os.path.isdir(answer):
            raise NotFound(f"there is no directory {answer!r:.400}", hint="name one that is there: --in DIR")
        return os.path.abspath(answer)
    hint = f"start it somewhere else: clew resume{settings.words} {session.id} --in DIR"
    raise NotFound(f"{session.id}: {place.why}", hint=hint)


def is_terminal(settings: Settings) -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not settings.is_json


def _named_client(wish: Wish) -> str | None:
    """The program that was named instead of the one on the PATH. Raises `NotFound` when it is none."""
    named = wish.client or os.environ.get(CLIENT_VARIABLE)
    if not named:
        return None
    found = shutil.which(named)
    if found is None:
        hint = f"name Claude Code's: --client PATH, ${CLIENT_VARIABLE}"
        raise NotFound(f"there is no program {named!r:.400}", hint=hint)
    return os.path.abspath(found)


def _other_config_dir(settings: Settings) -> str | None:
    """The store's directory, where the client would look into another one."""
    if not settings.store().engine.capabilities.is_clients:
        return None  # A session that a path named, while the store is none that the client could open.
    place = settings.store().place
    try:
        return None if place == str(defaults.config_dir()) else place
    except ClewError:
        return place


def _become(command: Sequence[str], program: str, directory: str) -> NoReturn:
    environment, words = dict(os.environ), [*command]
    if words[0] == "env":
        name, _, value = words[1].partition("=")
        environment[name] = value
        words = words[2:]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.chdir(directory)
        os.execve(program, words, environment)  # No shell: its own words, each as it is.
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        where = f"{program!r:.400} cannot be started in {directory!r:.400}"
        raise StorageError(f"{where}: {why}", hint="name another program: --client PATH") from None


def document(session: Session | None, settings: Settings, wish: Wish, **more: object) -> dict[str, object]:
    """What would be started, for programs. Nothing is changed."""
    told: dict[str, object] = {
        "kind": "session", "session_id": None, "project": None, "cwd": None, "path": None, "url": None, "query": None,
        "candidates": [], "command": None,
    }  # fmt: skip
    if session is not None:
        place = place_of(session, settings, wish)
        refused, uuid = why_not(session), point_of(session, wish)
        told |= {
            "session_id": session.id, "project": session.project, "path": session.where, "cwd": place.directory,
            "command": None if refused else command_of(session, settings, wish, uuid=uuid),
        }  # fmt: skip
        if refused is None and uuid is not None and not obeys(session, wish, uuid):
            flag = " --fork" if wish.is_fork else ""
            way = f"clew resume{settings.words} {session.id} --at {uuid}{flag}"
            warn(settings, f"Claude Code would not go on there by this command; this one does it: {way}")
        told["kind"] = "session" if session.engine.url == settings.store().engine.url else "file"
        why = refused.message if refused is not None else place.why
        if why:
            warn(settings, why)
    return told | more
