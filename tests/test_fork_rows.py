"""Rows of a fork that are changed together: the same bytes as of each by itself, or they are left to that."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.engines.contract import LogKey
from clew.forks.rows import Rewriter
from clew.records.codec import decode
from clew.records.line import Line
from clew.records.record import Record
from clew.transcript.ids import ids_from
from session_files import session_id

OLD, NEW = session_id(1), session_id(2)
IDS = [session_id(number) for number in range(10, 16)]
FIELDS = (
    '"uuid":"{0}"', '"parentUuid":"{0}"', '"parentUuid":null', '"sourceToolAssistantUUID":"{0}"', '"uuid": "{0}"',
    '"\\u0075uid":"{0}"', '"logicalParentUuid":"{0}"', '"toolUseResult":{{"uuid":"{0}"}}', '"uuid":"short"',
    '"input":{{"parentUuid":"{0}","sessionId":"' + OLD + '"}}', '"text":"\\"uuid\\":\\"{0}\\""', '"a\\"uuid":"{0}"',
    '"forkedFrom":{{"sessionId":"' + OLD + '","messageUuid":"{0}"}}', '"isCompactSummary":true', '"uuid":"\u00e9{0}"',
)  # fmt: skip


def row(fields: list[str]) -> bytes:
    return ("{" + ",".join(['"type":"user"', *fields, f'"sessionId":"{OLD}"']) + "}\n").encode()


def decoded(raw: bytes) -> Record:
    record = decode(Line(raw, 0, 1, len(raw)))
    assert isinstance(record, Record)
    return record


def rewriter(*, new_ids: bool) -> Rewriter:
    new_id = ids_from(NEW) if new_ids else None
    return Rewriter(LogKey("-p", OLD), NEW, new_id=new_id, rewrite_paths=False)


ONE_FIELD = st.builds(str.format, st.sampled_from(FIELDS), st.sampled_from(IDS))
ROWS = st.lists(st.lists(ONE_FIELD, max_size=4), min_size=1, max_size=4)


def plain(number: int, *more: str) -> list[str]:
    return [f'"parentUuid":"{IDS[number]}"', f'"uuid":"{IDS[number + 1]}"', *more]


@given(ROWS, st.booleans())
@settings(max_examples=600)
def test_what_is_changed_together_is_as_each_row_by_itself(fields: list[list[str]], new_ids: bool) -> None:
    raws = [row(each) for each in fields]
    rows = [decoded(raw) for raw in raws]
    if any(record.session_id != OLD for record in rows):
        return
    changing = rewriter(new_ids=new_ids)
    together = changing.together(b"".join(raws), rows)
    one_by_one = b"".join(changing.row(raw, record) for raw, record in zip(raws, rows, strict=True))
    assert together in (None, one_by_one)


@pytest.mark.parametrize("new_ids", [False, True])
def test_rows_as_the_client_writes_them_are_changed_together(new_ids: bool) -> None:
    raws = [row(plain(0)), row(plain(1, f'"sourceToolAssistantUUID":"{IDS[1]}"')), row(plain(2))]
    assert rewriter(new_ids=new_ids).together(b"".join(raws), [*map(decoded, raws)]) is not None


@pytest.mark.parametrize("field", [f'"input":{{"uuid":"{IDS[1]}"}}', f'"x":{{"sessionId":"{OLD}"}}', '"forkedFrom":{}'])
def test_rows_that_say_an_id_in_another_place_too_are_not(field: str) -> None:
    raws = [row(plain(0, field)), row(plain(1))]
    assert rewriter(new_ids=True).together(b"".join(raws), [*map(decoded, raws)]) is None


def test_what_another_row_says_is_not_taken_for_an_id_that_is_written_in_an_odd_way() -> None:
    raws = [row([f'"uuid": "{IDS[0]}"']), row([f'"toolUseResult":{{"uuid":"{IDS[0]}"}}', f'"uuid":"{IDS[1]}"'])]
    assert rewriter(new_ids=True).together(b"".join(raws), [*map(decoded, raws)]) is None
