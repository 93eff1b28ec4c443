"""Conformance of reading and listing: every byte once, places that hold, orders, names that are data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from clew.engines.contract import Engine, Entry, LogKey, Order
from clew.errors import ClewError, Conflict, NotFound, UsageError
from clew.layouts.keys import ClaudeKeys
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
    line_of,
    note,
    row,
    rows,
    uuid_of,
)

SMALL_LINE_BYTES = 100
ODD_NAMES = (
    "", ".", "..", "../up", "../../up", "/abs", "a/b", "a/../b", "a\\b", "a\x00b", "a\nb", "\x1b[31m", "sess", "a", "-",
    "--", "-rf", "~", "$HOME", "%2e%2e", "CON", "nul.txt", "a.jsonl", ".hidden", "trailing.", "trailing ", " ",
    "*", "?", "'; DROP TABLE log; --", "agent-a1", "agent-", "clew", "sessions", "subagents", "x" * 255, "x" * 256,
    "x" * 5_000,
    "é", "日本語", "🧶", "\u202egnp", "\ufeff", "\udcff", "\ud83d", "#", "a#b", "a:b", "a@b",
)  # fmt: skip
"""Ids and keys as they may come from anywhere. Each is held apart from all others, or refused."""


class ReadConformance(EngineUnderTest):
    """What reading one log promises."""

    def test_lines_say_where_they_stand(self, engine: Engine) -> None:
        entries = [row(1), note(2), row(3, "é" * 500)]
        engine.append(MAIN, entries)
        lines = [*engine.read(MAIN)]
        assert [line.data for line in lines] == [entry.data + b"\n" for entry in entries]
        assert [line.number for line in lines] == [1, 2, 3]
        assert [line.size for line in lines] == [len(line.data) for line in lines]
        assert [line.position for line in lines] == [0, lines[0].size, lines[0].size + lines[1].size]

    def test_lines_that_hold_some_bytes_are_those_that_reading_finds(self, engine: Engine) -> None:
        engine.append(MAIN, [note(1), row(2, "here it is"), note(3), row(4, "here too")])
        engine.append(SUB1, [row(5, "nothing")])
        gone = LogKey(PROJECT, S3)
        found = [*engine.lines_with([SUB1, gone, MAIN], b"here")]
        assert [key for key, _ in found] == [SUB1, gone, MAIN]
        assert found[0][1] == [] or found[0][1] == ()
        assert isinstance(found[1][1], ClewError)
        held = [line for line in engine.read(MAIN) if b"here" in line.data]
        assert not isinstance(found[2][1], ClewError)
        assert [(line.data, line.position) for line in found[2][1]] == [(line.data, line.position) for line in held]

    def test_a_read_begins_and_ends_where_it_is_told(self, engine: Engine) -> None:
        engine.append(MAIN, [note(at) for at in range(5)])
        lines = [*engine.read(MAIN)]
        size = lines[-1].position + lines[-1].size
        for at, line in enumerate(lines):
            rest = [*engine.read(MAIN, start=line.position)]
            assert [each.position for each in rest] == [each.position for each in lines[at:]]
            assert [each.number for each in rest] == [*range(1, len(rest) + 1)]
            before = [*engine.read(MAIN, end=line.position)]
            assert [each.data for each in before] == [each.data for each in lines[:at]]
            # A line that begins before the end is given whole.
            assert [each.data for each in engine.read(MAIN, start=line.position, end=line.position + 1)] == [line.data]
        assert [*engine.read(MAIN, start=size)] == []
        assert [*engine.read(MAIN, start=size, end=0)] == []
        assert len([*engine.read(MAIN, end=size * 10)]) == 5

    def test_a_place_where_no_line_begins_is_a_conflict(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1, 2))
        for start in (1, 5, len(bytes_of(rows(1))) - 1, len(bytes_of(rows(1, 2))) + 1, 10**9):
            with pytest.raises(Conflict):
                engine.read(MAIN, start=start)

    def test_places_that_cannot_be_are_refused(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1))
        for bad in (
            lambda: engine.read(MAIN, start=-1),
            lambda: engine.read(MAIN, end=-1),
            lambda: engine.read_range(MAIN, position=-1, size=1),
            lambda: engine.read_range(MAIN, position=0, size=-1),
        ):
            with pytest.raises(UsageError):
                bad()

    def test_a_log_that_is_not_there_shows_at_the_call(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1))
        for key in (SUB1, LogKey(PROJECT, S2), LogKey(OTHER, S1)):
            assert engine.stat(key) is None
            with pytest.raises(NotFound):
                engine.read(key)
            with pytest.raises(NotFound):
                engine.read_back(key)
            with pytest.raises(NotFound):
                engine.read_range(key, position=0, size=1)

    def test_the_same_lines_come_newest_first(self, engine: Engine) -> None:
        engine.append(MAIN, [row(1), note(2), row(3, "x" * 9_000), note(4)])
        there = [(line.data, line.position, line.size) for line in engine.read(MAIN)]
        back = [*engine.read_back(MAIN)]
        assert [(line.data, line.position, line.size) for line in back] == there[::-1]
        assert {line.number for line in back} == {0}

    def test_any_range_is_read_as_it_is(self, engine: Engine) -> None:
        whole = bytes_of(rows(1, 2, 3))
        engine.append(MAIN, rows(1, 2, 3))
        for position, size in ((0, len(whole)), (0, 0), (3, 1), (10, len(whole) - 10), (len(whole), 0)):
            found = b"".join(engine.read_range(MAIN, position=position, size=size))
            assert found == whole[position : position + size]
        for position, size in ((0, len(whole) + 1), (len(whole), 1), (10**9, 1)):
            with pytest.raises(Conflict):
                engine.read_range(MAIN, position=position, size=size)

    def test_bytes_that_were_copied_in_are_read_as_lines(self, engine: Engine) -> None:
        raw = b'{"a":1}\n\n  \n\r\n\x00\x00\xff\n{"b":2}\r\n{"torn":'
        engine.extend(MAIN, [raw], start=0)
        *whole, torn = raw.split(b"\n")
        pieces = [*(piece + b"\n" for piece in whole), torn]
        assert [line.data for line in engine.read_back(MAIN)] == pieces[::-1]
        assert [line.is_terminated for line in engine.read(MAIN)] == [True] * (len(pieces) - 1) + [False]

    def test_a_log_of_no_bytes_is_there(self, engine: Engine) -> None:
        assert engine.extend(MAIN, [], start=0, make=True) == 0
        stat = engine.stat(MAIN)
        assert stat is not None
        assert (stat.size_bytes, stat.revision != "") == (0, True)
        assert ([*engine.read(MAIN)], [*engine.read_back(MAIN)]) == ([], [])
        assert b"".join(engine.read_range(MAIN, position=0, size=0)) == b""
        assert keys_of(engine.list(PROJECT)) == [MAIN]
        engine.append(MAIN, rows(1), expect=stat.revision)
        assert content_of(engine, MAIN) == bytes_of(rows(1))

    def test_a_line_over_the_limit_is_a_range(self, place: Path) -> None:
        engine = self.open_engine(place, line_bytes_max=SMALL_LINE_BYTES)
        long = line_of(type="user", uuid=uuid_of(2), text="x" * 5_000)
        whole = b'{"a":1}\n' + long + b"\n" + b'{"b":2}\n' + b"y" * 700
        engine.extend(MAIN, [whole], start=0, modified_ns=LONG_AGO_NS)
        assert content_of(engine, MAIN) == whole
        sizes = [8, len(long) + 1, 8, 700]
        lines, back = [*engine.read(MAIN)], [*engine.read_back(MAIN)]
        assert [line.size for line in lines] == sizes
        assert [(line.position, line.size) for line in back] == [(line.position, line.size) for line in lines][::-1]
        for line in (*lines, *back):
            there = whole[line.position : line.position + line.size]
            assert line.data == there if line.is_held else line.data == b""
            assert b"".join(engine.read_range(MAIN, position=line.position, size=line.size)) == there
        assert engine.append(MAIN, rows(3)).written == 1
        engine.close()

    def test_what_is_appended_during_a_read_breaks_no_line(self, engine: Engine) -> None:
        entries = [row(number, "x" * 3_000) for number in range(40)]
        engine.append(MAIN, entries[:20])
        reading = engine.read(MAIN)
        begun = [next(reading)]
        engine.append(MAIN, entries[20:])
        found = [line.data for line in (*begun, *reading)]
        assert 20 <= len(found) <= 40
        assert found == [entry.data + b"\n" for entry in entries[: len(found)]]

    @pytest.mark.parametrize("change", ["replace", "delete", "set_aside", "made_anew"])
    def test_what_is_taken_away_during_a_read_is_not_mixed_with_what_comes(self, engine: Engine, change: str) -> None:
        old = [row(number, "old" * 2_000) for number in range(400)]
        new = [row(number, "new" * 2_000) for number in range(400)]
        revision = engine.append(MAIN, old).revision
        for begin, whole in ((engine.read, old), (engine.read_back, old[::-1])):
            reading = begin(MAIN)
            found = [next(reading).data]
            _take_away(engine, change, revision, new)
            try:
                found += [line.data for line in reading]
            except ClewError:
                pass
            else:
                assert len(found) == len(whole)
            assert found == [entry.data + b"\n" for entry in whole[: len(found)]]
            engine.delete(MAIN)
            revision = engine.append(MAIN, old).revision

    def test_a_read_that_is_dropped_holds_nothing_up(self, engine: Engine) -> None:
        engine.append(MAIN, rows(*range(100)))
        for open_one in (engine.read, engine.read_back):
            reading = open_one(MAIN)
            next(reading)
            del reading
        stopped: Iterator[object] = engine.read(MAIN)
        next(stopped)
        # One that nobody goes on with holds nothing up either.
        assert engine.append(MAIN, rows(1_000)).written == 1
        assert engine.delete(MAIN) is True


def _take_away(engine: Engine, change: str, revision: str, new: list[Entry]) -> None:
    if change == "replace":
        engine.replace(MAIN, [bytes_of(new)], expect=revision)
    elif change == "set_aside":
        engine.set_aside(MAIN, "op")
        engine.free_aside("op")
    else:
        engine.delete(MAIN)
        if change == "made_anew":
            engine.append(MAIN, new)


class ListConformance(EngineUnderTest):
    """What lists promise, and that names are data."""

    def test_main_logs_are_listed_by_time_and_by_key(self, engine: Engine) -> None:
        later, old = LONG_AGO_NS + 5_000_000, LONG_AGO_NS
        times = {
            LogKey(PROJECT, S1): old, LogKey(PROJECT, S2): later, LogKey(OTHER, S2): later, LogKey(OTHER, S3): later,
        }  # fmt: skip
        for key, time in times.items():
            engine.extend(key, [bytes_of(rows(1))], start=0, modified_ns=time)
            engine.extend(LogKey(key.project, key.session, SUB1.subpath), [bytes_of(rows(1))], start=0)
        tied = sorted(key for key, time in times.items() if time == later)
        assert keys_of(engine.list()) == [*tied, MAIN]
        assert keys_of(engine.list(order=Order.OLDEST_FIRST)) == [MAIN, *tied]
        assert keys_of(engine.list(order=Order.BY_KEY)) == sorted(times)
        assert keys_of(engine.list(PROJECT)) == [LogKey(PROJECT, S2), MAIN]
        assert keys_of(engine.list(PROJECT, order=Order.OLDEST_FIRST, limit=1)) == [MAIN]
        assert [*engine.list("-unknown")] == []
        assert [stat for stat in engine.list() if stat != engine.stat(stat.key)] == []

    def test_a_limit_cuts_a_list(self, engine: Engine) -> None:
        assert [*engine.list(limit=3)] == []
        for session in (S1, S2, S3):
            engine.append(LogKey(PROJECT, session), rows(1))
        for order in Order:
            whole = keys_of(engine.list(order=order))
            for limit in (0, 1, 2, 3, 9):
                assert keys_of(engine.list(order=order, limit=limit)) == whole[:limit]
        with pytest.raises(UsageError):
            engine.list(limit=-1)

    def test_the_newest_append_comes_first(self, engine: Engine) -> None:
        engine.append(LogKey(PROJECT, S1), rows(1))
        engine.extend(LogKey(PROJECT, S2), [bytes_of(rows(1))], start=0, modified_ns=LONG_AGO_NS)
        assert keys_of(engine.list()) == [LogKey(PROJECT, S1), LogKey(PROJECT, S2)]

    def test_sublogs_are_listed_with_their_session_only(self, engine: Engine) -> None:
        for key in (SUB2, SUB1, MAIN, LogKey(PROJECT, S2), LogKey(PROJECT, S3, SUB1.subpath), LogKey(OTHER, S1)):
            engine.append(key, rows(1))
        assert keys_of(engine.list_sub(MAIN)) == [SUB1, SUB2]
        assert keys_of(engine.list_sub(LogKey(PROJECT, S2))) == []
        assert keys_of(engine.list_sub(LogKey(OTHER, S1))) == []
        assert keys_of(engine.list_sub(LogKey(PROJECT, "unknown"))) == []
        # Also where the main log is not there.
        assert keys_of(engine.list_sub(LogKey(PROJECT, S3))) == [LogKey(PROJECT, S3, SUB1.subpath)]
        assert keys_of(engine.list(PROJECT, order=Order.BY_KEY)) == [MAIN, LogKey(PROJECT, S2)]
        assert [stat for stat in engine.list_sub(MAIN) if stat != engine.stat(stat.key)] == []

    def test_sublogs_of_a_project_are_listed_at_once(self, engine: Engine) -> None:
        for key in (MAIN, SUB1, SUB2, LogKey(PROJECT, S2), LogKey(OTHER, S1, SUB1.subpath)):
            engine.append(key, rows(1))
        assert {session: keys_of(stats) for session, stats in engine.list_subs(PROJECT).items()} == {S1: [SUB1, SUB2]}
        assert dict(engine.list_subs("-unknown")) == {}

    def test_projects_with_a_log_are_named(self, engine: Engine) -> None:
        assert [*engine.projects()] == []
        engine.append(LogKey(PROJECT, S1), rows(1))
        engine.append(LogKey(OTHER, S1, SUB1.subpath), rows(1))
        named = engine.projects()
        assert {PROJECT, OTHER} <= set(named)
        assert [*named] == sorted(set(named))

    def test_projects_of_a_directory_are_found_by_the_key(self, engine: Engine) -> None:
        keys = ClaudeKeys()
        assert [*engine.projects_for("/home/a/project", keys)] == []
        engine.append(LogKey(keys.key("/home/a/project"), S1), rows(1))
        assert [*engine.projects_for("/home/a/project", keys)] == ["-home-a-project"]

    def test_sessions_are_found_by_the_beginning_of_their_id(self, engine: Engine) -> None:
        full, twin = "12345678-0000-4000-8000-00000000000a", "12345678-0000-4000-8000-00000000000b"
        for at, key in enumerate((LogKey(PROJECT, full), LogKey(PROJECT, twin), LogKey(OTHER, full))):
            engine.extend(key, [bytes_of(rows(1))], start=0, modified_ns=LONG_AGO_NS + at * 5_000_000)
        engine.append(LogKey(PROJECT, full, SUB1.subpath), rows(1))
        newest_first = [LogKey(OTHER, full), LogKey(PROJECT, twin), LogKey(PROJECT, full)]
        for prefix in ("1", "12345678", "12345678-0000-4000-8000-00000000000"):
            assert keys_of(engine.find_sessions(prefix)) == newest_first
        assert keys_of(engine.find_sessions(full.upper())) == [LogKey(OTHER, full), LogKey(PROJECT, full)]
        assert keys_of(engine.find_sessions(full)) == [LogKey(OTHER, full), LogKey(PROJECT, full)]
        assert [*engine.find_sessions("9")] == []

    def test_a_row_that_is_found_by_its_id_begins_there(self, engine: Engine) -> None:
        wanted = rows(3)
        engine.append(MAIN, wanted[:2])
        engine.append(MAIN, wanted)
        places = {line.data.rstrip(b"\n"): line.position for line in engine.read(MAIN)}
        for entry in wanted:
            assert engine.find_row(MAIN, entry.dedupe_id or "") in (places[entry.data], None)
        assert engine.find_row(MAIN, "no such id") is None
        assert engine.find_row(LogKey(PROJECT, "no such session"), wanted[0].dedupe_id or "") is None

    def test_defaults_that_nothing_contradicts(self, engine: Engine) -> None:
        engine.append(MAIN, rows(1))
        assert engine.live_sessions() == frozenset()
        days = engine.retention_days()
        assert days is None or days >= 0
        assert S1 in engine.where(MAIN)
        assert isinstance(engine.url, str)
        assert [*engine.list()]
        assert [*engine.problems] == []

    def test_words_are_found_where_the_engine_says_so(self, engine: Engine) -> None:
        engine.append(MAIN, [row(1, "the quick brown fox"), row(2, "a lazy dog")])
        engine.append(LogKey(OTHER, S1), [row(1, "a quick fox elsewhere")])
        if not engine.capabilities.search:
            with pytest.raises(UsageError):
                [*engine.search("quick")]
            return
        found = [*engine.search("quick fox", project=PROJECT)]
        assert [each.key for each in found] == [MAIN]
        assert b"quick brown fox" in b"".join(engine.read_range(MAIN, position=found[0].position, size=found[0].size))
        assert {each.key for each in engine.search("quick fox")} == {MAIN, LogKey(OTHER, S1)}
        assert len([*engine.search("quick", limit=1)]) == 1
        assert [*engine.search("quick dog")] == []
        engine.delete(MAIN)
        assert {each.key for each in engine.search("quick")} == {LogKey(OTHER, S1)}

    # Names.

    @pytest.mark.parametrize("which", ["project", "session", "subpath"])
    def test_odd_names_are_held_apart_or_refused(self, engine: Engine, place: Path, which: str) -> None:
        before = files_around(place)
        held: dict[LogKey, bytes] = {}
        for at, name in enumerate(ODD_NAMES):
            key = _odd_key(which, name)
            try:
                engine.append(key, [note(at)])
            except UsageError:
                assert _what_is_there(engine, key) == b"", f"{name!r} was refused and is there"
                continue
            held.setdefault(key, b"")
            held[key] += bytes_of([note(at)])
        assert len(held) > 10
        for key, content in held.items():
            assert content_of(engine, key) == content, f"{key!r} does not hold what was appended to it"
        main = {key for key in held if not key.subpath}
        assert {stat.key for stat in engine.list()} == main
        for key in held.keys() - main:
            assert key in {stat.key for stat in engine.list_sub(key.main)}
        assert files_around(place) == before

    def test_no_name_makes_a_method_raise_anything_but_errors_of_clew(self, engine: Engine, place: Path) -> None:
        engine.append(MAIN, rows(1))
        engine.put(blob(), [b"content"])
        before = files_around(place)
        for name in ODD_NAMES:
            for key in (LogKey(name, S2), LogKey(PROJECT, name), LogKey(PROJECT, S2, name or ".."), LogKey(name, name)):
                for call in _calls(engine, key, name):
                    _or_error(call)
            for odd in (blob(name), blob(kind=name), blob(session=name), blob(project=name)):
                _or_error(partial(engine.open, odd))
                _or_error(partial(engine.blob_stat, odd))
                if odd.name != "one" or (odd.kind, odd.session, odd.project) != ("checkpoint", S1, PROJECT):
                    _or_error(partial(engine.delete_blob, odd))
        assert content_of(engine, MAIN) == bytes_of(rows(1))
        assert b"".join(engine.open(blob())) == b"content"
        assert files_around(place) == before


def _odd_key(which: str, name: str) -> LogKey:
    if which == "project":
        return LogKey(name, S1)
    return LogKey(PROJECT, name) if which == "session" else LogKey(PROJECT, S1, name)


def _what_is_there(engine: Engine, key: LogKey) -> bytes:
    try:
        return content_of(engine, key)
    except (UsageError, NotFound):
        return b""


def _calls(engine: Engine, key: LogKey, name: str) -> list[Callable[[], object]]:
    """Calls that find nothing under the key, or refuse it."""
    return [
        lambda: engine.stat(key),
        lambda: [*engine.read(key)],
        lambda: [*engine.read_back(key)],
        lambda: [*engine.read_range(key, position=0, size=1)],
        lambda: [*engine.list(key.project if key.project != PROJECT else None)],
        lambda: [*engine.list_sub(key)],
        lambda: [*engine.blobs(key)],
        lambda: engine.delete(key),
        lambda: engine.replace(key, [b"x"], expect="r"),
        lambda: engine.extend(key, [b"x"], start=99),
        lambda: engine.append(key, rows(9), expect="r"),
        lambda: engine.set_aside(key, "operation"),
        lambda: engine.find_sessions(name),
        lambda: engine.bring_back(name),
        lambda: engine.free_aside(name),
        lambda: engine.where(key),
    ]


def _or_error(call: Callable[[], object]) -> None:
    """Calls it; every error that is none of clew's gets out."""
    with suppress(ClewError):
        call()
