"""The tree: records by uuid, who hangs on whom, what was said last."""

from __future__ import annotations

from clew.records.codec import decode_lines
from clew.records.record import records_in
from clew.transcript.tree import Tree
from odd_files.answers import lines_of, tree_of
from odd_files.rows import (
    ABSENT,
    LOST,
    OTHER,
    START,
    TALK,
    Piece,
    answer,
    encoded,
    exact,
    head,
    row,
    user,
    uuid,
)


def tree(*pieces: Piece) -> Tree:
    return tree_of(encoded(*pieces))


def numbers(uuids: list[str]) -> list[int]:
    return [int(name[:8]) for name in uuids]


def test_two_branches_are_two_leaves_and_one_fork() -> None:
    found = tree(*TALK, *OTHER)
    assert numbers(found.leaves()) == [4, 6]
    assert {int(at[:8]): numbers(rows) for at, rows in found.forks().items()} == {2: [3, 5]}


def test_children_stand_in_file_order() -> None:
    found = tree(*START, user(9, 2), user(3, 2), user(5, 2))
    assert numbers(found.children.get(uuid(2))) == [9, 3, 5]


def test_a_uuid_that_comes_twice_keeps_its_place_and_takes_the_last_content() -> None:
    found = tree(user(1), answer(2, 1), answer(2, 1, "again"), user(3, 2))
    assert numbers(list(found.records)) == [1, 2, 3]
    assert b"again" in found.records[uuid(2)].raw
    assert numbers(found.duplicates) == [2]


def test_rows_without_a_uuid_share_one_place_and_the_last_one_is_left() -> None:
    found = tree(*START, user(3, 2, uuid=ABSENT), user(4, 2, uuid=ABSENT))
    assert list(found.records) == [uuid(1), uuid(2), ""]
    assert found.records[""] is found.unplaced[-1]
    assert [record.uuid for record in found.unplaced] == [None, None]
    assert "" not in found.leaves()


def test_progress_rows_are_walked_through() -> None:
    found = tree(*START, row(7, 2, "progress"), row(8, 7, "progress"), user(3, 8))
    assert found.parents[uuid(3)] == uuid(2)
    assert uuid(7) not in found.records


def test_a_lost_parent_stays_named_so_that_it_is_told_from_a_root() -> None:
    found = tree(user(1), user(3, LOST), user(4, None, parentUuid=""))
    assert found.parents == {uuid(1): None, uuid(3): uuid(LOST), uuid(4): None}


def test_the_last_row_is_no_sidechain_row() -> None:
    found = tree(*START, user(3, 2), user(9, 3, isSidechain=True))
    assert found.last == uuid(3)


def test_the_last_head_record_counts() -> None:
    found = tree(*TALK, exact(2), head(4))
    assert found.pointer is not None
    assert (found.pointer.leaf, found.pointer.explicit, found.pointer.ordinal) == (uuid(4), False, 6)


def test_a_tree_that_grew_row_by_row_is_the_tree_of_the_whole_log() -> None:
    content = encoded(*TALK, head(4), *OTHER, answer(4, 3, "again"))
    whole, grown = tree_of(content), Tree()
    for record in records_in(decode_lines(lines_of(content))):
        grown.add([record])
        grown.leaves()
        grown.forks()
    assert list(grown.records) == list(whole.records)
    assert (grown.parents, grown.ordinals) == (whole.parents, whole.ordinals)
    assert [*map(grown.children.get, grown.records)] == [*map(whole.children.get, whole.records)]
    assert (grown.pointer, grown.last, grown.duplicates) == (whole.pointer, whole.last, whole.duplicates)


def test_below_a_row_is_everything_that_hangs_under_it_nearest_first() -> None:
    found = tree(*TALK, *OTHER)
    assert numbers(found.below(uuid(2))) == [3, 5, 4, 6]
    assert found.below(uuid(4)) == []


def test_a_cycle_has_no_leaf_and_ends_every_walk() -> None:
    found = tree(user(1, 2), answer(2, 1))
    assert found.leaves() == []
    assert numbers(found.below(uuid(1))) == [2]
