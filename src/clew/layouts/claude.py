"""Where Claude Code keeps things under its config directory. Nothing else in clew knows these paths.

    projects/<key>/<session>.jsonl                          the main log
    projects/<key>/<session>/subagents/**/agent-<id>.jsonl  a sublog, and agent-<id>.meta.json beside it
    projects/<key>/<session>/subagents/workflows/<run>/journal.jsonl
    projects/<key>/<session>/tool-results/<id>.txt          output that was too long for its row
    projects/<key>/<session>/custom-title.json, archived.json
    projects/<key>/agent-<id>.jsonl                         the old place of a sublog; its rows name the session
    file-history/<session>/<hash>@v<n>                      what files were before an edit
    history.jsonl, sessions/<pid>.json                      prompts typed, and who runs now

and clew its own, under the same directory:

    clew/locks/<key>/<session>.lock                         who changes the session now
    clew/operations.lock                                    who is at an operation now
    clew/locks/<key>/<session>[/<subpath>].jnl              what was appended to a log last
    clew/sessions/<key>/<session>/<kind>/<name>             blobs of kinds that the client does not know
    clew/store/<kind>/<name>                                blobs of the whole store
    clew/trash/<operation>/<path as it was>                 what was set aside

Everything here is pure: names to relative POSIX paths and back. A log is addressed by project, session and subpath, the
three fields of a `LogKey`. Names from outside are checked before they become part of a path, and never repaired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

import msgspec

from clew.errors import UsageError

NAME_BYTES_MAX = 255
"""What file systems allow for one name. A longer one is refused here and not by the disk."""
SUBPATH_NAMES_MAX = 16
"""The client nests three deep (`subagents/workflows/<run>`); a subpath with more names than this is refused."""

LOG_SUFFIX = ".jsonl"
LOCK_SUFFIX = ".lock"
JOURNAL_SUFFIX = ".jnl"
OWN_FOLDER = "clew"
"""What clew keeps under the client's directory is below this, and nothing else is created there."""
CUSTOM_TITLE_NAME = "custom-title.json"
ARCHIVED_NAME = "archived.json"
_META_SUFFIX = ".meta.json"
_AGENT_PREFIX = "agent-"
_SESSION_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SESSION_ID_PART = re.compile(r"[0-9a-fA-F-]{1,36}")


class Kind(Enum):
    """What a file under the config directory is."""

    MAIN_LOG = "main log"
    STRAY_LOG = "stray log"
    """A `.jsonl` beside the sessions whose name is no session id. It can be read by its path, but neither the client
    nor `list` shows it."""
    SESSION_FOLDER = "session folder"
    SUBLOG = "sublog"
    FLAT_SUBLOG = "flat sublog"
    """The old place of a sublog. Its session is not in the path: the first row of the log names it."""
    META = "meta"
    TOOL_RESULT = "tool result"
    CUSTOM_TITLE = "custom title"
    ARCHIVED = "archived"
    SIDECAR = "sidecar"
    """Anything else in the folder of a session: kept and copied, not understood."""
    BACKUP = "backup"
    HISTORY = "history"
    LIVE = "live"
    FOREIGN = "foreign"
    """Not session data. Never read, copied or moved."""


class Place(msgspec.Struct, frozen=True):
    """What a relative path is. `name` is the subpath of a log, or the path below the folder of its session."""

    kind: Kind
    project: str = ""
    session: str = ""
    name: str = ""


_FOREIGN = Place(Kind.FOREIGN)
_BLOB_KINDS = frozenset(
    kind.value for kind in (Kind.META, Kind.TOOL_RESULT, Kind.CUSTOM_TITLE, Kind.ARCHIVED, Kind.SIDECAR, Kind.BACKUP)
)
"""Kinds of blobs that the client knows, or that lie in the folders it has for a session."""


class ClaudeLayout(msgspec.Struct, frozen=True):
    """The names, under a config directory; or with `loose`, under one folder of session files that someone copied
    elsewhere. There the key's project is ignored and there are no backups.
    """

    loose: bool = False

    def projects_folder(self) -> str:
        return "" if self.loose else "projects"

    def project_folder(self, project: str) -> str:
        """Raises `UsageError` for a project that is no safe name."""
        return "" if self.loose else f"projects/{checked(project, 'project')}"

    def log(self, project: str, session: str, subpath: str = "") -> str:
        """The relative path of a log.

        A subpath of one name `agent-…` is a flat sublog, beside the sessions; any other is below the session's folder.
        Raises `UsageError` for names that are not safe.
        """
        session = checked(session, "session", LOG_SUFFIX)
        if not subpath:
            return _joined(self.project_folder(project), session + LOG_SUFFIX)
        names = _checked_subpath(subpath)
        if is_flat(subpath):
            return _joined(self.project_folder(project), subpath + LOG_SUFFIX)
        return _joined(self.session_folder(project, session), "/".join(names) + LOG_SUFFIX)

    def session_folder(self, project: str, session: str) -> str:
        """Sublogs, tool results and sidecars are below it. It exists only when something needed it."""
        return _joined(self.project_folder(project), checked(session, "session"))

    def backups_folder(self, session: str) -> str | None:
        """Where the client keeps what files were before an edit; one folder for a session, whatever its project."""
        return None if self.loose else f"file-history/{checked(session, 'session')}"

    def blob(self, project: str, session: str, kind: str, name: str) -> str | None:
        """The relative path of a file of a session that is no log; None for a kind that has no place here.

        Kinds of the client's lie where it looks for them, all others below clew's own folder. Raises `UsageError` for
        names that are not safe, or that mean a file of another kind.
        """
        names = [checked(each, "file") for each in name.split("/")]
        if not session or kind not in _BLOB_KINDS:
            return _joined(self.own_blobs_folder(project, session), f"{checked(kind, 'kind')}/{name}")
        return self._clients_blob(project, session, Kind(kind), name, names)

    def _clients_blob(self, project: str, session: str, kind: Kind, name: str, names: Sequence[str]) -> str | None:
        if kind is Kind.BACKUP:
            folder = self.backups_folder(session)
            return None if folder is None else _joined(folder, name)
        is_beside = kind is Kind.META and is_flat(name)
        place = place_in_project(project, names) if is_beside else place_in_session(project, session, names)
        if place.kind is not kind:
            raise UsageError(f"{_shown(name)} is no name of a {kind.value}: there it would be a {place.kind.value}")
        return _joined(self.project_folder(project) if is_beside else self.session_folder(project, session), name)

    # What is clew's own.

    def own_blobs_folder(self, project: str, session: str) -> str:
        """Where blobs of clew's own kinds are, each kind in a folder; without a session, those of the whole store."""
        if not session:
            return f"{OWN_FOLDER}/store"
        folder = f"{OWN_FOLDER}/sessions" if self.loose else f"{OWN_FOLDER}/sessions/{checked(project, 'project')}"
        return _joined(folder, checked(session, "session"))

    def lock(self, project: str, session: str) -> str:
        """The file that whoever changes a session locks; without a session, the one for the whole store."""
        if not session:
            return f"{OWN_FOLDER}/store{LOCK_SUFFIX}"
        return self._beside_locks(self.log(project, session).removesuffix(LOG_SUFFIX) + LOCK_SUFFIX)

    def operations_lock(self) -> str:
        """The file that whoever changes the state of an operation locks."""
        return f"{OWN_FOLDER}/operations{LOCK_SUFFIX}"

    def journal(self, project: str, session: str, subpath: str = "") -> str:
        """Where is noted what was appended to a log last."""
        return self._beside_locks(self.log(project, session, subpath).removesuffix(LOG_SUFFIX) + JOURNAL_SUFFIX)

    def _beside_locks(self, log: str) -> str:
        return f"{OWN_FOLDER}/locks/{log.removeprefix('projects/')}"

    def is_taken_whole(self, names: Sequence[str]) -> bool:
        """Whether the path goes to the trash as one: what is above it belongs to more than one session."""
        if names[0] == OWN_FOLDER:
            return len(names) == (3 if self.loose else 4)
        depths = {"projects": 3, "file-history": 2}
        return len(names) == (1 if self.loose else depths.get(names[0], 0))

    def trash(self, operation: str) -> str:
        """What an operation set aside is below it, under the path that it had."""
        return f"{OWN_FOLDER}/trash/{checked(operation, 'operation')}"

    def settings(self) -> str | None:
        return None if self.loose else "settings.json"

    def history(self) -> str | None:
        return None if self.loose else "history.jsonl"

    def live_folder(self) -> str | None:
        return None if self.loose else "sessions"

    def place(self, relative: str) -> Place:
        """What a relative POSIX path is. Never raises: what is not known is `FOREIGN`."""
        names = relative.split("/")
        if not all(map(is_safe, names)):
            return _FOREIGN
        if self.loose:
            return place_in_project("", names)
        if relative == "history.jsonl":
            return Place(Kind.HISTORY)
        if names[0] == "sessions" and len(names) == 2 and names[1].endswith(".json"):
            return Place(Kind.LIVE, name=names[1])
        if names[0] == "file-history" and len(names) >= 3:
            return Place(Kind.BACKUP, session=names[1], name="/".join(names[2:]))
        if names[0] == "projects" and len(names) >= 3:
            return place_in_project(names[1], names[2:])
        return _FOREIGN


_CONFIG = ClaudeLayout()


def place_in_project(project: str, names: Sequence[str]) -> Place:
    """What a path below the folder of a project is."""
    first = names[0]
    if len(names) > 1:
        # `memory/` and whatever else lies there belongs to no session.
        return place_in_session(project, first, names[1:]) if is_session_id(first) else _FOREIGN
    if first.startswith(_AGENT_PREFIX):
        if first.endswith(LOG_SUFFIX):
            return Place(Kind.FLAT_SUBLOG, project, name=first.removesuffix(LOG_SUFFIX))
        return Place(Kind.META, project, name=first) if first.endswith(_META_SUFFIX) else _FOREIGN
    stem = first.removesuffix(LOG_SUFFIX)
    if stem == first:
        return Place(Kind.SESSION_FOLDER, project, first) if is_session_id(first) else _FOREIGN
    if not is_safe(stem):
        return _FOREIGN
    return Place(Kind.MAIN_LOG if is_session_id(stem) else Kind.STRAY_LOG, project, stem)


def config_root_of(names: Sequence[str]) -> tuple[int, Place] | None:
    """How many names of a path make up its config directory, and which log the rest is.

    None when it is no log below a `projects` folder. The innermost such folder counts.
    """
    for depth in range(len(names) - 1, -1, -1):
        if names[depth] == "projects":
            place = _CONFIG.place("/".join(names[depth:]))
            if place.kind in (Kind.MAIN_LOG, Kind.STRAY_LOG, Kind.SUBLOG, Kind.FLAT_SUBLOG):
                return depth, place
    return None


def place_in_session(project: str, session: str, names: Sequence[str]) -> Place:
    """What a path below the folder of a session is. Every file there is a sublog or a blob, so a copy of both is
    whole.
    """
    name = "/".join(names)
    if names[0] == "tool-results" and len(names) > 1:
        return Place(Kind.TOOL_RESULT, project, session, name)
    stem = name.removesuffix(LOG_SUFFIX)
    last = stem.rpartition("/")[2]
    # A file `agent-….jsonl` right in the folder has no subpath of its own: that one means the flat sublog beside it.
    if stem != name and is_safe(last) and not is_flat(stem) and len(names) <= SUBPATH_NAMES_MAX:
        return Place(Kind.SUBLOG, project, session, stem)
    if name.endswith(_META_SUFFIX):
        return Place(Kind.META, project, session, name)
    kinds = {CUSTOM_TITLE_NAME: Kind.CUSTOM_TITLE, ARCHIVED_NAME: Kind.ARCHIVED}
    return Place(kinds.get(name, Kind.SIDECAR), project, session, name)


def is_session_id(name: str) -> bool:
    """The client shows and resumes only UUIDs, of any version and in any case."""
    return _SESSION_ID.fullmatch(name) is not None


def is_part_of_session_id(prefix: str) -> bool:
    """Whether some session id may begin so."""
    return _SESSION_ID_PART.fullmatch(prefix) is not None


def is_flat(subpath: str) -> bool:
    """Whether the subpath means a sublog in the old place, beside the sessions."""
    return subpath.startswith(_AGENT_PREFIX) and "/" not in subpath


def flat_meta(subpath: str) -> str:
    """The file name of what is noted about a flat sublog."""
    return subpath + _META_SUFFIX


def is_safe(name: str, suffix: str = "") -> bool:
    """Whether the name, with its suffix, is one name of a file and nothing else."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        return False
    try:
        return len((name + suffix).encode("utf-8", "surrogateescape")) <= NAME_BYTES_MAX
    except UnicodeEncodeError:
        return False


def checked(name: str, what: str, suffix: str = "") -> str:
    """The name itself. Raises `UsageError` for one that could be more than one name of a file."""
    if is_safe(name, suffix):
        return name
    raise UsageError(
        f"{_shown(name)} is no name of a {what}: it is empty, too long, or would lead to another folder",
        hint="list the sessions there are with `clew ls --all`",
    )


def _checked_subpath(subpath: str) -> list[str]:
    names = subpath.split("/")
    if len(names) > SUBPATH_NAMES_MAX:
        raise UsageError(
            f"the subpath {_shown(subpath)} has {len(names)} names; {SUBPATH_NAMES_MAX} are the most",
            hint="list the session's other logs first",
        )
    last = len(names) - 1
    return [checked(name, "sublog", LOG_SUFFIX if at == last else "") for at, name in enumerate(names)]


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _shown(name: str) -> str:
    """A name that may be hostile, short and in plain characters."""
    return ascii(name if len(name) <= 80 else name[:80] + "...")
