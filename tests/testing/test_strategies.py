"""The strategies make what they say they make, the rare cases among them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

from clew.records.codec import decode_lines
from clew.records.record import Malformed, Record, records_in
from clew.records.views import JsonObject
from clew.testing import strategies
from clew.testing.corpus import lines_of, to_bytes
from clew.transcript.chain import chain_to
from clew.transcript.head import find_head
from clew.transcript.messages import conversation
from clew.transcript.rows import State
from clew.transcript.tree import Tree

WHOLE = (
    strategies.straight_sessions,
    strategies.branched_sessions,
    strategies.parallel_sessions,
    strategies.compacted_sessions,
)


def tree_of(data: bytes) -> Tree:
    return Tree(records_in(decode_lines(lines_of(data))))


def state_of(data: bytes) -> State:
    tree = tree_of(data)
    return conversation(chain_to(tree, find_head(tree).uuid).records).state


def is_repaired(data: bytes) -> bool:
    tree = tree_of(data)
    return bool(chain_to(tree, find_head(tree).uuid).repairs)


def keeps_rows(data: bytes) -> bool:
    return b'"preservedMessages"' in data and state_of(data) is State.COMPLETE


@pytest.mark.parametrize("strategy", WHOLE, ids=lambda strategy: strategy.__name__)
def test_a_whole_session_is_rows_and_nothing_else(strategy: Callable[[], SearchStrategy[bytes]]) -> None:
    @given(strategy())
    @settings(max_examples=30)
    def check(data: bytes) -> None:
        rows = list(decode_lines(lines_of(data)))
        assert rows
        assert all(isinstance(row, Record) for row in rows)
        assert data.endswith(b"\n")

    check()


CASES: dict[str, tuple[SearchStrategy[bytes], Callable[[bytes], bool]]] = {
    "an open call at the end": (strategies.straight_sessions(), lambda data: state_of(data) is State.INTERRUPTED),
    "a prompt without an answer": (strategies.straight_sessions(), lambda data: state_of(data) is State.UNANSWERED),
    "a fork": (strategies.branched_sessions(), lambda data: bool(tree_of(data).forks())),
    "two roots": (strategies.branched_sessions(), lambda data: list(tree_of(data).parents.values()).count(None) > 1),
    "results beside the chain": (strategies.parallel_sessions(), lambda data: len(tree_of(data).leaves()) > 1),
    "kept rows": (strategies.compacted_sessions(), keeps_rows),
    "a repaired parent": (strategies.damaged_sessions(), is_repaired),
    "a doubled row": (strategies.damaged_sessions(), lambda data: bool(tree_of(data).duplicates)),
    "a torn tail": (strategies.damaged_sessions(), lambda data: bool(data) and not data.endswith(b"\n")),
    "a malformed line": (
        strategies.sessions(),
        lambda data: any(isinstance(row, Malformed) for row in decode_lines(lines_of(data))),
    ),
    "a NUL run": (strategies.broken_lines(), lambda data: data.startswith(b"\x00\x00")),
    "a byte-order mark": (strategies.json_lines(), lambda data: data.startswith(b"\xef\xbb\xbf")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rare_case_comes_up(case: str) -> None:
    strategy, wanted = CASES[case]
    # Only looked for, not made small, which takes a hundred times as long.
    search = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])
    assert wanted(find(strategy, wanted, settings=search))


@given(strategies.records())
def test_a_record_can_be_written_and_read(row: JsonObject) -> None:
    (found,) = decode_lines(lines_of(to_bytes([row])))
    assert isinstance(found, Record)
    assert found.body() == row


@given(strategies.blocks())
def test_a_block_is_an_object(block: JsonObject) -> None:
    assert isinstance(block, dict)
