"""Helpers for tests of programs that read or write sessions; clew's own tests use them.

    clew.testing.conformance   the suite that every engine and wrapper passes, to be inherited (needs `clew[testing]`)
    clew.testing.corpus        rows of a session as the client writes them, and a config directory made of them
    clew.testing.faults        disks that fail on purpose, and processes that end in the middle
    clew.testing.forks         child processes, each of which does one call
    clew.testing.model         an engine and a plain dict do the same, and are compared (needs `clew[testing]`)
    clew.testing.strategies    hypothesis strategies for records, sessions and broken lines (needs `clew[testing]`)

Everything public in them can be imported from here. Nothing is loaded before it is used, so `clew.testing.corpus` needs
no hypothesis.
"""

from __future__ import annotations

import sys
from importlib import import_module

_MODULES: dict[str, tuple[str, ...]] = {
    "clew.testing.conformance": (
        "AppendConformance", "AsideConformance", "BlobConformance", "DeleteConformance", "EngineConformance",
        "EngineUnderTest", "ExtendConformance", "ListConformance", "ProcessConformance", "ReadConformance",
        "ReplaceConformance", "SharingConformance",
    ),
    "clew.testing.corpus": (
        "SessionDraft", "assistant", "attachment", "boundary", "head", "lines_of", "queued_prompt", "text",
        "thinking", "to_bytes", "tool_result", "tool_use", "user", "write_session", "write_subagent",
    ),
    "clew.testing.faults": (
        "Crash", "Fault", "FaultyFileSystem", "Step", "drawn", "killed_at", "replayable", "steps_of",
    ),
    "clew.testing.forks": ("forked", "in_processes"),
    "clew.testing.model": ("EngineMachine", "Model", "ModelLog", "entries_strategy", "model_of"),
    "clew.testing.strategies": (
        "blocks", "branched_sessions", "broken_lines", "byte_soup", "compacted_sessions", "damaged_sessions",
        "json_lines", "json_objects", "json_values", "parallel_sessions", "records", "sessions", "straight_sessions",
        "words",
    ),
}  # fmt: skip
_SUITES = ("appends", "base", "blobs", "bytes", "reads", "sharing")
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> object:
    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES])


if "pytest" in sys.modules:
    # Only so does an assertion that fails show what it compared. It has to be said before the modules are imported.
    sys.modules["pytest"].register_assert_rewrite(
        "clew.testing.processes", *(f"clew.testing.conformance_{name}" for name in _SUITES)
    )
