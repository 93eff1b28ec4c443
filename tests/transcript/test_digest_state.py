"""A digest can be gone on with from its state, as if the fold had never stopped."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.records.codec import decode_lines
from clew.records.record import records_in
from clew.testing.corpus import lines_of
from clew.testing.strategies import sessions
from clew.transcript.digest import Digest, DigestFold, DigestState


def without_tokens(digest: Digest) -> Digest:
    return msgspec.structs.replace(digest, total_tokens=0)


@given(sessions(), st.data())
def test_a_fold_that_goes_on_from_a_state_says_the_same(session: bytes, data: st.DataObject) -> None:
    found = list(records_in(decode_lines(lines_of(session))))
    cut = data.draw(st.integers(0, len(found)))
    kept = msgspec.json.encode(DigestFold(found[:cut]).state())
    later = DigestFold(found[cut:], state=msgspec.json.decode(kept, type=DigestState))
    assert without_tokens(later.digest()) == without_tokens(DigestFold(found).digest())


def test_a_state_keeps_marks_and_that_a_title_was_taken_off() -> None:
    rows = (
        b'{"type":"clew-session","pinned":true,"labels":["a"]}\n{"type":"custom-title","customTitle":""}\n'
        b'{"type":"clew-session","owner":"ada","labels":null}\n{"type":"clew-fork","parentSessionId":"other"}\n'
    )
    found = list(records_in(decode_lines(lines_of(rows))))
    whole = DigestFold(found).digest()
    assert (whole.custom_title, whole.marks.pinned, whole.marks.owner, whole.parent_id) == ("", True, "ada", "other")
    for cut in range(len(found)):
        kept = msgspec.json.encode(DigestFold(found[:cut]).state())
        later = DigestFold(found[cut:], state=msgspec.json.decode(kept, type=DigestState))
        assert without_tokens(later.digest()) == without_tokens(whole)


def test_a_state_says_no_more_of_a_long_prompt_than_lists_show() -> None:
    row = b'{"type":"user","uuid":"u","message":{"role":"user","content":"%s"}}\n' % (b"word " * 100_000)
    state = DigestFold(records_in(decode_lines(lines_of(row)))).state()
    assert state.first is not None
    assert state.first.preview.endswith("…")
    assert len(msgspec.json.encode(state)) < 1_000


def test_only_the_first_row_of_all_says_what_a_session_was_copied_from() -> None:
    row = b'{"type":"user","uuid":"u","message":{"role":"user","content":"q"}%s}\n'
    rows = row % b"" + row % b',"forkedFrom":{"sessionId":"other"}'
    first, second = records_in(decode_lines(lines_of(rows)))
    assert DigestFold([second], state=DigestFold([first]).state()).digest().parent_id is None
    assert DigestFold([second]).digest().parent_id == "other"


@pytest.mark.parametrize("rows", [b"", b"not a row\n"])
def test_a_fold_of_nothing_has_the_state_of_nothing(rows: bytes) -> None:
    assert DigestFold(records_in(decode_lines(lines_of(rows)))).state() == DigestState()
