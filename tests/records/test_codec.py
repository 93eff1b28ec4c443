"""Any bytes become rows and the same bytes again; what a line is, is said in words; hostile lines raise nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import DamagedData
from clew.records import codec
from clew.records.codec import RECOVERY_TRIES_MAX, decode, decode_lines, encode
from clew.records.json_text import End, Scanner, scan, top_level
from clew.records.line import Line
from clew.records.record import BOM, Blank, Malformed, Record, Row, records_in, sendable
from clew.records.views import JsonValue
from clew.testing.corpus import SESSION, lines_of, to_bytes, user
from clew.testing.strategies import broken_lines, byte_soup, json_lines, records, sessions

ROW = to_bytes([user("hello", uuid="u1", parent=None)])
OTHER = to_bytes([user("again", uuid="u2", parent="u1")])


def line_of(data: bytes) -> Line:
    return Line(data, 0, 1, len(data))


def rows_of(data: bytes) -> list[Row]:
    return list(decode_lines(lines_of(data)))


def one(data: bytes) -> Row:
    rows = rows_of(data)
    assert len(rows) == 1, rows
    return rows[0]


def malformed(data: bytes) -> Malformed:
    row = one(data)
    assert isinstance(row, Malformed), row
    assert encode(row) == data
    return row


def record(data: bytes) -> Record:
    row = one(data)
    assert isinstance(row, Record), row
    assert encode(row) == data
    return row


def written(rows: list[Row]) -> bytes:
    return b"".join(encode(row) for row in rows)


# ---- byte for byte ----


@given(byte_soup() | st.binary(max_size=200) | st.lists(broken_lines(), max_size=6).map(b"".join))
def test_any_bytes_come_back_as_they_were(data: bytes) -> None:
    assert written(rows_of(data)) == data


@given(sessions())
def test_any_session_comes_back_as_it_was(data: bytes) -> None:
    assert written(rows_of(data)) == data


@given(json_lines())
def test_any_json_is_read_as_what_it_is(data: bytes) -> None:
    value = json.loads(data.removeprefix(BOM))
    rows = rows_of(data)
    assert written(rows) == data
    if isinstance(value, dict) and value:
        assert len(rows) == 1
        assert isinstance(rows[0], Record)
        kind = value.get("type")
        assert rows[0].type == (kind if isinstance(kind, str) else None)
    elif not (isinstance(value, list) and b"\n" in data.rstrip()):
        # In a list over several lines, a line that is an object is a record like any other.
        assert not any(isinstance(row, Record) for row in rows)


@given(records())
def test_a_record_says_what_its_row_says(row: dict[str, object]) -> None:
    found = record(json.dumps(row).encode() + b"\n")
    assert found.body() == row
    for field, name in (("uuid", "uuid"), ("timestamp", "timestamp"), ("agent_id", "agentId")):
        if isinstance(row.get(name), str):
            assert getattr(found, field) == row[name]


@given(st.lists(broken_lines(), max_size=5).map(b"".join))
def test_lines_stand_alone_as_well_as_in_a_stream(data: bytes) -> None:
    assert b"".join(encode(decode(line)) for line in lines_of(data)) == data


@given(st.lists(broken_lines() | json_lines(), max_size=6).map(b"".join), st.integers(1, 60))
def test_a_small_limit_keeps_every_line_in_its_place(data: bytes, limit: int) -> None:
    lines = [
        line if line.size <= limit else Line(b"", line.position, line.number, line.size) for line in lines_of(data)
    ]
    rows = list(decode_lines(lines))
    position = 0
    for row in rows:
        assert row.line.position == position
        assert row.line.is_held or isinstance(row, Malformed)
        assert not row.line.is_held or data[position : position + row.line.size] == encode(row)
        position += row.line.size
    assert position == len(data)


@given(st.lists(broken_lines(), max_size=4).map(b"".join))
def test_nothing_that_was_read_raises_when_it_is_looked_at(data: bytes) -> None:
    for row in records_in(iter(rows_of(data))):
        row.body()
        row.content()
        row.view()


# ---- lines that are records although the fast parser refuses them ----


ODD = {
    "lone surrogate": ROW.replace(b"hello", b"\\ud800 \\udfff"),
    "NaN": ROW.replace(b'"isSidechain"', b'"x":NaN,"y":-Infinity,"isSidechain"'),
    "integer of 30 digits": ROW.replace(b'"isSidechain"', b'"x":123456789012345678901234567890,"isSidechain"'),
    "integer of 5,000 digits": ROW.replace(b'"isSidechain"', b'"x":%s,"isSidechain"' % (b"7" * 5000)),
    "that and NaN": ROW.replace(b'"isSidechain"', b'"z":NaN,"x":%s,"isSidechain"' % (b"7" * 5000)),
    "900 levels": ROW.replace(b'"isSidechain"', b'"x":%s%s,"isSidechain"' % (b"[" * 900, b"]" * 900)),
    "100,000 levels": ROW.replace(b'"isSidechain"', b'"x":%s%s,"isSidechain"' % (b"[" * 100_000, b"]" * 100_000)),
    "100,000 objects": ROW.replace(
        b'"isSidechain"', b'"x":%s1%s,"isSidechain"' % (b'{"uuid":' * 100_000, b"}" * 100_000)
    ),
    "byte-order mark": BOM + ROW,
    "invalid UTF-8": ROW.replace(b"hello", b"\xff\xfe\xc3"),
    "CRLF": ROW.replace(b"\n", b"\r\n"),
    "blanks around": b" \t" + ROW.replace(b"\n", b"  \n"),
    "no newline": ROW.rstrip(b"\n"),
    "a key that is ours": ROW.replace(b'"isSidechain"', b'"<line>":5,"isSidechain"'),
    "fields of other types": ROW.replace(b'"timestamp":', b'"isMeta":"yes","agentId":{},"subtype":[1],"timestamp":'),
    "all at once": BOM
    + ROW.replace(b'"isSidechain"', b'"x":%s%s,"y":NaN,"isSidechain"' % (b"[" * 2000, b"]" * 2000)).replace(
        b"hello", b"\xff\\ud800"
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_line_is_a_record(name: str) -> None:
    found = record(ODD[name])
    assert (found.type, found.uuid, found.session_id) == ("user", "u1", SESSION)
    assert found.line == Line(ODD[name], 0, 1, len(ODD[name]))


@pytest.mark.parametrize("name", ["lone surrogate", "invalid UTF-8", "CRLF", "byte-order mark", "100,000 levels"])
def test_the_content_of_an_odd_line_can_be_sent(name: str) -> None:
    content = record(ODD[name]).content()
    assert isinstance(content, str)
    assert content.encode()


@pytest.mark.parametrize("depth", [400, 985, 990, 995, 1000, 3000])
@pytest.mark.parametrize("name", [b"uuid", b"message", b"parentUuid", b"timestamp", b"x"])
def test_no_depth_of_any_field_raises(name: bytes, depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"id":', b"}"), (b'{"content":[', b"]}")):
        data = b'{"type":"user","%s":%s1%s}\n' % (name, opening * depth, closing * depth)
        found = record(data)
        assert found.type == "user"
        found.body()
        found.view()


@pytest.mark.parametrize("name", codec._FIELDS)
def test_a_lone_surrogate_in_any_field_costs_only_that_field(name: str) -> None:
    row = {"type": "user", "uuid": "u", "cwd": "/p"} | {name: "\ud800"}
    found = record(json.dumps(row).encode() + b"\n")
    assert found.body() == row
    assert (found.uuid, found.type) == (row["uuid"], row["type"])


def test_a_deep_row_keeps_its_message_id_even_in_bad_utf_8() -> None:
    deep = b'{"type":"assistant","uuid":"u","message":{"id":"m\xff","content":%s%s}}\n' % (b"[" * 2000, b"]" * 2000)
    found = record(deep)
    assert found.message is not None
    assert found.message.id == "m\ufffd"


@pytest.mark.parametrize("depth", [985, 1_000, 100_000])
def test_what_nests_too_deeply_takes_nothing_along_that_stands_beside_it(depth: int) -> None:
    deep = b"[" * depth + b"1" + b"]" * depth
    call = b'{"type":"tool_use","id":"t","input":{"a":1,"deep":%s}}' % deep
    found = record(
        b'{"type":"assistant","message":{"x":%s,"content":[{"type":"text","text":"hi"},%s]}}\n' % (deep, call)
    )
    match found.content():
        case [{"text": text}, {"type": "tool_use", "id": "t", "input": {"a": a, "deep": _}}]:
            assert (text, a) == ("hi", 1)
        case other:
            pytest.fail(f"not the blocks of the row: {str(other)[:200]}")


def test_a_deep_content_beside_a_lone_surrogate_can_be_sent() -> None:
    """The walk over what a tolerant parser gave goes as deep as that parser."""
    deep: JsonValue = record(
        b'{"type":"user","message":{"content":["\\ud800",%s%s]}}\n' % (b"[" * 900, b"]" * 900)
    ).content()
    assert isinstance(deep, list)
    assert deep[0] == "\ufffd"
    levels, inner = 0, deep[1]
    while isinstance(inner, list) and inner:
        levels, inner = levels + 1, inner[0]
    assert (levels, inner) == (899, [])


def test_of_two_names_that_become_one_the_last_counts() -> None:
    names = ["\ud800", "\ufffd", "\udbff"]
    assert sendable({name: [at] for at, name in enumerate(names)}) == {"\ufffd": [2]}


def test_an_id_that_is_a_number_is_still_an_id() -> None:
    assert record(b'{"type":"user","uuid":5,"parentUuid":6.5}\n').uuid == "5"
    assert record(b'{"type":"user","uuid":5,"parentUuid":6.5}\n').parent_uuid == "6.5"
    assert record(b'{"type":"user","uuid":0,"parentUuid":""}\n').uuid is None


# ---- lines that are no records ----


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"null\n", "not an object: a JSON null"),
        (b"true\n", "not an object: a JSON boolean"),
        (b"17\n", "not an object: a JSON number"),
        (b"7" * 5000 + b"\n", "not an object: a JSON number"),
        (b'"text"\n', "not an object: a JSON string"),
        (b"[{}]\n", "not an object: a JSON array"),
        (b"{}\n", "not a record: an object without any field"),
        (b"[" * 3000 + b"]" * 3000 + b"\n", "not an object: a JSON array"),
        (b"garbage\n", "torn: the record is cut off inside a value"),
        (b'{"a":?}\n', "not JSON"),
        (b'{"a":1}}\n', "more text after the record"),
        (b"\x00" * 12 + b"\n", "12 NUL bytes and nothing else"),
    ],
)
def test_a_line_that_is_no_object_says_what_it_is(data: bytes, reason: str) -> None:
    assert malformed(data).reason == reason


@pytest.mark.parametrize("data", [b"\n", b"\r\n", b" \t\n", b" ", BOM + b"\n"])
def test_a_line_of_white_space_is_blank(data: bytes) -> None:
    row = one(data)
    assert isinstance(row, Blank)
    assert encode(row) == data


@pytest.mark.parametrize("size", range(1, len(ROW) - 2))
def test_a_line_cut_anywhere_is_torn(size: int) -> None:
    cut = ROW[:size]
    assert malformed(cut + b"\n").reason in {codec.REASON_OPEN, "torn: the record is cut off inside a value"}
    assert malformed(cut).reason == codec.REASON_UNTERMINATED
    assert not malformed(cut).loaded


def test_of_two_records_on_one_line_the_first_is_loaded() -> None:
    row = malformed(ROW.rstrip(b"\n") + OTHER)
    assert row.reason == "2 records on one line"
    assert [found.uuid for found in row.loaded] == ["u1"]
    assert [found.uuid for found in row.recoverable] == ["u1", "u2"]
    assert [found.raw for found in row.recoverable] == [ROW.rstrip(b"\n"), OTHER.rstrip(b"\n")]


def test_a_record_glued_to_a_torn_one_can_be_saved_but_is_not_loaded() -> None:
    for size in (20, len(ROW) // 2, len(ROW) - 5):
        row = malformed(ROW[:size] + OTHER)
        assert row.loaded == ()
        assert [found.uuid for found in row.recoverable] == ["u2"]


def test_a_block_inside_a_torn_row_is_not_taken_for_a_row() -> None:
    assert malformed(b'{"type":"user","message":{"content":[{"type":"text","text":"x"},\n').recoverable == ()


def test_a_record_after_a_run_of_nuls_is_loaded() -> None:
    row = malformed(b"\x00" * 64 + ROW)
    assert row.reason == "64 NUL bytes before the record"
    assert [found.uuid for found in row.loaded] == ["u1"]
    broken = malformed(b"\x00" * 64 + ROW[:30] + OTHER)
    assert broken.loaded == ()
    assert [found.uuid for found in broken.recoverable] == ["u2"]


def test_recovery_tries_a_named_number_of_places() -> None:
    many = b"?" + ROW.rstrip(b"\n") * (RECOVERY_TRIES_MAX + 10) + b"\n"
    assert len(malformed(many).recoverable) == RECOVERY_TRIES_MAX


def test_a_line_over_the_limit_is_a_range_that_cannot_be_encoded() -> None:
    row = decode(Line(b"", 10, 3, 99))
    assert isinstance(row, Malformed)
    assert "99 bytes" in row.reason
    with pytest.raises(DamagedData, match="line 3 has 99 bytes"):
        encode(row)


# ---- a record over several lines ----


def indented(data: bytes) -> bytes:
    return json.dumps(json.loads(data), indent=2).encode() + b"\n"


def test_an_indented_record_is_one_row_with_all_its_lines() -> None:
    data = OTHER + indented(ROW) + OTHER
    rows = rows_of(data)
    assert [row.uuid for row in rows if isinstance(row, Record)] == ["u2", "u1", "u2"]
    assert rows[1].line == Line(indented(ROW), len(OTHER), 2, len(indented(ROW)))
    assert rows[2].line.number == 2 + indented(ROW).count(b"\n")
    assert written(rows) == data


def test_an_open_record_takes_no_line_that_does_not_complete_it() -> None:
    for torn in (b'{"type":"user","uuid":\n', b'{"type":"user",\n', b"{\n", b'{"a":[1,\n'):
        rows = rows_of(torn + ROW + OTHER)
        assert isinstance(rows[0], Malformed)
        assert [row.uuid for row in rows[1:] if isinstance(row, Record)] == ["u1", "u2"]
        assert written(rows) == torn + ROW + OTHER


def test_a_record_that_is_still_open_at_the_end_leaves_every_line_alone() -> None:
    data = indented(ROW)[:-3]
    rows = rows_of(data)
    assert len(rows) == data.count(b"\n") + 1
    assert all(isinstance(row, Malformed) for row in rows)
    assert written(rows) == data


def test_what_is_read_ahead_in_vain_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # A line is fed to a scanner only while the budget lasts; without one, 400 lines would be fed 80,000 times.
    monkeypatch.setattr(codec, "JOIN_WASTE_MAX", 1000)
    fed: list[bytes] = []

    def feed(_: Scanner, text: bytes) -> End:
        fed.append(text)
        return End.OPEN

    monkeypatch.setattr(Scanner, "feed", feed)
    rows = rows_of(b'{"a":\n' * 400)
    assert len(rows) == 400
    assert 400 < len(fed) <= 1400


# ---- the scanner ----


PIECES = st.sampled_from([
    b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"b\\n"', b'"\\u12', b"1", b"-", b"1.", b"1.5e3", b"01", b"true",
    b"tru", b"null", b"NaN", b"-Infinity", b" ", b"\n", b"\r\n", b'"', b"\\", b"\x01", b"\xff", b'"k":', b'"k":1,',
    b"{}", b"[[",
])  # fmt: skip


@given(st.lists(PIECES, max_size=10).map(b"".join) | byte_soup())
def test_both_ways_of_scanning_agree(data: bytes) -> None:
    scanner = Scanner()
    walked = scanner.feed(data)
    end, at = scan(data)
    assert end is walked
    if end is End.WHOLE:
        assert at == scanner.at


@given(records())
def test_a_value_may_come_line_by_line(row: dict[str, object]) -> None:
    pieces = json.dumps(row, indent=1).encode().splitlines(keepends=True)
    scanner = Scanner()
    ends = [scanner.feed(piece) for piece in pieces]
    assert ends == [End.OPEN] * (len(pieces) - 1) + [End.WHOLE]


@given(records())
def test_the_fields_of_an_object_are_found_without_reading_them(row: dict[str, object]) -> None:
    data = json.dumps(row, indent=1).encode()
    assert {name: json.loads(value) for name, value in top_level(data).items()} == row


@pytest.mark.parametrize("text", [b"", b"[1]", b"7", b'"x"', b"{", b'{"a":[[', b'{"a":"'])
def test_what_is_no_whole_object_has_no_end_to_run_into(text: bytes) -> None:
    assert set(top_level(text)) <= {"a"}
