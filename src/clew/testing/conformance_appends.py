"""Conformance of `append`: order, writing once, exact retries, expectations, summaries and times."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from clew.engines.contract import BATCHES_KEPT, TICK_NS, Engine, Entry, LogKey
from clew.errors import Conflict, UsageError
from clew.testing.conformance_base import (
    LONG_AGO_NS,
    MAIN,
    OTHER,
    PROJECT,
    S1,
    S2,
    SUB1,
    SUB2,
    EngineUnderTest,
    bytes_of,
    content_of,
    line_of,
    note,
    row,
    rows,
    uuid_of,
)

ODD_LINES = (
    b'{"a":"\xc3\xa9 \xe2\x80\xa8 \xf0\x9f\xa7\xb6"}',
    b'{"lone":"\\ud83d"}',
    b'{"broken":"\xff\xfe\x80"}',
    b'\xef\xbb\xbf{"bom":1}',
    b'{"carriage":"return"}\r',
    b'{"nul":"\x00\x00"}',
    b'{"two":1}{"records":2}',
    b'{"huge":' + b"9" * 400 + b"}",
    b"not json at all",
    b'{"torn":"her',
    b" ",
    b"\x00",
    b"\xff",
    b"\r",
    b"[1,2]",
)
"""Lines that are records, malformed or blank; a log keeps all of them as they are."""


class AppendConformance(EngineUnderTest):
    """What `append` promises."""

    # Order and bytes.

    def test_lines_stand_in_the_order_they_were_appended(self, engine: Engine) -> None:
        entries = rows(26, 1, 13, 2)
        for entry in entries[:2]:
            engine.append(MAIN, [entry])
        engine.append(MAIN, entries[2:])
        assert content_of(engine, MAIN) == bytes_of(entries)

    def test_any_bytes_come_back_as_they_were(self, engine: Engine, place: Path) -> None:
        entries = [Entry(data) for data in ODD_LINES]
        done = engine.append(MAIN, entries)
        assert (done.written, done.duplicates) == (len(entries), 0)
        assert content_of(engine, MAIN) == bytes_of(entries)
        again = self.reopened(engine, place)
        assert content_of(again, MAIN) == bytes_of(entries)
        again.close()

    def test_an_append_says_what_it_did(self, engine: Engine) -> None:
        first = engine.append(MAIN, rows(1, 2))
        assert (first.written, first.duplicates, first.notes) == (2, 0, ())
        stat = engine.stat(MAIN)
        assert stat is not None
        assert (stat.key, stat.revision, stat.size_bytes) == (MAIN, first.revision, len(bytes_of(rows(1, 2))))

    def test_no_entries_make_no_log_and_change_none(self, engine: Engine) -> None:
        assert (engine.append(MAIN, [], summary=b"s").written, engine.stat(MAIN)) == (0, None)
        engine.append(MAIN, rows(1))
        before = engine.stat(MAIN)
        assert before is not None
        nothing = engine.append(MAIN, [], batch_id="b", summary=b"s")
        assert (nothing.written, nothing.duplicates, nothing.revision) == (0, 0, before.revision)
        assert engine.stat(MAIN) == before

    @pytest.mark.parametrize("bad", [b"", b"\n", b'{"a":1}\n', b'{"a":\n1}'])
    def test_an_entry_that_is_not_one_line_is_refused_and_nothing_is_written(self, engine: Engine, bad: bytes) -> None:
        with pytest.raises(UsageError):
            engine.append(MAIN, [*rows(1), Entry(bad), *rows(2)], summary=b"s")
        assert engine.stat(MAIN) is None
        engine.append(MAIN, rows(1))
        before = engine.stat(MAIN)
        with pytest.raises(UsageError):
            engine.append(MAIN, [Entry(bad)])
        assert engine.stat(MAIN) == before
        # What was refused was not remembered either.
        assert engine.append(MAIN, rows(1, 2)).written == 1

    def test_logs_do_not_mix(self, engine: Engine) -> None:
        keys = [MAIN, SUB1, SUB2, LogKey(PROJECT, S2), LogKey(OTHER, S1), LogKey(OTHER, S1, SUB1.subpath)]
        for at, key in enumerate(keys):
            engine.append(key, [*rows(1), note(at)])
        for at, key in enumerate(keys):
            assert content_of(engine, key) == bytes_of([*rows(1), note(at)])

    # Writing once.

    def test_a_row_is_written_once_in_one_append(self, engine: Engine) -> None:
        done = engine.append(MAIN, [row(1), row(2), row(1, "said otherwise"), row(2)])
        assert (done.written, done.duplicates) == (2, 2)
        assert content_of(engine, MAIN) == bytes_of(rows(1, 2))

    def test_a_row_is_written_once_across_appends_and_openings(self, engine: Engine, place: Path) -> None:
        engine.append(MAIN, rows(1, 2))
        done = engine.append(MAIN, [row(2, "said otherwise"), row(3)])
        assert (done.written, done.duplicates) == (1, 1)
        again = self.reopened(engine, place)
        done = again.append(MAIN, rows(3, 1, 4))
        assert (done.written, done.duplicates) == (1, 2)
        assert content_of(again, MAIN) == bytes_of(rows(1, 2, 3, 4))
        again.close()

    def test_where_every_row_is_there_already_nothing_changes(self, engine: Engine) -> None:
        first = engine.append(MAIN, rows(1, 2))
        before = engine.stat(MAIN)
        done = engine.append(MAIN, rows(2, 1))
        assert (done.written, done.duplicates, done.revision) == (0, 2, first.revision)
        assert engine.stat(MAIN) == before

    def test_a_line_without_id_is_written_as_often_as_it_is_appended(self, engine: Engine) -> None:
        for _ in range(2):
            assert engine.append(MAIN, [note(1), note(1)]).written == 2
        assert content_of(engine, MAIN) == bytes_of([note(1)] * 4)

    def test_a_row_of_one_log_may_stand_in_another(self, engine: Engine) -> None:
        for key in (MAIN, SUB1, LogKey(PROJECT, S2), LogKey(OTHER, S1)):
            assert engine.append(key, rows(1)).written == 1

    def test_in_sublogs_a_row_is_written_once_where_the_engine_says_so(self, engine: Engine) -> None:
        engine.append(SUB1, rows(1, 2))
        done = engine.append(SUB1, rows(2, 3))
        once = engine.capabilities.dedupes_sublogs
        assert (done.written, done.duplicates) == ((1, 1) if once else (2, 0))
        assert content_of(engine, SUB1) == bytes_of(rows(1, 2, 3) if once else rows(1, 2, 2, 3))

    @pytest.mark.parametrize("odd", ["", " ", "\ud83d", "\x00", "a\nb", "'; --", "é", "e\u0301", "x" * 5000])
    def test_an_id_may_be_any_text(self, engine: Engine, odd: str) -> None:
        entry = Entry(b'{"type":"user","uuid":' + json_text(odd) + b"}", odd or None)
        assert engine.append(MAIN, [entry]).written == 1
        assert engine.append(MAIN, [entry]).written == (0 if odd else 1)
        assert content_of(engine, MAIN) == bytes_of([entry] if odd else [entry, entry])

    # Retries.

    def test_a_retry_of_a_batch_writes_nothing_twice(self, engine: Engine, place: Path) -> None:
        entries = [note(1), *rows(1, 2), note(1)]
        first = engine.append(MAIN, entries, batch_id="b1")
        for _ in range(2):
            again = engine.append(MAIN, entries, batch_id="b1")
            assert (again.written, again.duplicates, again.revision) == (0, 4, first.revision)
        other = self.reopened(engine, place)
        assert other.append(MAIN, entries, batch_id="b1").written == 0
        assert content_of(other, MAIN) == bytes_of(entries)
        other.close()

    def test_a_batch_is_known_although_others_were_appended_since(self, engine: Engine) -> None:
        engine.append(MAIN, [note(1), note(2)], batch_id="b1")
        engine.append(MAIN, [note(1), note(2)])
        engine.append(MAIN, [note(1), note(2)], batch_id="b2")
        done = engine.append(MAIN, [note(1), note(2)], batch_id="b1")
        assert (done.written, done.duplicates) == (0, 2)
        assert content_of(engine, MAIN) == bytes_of([note(1), note(2)] * 3)

    def test_another_batch_with_the_same_lines_is_written(self, engine: Engine) -> None:
        for batch in ("b1", "b2", "B1", " b1", "\ud83d", "é", None, None):
            assert engine.append(MAIN, [note(1)], batch_id=batch).written == 1
        assert content_of(engine, MAIN) == bytes_of([note(1)] * 8)

    def test_a_batch_belongs_to_its_log(self, engine: Engine) -> None:
        for key in (MAIN, SUB1, LogKey(PROJECT, S2), LogKey(OTHER, S1)):
            assert engine.append(key, [note(1)], batch_id="b").written == 1
            assert engine.append(key, [note(1)], batch_id="b").written == 0

    def test_the_last_batches_of_a_log_are_known(self, engine: Engine, place: Path) -> None:
        for number in range(BATCHES_KEPT):
            engine.append(MAIN, [note(7)], batch_id=f"b{number}")
        again = self.reopened(engine, place)
        for number in range(BATCHES_KEPT):
            assert again.append(MAIN, [note(7)], batch_id=f"b{number}").written == 0
        assert content_of(again, MAIN) == bytes_of([note(7)] * BATCHES_KEPT)
        again.close()

    def test_a_retry_is_not_held_against_the_revision_it_expects(self, engine: Engine) -> None:
        before = engine.append(MAIN, rows(1)).revision
        done = engine.append(MAIN, [note(1), row(2)], batch_id="b", expect=before)
        again = engine.append(MAIN, [note(1), row(2)], batch_id="b", expect=before)
        assert (done.written, again.written, again.duplicates) == (2, 0, 2)
        engine.append(MAIN, rows(3))
        assert engine.append(MAIN, [note(1), row(2)], batch_id="b", expect=before).written == 0
        with pytest.raises(Conflict):
            engine.append(MAIN, [note(1), row(2)], batch_id="another", expect=before)

    def test_a_batch_that_was_refused_can_be_tried_again(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1))
        with pytest.raises(Conflict):
            engine.append(MAIN, [note(1)], batch_id="b", expect="")
        assert engine.append(MAIN, [note(1)], batch_id="b").written == 1

    def test_a_log_that_is_made_anew_knows_no_batches_and_no_rows(self, engine: Engine) -> None:
        engine.append(MAIN, [note(1), row(1)], batch_id="b")
        engine.delete(MAIN)
        assert engine.append(MAIN, [note(1), row(1)], batch_id="b").written == 2
        assert content_of(engine, MAIN) == bytes_of([note(1), row(1)])

    # Expectations.

    def test_what_is_expected_must_be_there(self, engine: Engine) -> None:
        first = engine.append(MAIN, rows(1), expect="")
        second = engine.append(MAIN, rows(2), expect=first.revision)
        stat = engine.stat(MAIN)
        assert stat is not None
        assert second.revision == stat.revision != first.revision
        engine.append(MAIN, rows(3), expect=stat.revision)
        assert content_of(engine, MAIN) == bytes_of(rows(1, 2, 3))

    @pytest.mark.parametrize("which", ["old", "", "never-was", "0"])
    def test_a_conflict_names_both_revisions_and_writes_nothing(self, engine: Engine, which: str) -> None:
        old = engine.append(MAIN, rows(1)).revision
        now = engine.append(MAIN, rows(2), summary=b"kept").revision
        before = engine.stat(MAIN)
        expect = old if which == "old" else which
        with pytest.raises(Conflict) as raised:
            engine.append(MAIN, [note(1), row(3)], expect=expect, summary=b"lost")
        assert now in raised.value.message
        assert expect in raised.value.message
        assert engine.stat(MAIN) == before
        assert engine.append(MAIN, rows(3)).written == 1

    def test_a_log_that_is_not_there_is_at_no_revision(self, engine: Engine) -> None:
        with pytest.raises(Conflict, match="some-revision"):
            engine.append(MAIN, rows(1), expect="some-revision")
        assert engine.stat(MAIN) is None
        assert engine.append(MAIN, rows(1), expect="").written == 1

    def test_every_line_that_is_written_changes_the_revision(self, engine: Engine) -> None:
        seen = {engine.append(MAIN, [note(1)], keep_time=at % 2 == 1).revision for at in range(12)}
        assert len(seen) == 12
        assert len({revision.partition("-")[0] for revision in seen}) == 1

    # Summaries.

    def test_the_last_summary_wins_and_none_leaves_it(self, engine: Engine, place: Path) -> None:
        exact = engine.capabilities.atomic_summary
        engine.append(MAIN, rows(1), summary=b"one")
        engine.append(MAIN, rows(2), summary=b"\x00two\xff")
        allowed = (b"\x00two\xff",) if exact else (None, b"\x00two\xff")
        assert summary_of(engine, MAIN) in allowed
        engine.append(MAIN, rows(3))
        assert summary_of(engine, MAIN) in allowed
        assert [stat.summary for stat in engine.list(PROJECT)] == [summary_of(engine, MAIN)]
        again = self.reopened(engine, place)
        assert summary_of(again, MAIN) in allowed
        again.close()

    def test_each_log_has_a_summary_of_its_own(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1), summary=b"main")
        engine.append(SUB1, rows(1), summary=b"sub")
        engine.append(LogKey(PROJECT, S2), rows(1))
        none = () if engine.capabilities.atomic_summary else (None,)
        assert summary_of(engine, MAIN) in (b"main", *none)
        assert summary_of(engine, SUB1) in (b"sub", *none)
        assert summary_of(engine, LogKey(PROJECT, S2)) is None

    def test_bytes_that_no_append_wrote_leave_no_summary(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1), summary=b"one")
        engine.extend(MAIN, [bytes_of(rows(2))], start=size_of(engine, MAIN))
        assert summary_of(engine, MAIN) is None
        done = engine.append(MAIN, rows(3), summary=b"two")
        engine.replace(MAIN, [bytes_of(rows(3))], expect=done.revision)
        assert summary_of(engine, MAIN) is None

    # Times.

    def test_times_grow_with_every_append(self, engine: Engine) -> None:
        times = []
        for number in range(20):
            engine.append(MAIN, rows(number))
            stat = engine.stat(MAIN)
            assert stat is not None
            times.append(stat.modified_ns)
        assert all(later - earlier >= TICK_NS for earlier, later in pairwise(times))
        assert times[0] > 1_000_000_000_000_000_000, "nanoseconds since 1970"

    def test_times_grow_behind_one_that_is_ahead_of_the_clock(self, engine: Engine) -> None:
        ahead = LONG_AGO_NS + 10**18
        engine.extend(MAIN, [bytes_of(rows(1))], start=0, modified_ns=ahead)
        engine.append(MAIN, rows(2))
        stat = engine.stat(MAIN)
        assert stat is not None
        assert stat.modified_ns >= ahead + TICK_NS

    def test_lines_that_are_no_conversation_keep_the_time(self, engine: Engine) -> None:
        engine.extend(MAIN, [bytes_of(rows(1))], start=0, modified_ns=LONG_AGO_NS)
        engine.append(MAIN, [note(1)], keep_time=True)
        stat = engine.stat(MAIN)
        assert stat is not None
        assert stat.modified_ns == LONG_AGO_NS
        assert content_of(engine, MAIN) == bytes_of([*rows(1), note(1)])

    # Last lines without an end.

    def test_a_last_line_without_an_end_gets_one_and_a_note_says_so(self, engine: Engine) -> None:
        torn = bytes_of(rows(1)) + b'{"type":"user","uu'
        engine.extend(MAIN, [torn], start=0, modified_ns=LONG_AGO_NS)
        done = engine.append(MAIN, rows(2, 3))
        assert (done.written, len(done.notes)) == (2, 1)
        assert content_of(engine, MAIN) == torn + b"\n" + bytes_of(rows(2, 3))
        assert engine.append(MAIN, rows(4)).notes == ()

    def test_a_last_row_that_is_whole_but_for_its_newline_is_there(self, engine: Engine) -> None:
        bare = bytes_of(rows(1, 2)).removesuffix(b"\n")
        engine.extend(MAIN, [bare], start=0, modified_ns=LONG_AGO_NS)
        done = engine.append(MAIN, rows(2, 3))
        assert (done.written, done.duplicates) == (1, 1)
        assert content_of(engine, MAIN) == bytes_of(rows(1, 2, 3))

    # Sizes.

    def test_many_lines_in_one_append(self, engine: Engine) -> None:
        entries = [*rows(*range(2_000)), *(note(at) for at in range(2_000))]
        assert engine.append(MAIN, entries, batch_id="b").written == 4_000
        assert engine.append(MAIN, entries, batch_id="b").written == 0
        assert content_of(engine, MAIN) == bytes_of(entries)

    @pytest.mark.parametrize(
        "size",
        [pytest.param(3 * 1024 * 1024, id="3MB"), pytest.param(50 * 1024 * 1024, id="50MB", marks=pytest.mark.slow)],
    )
    def test_a_line_may_be_very_long(self, engine: Engine, place: Path, size: int) -> None:
        long = Entry(line_of(type="user", uuid=uuid_of(2), message={"role": "user", "content": "x" * size}), uuid_of(2))
        entries = [row(1), long, row(3)]
        engine.append(MAIN, entries, batch_id="b")
        assert engine.append(MAIN, [long, row(4)]).written == 1
        assert engine.append(MAIN, entries, batch_id="b").written == 0
        again = self.reopened(engine, place)
        assert content_of(again, MAIN) == bytes_of([*entries, row(4)])
        assert [line.size for line in again.read_back(MAIN)] == [
            len(e.data) + 1 for e in (row(4), row(3), long, row(1))
        ]
        assert again.append(MAIN, [long]).written == 0
        again.close()


def json_text(text: str) -> bytes:
    """A JSON string of ASCII characters, also of text that UTF-8 cannot hold."""
    return b'"' + b"".join(_escaped(char) for char in text) + b'"'


def _escaped(char: str) -> bytes:
    return char.encode() if char.isascii() and char.isprintable() and char not in '"\\' else b"\\u%04x" % ord(char)


def summary_of(engine: Engine, key: LogKey) -> bytes | None:
    """The summary of a log that is there."""
    stat = engine.stat(key)
    assert stat is not None
    return stat.summary


def size_of(engine: Engine, key: LogKey) -> int:
    """The size of a log; 0 where there is none."""
    stat = engine.stat(key)
    return 0 if stat is None else stat.size_bytes
