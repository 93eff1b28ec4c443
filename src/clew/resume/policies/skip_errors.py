"""Without sessions that end in an API error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.records.record import Record
from clew.resume.choosing import Asked, Contender
from clew.transcript.tree import CHAIN_TYPES

ERROR_TEXT = "API Error"
"""What summaries of such a session begin with."""


def skip_errors(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """The last row of the conversation decides; rows that are none may follow it."""
    return asked.unless(contenders, _against)


def _against(contender: Contender) -> str | None:
    for row in contender.rows_back():
        if row.type == "summary" and _is_error_text(row):
            return "its summary is an API error"
        if row.type in CHAIN_TYPES and not row.is_sidechain:
            return "it ends in an API error" if _is_error(row) else None
    return None


def _is_error_text(row: Record) -> bool:
    summary = row.body().get("summary")
    return isinstance(summary, str) and summary.lstrip().startswith(ERROR_TEXT)


def _is_error(row: Record) -> bool:
    if row.type == "system":
        return row.subtype == "api_error"
    return row.type == "assistant" and row.body().get("isApiErrorMessage") is True
