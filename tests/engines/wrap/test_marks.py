"""What is noted for a mirror stays small, and in order."""

from __future__ import annotations

from clew.engines.contract import BlobKey, LogKey
from clew.engines.wrap.marks import Marks, Segment, Step

MAIN = LogKey("-home-a", "one")


def test_a_log_that_changes_often_is_noted_once() -> None:
    marks = Marks()
    for _ in range(1_000):
        marks.log(MAIN, "a")
    assert marks.take() == (MAIN, Segment(logs={MAIN: "a"}))


def test_too_many_changes_of_one_session_become_one_comparison() -> None:
    marks = Marks(marks_max=5)
    for number in range(1_000):
        marks.log(LogKey("-home-a", "one", f"{number}"), "a")
        marks.blob(BlobKey("-home-a", "one", "checkpoint", f"{number}"), is_there=True)
    taken = marks.take()
    assert taken is not None
    assert taken[1].is_whole
    assert len(taken[1].logs) + len(taken[1].blobs) <= 5
    assert marks.lost == (0, "")


def test_too_many_steps_of_one_session_are_counted() -> None:
    marks = Marks(marks_max=5)
    for _ in range(20):
        marks.step(MAIN, Step("deleted", MAIN))
    found = 0
    while not marks.is_idle:
        marks.take()
        marks.done()
        found += 1
    lost, why = marks.lost
    assert (found - 1) + lost == 20, "the last segment is one without a step"
    assert why


def test_what_comes_after_a_step_is_taken_after_it() -> None:
    marks = Marks()
    step = Step("deleted", MAIN)
    marks.log(MAIN, "a")
    marks.step(MAIN, step)
    marks.log(MAIN, "b")
    assert marks.take() == (MAIN, Segment(logs={MAIN: "a"}, step=step))
    assert marks.take() == (MAIN, Segment(logs={MAIN: "b"}))


def test_what_failed_waits_for_the_next_change_and_comes_first() -> None:
    marks = Marks()
    marks.log(MAIN, "a")
    marks.step(MAIN, Step("deleted", MAIN))
    key, segment = marks.take() or (MAIN, Segment())
    marks.failed(key, segment, "no answer", may_pass=True)
    assert (marks.is_idle, marks.behind, marks.reason(MAIN)) == (True, {MAIN: "no answer"}, "no answer")
    marks.log(MAIN, "b")
    assert (marks.is_idle, marks.behind) == (False, {})
    assert marks.take() == (MAIN, Segment(logs={MAIN: "a"}, step=Step("deleted", MAIN)))
    assert marks.take() == (MAIN, Segment(logs={MAIN: "b"}))


def test_nothing_more_comes_once_it_is_closed_and_empty() -> None:
    marks = Marks()
    marks.log(MAIN, "a")
    marks.close()
    assert marks.take() is not None
    assert marks.take() is None
