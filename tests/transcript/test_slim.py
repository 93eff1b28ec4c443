"""Rows without their bytes: whatever asks where a conversation goes gets the same answer from them."""

from __future__ import annotations

import pytest

from clew.errors import ClewError
from clew.records.codec import decode, decode_lines
from clew.records.line import Line
from clew.records.record import records_in
from clew.records.slim import SlimHead, SlimRecord, decode_slim
from clew.transcript.beside import call_ids, result_ids
from clew.transcript.chain import chain_to
from clew.transcript.head import find_head
from clew.transcript.links import links_of
from clew.transcript.points import chain_at, parse_point
from clew.transcript.slim import Slimmer
from clew.transcript.tree import Tree
from odd_files import SUBJECTS, damaged, generated
from odd_files.answers import lines_of, tree_of

FILES = {name: content for cases in SUBJECTS.values() for name, content in cases.items()}
FILES |= {f"generated, {seed}": generated.session(seed) for seed in range(40)}
FILES |= {f"damaged, {seed}": damaged.session(seed) for seed in range(40)}
POINTS = ("turn:1", "turn:2", "turn:-1", "turn:-2", "time:2026-01-02T03:04:05Z", "000000", "nowhere", "msg:nowhere")


def slim_tree(content: bytes, *, keeps_prompts: bool = False) -> tuple[Tree, Slimmer]:
    slimmer = Slimmer(keeps_prompts=keeps_prompts)
    rows = decode_lines(lines_of(content), by=decode_slim)
    return Tree(slimmer.slimmed(records_in(rows))), slimmer


def answers(tree: Tree) -> list[object]:
    """What is asked of a tree that a fork is planned from."""
    links = links_of(tree)
    head = find_head(tree, links)
    chain = chain_to(tree, head.uuid, links)
    calls = [(call_ids(record), result_ids(record)) for record in tree.records.values()]
    rows = [record.uuid for record in chain.records]
    return [head, rows, chain.put_back, [*tree.parents.items()], tree.ordinals, len(tree.contentless), calls]


def found_at(tree: Tree, point: str) -> object:
    try:
        return [record.uuid for record in chain_at(tree, links_of(tree), parse_point(point)).records]
    except ClewError as error:
        return error.message, tuple(error.candidates)


@pytest.mark.parametrize("name", FILES)
def test_the_conversation_and_every_point_of_it_are_those_of_whole_rows(name: str) -> None:
    whole, (slim, _) = tree_of(FILES[name]), slim_tree(FILES[name])
    assert answers(slim) == answers(whole)
    kept, _ = slim_tree(FILES[name], keeps_prompts=True)
    for point in POINTS:
        assert found_at(kept, point) == found_at(whole, point)


def test_a_row_that_was_let_go_of_knows_where_its_bytes_are() -> None:
    content = generated.session(3)
    tree, slimmer = slim_tree(content, keeps_prompts=True)
    slimmer.place(tree.ordinals, tree.records.values())
    whole = tree_of(content).records
    for uuid, record in tree.records.items():
        line = record.line
        assert content[line.position : line.position + line.size] == whole[uuid].raw
        assert line.data in (b"", whole[uuid].raw)
    assert any(not record.line.data for record in tree.records.values())


def test_no_field_of_a_row_is_taken_for_what_stands_in_place_of_the_content() -> None:
    row = (
        b'{"type":"user","uuid":"u","message":{"role":"user","content":"text","<content>":[1],"<role>":"me",'
        b'"ids":[{"type":"tool_result","tool_use_id":"t"}]}}\n'
    )
    (record,) = Slimmer().slimmed([decode_slim(row)])
    assert isinstance(record, SlimRecord)
    assert isinstance(record.message, SlimHead)
    assert (result_ids(record), len(record.message.content)) == ([], 0)
    kept = decode_slim(row)
    kept.line = Line(row, 0, 1, len(row))
    (kept,) = Slimmer(keeps_prompts=True).slimmed([kept])
    assert kept.content() == "text"


def test_a_content_in_an_odd_way_keeps_its_bytes() -> None:
    row = b'{"type":"user","uuid":"u","message":{"content":[5,{"type":"tool_result","tool_use_id":"t"}]}}\n'
    (found,) = decode_lines([Line(row, 0, 1, len(row))], by=decode_slim)
    assert not isinstance(found, SlimRecord)
    assert found == decode(Line(row, 0, 1, len(row)))
