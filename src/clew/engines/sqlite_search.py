"""Which lines hold a word: an index of the searchable texts of records, in the same file and derived from its logs.

Appends know nothing of it. A search first takes in what was appended since, in transactions of bounded size; so it
finds every append that returned before it. The index holds no texts. To forget a line it is told the same words again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress

from clew.engines.contract import Found
from clew.engines.lines import lines_backward, lines_forward
from clew.engines.sqlite_file import SqliteFile
from clew.engines.sqlite_logs import PIECE_BYTES, LogBytes, PiecesFrom, key_of, pieces_in, pieces_of
from clew.engines.sqlite_schema import LOG_BYTES_MAX, POSITION_BITS, first_id, packed
from clew.errors import DamagedData, UsageError
from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Record
from clew.transcript.texts import texts

AT_ONCE_BYTES = 4 * 1024 * 1024
"""So many bytes of lines, and the rest of the last one, are taken in by one transaction."""
_VERSION = 1
"""Goes up when other words are taken from a line: then everything is taken in anew."""
_WORDS = f"words_{_VERSION}"
_SEEN = f"words_seen_{_VERSION}"

_TABLES = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS {_WORDS} USING fts5(text, content = '', tokenize = 'unicode61')",
    f"CREATE TABLE IF NOT EXISTS {_SEEN} (log INTEGER PRIMARY KEY, position INTEGER NOT NULL) STRICT",
)
_BEHIND = (
    f"SELECT log.id, coalesce(seen.position, 0), log.tail FROM log LEFT JOIN {_SEEN} AS seen ON seen.log = log.id"
    " WHERE log.tail > coalesce(seen.position, 0) AND log.aside IS NULL"
)
_SEARCH = (
    f"SELECT {_WORDS}.rowid, bm25({_WORDS}), log.project, log.session, log.subpath, log.size"
    f" FROM {_WORDS} JOIN log ON log.id = {_WORDS}.rowid >> {POSITION_BITS}"
    f" WHERE {_WORDS} MATCH ? AND log.aside IS NULL"
)
FoundRow = tuple[int, float, bytes, bytes, bytes, int]


def can_search() -> bool:
    """Whether this SQLite has what the index needs."""
    memory = sqlite3.connect(":memory:")
    try:
        return bool(memory.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])
    finally:
        memory.close()


def search(
    file: SqliteFile, words: str, project: str | None, limit: int | None, line_bytes_max: int
) -> Iterator[Found]:
    query = _query(words)
    _take_in(file, line_bytes_max)
    condition, values = ("", [query]) if project is None else (" AND log.project = ?", [query, packed(project)])
    with file.reading() as db:
        found: list[FoundRow] = [] if db is None else db.execute(
            f"{_SEARCH}{condition} ORDER BY bm25({_WORDS}), {_WORDS}.rowid LIMIT ?",
            [*values, -1 if limit is None else limit],
        ).fetchall()  # fmt: skip
    return _found(file, found, line_bytes_max)


def _found(file: SqliteFile, rows: Iterable[FoundRow], line_bytes_max: int) -> Iterator[Found]:
    for rowid, score, project, session, subpath, size in rows:
        log, position = rowid >> POSITION_BITS, rowid & LOG_BYTES_MAX - 1
        with suppress(DamagedData):  # It was deleted meanwhile.
            line = next(_lines(pieces_in(file), log, position, size, line_bytes_max))
            yield Found(key_of(project, session, subpath), position, line.size, -score)


def _query(words: str) -> str:
    """Each word as it is written, for a language in which much else would mean something."""
    asked = words.replace("\0", " ").split()
    if not any(char.isalnum() for char in words):
        raise UsageError(f"there is no word in {words!r}", hint="give at least one word of letters or digits")
    return " ".join('"{}"'.format(word.replace('"', '""')) for word in asked if any(map(str.isalnum, word)))


def _take_in(file: SqliteFile, line_bytes_max: int) -> None:
    """Takes in all lines that were not yet."""
    with file.reading() as db:
        if db is None:
            return
        is_made = _is_there(db)
        waiting = [log for (log, *_) in db.execute(_BEHIND)] if is_made else []
    if not is_made:
        with file.writing() as db:
            for statement in _TABLES:
                db.execute(statement)
            waiting = [log for (log, *_) in db.execute(_BEHIND)]
    while waiting:
        with file.writing() as db:
            left = AT_ONCE_BYTES
            while waiting and left > 0:
                behind = db.execute(f"{_BEHIND} AND log.id = ?", (waiting[-1],)).fetchone()
                if behind is None:
                    waiting.pop()
                else:
                    log, start, tail = behind
                    left -= _take_in_log(db, log, start, tail, left, line_bytes_max)


def _take_in_log(db: sqlite3.Connection, log: int, start: int, tail: int, bytes_max: int, line_bytes_max: int) -> int:
    """Takes in lines of a log that begin within so many bytes. Returns how many bytes they have."""
    position = start
    for line in _lines(pieces_of(db), log, start, min(tail, start + bytes_max), line_bytes_max, size=tail):
        text = _text_of(line)
        if text:
            db.execute(f"INSERT INTO {_WORDS} (rowid, text) VALUES (?, ?)", (first_id(log, line.position), text))
        position = line.position + line.size
    db.execute(f"INSERT OR REPLACE INTO {_SEEN} VALUES (?, ?)", (log, position))
    return position - start


def forget(db: sqlite3.Connection, log: int, line_bytes_max: int) -> bool:
    """Takes lines of a log out of the index, the last ones first. False when none of it is in the index any more.

    The caller holds the transaction; the bytes are still there, and the log is out of sight.
    """
    seen = db.execute(f"SELECT position FROM {_SEEN} WHERE log = ?", (log,)).fetchone() if _is_there(db) else None
    if seen is None:
        return False
    delete = f"INSERT INTO {_WORDS} ({_WORDS}, rowid, text) VALUES ('delete', ?, ?)"
    position = seen[0]
    for line in lines_backward(
        LogBytes(pieces_of(db), log, position), end=position, line_bytes_max=line_bytes_max, chunk_bytes=PIECE_BYTES
    ):
        text = _text_of(line)
        if text:
            db.execute(delete, (first_id(log, line.position), text))
        position = line.position
        if seen[0] - position >= AT_ONCE_BYTES:
            break
    if position:
        db.execute(f"UPDATE {_SEEN} SET position = ? WHERE log = ?", (position, log))
    else:
        db.execute(f"DELETE FROM {_SEEN} WHERE log = ?", (log,))
    return True


def _is_there(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_SEEN,)).fetchone() is not None


def _text_of(line: Line) -> str:
    if not line.is_held:
        return ""
    row = decode(line)
    return "\n".join(text.text for text in texts(row)) if isinstance(row, Record) else ""


def _lines(
    pieces: PiecesFrom, log: int, start: int, end: int, line_bytes_max: int, *, size: int | None = None
) -> Iterator[Line]:
    size = end if size is None else size
    return lines_forward(
        LogBytes(pieces, log, size), start=start, end=end, size=size, line_bytes_max=line_bytes_max,
        chunk_bytes=PIECE_BYTES,
    )  # fmt: skip
