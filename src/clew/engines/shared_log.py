"""Appending to one log that other programs append to as well.

Our own processes wait for each other by a lock on a side file, our own threads by `rounds`: whoever is first takes
along what the others want to append, and one flush of the disk serves them all. An append, and where a crash may come:

    journal    what is to be appended, and where the log ended         (a retry finds what of it stands in the log)
    log        one write of whole lines                                (a crash keeps a prefix of them)
    flush      of the file, and of the folder where the file is new
    look       whether the path still means the file that was written  (else the rows go to the new one, too)
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager, suppress

import msgspec

from clew.engines.appending import Placed, Waiting, place_at_end
from clew.engines.contract import TICK_NS, Appended, Entry, LogKey
from clew.engines.dedupe import DedupeStore
from clew.engines.filesystem import FileSystem, failures_of, shown_path
from clew.engines.journal import ROWS_BYTES_MAX, Journal, Noted, written_of
from clew.engines.known_rows import KnownRows, lines_of
from clew.engines.rounds import Rounds
from clew.engines.whole import make_dirs, write_whole
from clew.errors import ClewError, Conflict, StorageError
from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Record

REWRITE_NS = 60_000_000_000
"""Another program that replaces a log by a copy needs no longer than this between reading and renaming."""
REPLACED_TRIES_MAX = 3
GROUP_BYTES_MAX = 1024 * 1024
"""Small appends that came together are written together, up to so many bytes."""


class Names(msgspec.Struct, frozen=True):
    """Where the files of one log are."""

    log: str
    journal: str
    lock: str


class Want(msgspec.Struct):
    """One append that waits for its round, and what came of it."""

    entries: Sequence[Entry]
    batch_id: str | None = None
    expect: str | None = None
    keep_time: bool = False
    answer: Appended | None = None
    error: ClewError | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it may be written together with others: nothing has to be known of the state between them."""
        return self.batch_id is None and self.expect is None and not self.keep_time


def revision_of(stat: os.stat_result | None, size: int | None = None) -> str:
    """The token for this state of a file. The inode tells a file that was replaced by rename from one that grew.

    With a `size` that is not the file's it is the token of a state that is over: nothing is at it any more.
    """
    return "" if stat is None else f"{stat.st_ino:x}-{stat.st_size if size is None else size:x}-{stat.st_mtime_ns:x}"


@contextmanager
def held(fs: FileSystem, path: str) -> Iterator[io.RawIOBase]:
    """Holds a lock; its folder is made where it is missing."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(fs.lock(path))
        except FileNotFoundError:
            # Another thread may have made the folder since, which is just as well.
            make_dirs(fs, os.path.dirname(path))
            file = stack.enter_context(fs.lock(path))
        yield file


@contextmanager
def alone_at(fs: FileSystem, path: str) -> Iterator[None]:
    """Holds a lock as `LogStore.alone` says. What cannot be locked is told; what fails inside is left as it is."""
    with ExitStack() as stack:
        with failures_of(path, "locked"):
            stack.enter_context(held(fs, path))
        yield


class SharedLog:
    """Appends to one log. Threads may share it; each process has its own."""

    def __init__(
        self,
        fs: FileSystem,
        key: LogKey,
        names: Names,
        *,
        dedupe: DedupeStore,
        pause: Callable[[float], None],
        has_ids: bool,
        is_synced: bool,
    ) -> None:
        self.fs = fs
        self.key = key
        self.names = names
        self.known = KnownRows(key, dedupe)
        self.journal = Journal(fs, names.journal)
        self.has_ids = has_ids
        self.is_synced = is_synced
        self.gone: int | None = None
        """The inode of the file that was deleted here last: a new one must not be taken for it."""
        self._pause = pause
        self._rounds = Rounds(self._serve, gathers=is_synced)
        self._flushing = threading.Lock()
        self._is_dirty = False

    def append(self, want: Want) -> Appended:
        """Waits for its round. Raises what went wrong with this append; others of the same round have their own."""
        self._rounds.take(want)
        if want.answer is None:
            raise want.error or StorageError("the append was interrupted", is_permanent=False)
        return want.answer

    def _serve(self, wants: Sequence[Want]) -> None:
        try:
            with failures_of(self.names.log, "written"), held(self.fs, self.names.lock) as lock:
                waiting = Waiting(self._pause, lambda: self.fs.now_ns(lock))
                answers = _Round(self, waiting).serve(wants)
        except ClewError as error:
            for want in wants:
                want.error = want.error or error
        except BaseException:
            for want in wants:
                want.error = want.error or StorageError("the append was interrupted", is_permanent=False)
            raise
        else:
            self._is_dirty |= not self.is_synced
            for want, answer in zip((want for want in wants if want.error is None), answers, strict=True):
                want.answer = answer

    def flush(self) -> None:
        """Brings to the disk what was appended without a flush, to the file that the path means by now."""
        with self._flushing:
            was_dirty, self._is_dirty = self._is_dirty, False
            if not was_dirty:
                return
            try:
                with failures_of(self.names.log, "written"), suppress(FileNotFoundError):
                    with held(self.fs, self.names.lock) as lock:
                        _Round(self, Waiting(self._pause, lambda: self.fs.now_ns(lock))).serve(())
                    with self.fs.open_append(self.names.log, make=False) as file:
                        self.fs.sync(file)
                    self.fs.sync_dir(os.path.dirname(self.names.log))
            except BaseException:
                self._is_dirty = True
                raise


class _Round:
    """What happens while the lock is held: the appends of one round, one after the other, and one flush for all."""

    def __init__(self, log: SharedLog, waiting: Waiting) -> None:
        self._log = log
        self._fs = log.fs
        self._path = log.names.log
        self._waiting = waiting
        self._file: io.RawIOBase | None = None
        self._stat: os.stat_result | None = None
        """How the open file was when it was looked at, or as our last write left it."""
        self._written: list[tuple[Placed, bytes]] = []
        self._notes: tuple[str, ...] = ()

    def serve(self, wants: Sequence[Want]) -> list[Appended]:
        """The answers of those that got no error, in order. All they say is on the disk, if that was asked."""
        answers: list[Appended] = []
        try:
            self._open()
            rows, is_late = self._notes_of_others()
            self._bring_back_lost(rows, is_late=is_late)
            for group in _groups(wants):
                try:
                    answers += [self._append(group[0])] if len(group) == 1 else self._append_together(group)
                except ClewError as error:
                    for want in group:
                        want.error = error
            self._settle()
        finally:
            self._close()
        if self._notes:
            answers = [msgspec.structs.replace(each, notes=each.notes + self._notes) for each in answers]
        return answers

    def _open(self) -> None:
        self._close()
        with suppress(FileNotFoundError):
            self._file = self._fs.open_append(self._path, make=False)
            self._stat = self._fs.size_and_time(self._file)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = self._stat = None

    # One append.

    def _append(self, want: Want) -> Appended:
        stat = self._stat
        there, is_retry = self._there(want, stat)
        if want.expect is not None and not is_retry and want.expect != revision_of(stat):
            raise Conflict(
                f"{shown_path(self._path)} is at revision {revision_of(stat) or 'none'}, "
                f"not at {want.expect or 'none'} as expected",
                hint="read what was added, then append again",
            )
        new = [entry for at, entry in enumerate(want.entries) if at not in there] if there else want.entries
        if not new:
            return Appended(revision_of(stat), 0, len(want.entries))
        placed, after = self._write(new, want)
        return Appended(revision_of(after), len(new), len(want.entries) - len(new), placed.notes)

    def _append_together(self, wants: Sequence[Want]) -> list[Appended]:
        """The answers of plain appends, written as one. All but the last tell a revision that is over."""
        stat = self._stat
        there, _ = self._there(Want([entry for want in wants for entry in want.entries]), stat)
        counts: list[tuple[int, int]] = []
        new: list[Entry] = []
        at = size = 0
        for want in wants:
            mine = [entry for number, entry in enumerate(want.entries, at) if number not in there]
            at, size = at + len(want.entries), size + sum(len(entry.data) + 1 for entry in mine)
            new += mine
            counts.append((len(mine), size))
        if not new:
            return [Appended(revision_of(stat), 0, len(want.entries)) for want in wants]
        placed, after = self._write(new, Want(new))
        left = after.st_size - size
        return [
            Appended(revision_of(after, left + end), written, len(want.entries) - written, placed.notes)
            for want, (written, end) in zip(wants, counts, strict=True)
        ]

    def _write(self, entries: Sequence[Entry], want: Want) -> tuple[Placed, os.stat_result]:
        """Writes rows that are not there yet. Returns where they are, and how the file is then."""
        rows = b"\n".join([entry.data for entry in entries]) + b"\n"
        ids = [mark for mark in self._ids_of(entries) if mark]
        # Only rows that nothing but the journal can tell from others need it on the disk first.
        has_doubles = want.expect is not None or len(ids) < len(entries)
        placed = self._place(want.batch_id, rows, is_durable=want.batch_id is not None and has_doubles)
        after = self._timed(placed, keep_time=want.keep_time)
        self._log.known.add(after, placed.start, placed.end, ids, rows)
        return placed, after

    def _ids_of(self, entries: Sequence[Entry]) -> list[str | None]:
        return [entry.dedupe_id for entry in entries] if self._log.has_ids else [None] * len(entries)

    def _there(self, want: Want, stat: os.stat_result | None) -> tuple[set[int], bool]:
        """Which entries are in the log already, by number, and whether an earlier try of this batch wrote any."""
        marks = self._ids_of(want.entries)
        ids = {mark for mark in marks if mark}
        known: AbstractSet[str] = frozenset()
        if self._file is not None and stat is not None:
            known = self._log.known.among(self._file, stat, ids)
        there: set[int] = set()
        if known or len(ids) < len(marks):
            again = {*known}
            for at, mark in enumerate(marks):
                if mark:
                    if mark in again:
                        there.add(at)
                    again.add(mark)
        if want.batch_id is None:
            return there, False
        found = self._found_of(want, stat, there)
        return there | found, bool(found)

    def _found_of(self, want: Want, stat: os.stat_result | None, there: set[int]) -> set[int]:
        notes = [noted for noted in self._log.journal.notes() if noted.inode]
        tries = [at for at, noted in enumerate(notes) if noted.batch == want.batch_id]
        if self._file is None or stat is None or not tries:
            return set()
        rows = [entry.data for entry in want.entries]
        found: set[int] = set()
        for at in tries:
            start, end = 0, stat.st_size
            if notes[at].inode == stat.st_ino:
                start = notes[at].start
                later = [each.start for each in notes[at + 1 :] if each.inode == stat.st_ino and each.start > start]
                end = min([end, *later])
            lines = self._lines_from(stat, start, end)
            may_skip = [number in there or number in found for number in range(len(rows))]
            found.update(written_of(rows, may_skip, lines))
        return found

    def _lines_from(self, stat: os.stat_result, start: int, end: int) -> Iterator[bytes]:
        """The last one may lack its newline: a row of ours that is whole but for that is there."""
        if self._file is None:
            return
        for line in lines_of(self._file, start, end):
            if not self._log.known.is_doubtful(stat, line.position):
                yield line.data

    def _place(self, batch: str | None, rows: bytes, *, is_durable: bool) -> Placed:
        """Notes the rows, then writes them. A new log appears with its first rows, or not at all."""

        def note(stat: os.stat_result) -> None:
            kept = rows if len(rows) <= ROWS_BYTES_MAX else None
            if kept is not None or batch is not None:
                noted = Noted(batch, stat.st_ino, stat.st_size, len(rows), kept)
                self._log.journal.note(noted, is_durable=is_durable)

        if self._file is None:
            with suppress(FileExistsError):
                write_whole(self._fs, self._path, [rows], replaces=False, begun=note, avoid=self._log.gone)
                self._open()
                stat = self._present()
                placed = Placed(0, len(rows), stat, stat)
                self._written.append((placed, rows))
                return placed
            # Somebody made it at this moment.
            self._open()
        note(self._present())
        placed = place_at_end(self._fs, self._waiting, self._path, self._opened(), rows)
        self._stat = placed.after
        self._written.append((placed, rows))
        return placed

    def _opened(self) -> io.RawIOBase:
        if self._file is None:
            raise _removed(self._path)
        return self._file

    def _present(self) -> os.stat_result:
        if self._stat is None:
            raise _removed(self._path)
        return self._stat

    def _timed(self, placed: Placed, *, keep_time: bool) -> os.stat_result:
        """Puts the time back that the file had, or sees to it that it grew."""
        before, after = placed.before, placed.after
        if before is after:
            return after
        if keep_time and after.st_size == placed.end:
            self._fs.set_times(self._opened(), before.st_mtime_ns)
        elif not keep_time and after.st_mtime_ns < before.st_mtime_ns + TICK_NS:
            self._fs.set_times(self._opened(), before.st_mtime_ns + TICK_NS)
        else:
            return after
        self._stat = self._fs.size_and_time(self._opened())
        return self._stat

    # The end of the round.

    def _settle(self) -> None:
        """Flushes what was written, and writes it again where another file stands at the path by then."""
        for _ in range(REPLACED_TRIES_MAX):
            if not self._written:
                return
            self._sync()
            try:
                now = self._fs.stat(self._path)
            except FileNotFoundError:
                raise _removed(self._path) from None
            if now.st_ino == self._present().st_ino:
                return
            rows = [rows for _, rows in self._written]
            self._written = []
            self._open()
            # The copy may lack rows of earlier rounds too, on which these hang.
            earlier, _ = self._notes_of_others()
            self._bring_back_lost([*earlier, *rows])
        raise Conflict(
            f"{shown_path(self._path)} is being replaced by another program again and again",
            hint="do it again when that program is done",
        )

    def _sync(self) -> None:
        if not self._log.is_synced:
            return
        try:
            self._fs.sync(self._opened())
        except OSError:
            stat = self._present()
            starts = [placed.start for placed, _ in self._written]
            self._log.known.doubt(stat, min(starts), max(placed.end for placed, _ in self._written))
            raise

    def _notes_of_others(self) -> tuple[list[bytes], bool]:
        """Rows that were noted for a file which another program has put a copy in the place of, and whether that copy
        may have been made so much later that they were left out on purpose.
        """
        stat, notes = self._stat, self._log.journal.notes()
        if stat is None or not notes or notes[-1].inode in (0, stat.st_ino):
            return [], False
        is_late = stat.st_ctime_ns - self._log.journal.changed_ns > REWRITE_NS
        return [noted.rows for noted in notes if noted.rows is not None and noted.inode != stat.st_ino], is_late

    def _bring_back_lost(self, rows: Sequence[bytes], *, is_late: bool = False) -> None:
        """Appends again what a copy lacks, in one write; what hangs on rows that were dropped on purpose stays away.

        Where it `is_late` they are only told.
        """
        lost = [line + b"\n" for each in rows for line in each.split(b"\n") if line]
        if not lost or self._file is None:
            return
        wanted = set(lost)
        ids: set[str] = set()
        for line in lines_of(self._file, 0, self._present().st_size):
            wanted.discard(line.data)
            row = decode(line)
            if isinstance(row, Record) and row.uuid:
                ids.add(row.uuid)
        back: list[bytes] = []
        left_out = 0
        for data in dict.fromkeys(each for each in lost if each in wanted):
            row = decode(Line(data, 0, 1, len(data)))
            uuid, parent = (row.uuid, row.parent_uuid) if isinstance(row, Record) else (None, None)
            if uuid and uuid in ids:
                continue
            if parent and parent not in ids:
                left_out += 1
                continue
            back.append(data)
            ids.update([uuid] if uuid else ())
        if back and is_late:
            self._notes += (
                f"another program replaced the log: {len(back)} rows appended before are not in it any more",
            )
        elif back:
            self._place(None, b"".join(back), is_durable=False)
            self._notes += (f"another program replaced the log and lost rows: {len(back)} were appended again",)
        if left_out:
            self._notes += (f"another program replaced the log: {left_out} rows on branches it dropped were left out",)


def _groups(wants: Sequence[Want]) -> Iterator[Sequence[Want]]:
    """The appends in order, those that may be written together in one."""
    if len(wants) <= 1:
        yield from [wants] if wants else []
        return
    group: list[Want] = []
    size = 0
    for want in wants:
        bytes_of = sum(len(entry.data) + 1 for entry in want.entries)
        if group and (not want.is_plain or not group[-1].is_plain or size + bytes_of > GROUP_BYTES_MAX):
            yield group
            group, size = [], 0
        group.append(want)
        size += bytes_of
    yield group


def _removed(path: str) -> Conflict:
    return Conflict(
        f"{shown_path(path)} was removed while it was appended to", hint="see what became of it: clew ls --all"
    )
