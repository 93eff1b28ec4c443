"""What bash and fish need beyond click's own scripts, so that a word may be any title: blanks, quotes, `$(…)`, colons.

click's script for bash hands the words over joined by blanks and takes values through word splitting and globbing; its
script for fish cuts a value at a comma. In ours bash hands over the line itself and takes each value as it is, quoted
here as far as the person has begun to quote. zsh and fish quote what they insert themselves.
"""

from __future__ import annotations

import os
import re

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

LINE = "CLEW_COMP_LINE"
BREAKS = "CLEW_COMP_BREAKS"

_PLAIN = re.compile(r"[\w@%+=:,./-]", re.ASCII)


class Bash(BashComplete):
    """The line up to the cursor comes in one variable, and the characters at which bash begins a word in another."""

    source_template = """\
%(complete_func)s() {
    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        case $reply in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*) COMPREPLY+=("${reply#plain,}") ;;
        esac
    done < <(CLEW_COMP_LINE="${COMP_LINE:0:COMP_POINT}" CLEW_COMP_BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get(LINE)
        self._opened, self._before = "", ""
        if line is None:
            return super().get_completion_args()
        start, self._opened = last_word(line)
        word = line[start:]
        words = split_arg_string(line[:start])
        while words and "=" in words[0]:  # What is set for this command alone.
            words = words[1:]
        if not self._opened:
            self._before = _whole(word[: _broken_at(word, os.environ.get(BREAKS, ""))])
        return words[1:], _whole(word)

    def format_completion(self, item: CompletionItem) -> str:
        value = item.value if item.type == "plain" else ""
        return f"{item.type},{quoted(value[len(self._before) :], self._opened)}"


class Fish(FishComplete):
    """As click has it, but a comma in a value is one of the value."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


KINDS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": Fish}


def register() -> None:
    """Lets click answer the shells with these."""
    for kind in KINDS.values():
        add_completion_class(kind)


def last_word(line: str) -> tuple[int, str]:
    """Where the last word of a line begins, and the quotation mark that is open in it."""
    start, opened, is_escaped = 0, "", False
    for at, each in enumerate(line):
        if is_escaped:
            is_escaped = False
        elif each == "\\" and opened != "'":
            is_escaped = True
        elif opened:
            opened = "" if each == opened else opened
        elif each in "'\"":
            opened = each
        elif each.isspace():
            start = at + 1
    return start, opened


def quoted(value: str, opened: str) -> str:
    """The value as it stands in a line, where that mark is open already. What cannot stand there is left as it is."""
    if opened == "'":
        return value.replace("'", "'\\''")
    if opened == '"':
        # bash closes the quotation itself, unless what it gets ends with that mark already.
        return re.sub(r'([\\"$`])', r"\\\1", value) + ('"' if value.endswith('"') else "")
    return "".join(each if _PLAIN.match(each) or ord(each) > 0x7F else f"\\{each}" for each in value)


def _broken_at(word: str, breaks: str) -> int:
    """Where that part of the word begins which bash takes for the word."""
    found = 0
    is_escaped = False
    for at, each in enumerate(word):
        if is_escaped:
            is_escaped = False
        elif each == "\\":
            is_escaped = True
        elif each in breaks and not each.isspace():
            found = at + 1
    return found


def _whole(word: str) -> str:
    found = split_arg_string(word)
    return found[0] if found else ""
