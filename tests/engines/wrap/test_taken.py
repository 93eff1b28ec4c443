"""Chunks that are handed out once more, from a place that is known."""

from __future__ import annotations

import hashlib

import pytest

from clew.engines.wrap.taken import Taken

CHUNKS = [b"0123", b"4567", b"", b"89"]
WHOLE = b"".join(CHUNKS)


def taken_to(chunks: list[bytes], count: int, *, is_list: bool) -> Taken:
    taken = Taken(chunks if is_list else iter(chunks))
    given = iter(taken)
    for _ in range(count):
        next(given)
    return taken


@pytest.mark.parametrize("offset", range(11))
def test_a_list_is_gone_on_with_from_everywhere_and_what_is_before_is_known(offset: int) -> None:
    taken = Taken(CHUNKS)
    assert b"".join(taken) == WHOLE
    assert taken.go_to(offset) == WHOLE[:offset]
    assert b"".join(taken) == WHOLE[offset:]
    assert (taken.digest, taken.size, taken.is_done) == (hashlib.sha256(WHOLE).hexdigest(), 10, True)


def test_an_iterator_is_gone_on_with_from_its_newest_chunk_on() -> None:
    for offset, before in ((3, None), (4, b"0123"), (6, b"012345"), (8, b"01234567"), (9, None)):
        taken = taken_to(CHUNKS, 2, is_list=False)
        assert taken.go_to(offset) == before
        if before is not None:
            assert b"".join(taken) == WHOLE[offset:]


def test_what_is_before_is_known_across_chunks_without_keeping_them() -> None:
    taken = Taken(bytes([65 + number]) * 10 for number in range(20))
    assert len(b"".join(taken)) == 200
    before = taken.go_to(190)
    assert before is not None
    assert before == (b"".join(bytes([65 + number]) * 10 for number in range(19)))[-len(before) :]
    assert len(before) > 10


def test_chunks_that_failed_are_not_gone_on_with() -> None:
    def failing():  # noqa: ANN202
        yield b"one"
        raise OSError("gone")

    taken = Taken(failing())
    with pytest.raises(OSError, match="gone"):
        list(taken)
    assert (taken.go_to(3), list(taken), taken.is_done) == (None, [], False)
