"""Which commands there are: the name, and where the command is. A command is imported when it is called.

A new command is one file beside this one and one line in both tables.
"""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "ls": "clew.cli.ls:command",
    "show": "clew.cli.show:command",
    "tree": "clew.cli.tree:command",
    "resume": "clew.cli.resume:command",
    "continue": "clew.cli.continuing:command",
    "fork": "clew.cli.fork:command",
    "truncate": "clew.cli.truncate:command",
    "delete": "clew.cli.delete:command",
    "undo": "clew.cli.undo:command",
    "operations": "clew.cli.operations:command",
    "title": "clew.cli.title:command",
    "tag": "clew.cli.tag:command",
    "label": "clew.cli.label:command",
    "pin": "clew.cli.pin:command",
    "archive": "clew.cli.archive:command",
    "set": "clew.cli.set:command",
    "copy": "clew.cli.copy:command",
    "gc": "clew.cli.gc:command",
    "completion": "clew.cli.completion:command",
    "welcome": "clew.cli.welcome:command",
}

HELP: dict[str, str] = {
    "ls": "List sessions, newest first.",
    "show": "Show the conversation of a session.",
    "tree": "Show the branches of a session.",
    "resume": "Start Claude Code on a session.",
    "continue": "Start Claude Code on the newest session.",
    "fork": "Begin a new session with the conversation of another.",
    "truncate": "Go back to an earlier point of a session.",
    "delete": "Delete sessions; `clew undo` brings them back.",
    "undo": "Undo the newest operation, or the one named.",
    "operations": "List what was deleted, truncated and undone, newest first.",
    "title": "Give a session a title.",
    "tag": "Tag a session.",
    "label": "Label a session.",
    "pin": "Pin a session.",
    "archive": "Archive a session.",
    "set": "Set the owner or the workspace of a session.",
    "copy": "Copy sessions from one store to another.",
    "gc": "Free for good what was deleted long ago.",
    "completion": "Print the completion script for a shell.",
}
"""The line that `clew --help` shows, here so that help imports no command. A command that is not here is hidden."""

COMING = (
    "search", "usage", "checkpoint", "checkpoints", "hooks", "rewind",
    "export", "scan", "import", "move", "push", "pull", "doctor", "repair", "serve", "index", "mcp",
)  # fmt: skip
"""Names that later versions give a meaning to."""

NOT_IN_TABLE = (
    "filters", "group", "marking", "options", "output", "picker", "preview", "render", "shells", "starting",
)  # fmt: skip
"""What the commands are made of."""
