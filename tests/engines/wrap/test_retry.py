"""What may pass is tried again and nothing is done twice; everything else comes out at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Event

import pytest

from clew.engines.contract import Aside, BlobKey, Engine, Entry, LogKey
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.backoff import Backoff
from clew.engines.wrap.base import Wrapper
from clew.engines.wrap.faulty import Fault, Faulty, When, at
from clew.engines.wrap.retry import Retry
from clew.errors import Busy, ClewError, Conflict, DamagedData, NotFound, StorageError, UsageError

MAIN = LogKey("-home-a", "session")
SUB = LogKey("-home-a", "session", "subagents/agent-a1")
BLOB = BlobKey("-home-a", "session", "checkpoint", "one")
LINES = [b'{"n":%d}\n' % number for number in range(20)]


def filled() -> MemoryEngine:
    engine = MemoryEngine(chunk_bytes=7)
    engine.extend(MAIN, LINES, start=0)
    engine.append(SUB, [Entry(b"{}")])
    engine.put(BLOB, LINES)
    return engine


def retry(inner: Engine, *faults: Fault, waits: list[float] | None = None, tries_max: int = 6) -> Retry:
    """Retries without waiting, and notes how long it would have."""
    seen = [] if waits is None else waits
    return Retry(
        Faulty(inner, at(*faults)), backoff=Backoff(tries_max=tries_max), sleep=seen.append, random=lambda: 0.5
    )


def data_of(engine: Engine, key: LogKey = MAIN) -> list[bytes]:
    return [line.data for line in engine.read(key)]


# How often, and how long.


def test_what_may_pass_is_tried_as_often_as_is_said_with_growing_waits() -> None:
    waits: list[float] = []
    engine = retry(MemoryEngine(), Fault("stat"), waits=waits)
    with pytest.raises(StorageError, match="call 6 of stat"):
        engine.stat(MAIN)
    assert waits == pytest.approx([0.0375, 0.075, 0.15, 0.3, 0.6])


def test_waits_have_an_upper_bound_and_half_of_each_is_drawn() -> None:
    backoff = Backoff(first_seconds=1.0, seconds_max=3.0)
    assert [backoff.seconds(failures, 1.0) for failures in (1, 2, 3, 50)] == [1.0, 2.0, 3.0, 3.0]
    assert [backoff.seconds(failures, 0.0) for failures in (1, 2, 3, 50)] == [0.5, 1.0, 1.5, 1.5]


@pytest.mark.parametrize("error", [
    Conflict("another revision"), Conflict("another revision", is_permanent=False), UsageError("a wrong call"),
    NotFound("nothing"), DamagedData("other bytes"),
    StorageError("the disk is full"),
])  # fmt: skip
def test_what_trying_again_does_not_help_comes_out_at_once(error: ClewError) -> None:
    waits: list[float] = []
    with pytest.raises(type(error)) as raised:
        retry(MemoryEngine(), Fault("append", 1, "before", error), waits=waits).append(MAIN, [Entry(b"{}")])
    assert (raised.value, waits) == (error, [])


@pytest.mark.parametrize("error", [Busy("somebody is writing"), StorageError("no answer", is_permanent=False)])
def test_what_may_pass_is_done_in_the_end(error: ClewError) -> None:
    engine = retry(MemoryEngine(), Fault("append", 1, "before", error), Fault("append", 2, "before", error))
    assert engine.append(MAIN, [Entry(b"{}")]).written == 1
    assert data_of(engine) == [b"{}\n"]


# Lost answers.


def test_an_append_whose_answer_was_lost_is_there_once_also_without_ids() -> None:
    engine = retry(MemoryEngine(), Fault("append", 1, "after"), Fault("append", 2, "after"), Fault("append", 4))
    for text in (b"1", b"2"):
        engine.append(MAIN, [Entry(text), Entry(b"same"), Entry(b"same")])
    assert data_of(engine) == [b"1\n", b"same\n", b"same\n", b"2\n", b"same\n", b"same\n"]


def test_an_append_whose_answer_was_lost_is_not_held_against_what_it_expects() -> None:
    engine = retry(MemoryEngine(), Fault("append", 1, "after"))
    revision = engine.append(MAIN, [Entry(b"1")], expect="").revision
    assert engine.append(MAIN, [Entry(b"2")], expect=revision).written == 1


def test_the_batch_of_the_caller_is_kept() -> None:
    inner = MemoryEngine()
    retry(inner, Fault("append", 1, "after")).append(MAIN, [Entry(b"1")], batch_id="mine")
    assert inner.append(MAIN, [Entry(b"1")], batch_id="mine").written == 0


def test_what_a_lost_answer_would_have_said_is_said() -> None:
    lost = [Fault(method, 1, "after") for method in ("delete", "delete_blob", "set_aside", "put", "replace")]
    engine = retry(filled(), *lost)
    before = engine.stat(MAIN)
    assert before is not None
    revision = engine.replace(MAIN, iter([b"1\n", b"2\n"]), expect=before.revision)
    after = engine.stat(MAIN)
    assert after is not None
    assert (after.revision, data_of(engine)) == (revision, [b"1\n", b"2\n"])
    assert engine.put(BLOB, iter([b"x", b"y"])) == engine.put(BLOB, [b"xy"])
    assert engine.delete_blob(BLOB) is True
    assert engine.delete_blob(BLOB) is False
    assert engine.set_aside(MAIN, "operation") == Aside(2, 0, 7)
    engine.bring_back("operation")
    assert engine.delete(MAIN) is True
    assert engine.delete(MAIN) is False


def test_sublogs_alone_are_deleted_as_well_though_the_answer_was_lost() -> None:
    inner = MemoryEngine()
    inner.append(SUB, [Entry(b"{}")])
    assert retry(inner, Fault("delete", 1, "after")).delete(MAIN) is True


def test_what_was_not_there_is_not_said_to_be_deleted() -> None:
    engine = retry(MemoryEngine(), Fault("delete", 1), Fault("delete_blob", 1))
    assert engine.delete(MAIN) is False
    assert engine.delete_blob(BLOB) is False


# Bytes that were taken and did not arrive.


class Short(Wrapper):
    """Takes so many bytes of the next extension, then fails in a way that may pass."""

    def __init__(self, inner: Engine, *takes: int) -> None:
        super().__init__(inner)
        self.takes = [*takes]

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        if not self.takes:
            return self.inner.extend(key, chunks, start=start, modified_ns=modified_ns, make=make)
        left, size = self.takes.pop(0), start
        for chunk in chunks:
            size = self.inner.extend(key, [chunk[:left]], start=size)
            left -= len(chunk)
            if left <= 0:
                break
        raise Busy("somebody is writing")


def of_list(chunks: list[bytes]) -> Iterable[bytes]:
    return chunks


@pytest.mark.parametrize("given", [of_list, iter])
@pytest.mark.parametrize("takes", [(3,), (8, 0), (13, 2), (40,), (39, 1)])
def test_bytes_that_arrived_in_part_are_gone_on_with(
    given: Callable[[list[bytes]], Iterable[bytes]], takes: tuple[int, ...]
) -> None:
    chunks = [b"0123456789" for _ in range(4)]
    inner = MemoryEngine()
    inner.extend(MAIN, [b"before\n"], start=0)
    engine = Retry(Short(inner, *takes), sleep=lambda _: None)
    assert engine.extend(MAIN, given(chunks), start=7) == 47
    assert b"".join(engine.read_range(MAIN, position=0, size=47)) == b"before\n" + b"".join(chunks)


def test_a_copy_that_does_not_fit_is_a_conflict_although_its_first_try_failed() -> None:
    for start in (3, 99):
        engine = retry(filled(), Fault("extend", 1))
        with pytest.raises(Conflict):
            engine.extend(MAIN, iter(LINES), start=start)


class Gone(Wrapper):
    """Takes all the bytes of the first call and keeps none."""

    is_first = True

    def _dropped(self, chunks: Iterable[bytes]) -> None:
        if self.is_first:
            self.is_first = False
            for _ in chunks:
                pass
            raise Busy("somebody is writing")

    def extend(
        self, key: LogKey, chunks: Iterable[bytes], *, start: int, modified_ns: int | None = None, make: bool = False
    ) -> int:
        self._dropped(chunks)
        return self.inner.extend(key, chunks, start=start, modified_ns=modified_ns, make=make)

    def put(self, key: BlobKey, chunks: Iterable[bytes], *, mode: int = 0o600, modified_ns: int | None = None) -> str:
        self._dropped(chunks)
        return self.inner.put(key, chunks, mode=mode, modified_ns=modified_ns)

    def replace(self, key: LogKey, lines: Iterable[bytes], *, expect: str) -> str:
        self._dropped(lines)
        return self.inner.replace(key, lines, expect=expect)


def _changes(engine: Engine, given: Callable[[list[bytes]], Iterable[bytes]], which: str) -> object:
    stat = engine.stat(MAIN)
    return {
        "extend": lambda: engine.extend(SUB, given(LINES), start=0),
        "put": lambda: engine.put(BLOB, given(LINES)),
        "replace": lambda: engine.replace(MAIN, given(LINES), expect="" if stat is None else stat.revision),
    }[which]()


@pytest.mark.parametrize("which", ["extend", "put", "replace"])
def test_a_list_of_chunks_is_gone_through_again(which: str) -> None:
    inner = MemoryEngine()
    inner.append(MAIN, [Entry(b"before")])
    _changes(Retry(Gone(inner), sleep=lambda _: None), of_list, which)
    if which == "put":
        assert b"".join(inner.open(BLOB)) == b"".join(LINES)
    else:
        assert data_of(inner, SUB if which == "extend" else MAIN) == LINES


@pytest.mark.parametrize("which", ["extend", "put", "replace"])
def test_where_the_chunks_of_an_iterator_are_gone_the_error_comes_out_and_nothing_is_half_there(which: str) -> None:
    inner = MemoryEngine()
    inner.append(MAIN, [Entry(b"before")])
    with pytest.raises(StorageError, match="somebody is writing") as raised:
        _changes(Retry(Gone(inner), sleep=lambda _: None), iter, which)
    assert raised.value.is_permanent, "trying again from here would store the rest as if it were all"
    assert (data_of(inner), inner.stat(SUB), inner.blob_stat(BLOB)) == ([b"before\n"], None, None)


@pytest.mark.parametrize("which", ["extend", "put", "replace"])
def test_chunks_that_fail_themselves_are_not_taken_for_all_there_is(which: str) -> None:
    def failing(chunks: list[bytes]) -> Iterator[bytes]:
        yield from chunks[:1]
        raise Busy("the place they come from")

    inner = MemoryEngine()
    inner.append(MAIN, [Entry(b"before")])
    inner.put(BLOB, LINES[:1])
    with pytest.raises(StorageError, match="the place they come from"):
        _changes(Retry(inner, sleep=lambda _: None), failing, which)
    assert (data_of(inner), inner.stat(SUB), b"".join(inner.open(BLOB))) == ([b"before\n"], None, LINES[0])


def test_what_another_program_put_there_is_not_taken_for_ours() -> None:
    class Overtaken(Wrapper):
        def extend(self, key: LogKey, chunks: Iterable[bytes], *, start: int, **_: object) -> int:
            if start:
                return self.inner.extend(key, chunks, start=start)
            list(chunks)
            self.inner.extend(key, [b"somebody's"], start=0)
            raise Busy("somebody is writing")

    inner = MemoryEngine()
    with pytest.raises(StorageError):
        Retry(Overtaken(inner), sleep=lambda _: None).extend(MAIN, iter([b"ten bytes!"]), start=0)
    assert b"".join(inner.read_range(MAIN, position=0, size=10)) == b"somebody's"


# Reading that breaks off.

READS: list[tuple[str, Callable[[Engine], Iterator[object]]]] = [
    ("read", lambda engine: engine.read(MAIN)),
    ("read", lambda engine: engine.read(MAIN, start=len(LINES[0]), end=50)),
    ("read_back", lambda engine: engine.read_back(MAIN)),
    ("read_range", lambda engine: engine.read_range(MAIN, position=3, size=40)),
    ("open", lambda engine: engine.open(BLOB)),
    ("list", lambda engine: engine.list()),
    ("list", lambda engine: engine.list(limit=3)),
    ("list_sub", lambda engine: engine.list_sub(MAIN)),
]


@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize(("method", "read"), READS)
def test_a_reading_that_breaks_off_goes_on_where_it_was(
    method: str, read: Callable[[Engine], Iterator[object]], when: When
) -> None:
    inner = filled()
    for number in range(4):
        inner.append(LogKey("-home-a", f"session-{number}"), [Entry(b"{}")])
        inner.append(LogKey("-home-a", "session", f"subagents/agent-{number}"), [Entry(b"{}")])
    whole = [*read(inner)]
    # What can be begun in the middle gets on by one piece with each try; the rest is read from its beginning each time.
    tries = len(whole) if when == "during" and method in ("read", "read_range", "list", "list_sub") else 3
    faults = [Fault(method, number, when) for number in range(1, tries + 1)]
    engine = retry(inner, *faults)
    found = [*read(engine)]
    if method in ("read_range", "open"):
        assert b"".join(found) == b"".join(whole)
    else:
        assert found == whole
    assert len(whole) > 1


def test_a_reading_that_gets_nowhere_is_given_up() -> None:
    waits: list[float] = []
    engine = retry(
        filled(), *(Fault("read", number) for number in range(3, 50)), Fault("read", 2, "during"), waits=waits
    )
    data_of(engine)
    with pytest.raises(StorageError, match="call 7 of read"):
        data_of(engine)
    assert len(waits) == 5


@pytest.mark.parametrize("read", [read for method, read in READS if method in ("read", "read_back", "read_range")])
def test_a_log_that_was_replaced_while_its_reading_was_broken_is_a_conflict(
    read: Callable[[Engine], Iterator[object]],
) -> None:
    for method in ("read", "read_back", "read_range"):
        inner = filled()
        reading = read(retry(inner, Fault(method, 1, "during")))
        next(reading)
        stat = inner.stat(MAIN)
        assert stat is not None
        inner.replace(MAIN, [line.replace(b"n", b"m") for line in LINES], expect=stat.revision)
        try:
            rest = [*reading]
        except Conflict:
            continue
        assert b"m" not in b"".join(each if isinstance(each, bytes) else each.data for each in rest)


def test_a_blob_that_was_replaced_while_its_reading_was_broken_is_a_conflict() -> None:
    inner = filled()
    reading = retry(inner, Fault("open", 1, "during")).open(BLOB)
    found = [next(reading)]
    inner.put(BLOB, [b"".join(LINES).replace(b"n", b"m")])
    with pytest.raises(Conflict, match="was replaced while it was read"):
        found.extend(reading)
    assert b"".join(found) == b"".join(LINES)[: len(found[0])], "nothing of the new content is given"


def test_a_watch_that_breaks_off_goes_on_and_what_changed_meanwhile_is_looked_for() -> None:
    class Breaking(Wrapper):
        calls = 0

        def watch(self, *_: object, **__: object) -> Iterator[None]:
            self.calls += 1
            if self.calls < 3:
                yield None
                raise Busy("the connection is gone")

    found = [*Retry(Breaking(MemoryEngine()), sleep=lambda _: None).watch([MAIN], Event())]
    assert len(found) == 4, "two changes, and two looks after it was broken"
