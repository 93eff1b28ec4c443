"""What `import clew` gives, and what it does not drag in."""

from __future__ import annotations

import dataclasses
import inspect
import json
import subprocess
import sys

import clew

NAMES_MAX = 44
"""What a method of Store or Session answers with has a name here; what it is made of need not have one."""
HEAVY = ("asyncio", "click", "hypothesis", "rich", "sqlite3")
"""Each costs more to import than all of `import clew` may (50 ms)."""


def test_public_names_are_sorted_few_and_without_repetition() -> None:
    names = list(clew.__all__)
    assert names == sorted(set(names))
    assert 0 < len(names) <= NAMES_MAX


def test_every_public_name_resolves() -> None:
    missing = [name for name in clew.__all__ if not hasattr(clew, name)]
    assert not missing


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    # A lazy `__getattr__` that raises anything else breaks hasattr, copy and every inspecting tool.
    assert not hasattr(clew, "no_such_name")


def test_dir_shows_the_public_names() -> None:
    assert set(clew.__all__) <= set(dir(clew))


def test_every_public_name_has_a_docstring_of_its_own() -> None:
    bare = [name for name in clew.__all__ if not _own_docstring(getattr(clew, name))]
    assert not bare, f"no docstring (inherited and generated ones do not count): {bare}"


def test_a_generated_or_inherited_docstring_does_not_count() -> None:
    @dataclasses.dataclass
    class Generated:
        field: int

    class Documented:
        """Is documented."""

    class Inheriting(Documented):
        pass

    assert Generated.__doc__, "dataclasses write one, which says nothing"
    assert not _own_docstring(Generated)
    assert not _own_docstring(Inheriting)
    assert not _own_docstring(3)
    assert _own_docstring(Documented)


def test_importing_clew_drags_in_nothing_heavy() -> None:
    program = "import json, sys, clew; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert "clew" in loaded
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)


def _own_docstring(thing: object) -> str:
    if not (inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)):
        return ""
    text = vars(thing).get("__doc__") or "" if inspect.isclass(thing) else thing.__doc__ or ""
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") else str(text)
