"""`pr:12`, `pr:owner/repo#12` or `pr:URL`: a session that the client linked to this pull request."""

from __future__ import annotations

import re

from clew.errors import NotFound, UsageError
from clew.records.links import PrLink
from clew.resume.answers import Answer
from clew.resume.look import Look

PREFIX = "pr:"
ROWS = b'"pr-link"'

_NUMBER = re.compile(r"#?([0-9]{1,18})")
_IN_REPOSITORY = re.compile(r"([^/\s#]+/[^/\s#]+)#([0-9]{1,18})")
_URL = re.compile(r"https?://[^/\s]+/([^/\s]+/[^/\s]+)/(?:pull|pulls|merge_requests)/([0-9]{1,18})(?:[/?#]\S*)?")


def resolve(text: str, look: Look) -> Answer:
    """Any link counts, not the last alone. Raises `NotFound` where no session has one, `UsageError` for other texts."""
    if not text.startswith(PREFIX):
        return None
    said = text.removeprefix(PREFIX).strip()
    repository, number = _parts(said)
    if number is None:
        raise UsageError(f"{said[:400]!r} is no pull request", hint="write pr:12, pr:owner/repo#12 or pr:URL")
    found = [
        stat
        for stat, records in look.rows(ROWS)
        if any(
            isinstance(view := record.view(), PrLink) and _is_it(view, repository, number)
            for record in records
            if record.type == "pr-link"
        )
    ]
    answer = look.answer(found, "sessions are linked to this pull request")
    if answer is None:
        raise NotFound(f"no session here is linked to the pull request {said[:400]!r}", hint=look.hint)
    return answer


def _parts(said: str) -> tuple[str | None, int | None]:
    """The repository, if it is said, and the number."""
    if whole := _NUMBER.fullmatch(said):
        return None, int(whole[1])
    if parts := _IN_REPOSITORY.fullmatch(said) or _URL.fullmatch(said):
        return parts[1].lower(), int(parts[2])
    return None, None


def _is_it(link: PrLink, repository: str | None, number: int) -> bool:
    if link.pr_number != number:
        return False
    named = link.pr_repository or (_parts(link.pr_url)[0] if link.pr_url else None)
    return repository is None or (named or "").lower() == repository
