"""What dedupe stores remember, and that they never guess."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.engines.contract import LogKey
from clew.engines.dedupe import DedupeStore, MemoryDedupe
from clew.engines.dedupe_disk import DiskDedupe

KEY = LogKey("p", "s")
OpenDisk = Callable[[Path], DiskDedupe]


@pytest.fixture
def open_disk() -> Iterator[OpenDisk]:
    """Opens stores that are closed when the test is over."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(closing(DiskDedupe(path)))


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path, open_disk: OpenDisk) -> DedupeStore:
    return MemoryDedupe() if request.param == "memory" else open_disk(tmp_path / "dedupe.sqlite")


def among(store: DedupeStore, generation: str, *ids: str, key: LogKey = KEY) -> tuple[int, list[str]] | None:
    known = store.known(key, generation)
    return None if known is None else (known.position, sorted(known.among(ids)))


def test_what_was_learned_is_known_and_nothing_else(store: DedupeStore) -> None:
    assert store.known(KEY, "g") is None
    assert store.learn(KEY, "g", ["a", "b"], start=0, end=10)
    assert store.learn(KEY, "g", ["c"], start=10, end=15)
    assert among(store, "g", "a", "c", "x") == (15, ["a", "c"])
    assert store.known(LogKey("p", "s", "subagents/agent-a"), "g") is None


def test_rows_that_were_not_read_leave_no_gap(store: DedupeStore) -> None:
    assert not store.learn(KEY, "g", ["a"], start=5, end=10)
    assert store.known(KEY, "g") is None
    assert store.learn(KEY, "g", ["a"], start=0, end=10)
    assert not store.learn(KEY, "g", ["b"], start=11, end=20)
    assert not store.learn(KEY, "g", ["b"], start=0, end=20)
    assert among(store, "g", "a", "b") == (10, ["a"])


def test_another_life_of_the_log_has_other_rows(store: DedupeStore) -> None:
    store.learn(KEY, "g", ["a"], start=0, end=10)
    assert store.known(KEY, "h") is None
    assert store.learn(KEY, "h", ["b"], start=0, end=5)
    assert among(store, "h", "a", "b") == (5, ["b"])
    assert store.known(KEY, "g") is None


def test_what_is_forgotten_is_not_known(store: DedupeStore) -> None:
    store.learn(KEY, "g", ["a"], start=0, end=10)
    store.forget(KEY)
    assert store.known(KEY, "g") is None
    store.forget(KEY)


def test_of_many_logs_in_memory_the_last_asked_for_stay() -> None:
    store = MemoryDedupe(logs_kept=2)
    keys = [LogKey("p", str(number)) for number in range(3)]
    for key in keys[:2]:
        store.learn(key, "g", ["a"], start=0, end=1)
    assert store.known(keys[0], "g") is not None
    store.learn(keys[2], "g", ["a"], start=0, end=1)
    assert [store.known(key, "g") is not None for key in keys] == [True, False, True]


def test_another_process_knows_what_is_on_the_disk(tmp_path: Path, open_disk: OpenDisk) -> None:
    first, second, third = (open_disk(tmp_path / "dedupe.sqlite") for _ in range(3))
    first.learn(KEY, "g", ["a", "b"], start=0, end=10)
    assert among(second, "g", "a", "b", "c") == (10, ["a", "b"])
    # Both go on: what one of them learns of the same rows is no second learning.
    assert first.learn(KEY, "g", ["c"], start=10, end=20)
    assert second.learn(KEY, "g", ["c", "d"], start=10, end=30)
    assert among(third, "g", "a", "b", "c", "d") == (30, ["a", "b", "c", "d"])
    assert (tmp_path / "dedupe.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spoil", ["garbage", "gone", "no directory", "read-only", "a link"])
def test_a_broken_file_costs_no_answer(tmp_path: Path, open_disk: OpenDisk, spoil: str) -> None:
    path = tmp_path / "folder" / "dedupe.sqlite"
    path.parent.mkdir()
    store = open_disk(path)
    store.learn(KEY, "g", ["a"], start=0, end=10)
    store.close()
    for each in path.parent.iterdir():
        each.write_bytes(b"no database at all" * 100) if spoil == "garbage" else each.unlink()
    if spoil == "no directory":
        path.parent.rmdir()
    elif spoil == "a link":
        path.symlink_to(tmp_path / "elsewhere")
    elif spoil == "read-only":
        path.mkdir()
    again = open_disk(path)
    assert again.known(KEY, "g") is None
    assert again.learn(KEY, "g", ["b"], start=0, end=10)
    assert among(again, "g", "a", "b") == (10, ["b"])
    assert not (tmp_path / "elsewhere").exists()


def test_a_lone_surrogate_in_an_id_is_known_all_the_same(store: DedupeStore) -> None:
    assert store.learn(KEY, "g", ["\ud800"], start=0, end=10)
    assert among(store, "g", "\ud800") == (10, ["\ud800"])


def test_threads_share_one_store(store: DedupeStore) -> None:
    keys = [LogKey("p", str(number)) for number in range(4)]

    def learn(key: LogKey) -> None:
        for number in range(50):
            assert store.learn(key, "g", [str(number)], start=number, end=number + 1)

    threads = [threading.Thread(target=learn, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key in keys:
        assert among(store, "g", *map(str, range(60)), key=key) == (50, sorted(map(str, range(50))))


STEPS = st.lists(
    st.tuples(st.sampled_from("gh"), st.integers(0, 3), st.integers(0, 3), st.sets(st.sampled_from("abcd")))
)


@given(STEPS)
def test_disk_and_memory_answer_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, set[str]]]
) -> None:
    memory, disk = MemoryDedupe(), DiskDedupe(tmp_path_factory.mktemp("d") / "dedupe.sqlite")
    for generation, start, more, ids in steps:
        learned = [each.learn(KEY, generation, ids, start=start, end=start + more) for each in (memory, disk)]
        assert learned[0] == learned[1]
        assert among(memory, generation, *"abcd") == among(disk, generation, *"abcd")
    disk.close()
