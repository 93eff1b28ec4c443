"""Threads go in rounds: each want is served once, in order, and nobody waits for one who has given up."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from clew.engines.rounds import Rounds

SECONDS_MAX = 30


class Served:
    """Serves by noting; the first round lasts until it is told to end."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.is_begun = threading.Event()
        self.may_end = threading.Event()
        self.rounds: Rounds[int] = Rounds(self.serve)

    def serve(self, wants: Sequence[int]) -> None:
        self.groups.append([*wants])
        if len(self.groups) == 1:
            self.is_begun.set()
            assert self.may_end.wait(SECONDS_MAX)

    def begin(self, want: int) -> threading.Thread:
        thread = threading.Thread(target=self.rounds.take, args=(want,))
        thread.start()
        return thread

    def wait_for(self, count: int) -> None:
        """Until so many wait for a round."""
        deadline = threading.Event()
        for _ in range(SECONDS_MAX * 1000):
            if len(self.rounds._queue) == count:
                return
            deadline.wait(0.001)
        raise AssertionError(f"{len(self.rounds._queue)} wait, not {count}")


def test_all_that_wait_are_served_in_one_round_in_the_order_in_which_they_came() -> None:
    served = Served()
    threads = [served.begin(0)]
    assert served.is_begun.wait(SECONDS_MAX)
    for number in range(1, 6):
        threads.append(served.begin(number))
        served.wait_for(number)
    served.may_end.set()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert served.groups == [[0], [1, 2, 3, 4, 5]]


def test_every_want_of_many_threads_is_served_once() -> None:
    served = Served()
    served.may_end.set()

    def work(number: int) -> None:
        for each in range(100):
            served.rounds.take(number * 100 + each)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)
    flat = [want for group in served.groups for want in group]
    assert sorted(flat) == [*range(800)]
    for number in range(8):
        mine = [want for want in flat if want // 100 == number]
        assert mine == sorted(mine)


def test_a_failure_is_raised_where_it_happened_and_the_next_is_served() -> None:
    groups: list[list[int]] = []

    def serve(wants: Sequence[int]) -> None:
        groups.append([*wants])
        if len(groups) == 1:
            raise KeyboardInterrupt

    rounds = Rounds(serve)
    with pytest.raises(KeyboardInterrupt):
        rounds.take(1)
    rounds.take(2)
    assert groups == [[1], [2]]


def test_one_who_gives_up_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted while it waits: before it leads, and when the lead was just handed to it."""
    served = Served()
    first = served.begin(0)
    assert served.is_begun.wait(SECONDS_MAX)

    class Interrupted:
        """A lock whose second `acquire`, which is the waiting one, is interrupted."""

        def __init__(self) -> None:
            self.count = 0

        def acquire(self) -> None:
            self.count += 1
            if self.count == 2:
                served.may_end.set()
                first.join(SECONDS_MAX)  # It hands the lead to the one who waits here.
                raise KeyboardInterrupt

        def release(self) -> None:
            pass

    with monkeypatch.context() as patch:
        patch.setattr("clew.engines.rounds.threading.Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            served.rounds.take(1)
    served.rounds.take(2)
    assert served.groups == [[0], [2]]
