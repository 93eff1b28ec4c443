"""Sessions that were set aside: moved, file by file or folder by folder, to where no other method looks.

What an operation took lies in its own folder under the path that it had, so bringing it back needs no list. The main
log goes first and comes back last: without it nothing of the session is shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from clew.engines.contract import Aside
from clew.engines.filesystem import FileSystem, failures_of, shown_path
from clew.engines.whole import exists, is_rest_of, is_temporary, move, remove, remove_if_empty
from clew.errors import Conflict, StorageError
from clew.layouts.claude import LOG_SUFFIX, ClaudeLayout


class Trash:
    """The set-aside things of one operation, below `base`."""

    def __init__(self, fs: FileSystem, base: str, layout: ClaudeLayout, operation: str) -> None:
        self._fs = fs
        self._base = base
        self._layout = layout
        self._folder = f"{base}/{layout.trash(operation)}"

    def take(self, relatives: Sequence[str]) -> Aside:
        """Moves these paths into the trash, in order; those that are not there are passed over."""
        self._must_be_no_link()
        taken = Aside()
        for relative in relatives:
            source, target = f"{self._base}/{relative}", f"{self._folder}/{relative}"
            with failures_of(source, "moved"):
                if not exists(self._fs, source):
                    continue
                if exists(self._fs, target) and is_rest_of(self._fs, source, target):
                    remove(self._fs, source)
                    continue
                if exists(self._fs, target):
                    raise Conflict(
                        f"{shown_path(source)} was set aside before and has come back",
                        hint="look at it, and delete it as an operation of its own",
                    )
                move(self._fs, source, target)
            taken = _sum(taken, self._count(target))
        return taken

    def bring_back(self) -> Aside:
        """Moves everything back. Raises `Conflict`, and moves nothing, when something stands in its place."""
        self._must_be_no_link()
        items = [*self._items()]
        for relative in items:
            source, target = f"{self._folder}/{relative}", f"{self._base}/{relative}"
            if exists(self._fs, target) and not is_rest_of(self._fs, source, target):
                raise Conflict(
                    f"{shown_path(target)} is there again, so nothing was brought back",
                    hint="move it away, or delete it first; then undo again",
                )
        told = Aside()
        for relative in sorted(items, key=lambda item: (item.endswith(LOG_SUFFIX), item)):
            source, target = f"{self._folder}/{relative}", f"{self._base}/{relative}"
            with failures_of(source, "moved"):
                told = _sum(told, self._count(source))
                if exists(self._fs, target):
                    remove(self._fs, source)
                else:
                    move(self._fs, source, target)
        with failures_of(self._folder, "removed"):
            self._remove_emptied()
        return told

    def _remove_emptied(self) -> None:
        """Removes what is left of the folder: copies that a crash cut off, and folders that nothing else is in.

        Whatever else is there was not brought back, so it stays.
        """
        waiting, folders = [self._folder], []
        while waiting:
            folders.append(waiting.pop())
            try:
                entries = self._fs.scan(folders[-1])
            except FileNotFoundError:
                continue
            for entry in entries:
                if is_temporary(entry.name):
                    remove(self._fs, entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        for folder in reversed(folders):
            remove_if_empty(self._fs, folder)

    def free(self) -> Aside:
        """Removes all of it for good."""
        self._must_be_no_link()
        told = self._count(self._folder)
        with failures_of(self._folder, "removed"):
            remove(self._fs, self._folder)
        remove_if_empty(self._fs, os.path.dirname(self._folder))
        return told

    def _must_be_no_link(self) -> None:
        """Raises `StorageError` for a link in the place of the folder: what it leads to is not what was set aside."""
        above, name = os.path.split(self._folder)
        with failures_of(self._folder):
            try:
                entries = self._fs.scan(above)
            except FileNotFoundError:
                return
        if any(entry.name == name and entry.is_symlink() for entry in entries):
            raise _is_link(self._folder)

    def _items(self) -> Iterator[str]:
        """The paths that were moved as one, relative to the base."""
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            names = waiting.pop()
            folder = "/".join((self._folder, *names))
            with failures_of(folder):
                try:
                    entries = self._fs.scan(folder)
                except FileNotFoundError:
                    continue
            for entry in entries:
                below = (*names, entry.name)
                if is_temporary(entry.name):
                    continue
                if self._layout.is_taken_whole(below):
                    yield "/".join(below)
                elif entry.is_symlink():
                    raise _is_link(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(below)

    def _count(self, path: str) -> Aside:
        """How many logs and other files are at and below a path in the trash."""
        waiting, told = [path], Aside()
        while waiting:
            one = waiting.pop()
            try:
                entries = self._fs.scan(one)
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                size = self._fs.stat(one).st_size
                told = _sum(told, Aside(1, 0, size) if one.endswith(LOG_SUFFIX) else Aside(0, 1, size))
                continue
            waiting += [entry.path for entry in entries if not entry.is_symlink()]
        return told


def _is_link(path: str) -> StorageError:
    return StorageError(
        f"{shown_path(path)} is a link, and nothing behind it is touched",
        hint="look where it leads, and put the folder back in its place",
    )


def _sum(one: Aside, other: Aside) -> Aside:
    return Aside(one.logs + other.logs, one.blobs + other.blobs, one.size_bytes + other.size_bytes)
