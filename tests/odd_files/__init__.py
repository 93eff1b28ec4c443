"""Session files that are odd in one way each, as bytes, by a sentence that says what is odd.

The files are built, not stored. What the real client makes of each is in `tests/data/odd_files.json`, measured by
`scripts/measure_odd_files.py`; add a case here, measure, and look at the answer before committing it.
"""

from __future__ import annotations

from odd_files import (
    attachments,
    boundaries,
    compaction,
    contentless,
    endings,
    forks,
    heads,
    lines,
    messages,
    parallel,
    parents,
    tangles,
    trailing,
    truncations,
)

SUBJECTS: dict[str, dict[str, bytes]] = {
    "lines": lines.CASES,
    "heads": heads.CASES,
    "parents": parents.CASES,
    "compaction": compaction.CASES,
    "parallel": parallel.CASES,
    "messages": messages.CASES,
    "endings": endings.CASES,
    "attachments": attachments.CASES,
    "tangles": tangles.CASES,
    "forks": forks.CASES,
    "trailing": trailing.CASES,
    "contentless": contentless.CASES,
    "boundaries": boundaries.CASES,
    "truncations": truncations.CASES,
}
CASES: dict[str, bytes] = {name: content for cases in SUBJECTS.values() for name, content in cases.items()}
"""All of them. A name is used once: it is what a recorded answer is found by."""
