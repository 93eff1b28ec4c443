"""Rows that we make, as bytes: compact, UTF-8 not escaped, on one line.

Readers of other programs look for `"type":"user"` and the like as text, so the separators matter (docs/format.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from clew.records.views import JsonValue


def compact(row: Mapping[str, JsonValue], *, is_strict: bool = False) -> bytes:
    """The row as JSON without a newline, its keys in the order given. Every value that `loads` gives is written so
    that it reads the same again; text that is no UTF-8 (a lone surrogate) is escaped for that, the whole row with it.

    With `is_strict`, raises `ValueError` for NaN and infinities: Python reads them, and the client drops such a row.
    """
    shown = json.dumps(row, ensure_ascii=False, allow_nan=not is_strict, separators=(",", ":"))
    try:
        return shown.encode()
    except UnicodeEncodeError:
        return json.dumps(row, separators=(",", ":")).encode()
