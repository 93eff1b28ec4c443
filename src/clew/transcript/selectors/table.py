"""Which selectors there are: the word before the colon of a point, and what reads the rest of it.

A new one is one file beside this one and one line here; packages add theirs by entry points in the group `clew.points`.
"""

from __future__ import annotations

SELECTORS: dict[str, str] = {
    "": "clew.transcript.selectors.record:AtRecord",
    "msg": "clew.transcript.selectors.message:AtMessage",
    "time": "clew.transcript.selectors.time:AtTime",
    "turn": "clew.transcript.selectors.turn:Turn",
}
"""The one without a word takes what has no word before a colon."""
