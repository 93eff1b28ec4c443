"""What other packages add by entry points: found when it is asked for, imported when it is used."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def entry_points_of(group: str) -> dict[str, EntryPoint]:
    """By name, in the order of the names."""
    # Imported here because it costs more than all of this package, and only names that we do not know need it.
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def loaded(point: EntryPoint, what: str) -> object:
    """What the entry point names. Raises `UsageError` for one that does not load; `what` says in it what that was."""
    try:
        found: object = point.load()
    except (ImportError, AttributeError, TypeError, SyntaxError) as error:
        raise unusable(point, f"{what} does not load: {error}") from error
    return found


def unusable(point: EntryPoint, why: str) -> UsageError:
    """The error for an entry point that is of no use, which names its package."""
    hint = f"pip uninstall {point.dist.name}" if point.dist else "uninstall the package that registers it"
    return UsageError(why, hint=hint)


def function_of(group: str, name: str) -> object:
    """The function that a package registered by that name. Raises `UsageError` for what is none."""
    point = entry_points_of(group)[name]
    what = f"{point.value} of the group {group}"
    found = loaded(point, what)
    if isinstance(found, type) or not callable(found):
        raise unusable(point, f"{what} is no function")
    return found
