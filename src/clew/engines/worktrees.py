"""The worktrees of a repository, read from its `.git` files without running git.

A `.git` file may come from anywhere, and what is found here widens what a person sees as "this project". So a path
counts only when both ends say it: the repository names the worktree, and the worktree, as long as it exists, names
the repository.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import msgspec

from clew.engines.filesystem import FileSystem, read_small

POINTER_BYTES_MAX = 16 * 1024
"""A `.git` file, `gitdir` or `commondir` holds one path, and no path is longer than 4,096 bytes on the systems we
know.
"""
WORKTREES_MAX = 1_000
"""More worktrees of one repository are not looked at."""

_GITDIR = b"gitdir:"


class _Repository(msgspec.Struct, frozen=True):
    """`top` is the working directory that was found, `own` its git directory, `common` the one that all worktrees
    share, or None where the repository does not confirm what the `.git` file claims.
    """

    top: str
    own: str
    common: str | None


def worktrees(fs: FileSystem, cwd: str) -> list[str]:
    """The top directories of all worktrees of the repository that `cwd` lies in: the main one first, then by path.

    Worktrees that were removed from the disk are in it as long as the repository remembers them, since their sessions
    may be there still. Empty outside a repository. Broken or hostile pointers are left out, never followed by force.
    """
    repository = _repository_of(fs, cwd)
    if repository is None:
        return []
    main = _main_of(repository)
    named = _linked(fs, repository.common) if repository.common is not None else set()
    linked = sorted({repository.top, *named} - {main})
    return linked if main is None else [main, *linked]


def repository_root(fs: FileSystem, cwd: str) -> str | None:
    """One directory that stands for a repository, the same for all its worktrees. None outside a repository."""
    repository = _repository_of(fs, cwd)
    if repository is None:
        return None
    return _main_of(repository) or repository.common


def _repository_of(fs: FileSystem, cwd: str) -> _Repository | None:
    """The repository of the nearest directory upwards that has a `.git`, as git itself looks for it."""
    for top in (cwd, *map(str, PurePosixPath(cwd).parents)):
        dot_git = f"{top.rstrip('/')}/.git"
        if _is_repository(fs, dot_git):
            return _Repository(top, dot_git, dot_git)
        pointer = _pointer(fs, dot_git, _GITDIR)
        if pointer is not None:
            return _repository_behind(fs, top, dot_git, _joined(top, pointer))
    return None


def _repository_behind(fs: FileSystem, top: str, dot_git: str, own: str) -> _Repository:
    """The repository of a worktree or a submodule, whose `.git` is a file that names `own`."""
    shared = _pointer(fs, f"{own}/commondir")
    back = _pointer(fs, f"{own}/gitdir")
    if shared is None or back is None or not _same(fs, _joined(own, back), dot_git):
        # A submodule, or a claim that the repository does not confirm: it stands for itself, and for nothing else.
        return _Repository(top, own, None)
    return _Repository(top, own, _joined(own, shared))


def _main_of(repository: _Repository) -> str | None:
    """The working directory beside the shared git directory. A bare repository has none."""
    if repository.common is None or repository.own == repository.common:
        return repository.top
    parent, name = os.path.split(repository.common)
    return parent if name == ".git" else None


def _linked(fs: FileSystem, common: str) -> set[str]:
    """The worktrees that the repository names and that do not deny it."""
    folder = f"{common}/worktrees"
    try:
        entries = fs.scan(folder)
    except OSError:
        return set()
    found = set()
    for entry in sorted(entries, key=lambda entry: entry.name)[:WORKTREES_MAX]:
        own = f"{folder}/{entry.name}"
        pointer = _pointer(fs, f"{own}/gitdir")
        if pointer is None:
            continue
        top, name = os.path.split(_joined(own, pointer))
        if name == ".git" and top != "/" and _agrees(fs, top, own):
            found.add(top)
    return found


def _agrees(fs: FileSystem, top: str, own: str) -> bool:
    """Whether the directory's `.git` names `own` in turn. One that is gone cannot deny it."""
    try:
        fs.stat(top)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    back = _pointer(fs, f"{top}/.git", _GITDIR)
    return back is not None and _same(fs, _joined(top, back), own)


def _is_repository(fs: FileSystem, path: str) -> bool:
    """A `.git` directory without a HEAD is none to git either, and it looks further up."""
    return read_small(fs, f"{path}/HEAD") is not None


def _pointer(fs: FileSystem, path: str, prefix: bytes = b"") -> str | None:
    """The one path that a small file holds after the prefix, or None for anything else."""
    data = read_small(fs, path, POINTER_BYTES_MAX)
    if data is None or not data.startswith(prefix):
        return None
    text = data.removeprefix(prefix).strip()
    return text.decode("utf-8", "surrogateescape") if text and b"\0" not in text and b"\n" not in text else None


def _joined(folder: str, pointer: str) -> str:
    return os.path.normpath(PurePosixPath(folder, pointer))


def _same(fs: FileSystem, one: str, other: str) -> bool:
    return one == other or fs.real_path(one) == fs.real_path(other)
