"""The command line. `main` is what `clew` runs: it turns every error into a message and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 4 not found or ambiguous, 5 data damaged, 6 storage, 130 interrupted. A
reader that stops reading, as in `clew ls | head -1`, ends the program quietly with 0: it got what it wanted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `clew` with these arguments, or those of the process. Returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _main(given)
    except KeyboardInterrupt:
        return INTERRUPTED


def _main(arguments: Sequence[str]) -> int:
    import click

    from clew.cli import output
    from clew.cli.group import ReaderGone, run
    from clew.errors import ClewError, NotFound, StorageError, UsageError

    output.prepare_streams()
    is_json = "--json" in _before_dashes(arguments)
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except (ReaderGone, BrokenPipeError):
        output.let_go_of_stdout()
        return 0
    except click.Abort:
        return INTERRUPTED
    except ClewError as error:
        found = error
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "clew"
        found = UsageError(error.format_message().rstrip("."), hint=f"{command} --help")
    except click.ClickException as error:
        found = ClewError(error.format_message())
    except OSError as error:
        # What reading meets is translated where it happens, so this is where clew stands, or stdout itself: a full disk
        # behind `>`.
        if not _is_somewhere():
            found = NotFound("the directory that clew was started in is gone", hint="go to one that is there: cd")
        else:
            hint = "look for room, and at what stdout is: df -h ."
            found, is_json = StorageError(f"the output cannot be written: {error.strerror or error}", hint=hint), False
            output.let_go_of_stdout()
    output.fail(found, is_json=is_json)
    return found.exit_code


def _is_somewhere() -> bool:
    """Whether relative paths mean anything: another program may have removed the directory we are in."""
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _before_dashes(arguments: Sequence[str]) -> Sequence[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
