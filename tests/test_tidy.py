"""The rules of the house, checked on the syntax tree of every module; ARCHITECTURE.md says why each one stands.

`complaints(module, text)` is the checker. The second half of this file feeds it small bad modules, some for each
rule, so that a rule which stopped biting would be seen.
"""

from __future__ import annotations

import ast
import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "clew"

PARTS = (
    "errors", "records", "transcript", "layouts", "engines", "lineage", "operations", "copying", "index",
    "forks", "store", "resume", "checkpoints", "share", "manager", "adapters", "defaults",
)  # fmt: skip
"""From the ground up: a part imports itself and what stands before it."""
FRONT_ENDS = ("cli", "mcp", "web")
"""Stand on all parts and know nothing of each other."""
SAME_PART = {
    "session": "store", "session_info": "store", "session_reader": "store", "session_writer": "store",
    "writing": "store", "watching": "store", "loading": "store", "marks": "store", "truncating": "store",
    "copying_plan": "copying", "__main__": "cli",
}  # fmt: skip

HANDED_OUT = {
    "clew.store": frozenset({
        "clew.adapters.claude_agent_sdk", "clew.resume.answers", "clew.resume.choosing", "clew.resume.look",
        "clew.resume.resolving",
    }),
}  # fmt: skip
"""What a method hands out although it stands below: imported inside of that method or for types, never at the top."""

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 600


@dataclass(frozen=True)
class Rule:
    """Names that only some parts may use. A name that starts with "." is a method, whatever it is called on."""

    says: str
    names: frozenset[str]
    allowed: tuple[str, ...] = ()


RULES = (
    Rule(
        "reads the environment, which defaults.py does for everyone",
        frozenset({
            "os.environ", "os.environb", "os.getenv", "os.getenvb", "os.getcwd", "os.path.expanduser",
            "os.path.expandvars", "pathlib.Path.home", "pathlib.Path.cwd", ".expanduser", "getpass.getuser",
            "platformdirs",
        }),
        ("defaults", *FRONT_ENDS),
    ),
    Rule("reads stdin, which is for front ends", frozenset({"sys.stdin", "sys.__stdin__", "input"}), FRONT_ENDS),
    Rule(
        "reads the clock, which is a parameter",
        frozenset({
            "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter",
            "time.perf_counter_ns", "time.localtime", "time.gmtime", "datetime.datetime.now",
            "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
        }),
        # The system clock is handed to `clew.open()` by defaults.py, which also lets a test or a document set the time.
        ("defaults", *FRONT_ENDS),
    ),
    Rule(
        "runs code out of data or through a shell",
        frozenset({
            "pickle", "marshal", "shelve", "dill", "cloudpickle", "eval", "exec", "os.system", "os.popen",
            "subprocess.getoutput", "subprocess.getstatusoutput",
        }),
    ),
)  # fmt: skip

PLACE_IN_TABLE = re.compile(r"(clew(?:\.\w+)+):\w+")


def part_of(module: str) -> str:
    """The part a module belongs to: "clew.cli.ls" is of cli, "clew.session" of store, "clew" of none."""
    names = module.split(".")
    return SAME_PART.get(names[1], names[1]) if len(names) > 1 else ""


def may_import(part: str, other: str) -> bool:
    if part == other or not part:
        return True
    if part in FRONT_ENDS:
        return other in PARTS or other == ""
    if part == "testing":
        return other in PARTS or other == ""
    return other in PARTS[: PARTS.index(part)]


def complaints(module: str, text: str) -> list[str]:
    """Everything that is wrong with a module of the package, one sentence each."""
    tree = ast.parse(text)
    return [
        *_direction(module, tree),
        *_forbidden_names(module, tree),
        *_broad_excepts(module, tree),
        *_shells(tree),
        *_sizes(text, tree),
        *(_code_in_the_front_door(tree) if module == "clew" else ()),
    ]


def _direction(module: str, tree: ast.Module) -> Iterator[str]:
    part = part_of(module)
    if part not in {"", *PARTS, *FRONT_ENDS, "testing"}:
        yield f"{part} is no part that tests/test_tidy.py knows: give it its place in PARTS"
        return
    at_the_top = {node.lineno for node in tree.body}
    for line, target in _imports(tree):
        if target in HANDED_OUT.get(module, ()) and line not in at_the_top:
            continue
        if target.startswith("."):
            yield f"line {line}: relative import {target}"
        elif target.partition(".")[0] == "clew" and not may_import(part, part_of(target)):
            yield f"line {line}: {part} must not import {target}, which does not stand above it"


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every module of ours that a module reaches for: by import, by a line in a table, or by name at run time."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            # `from clew import records` means clew.records; `from clew import Store` means clew itself.
            for alias in node.names:
                known = {*PARTS, *FRONT_ENDS, *SAME_PART, "testing"}
                yield node.lineno, f"clew.{alias.name}" if base == "clew" and alias.name in known else base
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if place := PLACE_IN_TABLE.fullmatch(node.value):
                yield node.lineno, place[1]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def _forbidden_names(module: str, tree: ast.Module) -> Iterator[str]:
    rules = [rule for rule in RULES if part_of(module) not in rule.allowed]
    for line, name in _names(tree):
        yield from (
            f"line {line}: {name} {rule.says}" for rule in rules if any(_is(name, banned) for banned in rule.names)
        )


def _is(name: str, banned: str) -> bool:
    return name.endswith(banned) if banned[0] == "." else f"{name}.".startswith(f"{banned}.")


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every dotted name in full, whatever it was imported as: after `import time as t`, `t.time` is "time.time"."""
    origins: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                origins[alias.asname or first] = alias.name if alias.asname else first
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.lineno, f"{node.module}.{alias.name}"
    # A parameter or variable called `input` or `time` is not the thing of that name.
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    origins = dict.fromkeys(own, "?") | origins
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            yield node.lineno, _dotted(node, origins)


def _dotted(node: ast.expr, origins: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, origins)}.{node.attr}"
    return origins.get(node.id, node.id) if isinstance(node, ast.Name) else "?"


def _broad_excepts(module: str, tree: ast.Module) -> Iterator[str]:
    if part_of(module) == "cli":
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)} if node.type else {""}
            passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            # Tidying up on the way out is fine for every reason to leave, Ctrl-C included, if the reason goes on.
            if "Exception" in caught or (caught & {"", "BaseException"} and not passes_on):
                yield f"line {node.lineno}: catches everything, bugs included"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            if {"Exception", "BaseException"} & {ast.unparse(argument) for argument in node.args}:
                yield f"line {node.lineno}: catches everything, bugs included"


def _shells(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "shell":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield f"line {node.value.lineno}: starts a shell"


def _sizes(text: str, tree: ast.Module) -> Iterator[str]:
    lines = len(text.splitlines())
    if lines > MODULE_LINES_MAX:
        yield f"{lines} lines are more than {MODULE_LINES_MAX}"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"line {node.lineno}: {node.name} has {length} lines, more than {FUNCTION_LINES_MAX}"


def _code_in_the_front_door(tree: ast.Module) -> Iterator[str]:
    """`clew/__init__.py` says names: imports, constants of literals, and the two functions that make names lazy."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            continue
        if isinstance(node, ast.FunctionDef) and node.name in {"__getattr__", "__dir__"}:
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not node.orelse:
            if all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in node.body):
                continue
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_literal(node.value):
            continue
        yield f"line {node.lineno}: code in clew/__init__.py: {ast.unparse(node).splitlines()[0]}"


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def committed_files() -> list[Path]:
    """What is, or would be, in a commit. Without git (a source archive): all but hidden and built directories."""
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(listing, capture_output=True, check=True)
        names = [ROOT / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        skipped = {"__pycache__", "build", "dist"}
        names = [path for path in ROOT.rglob("*") if not any(
            part in skipped or part.startswith(".") for part in path.relative_to(ROOT).parts)]  # fmt: skip
    return sorted(path for path in names if path.is_file() and not path.is_symlink())


LOCK_FILES = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json", "npm-shrinkwrap.json",
              "yarn.lock", "pnpm-lock.yaml"}  # fmt: skip
REGISTRY = re.compile(
    r'"resolved":\s*"https?:|registry\s*=\s*"?https?:|index-url[ =]+https?:|find-links[ =]+https?:'
    r"|registry\.npmjs\.|registry\.yarnpkg\.|pypi\.org/simple|files\.pythonhosted\."
)
# Places that are everybody's say nothing about this machine, and the sample sessions live in the home of "user".
EVERYBODYS = {
    "/",
    "/tmp",
    "/var/tmp",
    "/home",
    "/Users",
    "/opt",
    "/srv",
    "/mnt",
    "/usr/src",
    "/home/user",
    "/Users/user",
}


def places_of_this_machine() -> set[str]:
    """The checkout, the directory it stands in, and the real home (a test's own HOME is a throw-away)."""
    places = {str(ROOT), str(ROOT.parent), pwd.getpwuid(os.getuid()).pw_dir}
    return places - EVERYBODYS


def traces(text: str, places: set[str]) -> list[str]:
    """What in a committed text belongs to one machine or one registry."""
    hits = [(hit.start(), hit[0]) for hit in REGISTRY.finditer(text)]
    for place in places:
        whole_path = rf"(?:(?<=://)|(?<![\w./-])){re.escape(place)}(?![\w.-])"
        hits += [(hit.start(), f"{place} is a place of this machine") for hit in re.finditer(whole_path, text)]
    return [f"line {text.count(chr(10), 0, start) + 1}: {what}" for start, what in sorted(hits)]


def _modules() -> dict[str, Path]:
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = _modules()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_keeps_the_rules_of_the_house(module: str) -> None:
    assert not complaints(module, MODULES[module].read_text(encoding="utf-8"))


def test_no_committed_file_names_a_machine_or_a_registry() -> None:
    files = committed_files()
    assert Path(__file__).resolve() in files
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {trace}" for trace in traces(text, places_of_this_machine())]
    assert not found


def test_no_lock_file_is_committed() -> None:
    assert not [path for path in committed_files() if path.name in LOCK_FILES]


def _long(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


BAD_MODULES = [
    ("clew.records.user", "import clew.engines.files", "must not import clew.engines.files"),
    ("clew.records.user", "from clew import engines", "must not import clew.engines"),
    ("clew.records.user", "from clew import Store", "must not import clew"),
    ("clew.records.user", "def f():\n    from clew.store import Store", "must not import clew.store"),
    ("clew.records.user", "if TYPE_CHECKING:\n    from clew.session import Session", "must not import clew.session"),
    ("clew.records.table", "KINDS = {'user': 'clew.engines.files:open'}", "must not import clew.engines.files"),
    ("clew.index.query", "importlib.import_module('clew.share.markdown')", "must not import clew.share.markdown"),
    ("clew.store", "from clew.cli import main", "must not import clew.cli"),
    ("clew.store", "from clew.adapters.claude_agent_sdk import X", "must not import clew.adapters.claude_agent_sdk"),
    ("clew.store", "def f():\n    from clew.adapters.table import X", "must not import clew.adapters.table"),
    ("clew.session", "def f():\n    import clew.adapters.claude_agent_sdk", "must not import clew.adapters.claude"),
    ("clew.store", "from clew.testing import strategies", "must not import clew.testing"),
    ("clew.cli.ls", "from clew.web import app", "must not import clew.web"),
    ("clew.mcp.server", "from clew.cli.render import table", "must not import clew.cli.render"),
    ("clew.cli.ls", "from clew.testing import strategies", "must not import clew.testing"),
    ("clew.testing.faults", "from clew.cli import main", "must not import clew.cli"),
    ("clew.helpers.text", "x = 1", "no part"),
    ("clew.records.user", "from . import line", "relative import"),
    ("clew.records.user", "from .line import Line", "relative import"),
    ("clew.store", "import os\nx = os.environ['HOME']", "reads the environment"),
    ("clew.store", "from os import environ as world", "reads the environment"),
    ("clew.store", "import os as o\nx = o.getenv('HOME')", "reads the environment"),
    ("clew.store", "from pathlib import Path\nx = Path.home()", "reads the environment"),
    ("clew.store", "import pathlib\nx = pathlib.Path('~/x').expanduser()", "reads the environment"),
    ("clew.store", "import os.path\nx = os.path.expanduser('~')", "reads the environment"),
    ("clew.index.schema", "import platformdirs", "reads the environment"),
    ("clew.defaults", "import sys\nx = sys.stdin.read()", "reads stdin"),
    ("clew.testing.faults", "x = input()", "reads stdin"),
    ("clew.store", "import time\nx = time.time()", "reads the clock"),
    ("clew.store", "from time import time_ns as now", "reads the clock"),
    ("clew.store", "import datetime\nx = datetime.datetime.now(datetime.UTC)", "reads the clock"),
    ("clew.store", "from datetime import datetime\ndef f(now=datetime.now): pass", "reads the clock"),
    ("clew.store", "from datetime import date\nx = date.today()", "reads the clock"),
    ("clew.store", "try:\n    x = 1\nexcept Exception:\n    raise", "catches everything"),
    ("clew.store", "try:\n    x = 1\nexcept (OSError, Exception) as error:\n    x = 2", "catches everything"),
    ("clew.store", "try:\n    x = 1\nexcept:\n    x = 2", "catches everything"),
    ("clew.web.app", "try:\n    x = 1\nexcept BaseException:\n    x = 2", "catches everything"),
    ("clew.store", "import contextlib\nwith contextlib.suppress(Exception):\n    x = 1", "catches everything"),
    ("clew.store", "import pickle", "runs code"),
    ("clew.store", "from pickle import loads", "runs code"),
    ("clew.cli.ls", "x = eval('1')", "runs code"),
    ("clew.cli.ls", "exec('x = 1')", "runs code"),
    ("clew.cli.ls", "import os\nos.system('ls')", "runs code"),
    ("clew.cli.ls", "import subprocess\nsubprocess.run('ls', shell=True)", "starts a shell"),
    ("clew.cli.ls", "import subprocess\nsubprocess.run('ls', shell=flag)", "starts a shell"),
    ("clew.store", _long(FUNCTION_LINES_MAX + 1), "f has 71 lines"),
    ("clew.store", "class C:\n    async def f(self):\n" + "        x = 1\n" * 70, "f has 71 lines"),
    ("clew.store", "x = 1\n" * (MODULE_LINES_MAX + 1), "601 lines"),
    ("clew", "def open(): pass", "code in clew/__init__.py"),
    ("clew", "class Store: pass", "code in clew/__init__.py"),
    ("clew", "import os\nversion = os.getpid()", "code in clew/__init__.py"),
    ("clew", "for x in 'ab': pass", "code in clew/__init__.py"),
    ("clew", "if TYPE_CHECKING:\n    x = 1", "code in clew/__init__.py"),
]

GOOD_MODULES = [
    ("clew.cli.ls", "import os, sys, time\nx = os.environ, sys.stdin, time.time()\nfrom clew.store import Store"),
    ("clew.cli", "try:\n    x = 1\nexcept Exception:\n    x = 2"),
    ("clew.__main__", "from clew.cli import main"),
    ("clew.cli", "from clew import __version__"),
    ("clew.session", "from clew.store import Store\nfrom clew.records.line import Line"),
    ("clew.store", "from clew.session import Session"),
    ("clew.store", "class Store:\n    def claude(self):\n        from clew.adapters.claude_agent_sdk import X"),
    ("clew.defaults", "import os\nfrom pathlib import Path\nx = os.environ, Path.home(), Path('~').expanduser()"),
    ("clew.testing.faults", "from clew.defaults import open_store\nimport hypothesis"),
    ("clew.records.table", "KINDS = {'user': 'clew.records.user:User'}\nTEXT = 'clew.engines is named here'"),
    ("clew.store", "try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise"),
    ("clew.store", "def f(now, input, time):\n    return now() + input + time.time\n"),
    ("clew.store", "import re, subprocess\nx = re.compile('a')\nsubprocess.run(['ls'], shell=False)"),
    ("clew.store", _long(FUNCTION_LINES_MAX)),
    ("clew.store", "x = 1\n" * MODULE_LINES_MAX),
    ("clew", '"""Doc."""\nfrom clew.errors import ClewError\n__all__ = ["ClewError"]\n_LAZY: dict[str, str] = {}\n'
             "__version__ = '1'\ndef __getattr__(name): pass\nif TYPE_CHECKING:\n    from clew.store import Store"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "text", "complaint"), BAD_MODULES)
def test_a_module_that_breaks_a_rule_is_named(module: str, text: str, complaint: str) -> None:
    found = complaints(module, text)
    assert found
    assert all(complaint in line for line in found), found


@pytest.mark.parametrize(("module", "text"), GOOD_MODULES)
def test_a_module_that_keeps_the_rules_is_left_in_peace(module: str, text: str) -> None:
    assert complaints(module, text) == []


@pytest.mark.parametrize("name", sorted({name for rule in RULES for name in rule.names}))
def test_every_forbidden_name_is_seen(name: str) -> None:
    first = name.partition(".")[0]
    use = f"import {first}\nx = {name}()" if first not in {"", name} else f"x = {'y' if not first else ''}{name}()"
    assert [line for line in complaints("clew.store", use) if f"{name} " in line]


@pytest.mark.parametrize("text", [
    '{"resolved": "' + 'https://x"}', "--extra-index-url=" + "https://x", "see registry." + "npmjs.org",
    "a file:///srv/ada/clew/x", "cwd=/srv/ada/clew", "'/srv/ada/clew/src'",
])  # fmt: skip
def test_a_trace_of_a_machine_or_a_registry_is_seen(text: str) -> None:
    assert traces(f"first line\n{text}\n", {"/srv/ada/clew"})[0].startswith("line 2: ")


@pytest.mark.parametrize("text", ["src/srv/ada/clew", "/srv/ada/clews", "pypi.org/project/clew", "npm install"])
def test_what_only_looks_like_a_trace_is_left_in_peace(text: str) -> None:
    assert traces(text, {"/srv/ada/clew"}) == []
