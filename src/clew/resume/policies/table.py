"""Which policies there are, by the word for `--policy`. Each is imported when it is named.

Other packages add theirs by entry points of the group `clew.policies`; a name that is ours already stays ours.
"""

from __future__ import annotations

POLICIES: dict[str, str] = {
    "newest": "clew.resume.policies.newest:newest",
    "skip-sidechains": "clew.resume.policies.skip_sidechains:skip_sidechains",
    "skip-errors": "clew.resume.policies.skip_errors:skip_errors",
    "skip-empty": "clew.resume.policies.skip_empty:skip_empty",
    "skip-live": "clew.resume.policies.skip_live:skip_live",
    "skip-archived": "clew.resume.policies.skip_archived:skip_archived",
    "prefer-tag": "clew.resume.policies.prefer_tag:prefer_tag",
    "prefer-here": "clew.resume.policies.prefer_here:prefer_here",
}

ENTRY_POINTS = "clew.policies"
