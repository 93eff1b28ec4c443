"""The documents are true: names and commands are described, examples run and print what is shown, links lead somewhere.

Examples run in a home of their own whose `.claude` is a copy of the sample sessions that ship with the package, in an
empty working directory, at one point in time (`CLEW_NOW`). Those of one document run in the order they stand in.

    ```python      executed; names live on into the document's next block
    ```console     `$ clew …` lines are executed; what follows them must be what they print (stdout and stderr), where
                   a line that holds only "…" stands for any lines. Other `$` lines are shown, not run.
    <!-- not run: why -->   before a block, takes it out; there are few of these.

The home directory shows as `~`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import clew
import clew.testing

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = Path(clew.__file__).parent / "sample"
NOW = "2026-11-21T12:00:00Z"
NOT_RUN_MAX = 3
SECONDS_MAX = 120  # An example that waits for something must not hold up everything; none comes near this.
ANY_LINES = "…"
FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)

REQUIRED = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/glossary.md", "docs/format.md",
            "docs/spec-coverage.md", "docs/testing-engines.md")  # fmt: skip
DOCUMENTS = sorted({*REQUIRED, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))})
each_document = pytest.mark.parametrize("document", DOCUMENTS)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the number of its first line, and why it is not run, if so."""

    language: str
    text: str
    line: int
    not_run: str


@dataclass(frozen=True)
class Step:
    """One command of a console block, and what the document says it prints."""

    command: str
    shown: list[str]
    line: int


def blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    number, last_text = 0, ""
    while number < len(lines):
        fence = re.match(r"( *)(`{3,}|~{3,})\s*(\w*)", lines[number])
        if not fence:
            last_text = lines[number].strip() or last_text
            number += 1
            continue
        start = number = number + 1
        while number < len(lines) and not re.fullmatch(rf" *{re.escape(fence[2])}{fence[2][0]}*\s*", lines[number]):
            number += 1
        inside = [re.sub(rf"^ {{0,{len(fence[1])}}}", "", line) for line in lines[start:number]]
        reason = re.fullmatch(r"<!-- not run: (.+) -->", last_text)
        yield Block(fence[3], "\n".join(inside), start + 1, reason[1] if reason else "")
        number, last_text = number + 1, ""


def steps(block: Block) -> list[Step]:
    found: list[Step] = []
    continues = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if continues:
            found[-1] = Step(f"{found[-1].command}\n{line}", [], found[-1].line)
        elif line.startswith("$ "):
            found.append(Step(line[2:], [], number))
        elif found:
            found[-1].shown.append(line)
        continues = line.endswith("\\") and (continues or line.startswith("$ "))
    return [step for step in found if re.match(r"clew(\s|$)", step.command)]


def agrees(shown: list[str], real: list[str]) -> bool:
    """Whether the real lines are the shown ones, with "…" for any lines; blank ends of lines and of the whole aside."""
    pieces: list[list[str]] = [[]]
    for line in _trimmed(shown):
        if line.strip() == ANY_LINES:
            pieces.append([])
        else:
            pieces[-1].append(line)
    rest = _trimmed(real)
    if len(pieces) == 1:
        return rest == pieces[0]
    first, *middle, last = pieces
    if len(rest) < len(first) + len(last) or rest[: len(first)] != first or rest[len(rest) - len(last) :] != last:
        return False
    rest = rest[len(first) : len(rest) - len(last)]
    for piece in middle:
        at = next((at for at in range(len(rest) - len(piece) + 1) if rest[at : at + len(piece)] == piece), None)
        if at is None:
            return False
        rest = rest[at + len(piece) :]
    return True


def _trimmed(lines: list[str]) -> list[str]:
    return "\n".join(line.rstrip() for line in lines).strip("\n").split("\n")


@cache
def read(document: str) -> str:
    path = ROOT / document
    assert path.is_file(), f"{document} is not written yet"
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Place:
    """Where the examples of one document run."""

    home: Path
    work: Path
    environment: dict[str, str]

    def run(self, command: list[str]) -> tuple[int, str]:
        done = subprocess.run(command, cwd=self.work, env=self.environment, timeout=SECONDS_MAX, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        return done.returncode, done.stdout.decode().replace(str(self.home), "~")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A home with the sample sessions, and a `clew` on the path that is the one under test."""
    home, work, programs = tmp_path / "home", tmp_path / "home" / "work", tmp_path / "bin"
    assert SAMPLE.is_dir(), "src/clew/sample/ is the config directory that the examples run on, and it is not there"
    copy_with_times(SAMPLE, home / ".claude")
    work.mkdir()
    programs.mkdir()
    program = programs / "clew"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clew "$@"\n')
    program.chmod(0o755)
    return Place(home, work, {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(Path(clew.__file__).parent.parent),
        "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "CLEW_NOW": NOW, "TZ": "UTC",
        "LC_ALL": "C.UTF-8", "COLUMNS": "100", "PYTHONWARNINGS": "error",
    })  # fmt: skip


def copy_with_times(source: Path, target: Path) -> None:
    """Copies a config directory and gives each file the time of its last row: git and wheels keep no times."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    for path in target.rglob("*.jsonl"):
        times = re.findall(rb'"timestamp":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"', path.read_bytes())
        if times:
            at = datetime.fromisoformat(max(times).decode()).timestamp()
            os.utime(path, (at, at))


@each_document
def test_every_python_example_runs(document: str, place: Place) -> None:
    program = ["import sys", "names = {'__name__': '__main__'}"]
    for block in blocks(read(document)):
        if block.language == "python" and not block.not_run:
            # Blank lines in front, so that a traceback names the line of the document.
            source = "\n" * (block.line - 1) + block.text
            program.append(f"exec(compile({source!r}, {document!r}, 'exec'), names)")
    (place.work.parent / "examples.py").write_text("\n".join(program), encoding="utf-8")
    code, printed = place.run([sys.executable, str(place.work.parent / "examples.py")])
    assert code == 0, printed


@each_document
def test_every_console_example_prints_what_is_shown(document: str, place: Place) -> None:
    wrong = []
    for block in blocks(read(document)):
        if block.language != "console" or block.not_run:
            continue
        for step in steps(block):
            _, printed = place.run(["sh", "-c", step.command])
            if not agrees(step.shown, printed.splitlines()):
                wrong.append(f"{document}:{step.line}: $ {step.command}\nprints:\n{printed}")
            if "Traceback (most recent call last)" in printed:
                wrong.append(f"{document}:{step.line}: $ {step.command} shows a traceback")
    assert not wrong, "\n\n".join(wrong)


def test_who_has_no_sessions_can_type_along(place: Place, tmp_path: Path) -> None:
    """With the lines of the README alone: a copy of the sample, and nothing of the person's own in it."""
    copying = next(block.text for block in blocks(read("README.md")) if "sample_dir" in block.text)
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    shutil.rmtree(place.home / ".claude")
    script = f"{copying}\nclew show f8d5 | head -1; clew delete 65a3; clew undo"
    code, printed = place.run(["env", f"TMPDIR={tmp_path}", "sh", "-ec", script])
    assert code == 0, printed
    assert printed.startswith("after parallel\nDeleted mybranch")
    assert printed.endswith("Undid delete mybranch: 1 session brought back.\n")
    assert not (place.home / ".claude").exists()


def test_the_readme_has_examples_of_both_kinds() -> None:
    found = [block for block in blocks(read("README.md")) if not block.not_run]
    assert [block for block in found if block.language == "python"]
    assert [step for block in found if block.language == "console" for step in steps(block)]


def test_few_examples_are_not_run() -> None:
    found = [(document, block) for document in DOCUMENTS for block in blocks(read(document))]
    left_out = [f"{document}:{block.line}: {block.not_run}" for document, block in found if block.not_run]
    assert len(left_out) <= NOT_RUN_MAX, left_out


def test_every_decision_is_written_down_under_a_number() -> None:
    names = [path.name for path in (ROOT / "docs" / "design").glob("*.md")]
    assert names
    assert not [name for name in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)]
    assert len({name[:4] for name in names}) == len(names)


def test_every_public_name_is_documented() -> None:
    code = code_in(reference())
    missing = [name for name in clew.__all__ if not names_it(code, name)]
    assert not missing, f"in no code of README.md or docs/*.md: {missing}"


def test_every_public_name_of_the_test_kit_is_documented() -> None:
    code = code_in(read("docs/testing-engines.md"))
    missing = [name for name in clew.testing.__all__ if not re.search(rf"\b{re.escape(name)}\b", code)]
    assert not missing, f"in no code of docs/testing-engines.md: {missing}"


def test_every_command_is_documented() -> None:
    code = code_in(reference())
    commands = visible_commands()
    assert {"ls", "show", "tree"} <= set(commands)
    missing = [name for name in commands if not re.search(rf"\bclew (?:-\S+ )*{re.escape(name)}(?![\w-])", code)]
    assert not missing, f"as `clew NAME` in no code of README.md or docs/*.md: {missing}"


@each_document
def test_every_make_target_that_a_document_names_exists(document: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert {"run", "test", "test-slow", "compat"} <= targets
    named = set(re.findall(r"\bmake ([a-z-]+)", code_in(read(document))))
    assert not named - targets


@each_document
def test_every_link_between_documents_leads_somewhere(document: str) -> None:
    broken = []
    for target in links(read(document)):
        file, _, anchor = target.partition("#")
        path = (ROOT / document).parent / file if file else ROOT / document
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8"))):
            broken.append(target)
    assert not broken


def reference() -> str:
    """What a reader is pointed at: the README and the first level of docs/; decisions are not documentation."""
    return "\n".join([read("README.md"), *(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))])


def visible_commands() -> list[str]:
    commands = import_module("clew.cli.table").COMMANDS
    found = []
    for name, where in commands.items():
        module, _, attribute = where.partition(":")
        if not getattr(getattr(import_module(module), attribute), "hidden", False):
            found.append(name)
    return found


def prose(text: str) -> str:
    """The text without its fenced blocks and code spans."""
    return re.sub(r"(`+).+?\1", "", FENCED.sub("", text))


def code_in(text: str) -> str:
    """The fenced blocks and code spans alone."""
    spans = re.findall(r"(`+)(.+?)\1", FENCED.sub("", text))
    return "\n".join([*(block.text for block in blocks(text)), *(span[1] for span in spans)])


def names_it(code: str, name: str) -> bool:
    """A function has to be named as `clew.open`: its bare name may be any word."""
    needed = rf"\bclew\.{re.escape(name)}\b" if name.islower() else rf"\b{re.escape(name)}\b"
    return re.search(needed, code) is not None


def links(text: str) -> list[str]:
    found = re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", prose(text))
    found += re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose(text), re.MULTILINE)
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The names that a page's headings get: lower case, punctuation gone, blanks to hyphens, repeats numbered."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", FENCED.sub("", text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return set(found)


SAMPLE_PAGE = """\
# A page
`clew ls` is [there](docs/a.md#part) and [here](#a-page), not [a link](https://x.invalid), `[no](link.md)`.

```python
import clew
```

<!-- not run: it takes an hour -->

```console
$ clew ls \\
    --all
one
…
$ make test
passed
$ clew
```
"""


def test_blocks_and_steps_are_found() -> None:
    first, second = blocks(SAMPLE_PAGE)
    assert (first.language, first.text, first.line, first.not_run) == ("python", "import clew", 5, "")
    assert (second.language, second.line, second.not_run) == ("console", 11, "it takes an hour")
    assert steps(second) == [Step("clew ls \\\n    --all", ["one", "…"], 11), Step("clew", [], 17)]


def test_links_names_and_anchors_are_found() -> None:
    assert links(SAMPLE_PAGE) == ["docs/a.md#part", "#a-page"]
    assert anchors("# A page\n## `ls`: what is *there*?\n## A page\n```\n# no\n```\n") == {
        "a-page", "ls-what-is-there", "a-page-1"}  # fmt: skip
    assert names_it("x = clew.open()", "open")
    assert not names_it("open a file", "open")
    assert names_it("catch NotFound", "NotFound")
    assert not names_it("NotFoundAtAll", "NotFound")


@pytest.mark.parametrize(("shown", "real"), [
    ("a\nb", "a  \nb\n"), ("…", ""), ("…", "a\nb"), ("a\n…", "a"), ("a\n…\nd", "a\nb\nc\nd"),
    ("…\nb\n…\nd\n…", "a\nb\nc\nd"),
])  # fmt: skip
def test_output_that_agrees(shown: str, real: str) -> None:
    assert agrees(shown.splitlines(), real.splitlines())


@pytest.mark.parametrize(("shown", "real"), [
    ("a", "a\nb"), ("a\nb", "a"), ("", "a"), ("a", ""), ("a\n…\na", "a"), ("…\nd\n…\nb\n…", "a\nb\nc\nd"),
    ("…\nb", "b\na"), ("  a", "a"),
])  # fmt: skip
def test_output_that_does_not_agree(shown: str, real: str) -> None:
    assert not agrees(shown.splitlines(), real.splitlines())
