"""Conformance of blobs, and of setting sessions aside and bringing them back."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from clew.engines.contract import Aside, BlobKey, BlobStat, Engine, LogKey, LogStat
from clew.errors import Conflict, DamagedData, NotFound, StorageError, UsageError
from clew.testing.conformance_base import (
    LONG_AGO_NS,
    MAIN,
    OTHER,
    PROJECT,
    S1,
    S2,
    S3,
    SUB1,
    SUB2,
    EngineUnderTest,
    blob,
    bytes_of,
    content_of,
    files_around,
    keys_of,
    note,
    row,
    rows,
)
from clew.testing.conformance_bytes import CHUNK, COPIED_CHUNKS, COPY_BYTES_MAX, failing
from clew.testing.conformance_reads import ODD_NAMES

CLIENTS_BLOBS = {
    "backup": "0123456789abcdef@v1",
    "tool result": "tool-results/toolu_1.txt",
    "meta": "subagents/agent-a1.meta.json",
    "custom title": "custom-title.json",
    "archived": "archived.json",
    "sidecar": "other/notes.json",
}
"""A blob of each kind that the client knows, by the name it has there."""


class BlobConformance(EngineUnderTest):
    """What blobs promise."""

    @pytest.mark.parametrize("content", [b"", b"x", b"\x00\xff\n" * 3_000], ids=["empty", "small", "larger"])
    def test_content_comes_back_as_it_was(self, engine: Engine, place: Path, content: bytes) -> None:
        digest = engine.put(blob(), [content[:10], b"", content[10:]], modified_ns=LONG_AGO_NS)
        assert digest == hashlib.sha256(content).hexdigest()
        again = self.reopened(engine, place)
        assert b"".join(again.open(blob())) == content
        stat = again.blob_stat(blob())
        assert stat is not None
        assert (stat.key, stat.size_bytes, stat.modified_ns) == (blob(), len(content), LONG_AGO_NS)
        assert stat.digest in (digest, None)
        assert [*again.blobs(MAIN)] == [stat]
        again.close()

    def test_what_is_put_again_replaces_what_was_there(self, engine: Engine) -> None:
        engine.put(blob(), [b"first, and longer"], mode=0o644)
        engine.put(blob(), [b"second"])
        assert b"".join(engine.open(blob())) == b"second"
        assert [stat.size_bytes for stat in engine.blobs(MAIN)] == [6]

    @pytest.mark.parametrize("kind", ["backup", "own"])
    def test_a_second_name_has_the_content_and_outlives_the_first(self, engine: Engine, kind: str) -> None:
        one, two = blob("0123456789abcdef@v1", kind=kind), blob("0123456789abcdef@v1", kind=kind, session=S2)
        engine.put(one, [b"content"], mode=0o644, modified_ns=LONG_AGO_NS)
        engine.put(two, [b"what was there before"])
        engine.link(one, two)
        stat = engine.blob_stat(two)
        assert stat is not None
        assert (stat.size_bytes, stat.modified_ns) == (7, LONG_AGO_NS)
        assert stat.mode == (0o644 if engine.capabilities.keeps_mode else stat.mode)
        engine.put(one, [b"another content"])
        assert b"".join(engine.open(two)) == b"content"
        engine.link(two, one)
        assert engine.delete_blob(two)
        assert b"".join(engine.open(one)) == b"content"
        with pytest.raises(NotFound):
            engine.link(two, one)
        assert b"".join(engine.open(one)) == b"content"

    def test_a_name_that_is_unknown_shows_at_the_call(self, engine: Engine) -> None:
        engine.put(blob(), [b"x"])
        for key in (blob("two"), blob(kind="other"), blob(session=S2), blob(project=OTHER), blob(session="")):
            assert engine.blob_stat(key) is None
            assert engine.delete_blob(key) is False
            with pytest.raises(NotFound):
                engine.open(key)
        assert b"".join(engine.open(blob())) == b"x"

    def test_the_same_content_under_two_names_outlives_one_of_them(self, engine: Engine, place: Path) -> None:
        names = [blob(), blob("two"), blob(session=S2), blob(project=OTHER, session=S3), blob(session="")]
        assert len({engine.put(key, [b"the same" * 5_000]) for key in names}) == 1
        for at, key in enumerate(names[:-1]):
            assert engine.delete_blob(key) is True
            assert engine.blob_stat(key) is None
            for left in names[at + 1 :]:
                assert b"".join(engine.open(left)) == b"the same" * 5_000
        again = self.reopened(engine, place)
        assert b"".join(again.open(names[-1])) == b"the same" * 5_000
        assert again.delete_blob(names[-1]) is True
        again.close()

    def test_blobs_are_listed_by_kind_and_name_with_their_session_only(self, engine: Engine) -> None:
        mine = [blob("b"), blob("a"), blob("a", kind="alpha"), blob("deep/er/name")]
        for key in (*mine, blob(session=S2), blob(project=OTHER), blob(session="")):
            engine.put(key, [b"x"])
        assert keys_of(engine.blobs(MAIN)) == sorted(mine)
        assert keys_of(engine.blobs(SUB1)) == sorted(mine)
        assert keys_of(engine.blobs(LogKey(PROJECT, S3))) == []
        assert [stat.key.name for stat in engine.blobs(LogKey(PROJECT, ""))] == ["one"]
        assert [stat for stat in engine.blobs(MAIN) if stat != engine.blob_stat(stat.key)] == []

    def test_blobs_of_the_clients_kinds_are_listed_as_what_they_are(self, engine: Engine) -> None:
        keys = [BlobKey(PROJECT, S1, kind, name) for kind, name in CLIENTS_BLOBS.items()]
        engine.append(MAIN, rows(1))
        for key in keys:
            engine.put(key, [key.kind.encode()])
        assert keys_of(engine.blobs(MAIN)) == sorted(keys)
        for key in keys:
            assert b"".join(engine.open(key)) == key.kind.encode()
            assert engine.delete_blob(key) is True
        assert [*engine.blobs(MAIN)] == []

    def test_blobs_make_no_session_and_a_session_without_blobs_has_none(self, engine: Engine) -> None:
        engine.put(blob(), [b"x"])
        assert [*engine.list()] == []
        assert engine.stat(MAIN) is None
        engine.append(LogKey(PROJECT, S2), rows(1))
        assert [*engine.blobs(LogKey(PROJECT, S2))] == []

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o400])
    def test_the_mode_comes_back_where_the_engine_says_so(self, engine: Engine, mode: int) -> None:
        engine.put(blob(), [b"x"], mode=mode)
        stat = engine.blob_stat(blob())
        assert stat is not None
        assert not engine.capabilities.keeps_mode or stat.mode == mode
        engine.put(blob(), [b"y"], mode=0o640)
        assert b"".join(engine.open(blob())) == b"y"

    def test_where_the_content_fails_what_was_there_stays(self, engine: Engine, place: Path) -> None:
        for key in (blob(), blob("new")):
            if key.name == "one":
                engine.put(key, [b"old"])
            with pytest.raises(StorageError, match="the source failed"):
                engine.put(key, failing(b"new", CHUNK))
        again = self.reopened(engine, place)
        assert b"".join(again.open(blob())) == b"old"
        assert keys_of(again.blobs(MAIN)) == [blob()]
        again.close()

    def test_memory_does_not_grow_with_the_content(self, engine: Engine) -> None:
        if not self.is_kept:
            pytest.skip("a store that is memory")
        tracemalloc.start()
        try:
            engine.put(blob(), (bytes(bytearray(CHUNK)) for _ in range(COPIED_CHUNKS)))
            size = sum(len(chunk) for chunk in engine.open(blob()))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (size, peak < COPY_BYTES_MAX) == (len(CHUNK) * COPIED_CHUNKS, True)

    def test_content_may_be_read_from_the_same_engine(self, engine: Engine) -> None:
        engine.put(blob(), [b"x" * 100_000])
        engine.append(MAIN, [row(number) for number in range(500)])
        engine.put(blob("copy"), engine.open(blob()))
        engine.put(blob("log"), (line.data for line in engine.read(MAIN)))
        assert b"".join(engine.open(blob("copy"))) == b"x" * 100_000
        assert b"".join(engine.open(blob("log"))) == content_of(engine, MAIN)

    def test_damage_shows_where_the_digest_is_known(self, engine: Engine, place: Path) -> None:
        content = b"a content that stands nowhere else " * 400
        engine.put(blob(), [content])
        stat = engine.blob_stat(blob())
        assert stat is not None
        if stat.digest is None or not self.is_kept:
            pytest.skip("only reading could say what the content must be")
        engine.close()
        if not damaged(place, content[:200]):
            pytest.skip("the content does not stand in a file as it is")
        again = self.open_engine(place)
        with pytest.raises((DamagedData, StorageError)):
            b"".join(again.open(blob()))
        again.close()

    @pytest.mark.parametrize("which", ["name", "kind", "session", "project"])
    def test_odd_names_are_held_apart_or_refused(self, engine: Engine, place: Path, which: str) -> None:
        before = files_around(place)
        held: dict[BlobKey, bytes] = {}
        for at, name in enumerate(ODD_NAMES):
            key = msgspec.structs.replace(blob(), **{which: name})
            content = f"{which} {at}".encode()
            try:
                engine.put(key, [content])
            except UsageError:
                continue
            held[key] = content
        assert len(held) > 10
        for key, content in held.items():
            if key.session:
                assert b"".join(engine.open(key)) == content, f"{key!r} does not hold what was put there"
                assert key in {stat.key for stat in engine.blobs(LogKey(key.project, key.session))}
        assert files_around(place) == before


class AsideConformance(EngineUnderTest):
    """What setting aside, bringing back and freeing promise."""

    def test_what_is_set_aside_is_shown_by_no_method(self, engine: Engine) -> None:
        _fill(engine, MAIN)
        told = engine.set_aside(MAIN, "op-1")
        assert told == Aside(3, 2, 3 * len(bytes_of(rows(1, 2))) + len(b"content of one") + len(b"content of two"))
        assert [engine.stat(key) for key in (MAIN, SUB1, SUB2)] == [None] * 3
        assert (keys_of(engine.list()), keys_of(engine.list_sub(MAIN)), [*engine.blobs(MAIN)]) == ([], [], [])
        assert dict(engine.list_subs(PROJECT)) == {}
        assert [*engine.find_sessions(S1)] == []
        assert engine.blob_stat(blob()) is None
        for call in (engine.read, engine.read_back):
            with pytest.raises(NotFound):
                call(MAIN)
        with pytest.raises(NotFound):
            engine.open(blob())
        assert engine.delete(MAIN) is False
        assert engine.delete_blob(blob()) is False

    def test_everything_comes_back_byte_for_byte_with_its_times(self, engine: Engine, place: Path) -> None:
        _fill(engine, MAIN)
        engine.extend(SUB1, [b"\xff no end"], start=len(bytes_of(rows(1, 2))), modified_ns=LONG_AGO_NS)
        before = _all_of(engine, MAIN)
        taken = engine.set_aside(MAIN, "op-1")
        again = self.reopened(engine, place)
        assert again.stat(MAIN) is None
        assert again.bring_back("op-1") == taken
        assert _all_of(again, MAIN) == before
        assert again.bring_back("op-1") == Aside()
        # And it is a session like any other.
        assert (again.append(MAIN, rows(1, 2, 3)).written, again.delete(MAIN)) == (1, True)
        again.close()

    def test_a_session_that_only_has_sublogs_or_blobs_goes_too(self, engine: Engine) -> None:
        engine.append(SUB1, rows(1))
        assert engine.set_aside(MAIN, "op-1") == Aside(1, 0, len(bytes_of(rows(1))))
        other = LogKey(PROJECT, S2)
        engine.put(blob(session=S2), [b"x"])
        assert engine.set_aside(other, "op-2") == Aside(0, 1, 1)
        assert (engine.stat(SUB1), engine.blob_stat(blob(session=S2))) == (None, None)
        engine.bring_back("op-1")
        engine.bring_back("op-2")
        assert content_of(engine, SUB1) == bytes_of(rows(1))
        assert b"".join(engine.open(blob(session=S2))) == b"x"

    def test_other_sessions_stay(self, engine: Engine) -> None:
        others = [LogKey(PROJECT, S2), LogKey(OTHER, S1)]
        for key in (MAIN, *others):
            _fill(engine, key)
        engine.put(blob(session=""), [b"of the store"])
        before = [_all_of(engine, key) for key in others]
        engine.set_aside(MAIN, "op-1")
        assert [_all_of(engine, key) for key in others] == before
        engine.free_aside("op-1")
        assert [_all_of(engine, key) for key in others] == before
        assert b"".join(engine.open(blob(session=""))) == b"of the store"

    def test_one_operation_takes_several_sessions(self, engine: Engine) -> None:
        keys = [MAIN, LogKey(PROJECT, S2), LogKey(OTHER, S1)]
        for key in keys:
            _fill(engine, key)
        before = [_all_of(engine, key) for key in keys]
        told = [engine.set_aside(key, "op-1") for key in keys]
        assert [*engine.list()] == []
        assert engine.bring_back("op-1") == Aside(9, 6, sum(each.size_bytes for each in told))
        assert [_all_of(engine, key) for key in keys] == before

    def test_setting_aside_again_takes_nothing(self, engine: Engine) -> None:
        _fill(engine, MAIN)
        engine.set_aside(MAIN, "op-1")
        assert engine.set_aside(MAIN, "op-1") == Aside()
        assert engine.bring_back("op-1").logs == 3

    def test_it_goes_on_where_it_was_ended(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1))
        engine.set_aside(MAIN, "op-1")
        # What a crash left behind, as if it had not been reached yet.
        engine.put(blob(), [b"left"])
        assert engine.set_aside(MAIN, "op-1") == Aside(0, 1, 4)
        assert engine.bring_back("op-1") == Aside(1, 1, len(bytes_of(rows(1))) + 4)
        assert content_of(engine, MAIN) == bytes_of(rows(1))
        assert b"".join(engine.open(blob())) == b"left"

    def test_a_second_one_of_the_same_name_is_a_conflict(self, engine: Engine) -> None:
        _fill(engine, MAIN)
        before = _all_of(engine, MAIN)
        engine.set_aside(MAIN, "op-1")
        engine.append(MAIN, rows(7))
        with pytest.raises(Conflict):
            engine.set_aside(MAIN, "op-1")
        assert content_of(engine, MAIN) == bytes_of(rows(7))
        assert engine.set_aside(MAIN, "op-2") == Aside(1, 0, len(bytes_of(rows(7))))
        engine.bring_back("op-1")
        assert _all_of(engine, MAIN) == before

    @pytest.mark.parametrize("what", ["main log", "sublog", "blob"])
    def test_nothing_comes_back_where_something_stands_in_its_place(self, engine: Engine, what: str) -> None:
        other = LogKey(OTHER, S2)
        for key in (MAIN, other):
            _fill(engine, key)
        before = _all_of(engine, MAIN)
        for key in (other, MAIN):
            engine.set_aside(key, "op-1")
        if what == "blob":
            engine.put(blob(), [b"new"])
        else:
            engine.append(MAIN if what == "main log" else SUB1, rows(7))
        there = _all_of(engine, MAIN)
        with pytest.raises(Conflict):
            engine.bring_back("op-1")
        assert _all_of(engine, MAIN) == there
        assert _all_of(engine, other) == ({}, {})
        engine.set_aside(MAIN, "op-2")
        engine.bring_back("op-1")
        assert _all_of(engine, MAIN) == before

    def test_what_is_freed_is_gone(self, engine: Engine, place: Path) -> None:
        _fill(engine, MAIN)
        _fill(engine, LogKey(PROJECT, S2))
        taken = engine.set_aside(MAIN, "op-1")
        engine.set_aside(LogKey(PROJECT, S2), "op-2")
        again = self.reopened(engine, place)
        assert again.free_aside("op-1") == taken
        assert again.free_aside("op-1") == Aside()
        assert again.bring_back("op-1") == Aside()
        assert again.stat(MAIN) is None
        assert again.bring_back("op-2").logs == 3
        again.close()

    def test_content_that_others_share_outlives_what_is_freed(self, engine: Engine) -> None:
        for session in (S1, S2):
            engine.put(blob(session=session), [b"the same" * 5_000])
        engine.set_aside(MAIN, "op-1")
        engine.free_aside("op-1")
        assert b"".join(engine.open(blob(session=S2))) == b"the same" * 5_000
        # And content that is only kept outlives the last name that shows.
        engine.set_aside(LogKey(PROJECT, S2), "op-2")
        engine.put(blob(session=S3), [b"the same" * 5_000])
        assert engine.delete_blob(blob(session=S3)) is True
        engine.bring_back("op-2")
        assert b"".join(engine.open(blob(session=S2))) == b"the same" * 5_000

    def test_where_nothing_is_there_nothing_happens(self, engine: Engine) -> None:
        assert engine.set_aside(MAIN, "op-1") == Aside()
        assert engine.bring_back("op-1") == Aside()
        assert engine.bring_back("never-was") == Aside()
        assert engine.free_aside("never-was") == Aside()

    @pytest.mark.parametrize("by", ["append", "extend"])
    def test_a_log_that_is_made_anew_has_nothing_of_the_one_set_aside(self, engine: Engine, by: str) -> None:
        entries = [note(1), row(1)]
        first = engine.append(MAIN, entries, batch_id="b", summary=b"s")
        engine.set_aside(MAIN, "op-1")
        if by == "extend":
            engine.extend(MAIN, [bytes_of(rows(5))], start=0)
        else:
            engine.append(MAIN, rows(5), expect="")
        done = engine.append(MAIN, entries, batch_id="b")
        assert done.written == 2
        assert content_of(engine, MAIN) == bytes_of([row(5), *entries])
        assert done.revision.partition("-")[0] != first.revision.partition("-")[0]

    @pytest.mark.parametrize("operation", [name for name in ODD_NAMES if len(name) < 300])
    def test_any_name_of_an_operation_is_kept_apart_or_refused(
        self, engine: Engine, place: Path, operation: str
    ) -> None:
        before = files_around(place)
        _fill(engine, MAIN)
        there = _all_of(engine, MAIN)
        try:
            engine.set_aside(MAIN, operation)
        except UsageError:
            assert _all_of(engine, MAIN) == there
        else:
            assert engine.stat(MAIN) is None
            assert engine.bring_back("op") == Aside()
            assert engine.bring_back(operation).logs == 3
            assert _all_of(engine, MAIN) == there
        assert files_around(place) == before


def _fill(engine: Engine, key: LogKey) -> None:
    """A session with a main log, two sublogs and two blobs, each with a time of its own."""
    for at, subpath in enumerate(("", SUB1.subpath, SUB2.subpath)):
        log, time = LogKey(key.project, key.session, subpath), LONG_AGO_NS + at * 7_000_000
        engine.extend(log, [bytes_of(rows(1, 2))], start=0, modified_ns=time)
    for at, name in enumerate(("one", "two")):
        named = blob(name, session=key.session, project=key.project)
        engine.put(named, [f"content of {name}".encode()], modified_ns=LONG_AGO_NS + at, mode=0o640)


_Logs = dict[LogKey, tuple[bytes, int]]
_Blobs = dict[BlobKey, tuple[bytes, int, int]]


def _all_of(engine: Engine, key: LogKey) -> tuple[_Logs, _Blobs]:
    """Everything of a session, with the times."""
    main = engine.stat(key)
    logs: Sequence[LogStat] = [*([] if main is None else [main]), *engine.list_sub(key)]
    blobs: Sequence[BlobStat] = engine.blobs(key)
    return (
        {stat.key: (content_of(engine, stat.key), stat.modified_ns) for stat in logs},
        {stat.key: (b"".join(engine.open(stat.key)), stat.modified_ns, stat.mode) for stat in blobs},
    )


def damaged(place: Path, content: bytes) -> bool:
    """Changes one byte of this content in every file below a directory that holds it. False where none does."""
    found = False
    for folder, _, names in os.walk(place):
        for name in names:
            path = Path(folder, name)
            data = path.read_bytes()
            at = data.find(content)
            while at >= 0:
                found = True
                with path.open("r+b") as file:
                    file.seek(at + len(content) // 2)
                    file.write(bytes([content[len(content) // 2] ^ 1]))
                at = data.find(content, at + 1)
    return found
