"""Conformance of `extend`, `replace` and `delete`: raw bytes in, other bytes in their place, and gone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clew.engines.contract import Engine, Entry, LogKey
from clew.errors import Conflict, NotFound, StorageError
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
    blob,
    bytes_of,
    content_of,
    keys_of,
    note,
    row,
    rows,
)

CHUNK = b'{"type":"mode","text":"' + b"x" * (1024 * 1024 - 27) + b'"}\n'
COPIED_CHUNKS = 48
COPY_BYTES_MAX = 24 * 1024 * 1024
"""What a copy of twice as much may take at its most."""


class ExtendConformance(EngineUnderTest):
    """What copying raw bytes into a log promises."""

    def test_bytes_are_taken_as_they_are(self, engine: Engine, place: Path) -> None:
        raw = b'\xef\xbb\xbf{"a":1}\r\n\n\x00\xff{"b":\n' + bytes_of(rows(1, 1)) + b"no end"
        chunks = [raw[:5], b"", raw[5:6], raw[6:40], raw[40:], b""]
        assert engine.extend(MAIN, chunks, start=0) == len(raw)
        assert engine.extend(MAIN, [b" yet"], start=len(raw)) == len(raw) + 4
        again = self.reopened(engine, place)
        assert content_of(again, MAIN) == raw + b" yet"
        again.close()

    def test_it_goes_on_only_where_the_log_ends(self, engine: Engine) -> None:
        size = engine.extend(MAIN, [bytes_of(rows(1))], start=0)
        before = engine.stat(MAIN)
        for start in (0, size - 1, size + 1):
            with pytest.raises(Conflict):
                engine.extend(MAIN, [bytes_of(rows(2))], start=start)
        with pytest.raises(Conflict):
            engine.extend(SUB1, [bytes_of(rows(2))], start=1)
        assert engine.stat(MAIN) == before
        assert engine.stat(SUB1) is None

    def test_a_log_of_no_bytes_is_made_only_if_asked(self, engine: Engine) -> None:
        assert engine.extend(MAIN, [b"", b""], start=0) == 0
        assert engine.stat(MAIN) is None
        assert engine.extend(MAIN, [b""], start=0, make=True) == 0
        assert engine.stat(MAIN) is not None
        assert engine.extend(MAIN, [bytes_of(rows(1))], start=0) == len(bytes_of(rows(1)))
        assert engine.extend(MAIN, [], start=len(bytes_of(rows(1))), make=True) == len(bytes_of(rows(1)))

    def test_it_says_when_the_log_was_changed(self, engine: Engine, place: Path) -> None:
        engine.extend(MAIN, [bytes_of(rows(1))], start=0, modified_ns=LONG_AGO_NS)
        engine.extend(SUB1, [], start=0, modified_ns=LONG_AGO_NS + 1_000_000, make=True)
        again = self.reopened(engine, place)
        for key, time in ((MAIN, LONG_AGO_NS), (SUB1, LONG_AGO_NS + 1_000_000)):
            stat = again.stat(key)
            assert stat is not None
            assert stat.modified_ns == time
        # Also where no bytes came, so that a copy that was interrupted before its end can be ended.
        for at, chunks in enumerate(([b"x"], [])):
            time, before = LONG_AGO_NS + at * 9_000_000, content_of(again, MAIN)
            again.extend(MAIN, chunks, start=len(before), modified_ns=time)
            stat = again.stat(MAIN)
            assert stat is not None
            assert (stat.modified_ns, content_of(again, MAIN)) == (time, before + b"".join(chunks))
        again.close()

    def test_the_revision_changes_and_still_names_the_same_log(self, engine: Engine) -> None:
        engine.extend(MAIN, [bytes_of(rows(1))], start=0)
        first = engine.stat(MAIN)
        assert first is not None
        engine.extend(MAIN, [bytes_of(rows(2))], start=first.size_bytes)
        second = engine.stat(MAIN)
        assert second is not None
        assert first.revision != second.revision
        assert first.revision.partition("-")[0] == second.revision.partition("-")[0]

    def test_rows_that_came_so_are_known(self, engine: Engine) -> None:
        raw = bytes_of(rows(1, 2)) + b'{"type":"summary","uuid":"odd"}\n' + bytes_of(rows(3))
        engine.extend(MAIN, [raw[at : at + 7] for at in range(0, len(raw), 7)], start=0)
        entries = [*rows(1, 2, 3), Entry(b'{"type":"summary","uuid":"odd"}', "odd"), row(4)]
        done = engine.append(MAIN, entries)
        assert (done.written, done.duplicates) == (1, 4)
        assert content_of(engine, MAIN) == raw + bytes_of(rows(4))

    def test_a_row_that_came_in_two_pieces_is_known(self, engine: Engine) -> None:
        raw = bytes_of(rows(1, 2))
        engine.extend(MAIN, [raw[:-20]], start=0)
        engine.extend(MAIN, [raw[-20:]], start=len(raw) - 20)
        assert engine.append(MAIN, rows(1, 2)).written == 0

    def test_a_row_that_came_between_appends_is_known(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1))
        engine.extend(MAIN, [bytes_of(rows(2))], start=len(bytes_of(rows(1))))
        assert engine.append(MAIN, rows(1, 2, 3)).written == 1
        assert content_of(engine, MAIN) == bytes_of(rows(1, 2, 3))

    def test_chunks_may_be_read_from_the_same_engine(self, engine: Engine) -> None:
        entries = [row(number, "x" * 2_000) for number in range(300)]
        engine.append(MAIN, entries)
        copy = LogKey(OTHER, S1)
        engine.extend(copy, (line.data for line in engine.read(MAIN)), start=0)
        assert content_of(engine, copy) == bytes_of(entries)
        size = len(bytes_of(entries))
        engine.extend(copy, engine.read_range(MAIN, position=0, size=size), start=size)
        assert content_of(engine, copy) == bytes_of(entries) * 2
        # Also from the very log that grows, and while others are written.
        engine.extend(MAIN, self._while_writing(engine), start=size)
        assert content_of(engine, MAIN) == bytes_of(entries) + bytes_of(entries)

    def _while_writing(self, engine: Engine) -> Iterator[bytes]:
        for line in engine.read(MAIN):
            if line.number % 100 == 1:
                engine.append(LogKey(PROJECT, S2), [note(line.number)])
            yield line.data

    def test_a_new_log_appears_whole_or_not_at_all(self, engine: Engine, place: Path) -> None:
        with pytest.raises(StorageError, match="the source failed"):
            engine.extend(MAIN, failing(bytes_of(rows(1)), CHUNK, seen=lambda: engine.stat(MAIN)), start=0)
        assert engine.stat(MAIN) is None
        with pytest.raises(KeyboardInterrupt):
            engine.extend(MAIN, failing(CHUNK, error=KeyboardInterrupt("stopped by hand")), start=0)
        again = self.reopened(engine, place)
        assert again.stat(MAIN) is None
        assert keys_of(again.list()) == []
        assert again.extend(MAIN, [bytes_of(rows(1))], start=0) == len(bytes_of(rows(1)))
        assert content_of(again, MAIN) == bytes_of(rows(1))
        again.close()

    def test_a_log_that_grows_keeps_a_prefix_of_what_came(self, engine: Engine) -> None:
        size = engine.extend(MAIN, [bytes_of(rows(1))], start=0)
        with pytest.raises(StorageError, match="the source failed"):
            engine.extend(MAIN, failing(bytes_of(rows(2)), bytes_of(rows(3))), start=size)
        whole, there = bytes_of(rows(1, 2, 3)), content_of(engine, MAIN)
        assert whole.startswith(there)
        assert len(there) >= size
        engine.extend(MAIN, [whole[len(there) :]], start=len(there))
        assert content_of(engine, MAIN) == whole
        assert engine.append(MAIN, rows(1, 2, 3)).written == 0

    @pytest.mark.parametrize("of", ["lines", "one line"])
    def test_memory_does_not_grow_with_the_bytes(self, engine: Engine, of: str) -> None:
        if not self.is_kept:
            pytest.skip("a store that is memory")
        chunk = CHUNK if of == "lines" else CHUNK.replace(b"\n", b"x")
        tracemalloc.start()
        try:
            engine.extend(MAIN, (bytes(bytearray(chunk)) for _ in range(COPIED_CHUNKS)), start=0)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < COPY_BYTES_MAX
        stat = engine.stat(MAIN)
        assert stat is not None
        assert stat.size_bytes == len(chunk) * COPIED_CHUNKS


class ReplaceConformance(EngineUnderTest):
    """What putting other bytes in the place of a log promises."""

    def test_other_bytes_take_the_place_of_a_log(self, engine: Engine, place: Path) -> None:
        revision = engine.append(MAIN, rows(1, 2, 3)).revision
        raw = bytes_of(rows(1, 3)) + b"\xff no end"
        now = engine.replace(MAIN, iter([raw[:30], b"", raw[30:]]), expect=revision)
        stat = engine.stat(MAIN)
        assert stat is not None
        assert stat.revision == now
        again = self.reopened(engine, place)
        assert content_of(again, MAIN) == raw
        again.close()

    def test_it_is_another_log_from_then_on(self, engine: Engine) -> None:
        before = engine.append(MAIN, rows(1)).revision
        now = engine.replace(MAIN, [bytes_of(rows(1))], expect=before)
        assert now.partition("-")[0] != before.partition("-")[0]
        with pytest.raises(Conflict):
            engine.append(MAIN, rows(2), expect=before)

    def test_a_log_at_another_revision_stays_as_it_is(self, engine: Engine) -> None:
        old = engine.append(MAIN, rows(1)).revision
        now = engine.append(MAIN, rows(2)).revision
        before = engine.stat(MAIN)
        with pytest.raises(Conflict) as raised:
            engine.replace(MAIN, [bytes_of(rows(9))], expect=old)
        assert old in raised.value.message
        assert now in raised.value.message
        assert engine.stat(MAIN) == before
        assert content_of(engine, MAIN) == bytes_of(rows(1, 2))

    def test_a_log_that_is_not_there_cannot_be_replaced(self, engine: Engine) -> None:
        with pytest.raises(NotFound):
            engine.replace(MAIN, [bytes_of(rows(1))], expect="")
        assert engine.stat(MAIN) is None

    def test_where_the_bytes_fail_the_log_stays_as_it_is(self, engine: Engine) -> None:
        revision = engine.append(MAIN, rows(1, 2)).revision
        with pytest.raises(StorageError, match="the source failed"):
            engine.replace(MAIN, failing(bytes_of(rows(9))), expect=revision)
        assert content_of(engine, MAIN) == bytes_of(rows(1, 2))
        stat = engine.stat(MAIN)
        assert stat is not None
        assert stat.revision == revision

    def test_the_bytes_may_be_read_from_the_log_itself(self, engine: Engine) -> None:
        entries = [row(number, "x" * 2_000) for number in range(200)]
        revision = engine.append(MAIN, entries).revision
        engine.replace(MAIN, (line.data for line in engine.read(MAIN) if line.number % 2), expect=revision)
        assert content_of(engine, MAIN) == bytes_of(entries[::2])

    def test_the_rows_of_the_new_bytes_are_known_and_those_of_the_old_are_not(self, engine: Engine) -> None:
        revision = engine.append(MAIN, rows(1, 2, 3)).revision
        engine.replace(MAIN, [bytes_of([row(1), row(4)])], expect=revision)
        done = engine.append(MAIN, rows(1, 2, 3, 4))
        assert (done.written, done.duplicates) == (2, 2)
        assert content_of(engine, MAIN) == bytes_of(rows(1, 4, 2, 3))

    def test_a_sublog_is_replaced_alone(self, engine: Engine) -> None:
        for key in (MAIN, SUB1, SUB2):
            engine.append(key, rows(1))
        stat = engine.stat(SUB1)
        assert stat is not None
        engine.replace(SUB1, [], expect=stat.revision)
        assert [content_of(engine, key) for key in (MAIN, SUB1, SUB2)] == [bytes_of(rows(1)), b"", bytes_of(rows(1))]


class DeleteConformance(EngineUnderTest):
    """What deleting for good promises."""

    def test_a_main_log_takes_its_sublogs_along_and_nothing_else(self, engine: Engine, place: Path) -> None:
        others = [
            LogKey(PROJECT, S2),
            LogKey(PROJECT, S2, SUB1.subpath),
            LogKey(OTHER, S1),
            LogKey(OTHER, S1, SUB1.subpath),
        ]
        for key in (MAIN, SUB1, SUB2, *others):
            engine.append(key, rows(1))
        engine.put(blob(), [b"stays"])
        assert engine.delete(MAIN) is True
        again = self.reopened(engine, place)
        assert [again.stat(key) for key in (MAIN, SUB1, SUB2)] == [None] * 3
        assert keys_of(again.list_sub(MAIN)) == []
        assert sorted(stat.key for stat in again.list()) == sorted([LogKey(OTHER, S1), LogKey(PROJECT, S2)])
        assert [content_of(again, key) for key in others] == [bytes_of(rows(1))] * 4
        assert b"".join(again.open(blob())) == b"stays"
        again.close()

    def test_sublogs_go_also_where_only_they_are_there(self, engine: Engine) -> None:
        engine.append(SUB1, rows(1))
        assert engine.delete(MAIN) is True
        assert engine.stat(SUB1) is None
        assert engine.delete(MAIN) is False

    def test_a_sublog_goes_alone(self, engine: Engine) -> None:
        for key in (MAIN, SUB1, SUB2):
            engine.append(key, rows(1))
        assert engine.delete(SUB1) is True
        assert keys_of(engine.list_sub(MAIN)) == [SUB2]
        assert content_of(engine, MAIN) == bytes_of(rows(1))
        assert engine.delete(SUB1) is False

    def test_where_nothing_is_there_nothing_is_deleted(self, engine: Engine) -> None:
        assert engine.delete(MAIN) is False
        assert engine.delete(SUB1) is False
        assert engine.delete(LogKey("-unknown", "unknown")) is False

    def test_a_log_that_is_made_anew_is_another_one(self, engine: Engine) -> None:
        seen = set()
        for at in range(6):
            if at % 2:
                engine.extend(MAIN, [bytes_of(rows(1))], start=0, modified_ns=LONG_AGO_NS)
            else:
                assert engine.append(MAIN, rows(1), expect="").written == 1
            stat = engine.stat(MAIN)
            assert stat is not None
            assert stat.revision.partition("-")[0] not in seen
            seen = {stat.revision.partition("-")[0]}
            assert content_of(engine, MAIN) == bytes_of(rows(1))
            engine.delete(MAIN)

    def test_what_was_deleted_does_not_come_back(self, engine: Engine) -> None:
        engine.append(MAIN, [note(1), row(1)], batch_id="b", summary=b"s")
        engine.delete(MAIN)
        engine.extend(MAIN, [bytes_of(rows(2))], start=0)
        engine.append(MAIN, rows(3))
        assert content_of(engine, MAIN) == bytes_of(rows(2, 3))


def failing(
    *chunks: bytes, error: BaseException | None = None, seen: Callable[[], object] | None = None
) -> Iterator[bytes]:
    """Chunks from a source that fails behind the last one. Until then `seen`, if given, must find nothing."""
    for chunk in chunks:
        yield chunk
        assert seen is None or seen() is None, "it shows before it is whole"
    raise error or StorageError("the source failed")
