"""Values are put where the old ones stand; every other byte stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.records.splice import Change, quoted, spliced

SESSION = Change("sessionId", "old", b'"new"')

ODD_ROWS = {
    "a lone surrogate": b'{"text":"\\ud800","sessionId":"old"}\n',
    "line separators": '{"text":"a\u2028b\u0085c","sessionId":"old"}\n'.encode(),
    "a NUL escape": b'{"text":"\\u0000","sessionId":"old"}\n',
    "an integer of 400 digits": b'{"n":' + b"9" * 400 + b',"sessionId":"old"}\n',
    "bytes that are no UTF-8": b'{"text":"\xff\xfe","sessionId":"old"}\n',
    "odd spacing and a carriage return": b' { "sessionId" :  "old" , "a" : 1 } \r\n',
    "an object inside that has the field too": b'{"a":{"sessionId":"old"},"sessionId":"old"}\n',
    "a text that looks like the field": b'{"text":"\\"sessionId\\":\\"old\\"","sessionId":"old"}\n',
    "a key that ends like the field": b'{"x\\"sessionId":"old","sessionId":"old"}\n',
    "a value that is written with escapes": b'{"sessionId":"\\u006fld","a":1}\n',
    "a byte-order mark": b'\xef\xbb\xbf{"sessionId":"old"}\n',
}


@pytest.mark.parametrize("raw", ODD_ROWS.values(), ids=ODD_ROWS)
def test_only_the_value_of_the_row_itself_changes(raw: bytes) -> None:
    changed = spliced(raw, [SESSION])
    body = json.loads(changed.decode("utf-8-sig", "replace"))
    assert body["sessionId"] == "new"
    before = json.loads(raw.decode("utf-8-sig", "replace"))
    assert {**body, "sessionId": "old"} == before
    # Putting the old value back gives the old bytes, but for escapes in the value itself.
    back = spliced(changed, [Change("sessionId", "new", b'"old"')])
    assert back == raw.replace(b"\\u006fld", b"old")


def test_a_field_that_is_missing_comes_last_and_null_is_a_value() -> None:
    assert spliced(b'{"a":1}\n', [Change("b", None, b'"x"')]) == b'{"a":1,"b":"x"}\n'
    assert spliced(b'{"a":1} \n', [Change("b", None, b'"x"')]) == b'{"a":1,"b":"x"} \n'
    assert spliced(b'{"b":null,"a":1}\n', [Change("b", None, b'"x"')]) == b'{"b":"x","a":1}\n'
    assert spliced(b'{"a":{"b":2}}\n', [Change("b", None, b"3")]) == b'{"a":{"b":2},"b":3}\n'


def test_what_is_no_object_stays_as_it_is() -> None:
    for raw in (b"", b"\n", b"[1]\n", b'{"torn":"', b"not json\n"):
        assert spliced(raw, [SESSION]) == raw


@given(
    st.dictionaries(st.text(max_size=5), st.recursive(st.text() | st.integers() | st.none(), st.lists, max_leaves=5)),
    st.text(max_size=8),
    st.text(max_size=8),
)
def test_any_object_reads_the_same_but_for_the_new_values(body: dict[str, object], old: str, new: str) -> None:
    body = {**body, "sessionId": old}
    raw = json.dumps(body).encode() + b"\n"
    changed = spliced(raw, [Change("sessionId", old, quoted(new)), Change("added", None, b"[1]")])
    assert json.loads(changed) == {**body, "sessionId": new, "added": [1]}
