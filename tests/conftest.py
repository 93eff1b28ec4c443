"""What every test gets, asked for or not: a home of its own, and no network beyond this machine."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Derandomized, so that a red run is red again. No deadline and no "too slow": how long a busy machine takes is no fact
# about the code. No database: tests write nothing into the checkout.
_QUIET = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, database=None, suppress_health_check=_QUIET)
settings.register_profile("search", max_examples=5000, deadline=None, database=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_FOREIGN = ("ANTHROPIC_", "CLAUDE_", "CLEW_", "XDG_")
_KEPT = ("CLEW_CLIENT", "CLEW_AGENT_SDK", "CLEW_AGENT_SDK_NODE", "CLEW_REQUIRE_COMPAT")


@pytest.fixture(autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of this test's own; whatever the person has set for clew or the client is not there."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(_FOREIGN) and name not in _KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    for name, place in {
        "CACHE": ".cache",
        "CONFIG": ".config",
        "DATA": ".local/share",
        "STATE": ".local/state",
    }.items():
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / place))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setenv("COLUMNS", "100")
    return home


@pytest.fixture
def config_dir(isolated_home: Path) -> Path:
    """The configuration directory of this test: there, empty, and what `CLAUDE_CONFIG_DIR` says."""
    config = isolated_home / ".claude"
    config.mkdir(mode=0o700)
    return config


_CAPABILITIES_V3 = 0x20080522
_READ_AND_WRITE_ALL = (1 << 1) | (1 << 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: what lets root pass by the permissions of files."""


@pytest.fixture
def permissions_count() -> Iterator[None]:
    """Lets the permissions of files hold in this thread, also where root runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may read everything")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    held = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, held) == 0, os.strerror(ctypes.get_errno())
    less = (ctypes.c_uint32 * 6)(*held)
    less[0] &= ~_READ_AND_WRITE_ALL
    assert libc.capset(header, less) == 0, os.strerror(ctypes.get_errno())
    yield
    assert libc.capset(header, held) == 0, os.strerror(ctypes.get_errno())


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test that talks to another machine, or that asks a name server where one is.

    Sockets of child processes are their own: a test that starts one passes it nothing that needs the network.
    """

    def guard(name: str) -> None:
        real = getattr(socket.socket, name)

        def guarded(self: socket.socket, *arguments: Any) -> object:
            # The address comes last in `connect(address)` and in `sendto(bytes, [flags,] address)`.
            if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_loopback(arguments[-1][0]):
                raise AssertionError(f"a test tried to reach {arguments[-1]}: tests use no network")
            return real(self, *arguments)

        monkeypatch.setattr(socket.socket, name, guarded)

    for name in ("connect", "connect_ex", "sendto"):
        guard(name)
    resolve = socket.getaddrinfo

    def guarded_resolve(host: Any, *arguments: Any, **options: Any) -> object:
        if host is not None and not _is_loopback(host):
            raise AssertionError(f"a test asked for the address of {host!r}: tests use no network")
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", guarded_resolve)


def _is_loopback(host: str | bytes) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where `CLEW_REQUIRE_COMPAT=1` says that the client must be there, a skipped compat test is a failed one."""
    report = yield
    is_required = os.environ.get("CLEW_REQUIRE_COMPAT") == "1" and item.get_closest_marker("compat") is not None
    if is_required and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although CLEW_REQUIRE_COMPAT=1: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def client() -> Path:
    """The program of the real client that `make compat` installed."""
    binary = os.environ.get("CLEW_CLIENT")
    if not binary:
        pytest.skip("CLEW_CLIENT names no client: `make compat` installs one and sets it")
    return Path(binary)
