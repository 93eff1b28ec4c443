"""Calls for one log are done one after the other, in the order in which they came, whichever thread does them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from clew.adapters.in_order import InOrder
from clew.engines.contract import LogKey
from clew.errors import NotFound

KEY = LogKey("p", "s")
OTHER = LogKey("p", "t")
SECONDS_MAX = 30


def test_a_call_does_those_before_it_as_well() -> None:
    calls, done = InOrder(), list[str]()
    first = calls.put(KEY, lambda: done.append("first"))
    second = calls.put(KEY, lambda: done.append("second"))
    calls.finish(second)
    calls.finish(first)
    assert done == ["first", "second"]


def test_an_error_goes_to_the_call_that_made_it_and_to_no_other() -> None:
    calls, done = InOrder(), list[str]()

    def fail() -> None:
        raise NotFound("gone")

    first, second = calls.put(KEY, fail), calls.put(KEY, lambda: done.append("second"))
    calls.finish(second)
    with pytest.raises(NotFound, match="gone"):
        calls.finish(first)
    assert done == ["second"]


def test_a_bug_in_one_call_leaves_the_others_in_line() -> None:
    calls, done = InOrder(), list[str]()

    def bug() -> None:
        raise ZeroDivisionError

    first, second = calls.put(KEY, bug), calls.put(KEY, lambda: done.append("second"))
    with pytest.raises(ZeroDivisionError):
        calls.finish(first)
    calls.finish(second)
    assert done == ["second"]


def test_a_call_that_was_given_up_is_not_done_and_holds_up_nobody() -> None:
    calls, done = InOrder(), list[str]()
    first, second = calls.put(KEY, lambda: done.append("first")), calls.put(KEY, lambda: done.append("second"))
    calls.give_up(first)
    calls.finish(first)
    calls.finish(second)
    calls.give_up(second)
    assert done == ["second"]


def test_calls_for_two_logs_do_not_wait_for_each_other() -> None:
    calls, may_end = InOrder(), Event()
    slow = calls.put(KEY, lambda: None if may_end.wait(SECONDS_MAX) else pytest.fail("nobody came"))
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(calls.finish, slow)
        pool.submit(calls.finish, calls.put(OTHER, may_end.set)).result(SECONDS_MAX)
        waiting.result(SECONDS_MAX)


def test_threads_keep_the_order_in_which_the_calls_came() -> None:
    calls, done = InOrder(), list[int]()
    made = [calls.put(KEY, lambda number=number: done.append(number)) for number in range(200)]  # type: ignore[misc]
    with ThreadPoolExecutor(8) as pool:
        for waiting in [pool.submit(calls.finish, call) for call in reversed(made)]:
            waiting.result(SECONDS_MAX)
    assert done == [*range(200)]
    assert not calls._lines, "a log without calls takes no memory"
