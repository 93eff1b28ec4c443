"""Installs the Claude Agent SDKs, pinned, for the tests that ask them: Python's by pip, TypeScript's by npm.

Both go to directories of their own below the cache that scripts/client.py names. The clients that they bring along are
left out: the tests run the client that is installed already.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements-compat.txt"
NODE_PACKAGE = "@anthropic-ai/claude-agent-sdk"
NODE_VERSION = "0.3.327"
INSTALL_SECONDS_MAX = 900


def python_sdk(cache: Path) -> Path:
    """The directory to put on `sys.path`. Raises `RuntimeError` when it cannot be installed."""
    pins = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    # Some of what it needs is compiled for one version of Python.
    name = f"agent-sdk-python{sys.version_info.major}.{sys.version_info.minor}-{pins}"
    return _installed(cache / name, _install_python)


def node_sdk(cache: Path) -> Path:
    """The directory that holds `sdk.mjs`. Raises `RuntimeError` when it cannot be installed."""
    return _installed(cache / f"agent-sdk-node-{NODE_VERSION}", _install_node) / "node_modules" / NODE_PACKAGE


def _installed(place: Path, install: Callable[[Path], None]) -> Path:
    """Installs beside the place and moves it there whole, so a run that was broken off leaves no half of it."""
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        print(f"make compat: installing {place.name} into {place.parent}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="installing-") as work:
            fresh = Path(work) / place.name
            fresh.mkdir()
            install(fresh)
            if not place.is_dir():
                fresh.rename(place)
    return place


def _install_python(fresh: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir"]
    _run([*pip, "--target", str(fresh), "--requirement", str(REQUIREMENTS)], fresh)
    shutil.rmtree(fresh / "claude_agent_sdk" / "_bundled", ignore_errors=True)


def _install_node(fresh: Path) -> None:
    (fresh / "package.json").write_text('{"private": true}\n')
    npm = ["npm", "install", "--omit=optional", "--no-audit", "--no-fund", "--no-package-lock"]
    _run([*npm, f"{NODE_PACKAGE}@{NODE_VERSION}"], fresh)


def _run(command: list[str], cwd: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"`{' '.join(command)}`: {error}") from error
    if done.returncode:
        told = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"`{' '.join(command)}` ended with {done.returncode}:\n{told}")
