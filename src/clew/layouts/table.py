"""Which layouts and key strategies there are, by the names that people write. Imported on use only."""

from __future__ import annotations

LAYOUTS = {
    "claude": "clew.layouts.claude:ClaudeLayout",
}

KEY_STRATEGIES = {
    "claude": "clew.layouts.keys:ClaudeKeys",
    "digest": "clew.layouts.keys:DigestKeys",
    "git-root": "clew.layouts.keys:GitRootKeys",
}
