"""Every odd file means to us what it means to the real client, apart from the differences named here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odd_files import CASES, SUBJECTS
from odd_files.answers import Messages, ours, packed, unpacked

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "odd_files.json").read_text())["cases"]

BEHIND_NULS = "what stands whole behind a run of NULs was written by the client itself, after a crash"
PYTHON_JSON = "Python writes NaN and reads it; the rest of the row is as good as any other"
BOM_AGAIN = "files glued together keep the byte-order mark of each; the row behind it is whole"
IN_AN_ARRAY = "the client takes the file for one broken value; the rows on lines of their own are whole"

TALK = [["user", "U1"], ["assistant", "A2"], ["user", "U3"], ["assistant", "A4"]]
DIFFERENCES: dict[str, tuple[str, list[list[str]]]] = {
    "a run of NULs before a row": (BEHIND_NULS, TALK),
    "a run of NULs over a line and into a row": (BEHIND_NULS, [*TALK, ["user", "U5"], ["assistant", "A6"]]),
    "NaN in a row": (PYTHON_JSON, TALK),
    "a byte-order mark before a row in the middle": (BOM_AGAIN, TALK),
    "all rows in one array over several lines": (IN_AN_ARRAY, TALK[1:]),
}
"""Where we keep rows that the client loses: why, and the conversation as we have it."""


def recorded(name: str) -> Messages | None:
    """What the client sent; None when it found no conversation."""
    answer = RECORDED[name]
    return None if isinstance(answer, dict) else unpacked(answer)


def test_every_odd_file_was_measured_and_no_answer_is_left_over() -> None:
    assert list(RECORDED) == list(CASES), "measure again: python scripts/measure_odd_files.py CLIENT"


def test_a_case_has_a_name_and_content_of_its_own() -> None:
    assert sum(len(cases) for cases in SUBJECTS.values()) == len(CASES)
    assert len(set(CASES.values())) == len(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERENCES])
def test_an_odd_file_means_what_the_client_makes_of_it(name: str) -> None:
    assert ours(CASES[name]).messages == recorded(name)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_rows_that_the_client_loses_are_kept_where_that_is_right(name: str) -> None:
    _, expected = DIFFERENCES[name]
    kept = ours(CASES[name]).messages
    sent = recorded(name) or []
    assert kept is not None
    assert packed(kept) == expected
    assert kept != sent
    assert [message for message in kept if message in sent] == sent
