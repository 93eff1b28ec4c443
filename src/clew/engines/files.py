# ruff: noqa: ARG002 - Nothing is written here yet.
"""Claude Code's own sessions: what `files_reader` reads, and writing beside a client that may write too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.engines.contract import Appended, Aside, BlobKey, Capabilities, Entry, LogKey
from clew.engines.files_reader import FilesReader
from clew.errors import StorageError


class FilesEngine(FilesReader):
    """The logs and blobs below a config directory of the client."""

    capabilities = Capabilities(
        cas="cooperative", atomic_batch=False, atomic_summary=False, dedupes_sublogs=False, is_clients=True
    )

    def append(
        self,
        key: LogKey,
        entries: Sequence[Entry],
        *,
        batch_id: str | None = None,
        expect: str | None = None,
        summary: bytes | None = None,
        keep_time: bool = False,
    ) -> Appended:
        raise self._refused(key)

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        raise self._refused(key)

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        raise self._refused(key)

    def delete(self, key: LogKey) -> bool:
        raise self._refused(key)

    def set_aside(self, key: LogKey, operation: str) -> Aside:
        raise self._refused(key)

    def bring_back(self, operation: str) -> Aside:
        raise self._refused(LogKey("", operation))

    def free_aside(self, operation: str) -> Aside:
        raise self._refused(LogKey("", operation))

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        raise self._refused(LogKey(key.project, key.session))

    def delete_blob(self, key: BlobKey) -> bool:
        raise self._refused(LogKey(key.project, key.session))

    def _refused(self, key: LogKey) -> StorageError:
        return StorageError(f"{self.url} is read-only: nothing was changed at {key.session}")
