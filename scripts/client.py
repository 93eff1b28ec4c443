"""Installs the real client, pinned, and runs the tests that start it.

    python scripts/client.py install     prints the path of the client's binary, after installing it if need be
    python scripts/client.py test        installs it and the Agent SDKs, and runs `pytest -m compat tests/compat` with
                                         CLEW_CLIENT, CLEW_AGENT_SDK and CLEW_AGENT_SDK_NODE set

The client goes to $CLEW_COMPAT_CACHE (default: clew-compat in the user's cache directory), below its version, by an npm
that is configured as the person has it. It is started with an empty environment and a throw-away home, never on
anyone's own sessions. Where something is missing, `test` says what and ends with 0, or with 1 if CLEW_REQUIRE_COMPAT=1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import agent_sdk

PACKAGE = "@anthropic-ai/claude-code"
VERSION = "2.1.327"
INSTALL_SECONDS_MAX = 900
START_SECONDS_MAX = 60
TESTS = "tests/compat"

SDKS: dict[str, Callable[[Path], Path]] = {
    "CLEW_AGENT_SDK": agent_sdk.python_sdk,
    "CLEW_AGENT_SDK_NODE": agent_sdk.node_sdk,
}
"""Where the tests find the Agent SDKs, and what installs them."""

NO_TESTS_COLLECTED = 5  # pytest's exit code


def main(arguments: list[str]) -> int:
    if arguments not in (["install"], ["test"]):
        print(__doc__, file=sys.stderr)
        return 2
    cache = cache_directory()
    missing = missing_for_install(cache) + (missing_for_tests() if arguments == ["test"] else [])
    if missing:
        return report(missing)
    try:
        binary = installed(cache) or install(cache)
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"make compat: the client could not be installed: {error}", file=sys.stderr)
        return 1
    if arguments == ["install"]:
        print(binary)
        return 0
    try:
        sdks = installed_sdks(cache)
    except RuntimeError as error:
        print(f"make compat: an Agent SDK could not be installed: {error}", file=sys.stderr)
        return 1
    return run_tests({"CLEW_CLIENT": str(binary), **sdks})


def installed_sdks(cache: Path) -> dict[str, str]:
    """Where the Agent SDKs are. One that cannot be installed is told and left out, or an error where it is required."""
    found: dict[str, str] = {}
    for name, place in SDKS.items():
        try:
            found[name] = str(place(cache))
        except RuntimeError as error:
            if is_required():
                raise
            print(f"make compat: the tests that need {name} are left out: {error}", file=sys.stderr)
    return found


def is_required() -> bool:
    return os.environ.get("CLEW_REQUIRE_COMPAT") == "1"


def cache_directory() -> Path:
    if place := os.environ.get("CLEW_COMPAT_CACHE"):
        return Path(place).absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "clew-compat"


def missing_for_install(cache: Path) -> list[str]:
    """What it takes to install the client and is not there; nothing, when the client is."""
    if installed(cache):
        return []
    return [f"{name}, which installs the client" for name in ("npm", "node") if not shutil.which(name)]


def missing_for_tests() -> list[str]:
    if not sys.platform.startswith("linux"):
        return ["Linux: only it has the network namespaces that keep the client offline"]
    if not shutil.which("unshare"):
        return ["unshare (util-linux), which keeps the client offline"]
    command = [*(["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]), "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"network namespaces: `{' '.join(command)}` says {done.stderr.strip()!r}"]
    return []


def report(missing: list[str]) -> int:
    end = "and CLEW_REQUIRE_COMPAT=1 says that they must run" if is_required() else "so these tests are left out"
    for thing in missing:
        print(f"make compat: not on this machine: {thing}", file=sys.stderr)
    print(f"make compat: the real client was not asked, {end}", file=sys.stderr)
    return 1 if is_required() else 0


def installed(cache: Path) -> Path | None:
    """The binary of the pinned version, if it is there and starts."""
    return working_binary(cache / VERSION)


def working_binary(prefix: Path) -> Path | None:
    """Of the platform packages that npm chose, the one whose binary starts here and is of the pinned version."""
    owner, _, name = PACKAGE.partition("/")
    for binary in sorted((prefix / "node_modules" / owner).glob(f"{name}-*/claude")):
        with tempfile.TemporaryDirectory(prefix="clew-home-") as home:
            environment = {"HOME": home, "PATH": os.defpath}
            try:
                done = subprocess.run([str(binary), "--version"], cwd=home, env=environment, capture_output=True,
                                      text=True, timeout=START_SECONDS_MAX, check=False)  # fmt: skip
            except (OSError, subprocess.TimeoutExpired):
                continue
        if done.returncode == 0 and done.stdout.split()[:1] == [VERSION]:
            return binary
    return None


def install(cache: Path) -> Path:
    """Installs beside its place and moves it there whole, so that a broken or a second run leaves no half client."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="installing-") as work:
        fresh = Path(work) / VERSION
        fresh.mkdir()
        (fresh / "package.json").write_text('{"private": true}\n')
        print(f"make compat: installing {PACKAGE} {VERSION} into {cache}", file=sys.stderr)
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", f"{PACKAGE}@{VERSION}"]
        done = subprocess.run(
            command, cwd=fresh, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False
        )
        if done.returncode:
            raise RuntimeError(
                f"`{' '.join(command)}` ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}"
            )
        if working_binary(fresh) is None:
            raise RuntimeError(f"npm brought no binary of {VERSION} that starts on this machine")
        place = cache / VERSION
        if installed(cache) is None:
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
    binary = installed(cache)
    if binary is None:
        raise RuntimeError(f"the client in {place} does not start")
    return binary


def run_tests(places: dict[str, str]) -> int:
    command = [sys.executable, "-m", "pytest", "-m", "compat", TESTS]
    code = subprocess.run(command, env={**os.environ, **places}, check=False).returncode
    if code == NO_TESTS_COLLECTED:
        print(
            f"make compat: no test in {TESTS} is marked `compat`. A suite that runs nothing shows nothing.",
            file=sys.stderr,
        )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
