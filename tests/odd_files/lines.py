"""What counts as a line, and what of a broken one is read.

`around` puts a line between U1, A2 and A4; the line holds U3 or is what is left of it.
"""

from __future__ import annotations

import json

from odd_files.rows import LOST, TALK, answer, encoded, end, head, line, user, uuid

U1, A2, U3, A4 = (line(piece) for piece in TALK if isinstance(piece, dict))
U5, A6 = (line(piece) for piece in end(5, 4) if isinstance(piece, dict))
X5 = line(user(5, 2, "X5"))
X6 = line(user(6, 2, "X6"))
NL = b"\n"
BOM = b"\xef\xbb\xbf"
NBSP = b"\xc2\xa0"
LINE_SEPARATOR = b"\xe2\x80\xa8"


def around(middle: bytes) -> bytes:
    return NL.join((U1, A2, middle, A4, b""))


def grown(field: bytes) -> bytes:
    """U3 with one more field at its end."""
    return around(U3[:-1] + b"," + field + b"}")


def said(words: bytes) -> bytes:
    """U3 with these bytes as its text."""
    return around(U3.replace(b'"U3"', b'"' + words + b'"'))


def torn(beginning: bytes) -> bytes:
    """U1, A2, the beginning of a row, U3, A4, U5, A6."""
    return NL.join((U1, A2, beginning, U3, A4, U5, A6, b""))


def nested(depth: int) -> bytes:
    return b'"x":' + b"[" * depth + b"]" * depth


AROUND_A_ROW = {
    "blanks before a row": around(b"  " + U3),
    "a tab before a row": around(b"\t" + U3),
    "a vertical tab before a row": around(b"\x0b" + U3),
    "a no-break space before a row": around(NBSP + U3),
    "a byte-order mark before a row in the middle": around(BOM + U3),
    "a line separator before a row": around(LINE_SEPARATOR + U3),
    "a letter before a row": around(b"x" + U3),
    "blanks after a row": around(U3 + b"   "),
    "a letter after a row": around(U3 + b"x"),
    "a blank and a letter after a row": around(U3 + b" x"),
    "a comma after a row": around(U3 + b","),
    "a closing bracket after a row": around(U3 + b"]"),
    "a closing brace after a row": around(U3 + b"}"),
    "NUL bytes after a row": around(U3 + b"\0\0"),
    "a number after a row": around(U3 + b" 12"),
    "a no-break space after a row": around(U3 + NBSP),
    "a comment after a row": around(U3 + b"//c"),
    "a run of NULs before a row": around(b"\0" * 50 + U3),
    "a run of NULs on a line of its own": around(b"\0" * 50 + NL + U3),
    "a run of NULs over a line and into a row": NL.join((U1, A2, b"\0" * 20, b"\0" * 5 + U3, A4, U5, A6, b"")),
}

MERGED = {
    "two rows on one line": around(U3 + X5),
    "three rows on one line": around(U3 + X5 + X6),
    "a row and the beginning of another on one line": around(U3 + X5[:-20]),
    "two rows with a blank between them on one line": around(U3 + b" " + X5),
    "two rows with a tab between them on one line": around(U3 + b"\t" + X5),
    "two rows with a comma between them on one line": around(U3 + b"," + X5),
    "two rows with a carriage return between them": around(U3 + b"\r" + X5),
    "a torn row, a carriage return and a row": around(U3[:-9] + b"\r" + X5),
    "a torn row glued to the next row": NL.join((U1, A2[:-30] + U3, A4, b"")),
    "a torn row on a line of its own": NL.join((U1, A2[:-30], U3, A4, b"")),
    "a number before a row": around(b"12 " + U3),
    "an empty array before a row": around(b"[]" + U3),
    "null before a row": around(b"null" + U3),
    "an empty object before a row": around(b"{}" + U3),
    "a row in an array": around(b"[" + U3 + b"]"),
    "a row in a string": around(json.dumps(U3.decode()).encode()),
}

NOT_QUITE_JSON = {
    "NaN in a row": grown(b'"x":NaN'),
    "single quotes": around(U3.replace(b'"user"', b"'user'")),
    "a number with a leading zero": grown(b'"x":01'),
    "a comma before the closing brace": around(U3[:-1] + b",}"),
    "a control character in a text": said(b"U\x013"),
    "a raw tab in a text": said(b"U\t3"),
    "an unknown escape in a text": said(b"U\\q3"),
    "a raw NUL in a text": said(b"U\x003"),
    "a key twice": grown(b'"uuid":"' + uuid(9).encode() + b'"'),
    "an array 900 levels deep": grown(nested(900)),
    "an array 5,000 levels deep": grown(nested(5_000)),
    "an array 100,000 levels deep": grown(nested(100_000)),
    "an array 5,000 levels deep in a message": around(U3.replace(b'"role"', nested(5_000) + b',"role"')),
    "an integer of sixty digits": grown(b'"x":' + b"1234567890" * 6),
    "a number beyond all numbers": grown(b'"x":1e999'),
}  # fmt: skip

CHARACTERS = {
    "a lone surrogate as an escape": said(b"U\\ud83d3"),
    "a lone surrogate as raw bytes": said(b"U\xed\xa0\xbd3"),
    "an overlong encoding": said(b"U\xc0\x803"),
    "a character cut in half": said(b"U\xe6\x973"),
    "a byte that is no UTF-8": said(b"U\xff3"),
    "a line separator in a text": said(b"U" + LINE_SEPARATOR + b"3"),
    "a file that begins with a byte-order mark": BOM + NL.join((U1, A2, U3, A4, b"")),
    "a file that begins with two byte-order marks": BOM + BOM + NL.join((U1, A2, b"")),
    "a file in UTF-16": "\ufeff".encode("utf-16le") + (U1 + NL + A2 + NL).decode().encode("utf-16le"),
}

OVER_LINES = {
    "a row broken behind a comma": around(U3.replace(b',"isSide', b',\n"isSide')),
    "a row spread over many lines": around(json.dumps(json.loads(U3), indent=1).encode()),
    "every row spread over many lines": NL.join(json.dumps(json.loads(r), indent=2).encode() for r in (U1, A2, U3, A4))
    + NL,
    "all rows in one array over several lines": b"[" + b",\n".join((U1, A2, U3, A4)) + b"]",
    "only carriage returns between the rows": b"\r".join((U1, A2, U3, A4, b"")),
    "carriage returns before the newlines": b"\r\n".join((U1, A2, U3, A4, b"")),
    "an array over two lines between rows": NL.join((U1, b"[1,", b"2]", A2, U3, A4, b"")),
    "a row behind the end of an array over two lines": NL.join((U1, b"[1,", b"2]" + A2, U3, A4, b"")),
    "an object opened before a row and closed behind it": NL.join((U1, A2, b'{"x":', U3, b"}", A4, U5, A6, b"")),
    "a key glued to the row that is its value": NL.join((U1, A2, b'{"x":' + U3, A4, U5, A6, b"")),
    "the last brace of a row glued to the next row": NL.join((U1, A2, U3[:-1], b"}" + A4, U5, A6, b"")),
}

TORN = {
    f"torn {where}": torn(beginning)
    for where, beginning in {
        "after a comma": b'{"type":"user",',
        "after a colon": b'{"type":"user","x":',
        "after a key": b'{"type":"user","x"',
        "after the first brace": b"{",
        "after a bracket": b"[",
        "after a comma in an array": b'{"x":[1,',
        "in an array": b'{"x":[1',
        "after a number": b'{"x":1',
        "after an inner object": b'{"x":{}',
        "in a string": b'{"x":"abc',
        "in an escape": b'{"x":"abc\\',
        "in a word": b'{"x":tr',
    }.items()
} | {
    "torn after a colon on the last line": NL.join((U1, A2, U3, A4, b'{"x":', b"")),
    "the last row torn, without a newline": NL.join((U1, A2, U3, A4[:-30])),
    "the last row whole, without a newline": NL.join((U1, A2, U3, A4)),
}

NO_ROWS = {
    "an empty file": b"",
    "nothing but newlines": NL * 5,
    "nothing but garbage": b"garbage\n{]\n\0\0\0\n",
    "nothing but a head record": encoded(head(LOST)),
    "blank lines between rows": NL.join((U1, b"", A2, b"   ", U3, b"\t\r", A4, b"", b"")),
    "garbage between rows": NL.join((U1, b"garbage", A2, b"{]", U3, b'"text"', A4, b"")),
    "scalars between rows": NL.join((U1, b"1", b"2", A2, b"null", U3, b"true", A4, b"")),
    "an array between rows": NL.join((U1, b"[1, 2]", A2, U3, b"[]", A4, b"")),
}

WRITTEN_OTHERWISE = {
    "blanks behind commas and colons": NL.join(json.dumps(json.loads(r)).encode() for r in (U1, A2, U3, A4)) + NL,
    "keys in the order of the alphabet": NL.join(
        json.dumps(json.loads(r), sort_keys=True, separators=(",", ":")).encode() for r in (U1, A2, U3, A4)
    )
    + NL,
    "keys written with escapes": encoded(user(1), answer(2, 1))
    + U3.replace(b'"parentUuid"', b'"parent\\u0055uid"')
    + NL
    + A4
    + NL,
}

CASES = AROUND_A_ROW | MERGED | NOT_QUITE_JSON | CHARACTERS | OVER_LINES | TORN | NO_ROWS | WRITTEN_OTHERWISE
