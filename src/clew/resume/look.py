"""What a resolver or a policy sees: the sessions of a scope, and what their rows say of them.

Names are read by a search of the bytes: of a session of 100 MB that says its title in three rows, these three are
decoded. What they mean is decided by the digest, as for lists, so the last title of the whole log counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from clew.engines.contract import LogKey, LogStat, small_blob
from clew.errors import ClewError
from clew.marks import title_key
from clew.records.codec import decode_lines
from clew.records.own import NOTE_TYPE
from clew.records.record import Record, body_of, records_in
from clew.resume.answers import CANDIDATES_MAX, Candidate, Ingress, Resolved, Unclear
from clew.session import Session
from clew.store import Scope, Store
from clew.transcript.digest import Digest, DigestFold

TITLES = b'Title"'
"""Stands in every row that says a title, and with its quote in hardly any other."""
TAGS = b'"tag"'
MARKS = f'"{NOTE_TYPE}"'.encode()


class Look:
    """The sessions of a scope. Without one it is every project; a function is asked when the scope is needed first."""

    def __init__(
        self, store: Store, scope: Scope | Callable[[], Scope] = None, *, ingress: Ingress | None = None
    ) -> None:
        self.store = store
        self.ingress = ingress
        self._scope = scope
        self._logs: list[LogStat] | None = None

    @property
    def scope(self) -> Scope:
        if callable(self._scope):
            self._scope = self._scope()
        return self._scope

    @property
    def hint(self) -> str:
        """What to type where a name is not found here."""
        list_them = "list what there is: clew ls --all"
        return list_them if self.scope is None else f"add --all to look in every project, or {list_them}"

    def logs(self) -> Sequence[LogStat]:
        """The main logs of the scope, newest change first."""
        if self._logs is None:
            self._logs = self.store.logs(self.scope)
        return self._logs

    def session(self, stat: LogStat) -> Session:
        return self.store.session_on(self.store.engine, stat.key)

    # What rows say.

    def rows(self, needle: bytes, stats: Sequence[LogStat] | None = None) -> Iterator[tuple[LogStat, list[Record]]]:
        """Of each session the records whose lines hold the bytes. One that cannot be read has none, and stands in the
        problems of the store.
        """
        stats = self.logs() if stats is None else stats
        found = self.store.engine.lines_with([stat.key for stat in stats], needle)
        for stat, (key, lines) in zip(stats, found, strict=True):
            if isinstance(lines, ClewError):
                self.store.note_problem(self.store.engine.where(key), lines.message)
            else:
                yield stat, [*records_in(decode_lines(lines))]

    def digests(self, needle: bytes, stats: Sequence[LogStat] | None = None) -> Iterator[tuple[LogStat, Digest]]:
        """The same as a digest, of which only what stands in these rows can be told."""
        nothing = Digest()
        for stat, records in self.rows(needle, stats):
            yield stat, DigestFold(records).digest() if records else nothing

    def titles(self, stats: Sequence[LogStat] | None = None) -> Iterator[tuple[LogStat, str | None]]:
        """The title that a session was given, by a person or else by a model; what lists show without one is none."""
        for stat, digest in self.digests(TITLES, stats):
            title = digest.custom_title
            # Where no row says one, the client's sidecar may: the row was lost when it rewrote the log.
            yield stat, (self._kept_title(stat.key) if title is None else title) or digest.ai_title

    def _kept_title(self, key: LogKey) -> str | None:
        data = small_blob(self.store.engine, title_key(key))
        title = None if data is None else body_of(data).get("customTitle")
        return title.strip() or None if isinstance(title, str) else None

    def branch(self, stat: LogStat) -> str | None:
        """The branch that the newest row of the conversation names, read from the end."""
        for record in records_in(decode_lines(self.store.engine.read_back(stat.key))):
            if (branch := DigestFold([record]).digest().git_branch) is not None:
                return branch
        return None

    # Answers.

    def answer(self, stats: Sequence[LogStat], what: str) -> Resolved | Unclear | None:
        """The only one of these sessions, or that there are several of which `what` is true; None for none."""
        if not stats:
            return None
        if len(stats) == 1:
            return Resolved("session", self.session(stats[0]))
        return Unclear(
            f"{len(stats)} {what}",
            "name one by its id" if len({stat.key.session for stat in stats}) == len(stats) else "name one by its path",
            self.candidates(stats),
        )

    def candidates(self, stats: Iterable[LogStat]) -> tuple[Candidate, ...]:
        """What to type for each, by its id or, where two share it, by its path; with their titles."""
        shown = [*stats][:CANDIDATES_MAX]
        ids = [stat.key.session for stat in shown]
        titles = {stat.key: title for stat, title in self.titles(shown)}
        where = self.store.engine.where
        return tuple(
            Candidate(id_ if ids.count(id_) == 1 else where(stat.key), titles.get(stat.key))
            for id_, stat in zip(ids, shown, strict=True)
        )


def folded(name: str) -> str:
    """A title as two are compared: without blanks around it, in small letters. So does the client, for which `ß` is no
    `ss`.
    """
    return name.strip().lower()
