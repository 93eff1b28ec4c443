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
    # Imported here because it costs more than all of this package.
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def loaded(group: str, name: str) -> object:
    """What the entry point names. Raises `UsageError`, naming the package, for one that does not load."""
    point = entry_points_of(group)[name]
    try:
        found: object = point.load()
    except (ImportError, AttributeError, TypeError, SyntaxError) as error:
        hint = f"pip uninstall {point.dist.name}" if point.dist else "uninstall the package that registers it"
        raise UsageError(f"{point.value} of the group {group} does not load: {error}", hint=hint) from error
    if not callable(found):
        raise UsageError(f"{point.value} of the group {group} cannot be called", hint="name a function there")
    return found
