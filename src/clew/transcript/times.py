"""Timestamps of records as milliseconds, the way the client reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_YEAR = re.compile(r"\d{4}(?:-\d{2})?")


def milliseconds(timestamp: str | None) -> float | None:
    """The time since 1970, or None for what is no date.

    The client takes what JavaScript's `Date` takes. ISO dates in all their forms, a bare year and the dates of mail
    headers are read here as well; forms nobody has seen in a session are not.
    """
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return _odd_date(timestamp)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() * 1000


def _odd_date(timestamp: str) -> float | None:
    if _YEAR.fullmatch(timestamp):
        year, _, month = timestamp.partition("-")
        try:
            return datetime(int(year), int(month or 1), 1, tzinfo=UTC).timestamp() * 1000
        except ValueError:
            return None
    from email.utils import parsedate_to_datetime  # Hardly ever needed, and a tenth of the time to import clew's store.

    try:
        moment = parsedate_to_datetime(timestamp)
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
