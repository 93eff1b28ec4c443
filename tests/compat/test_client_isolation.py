"""The client is started where it reaches nothing, knows nothing of the person, and leaves nothing behind."""

from __future__ import annotations

import errno
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from odd_files.rows import SESSION, TALK, encoded
from real_client import Case, resume

pytestmark = pytest.mark.compat

ENVIRONMENT = {
    "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CONFIG_DIR", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY", "HOME", "IS_SANDBOX",
    "LANG", "PATH", "SHELL", "TERM", "TMPDIR",
}  # fmt: skip
CASE = Case(files={f"{SESSION}.jsonl": encoded(*TALK)}, session=SESSION)

TUNNELS = ("tunl", "gre", "erspan", "ip_vti", "ip6", "sit")

STAND_IN = """#!{python} -I
import json, os, socket
refused = []
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    try:
        socket.socket(family).connect((address, 443))
    except OSError as error:
        refused.append(error.errno)
names = [name for _, name in socket.if_nameindex()]
print(json.dumps({{"environment": dict(os.environ), "interfaces": names, "refused": refused}}))
"""

WRAPPER = """#!/bin/sh
"{client}" "$@"
code=$?
find "$HOME" -mindepth 1 >&2
exit $code
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, of this test alone."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def script(place: Path, text: str) -> Path:
    place.write_text(text)
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return place


def seen_from_inside(tmp_path: Path) -> dict[str, Any]:
    """What a stand-in for the client finds where the client would run."""
    (sent,) = resume(script(tmp_path / "stand_in", STAND_IN.format(python=sys.executable)), [CASE], tmp_path / "runs")
    assert sent.exit_code == 0, sent.stderr
    seen: dict[str, Any] = json.loads(sent.stdout)
    return seen


def test_the_namespace_has_loopback_and_nothing_else(tmp_path: Path) -> None:
    seen = seen_from_inside(tmp_path)
    # Some kernels put unused tunnel devices into every new namespace; they have no address and lead nowhere.
    assert [name for name in seen["interfaces"] if not name.startswith(TUNNELS)] == ["lo"]
    assert len(seen["refused"]) == 2
    assert set(seen["refused"]) <= {errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def test_the_environment_is_empty_but_for_named_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of the person")
    monkeypatch.setenv("HTTPS_PROXY", "http://192.0.2.1:8080")
    environment = seen_from_inside(tmp_path)["environment"]
    # Python sets LC_CTYPE for itself when it starts in the C locale.
    assert set(environment) - {"LC_CTYPE"} == ENVIRONMENT
    assert environment["ANTHROPIC_API_KEY"] == "sk-ant-fake"
    assert environment["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert Path(environment["CLAUDE_CONFIG_DIR"]).is_relative_to(tmp_path)


def test_the_home_is_a_throw_away(tmp_path: Path, temporary: Path) -> None:
    environment = seen_from_inside(tmp_path)["environment"]
    assert environment["TMPDIR"] == environment["HOME"]
    assert Path(environment["HOME"]).is_relative_to(temporary)
    assert not Path(environment["HOME"]).exists()


def test_the_client_writes_into_its_config_directory_and_nowhere_else(
    client: Path, tmp_path: Path, temporary: Path, isolated_home: Path
) -> None:
    wrapper = script(tmp_path / "wrapper", WRAPPER.format(client=client))
    (sent,) = resume(wrapper, [CASE], tmp_path / "runs")
    assert sent.exit_code == 0, sent.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != wrapper]
    assert written
    assert all(path.is_relative_to(tmp_path / "runs" / "config0") for path in written)
    assert list((tmp_path / "runs" / "work0").iterdir()) == []
    assert list(temporary.iterdir()) == []
    assert list(isolated_home.iterdir()) == []
    # It does write temporary files; they went to the throw-away home.
    assert "claude-" in sent.stderr
