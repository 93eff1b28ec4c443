"""A new record type, command, engine … is one file and one line in its folder's table; these tests hold both together.

A table is a dict named in upper case in `<part>/table.py` whose values say where a thing is: "clew.part.module:Name".
`NOT_IN_TABLE` in the same file names the modules of the folder that are no entries.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import clew

PACKAGE = Path(clew.__file__).parent
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("table.py"))
EXPECTED = {"adapters", "cli", "engines", "forks", "layouts", "records", "wrap"}
PLACE = re.compile(r"[a-z_][\w.]*:[A-Za-z_]\w*")
INFRASTRUCTURE = {"table", "__init__", "__main__"}


def lines_of_tables(text: str) -> list[tuple[str, str]]:
    """Each line of each table as ("TABLE[key]", "module:Name"), from the source: at run time a repeated key is gone."""
    lines = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Dict):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        places = [_place(value) for value in node.value.values]
        if isinstance(target, ast.Name) and target.id.isupper() and all(places):
            keys = [ast.unparse(key) if key else "**" for key in node.value.keys]
            lines += [(f"{target.id}[{key}]", place) for key, place in zip(keys, places, strict=True)]
    return lines


def _place(node: ast.expr) -> str:
    """The "module:Name" that a table's value holds, "" for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
        return node.value
    return ""


def disagreements(prefix: str, lines: list[tuple[str, str]], modules: set[str], exempt: set[str]) -> list[str]:
    """What is wrong between a folder's modules and the lines of its tables; nothing when all is well."""
    named = {place.partition(":")[0] for _, place in lines}
    keys = [key for key, _ in lines]
    places = {f"{prefix}.{module}" for module in modules}
    wanted = {f"{prefix}.{module}" for module in modules - exempt if not module.startswith("_")}
    return [
        *(f"no line in a table names {module}" for module in sorted(wanted - named)),
        *(f"a table names {module}, which is no module of {prefix}" for module in sorted(named - places)),
        *(f"NOT_IN_TABLE names {module}, which is no module of {prefix}" for module in sorted(exempt - modules)),
        *(f"{key} stands there twice" for key in sorted({key for key in keys if keys.count(key) > 1})),
    ]


def test_the_folders_that_have_a_table_are_found() -> None:
    assert {folder.name for folder in FOLDERS} >= EXPECTED


each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))


@each_folder
def test_every_file_has_a_line_and_every_line_a_file(folder: Path) -> None:
    prefix = ".".join(["clew", *folder.relative_to(PACKAGE).parts])
    lines = lines_of_tables((folder / "table.py").read_text(encoding="utf-8"))
    assert lines, f"{prefix}.table holds no table: an upper-case dict of 'module:Name' strings"
    modules = {path.stem for path in folder.glob("*.py")} - INFRASTRUCTURE
    exempt = set(getattr(importlib.import_module(f"{prefix}.table"), "NOT_IN_TABLE", ()))
    assert not disagreements(prefix, lines, modules, exempt)


@each_folder
def test_every_line_of_a_table_leads_to_something(folder: Path) -> None:
    broken = []
    for key, place in lines_of_tables((folder / "table.py").read_text(encoding="utf-8")):
        module, _, name = place.partition(":")
        if not hasattr(importlib.import_module(module), name):
            broken.append(f"{key}: {place}")
    assert not broken


BAD = (
    'KINDS: dict[str, str] = {"a": "clew.part.a:A", "a": "clew.part.a:B", "x": "clew.part.gone:X"}\nWIDTH = {"a": 3}\n'
)


def test_a_missing_file_a_missing_line_and_a_repeated_key_are_found() -> None:
    wrong = disagreements("clew.part", lines_of_tables(BAD), {"a", "b", "_private", "shared"}, {"shared", "left"})
    assert wrong == [
        "no line in a table names clew.part.b",
        "a table names clew.part.gone, which is no module of clew.part",
        "NOT_IN_TABLE names left, which is no module of clew.part",
        "KINDS['a'] stands there twice",
    ]


def test_a_table_that_agrees_with_its_folder_is_left_in_peace() -> None:
    lines = [("KINDS['a']", "clew.part.a:A"), ("KINDS['b']", "clew.part.a:B")]
    assert disagreements("clew.part", lines, {"a", "shared"}, {"shared"}) == []
