"""The chain: from the root to a row, repaired and completed. The large ones show that nothing recurses."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.records.record import MessageHead, Record
from clew.transcript.chain import Chain, chain_to
from clew.transcript.head import find_head
from clew.transcript.links import links_of
from clew.transcript.tree import Tree
from odd_files.answers import tree_of
from odd_files.rows import (
    LOST,
    START,
    TALK,
    Piece,
    answer,
    attachment,
    boundary,
    call,
    clock,
    encoded,
    end,
    kept,
    result,
    segment,
    source,
    summary,
    user,
    uuid,
)

CHAIN_OF = 200_000
LEAVES = 200_000
LOST_PARENTS = 50_000


def chain(*pieces: Piece, to: int | None = None) -> Chain:
    tree = tree_of(encoded(*pieces))
    links = links_of(tree)
    return chain_to(tree, find_head(tree, links).uuid if to is None else uuid(to), links)


def numbers(found: Chain) -> list[int]:
    return [int((record.uuid or "")[:8]) for record in found.records]


def test_a_chain_ends_at_the_row_asked_for() -> None:
    assert numbers(chain(*TALK)) == [1, 2, 3, 4]
    assert numbers(chain(*TALK, to=2)) == [1, 2]
    assert numbers(chain(*TALK, to=LOST)) == []


def test_attachments_are_part_of_the_chain() -> None:
    assert numbers(chain(*START, attachment(7, 2), *end(3, 7))) == [1, 2, 7, 3, 4]


def test_a_lost_parent_is_replaced_by_the_newest_row_of_the_last_five_seconds() -> None:
    found = chain(*START, user(3, LOST, at=7), answer(4, 3, at=8))
    assert numbers(found) == [1, 2, 3, 4]
    assert [(r.uuid, r.lost, r.onto) for r in found.repairs] == [(uuid(3), uuid(LOST), uuid(2))]


def test_a_lost_parent_more_than_five_seconds_after_every_row_starts_the_conversation() -> None:
    found = chain(*START, user(3, LOST, at=7.001), answer(4, 3, at=8))
    assert numbers(found) == [3, 4]
    assert [(r.uuid, r.onto) for r in found.repairs] == [(uuid(3), None)]


def test_a_cycle_is_broken_by_the_same_rule() -> None:
    assert numbers(chain(user(1), answer(2, 3), user(3, 2), answer(4, 3))) == [1, 2, 3, 4]
    assert numbers(chain(user(1, 1), answer(2, 1))) == [1, 2]


def test_parallel_results_beside_the_chain_are_put_back() -> None:
    found = chain(
        user(1), answer(2, 1, [call(1)], of="m"), answer(3, 2, [call(2)], of="m"),
        user(4, 3, [result(2)], **source(3)), user(5, 2, [result(1)], **source(2)), answer(6, 5),
    )  # fmt: skip
    assert sorted(numbers(found)) == [1, 2, 3, 4, 5, 6]
    assert found.put_back == {uuid(3), uuid(4)}


def test_another_prompt_beside_the_chain_is_not_put_back() -> None:
    found = chain(user(1), answer(2, 1, [call(1)]), user(9, 2, "dead"), user(3, 2, [result(1)]), answer(4, 3))
    assert numbers(found) == [1, 2, 3, 4]
    assert found.put_back == frozenset()


def test_a_compaction_boundary_is_a_root() -> None:
    assert numbers(chain(*TALK, boundary(5, 4), summary(6, 5), *end(7, 6))) == [5, 6, 7, 8]


def test_rows_that_a_compaction_kept_stand_behind_its_summary() -> None:
    for note in (segment(3, 4, anchor=6), kept(3, 4, anchor=6)):
        assert numbers(chain(*TALK, boundary(5, note=note), summary(6, 5), *end(7, 6))) == [5, 6, 3, 4, 7, 8]


def test_a_note_of_kept_rows_that_does_not_hold_changes_nothing() -> None:
    note = segment(LOST, 4, anchor=6)
    assert numbers(chain(*TALK, boundary(5, note=note), summary(6, 5), *end(7, 6))) == [5, 6, 7, 8]


def prompt(number: int, parent: int | None) -> Record:
    return Record(
        type="user", uuid=uuid(number), parent_uuid=None if parent is None else uuid(parent), timestamp=clock(1),
        message=MessageHead(role="user", content=msgspec.Raw(b'"x"')),
    )  # fmt: skip


def test_a_chain_of_200_000_records_is_walked() -> None:
    tree = Tree(prompt(at, at - 1 or None) for at in range(1, CHAIN_OF + 1))
    links = links_of(tree)
    head = find_head(tree, links)
    assert head.uuid == uuid(CHAIN_OF)
    found = chain_to(tree, head.uuid, links)
    assert numbers(found) == list(range(1, CHAIN_OF + 1))
    assert len(tree.below(uuid(1))) == CHAIN_OF - 1


def test_200_000_leaves_on_one_row_are_told_apart() -> None:
    tree = Tree(prompt(at, None if at == 1 else 1) for at in range(1, LEAVES + 2))
    assert len(tree.leaves()) == LEAVES
    assert len(tree.forks()[uuid(1)]) == LEAVES
    head = find_head(tree)
    assert numbers(chain_to(tree, head.uuid)) == [1, int((head.uuid or "")[:8])]


def test_50_000_lost_parents_in_one_chain_are_repaired() -> None:
    def rows() -> Iterator[Record]:
        for at in range(1, LOST_PARENTS + 1):
            yield prompt(at, 10_000_000 + at)

    found = chain_to(Tree(rows()), uuid(LOST_PARENTS))
    assert len(found.records) == LOST_PARENTS
    assert len(found.repairs) == LOST_PARENTS
    assert len({record.uuid for record in found.records}) == LOST_PARENTS


def test_50_000_prompts_without_content_are_walked_through_in_any_order() -> None:
    def rows() -> Iterator[Record]:
        yield prompt(1, None)
        for at in range(LOST_PARENTS):
            yield prompt(LOST_PARENTS + 2 + at, LOST_PARENTS + 1)
        for at in range(LOST_PARENTS + 1, 1, -1):
            yield Record(type="user", uuid=uuid(at), parent_uuid=uuid(at - 1), message=MessageHead(role="user"))

    tree = Tree(rows())
    assert len(tree.contentless) == LOST_PARENTS
    assert len(tree.forks()[uuid(1)]) == LOST_PARENTS


def test_prompts_without_content_in_a_cycle_end() -> None:
    empty = [Record(type="user", uuid=uuid(at), parent_uuid=uuid(5 - at), message=MessageHead()) for at in (2, 3)]
    tree = Tree([prompt(1, None), prompt(4, 3), *empty])
    assert numbers(chain_to(tree, uuid(4))) == [1, 4]


def test_200_000_attachments_behind_an_answer_are_all_taken() -> None:
    def rows() -> Iterator[Record]:
        yield prompt(1, None)
        for at in range(2, LEAVES + 2):
            yield Record(type="attachment", uuid=uuid(at), parent_uuid=uuid(1), timestamp=clock(2))

    tree = Tree(rows())
    assert numbers(chain_to(tree, find_head(tree).uuid)) == list(range(1, LEAVES + 2))


def test_a_cycle_of_rows_beside_a_result_ends() -> None:
    found = chain(
        user(1), answer(2, 1, [call(1)], of="m"), user(3, 4, "M3", isMeta=True), user(4, 3, "M4", isMeta=True),
        user(5, 3, [result(1)]), answer(6, 5),
    )  # fmt: skip
    assert numbers(found)[-1] == 6


def test_50_000_rows_in_one_cycle_are_walked_once() -> None:
    tree = Tree(prompt(at, at - 1 or LOST_PARENTS) for at in range(1, LOST_PARENTS + 1))
    assert len(chain_to(tree, uuid(LOST_PARENTS)).records) == LOST_PARENTS
    assert find_head(tree).uuid is not None
