"""Runs the real client on session files, offline, and reports what it sends.

The client and a mock of the Messages API share one fresh network namespace that has loopback only; the environment is
empty but for what is named here, the home directory is a throw-away, the key is fake. Only Linux has such namespaces.

    sent = resume(binary, [Case(files={"<uuid>.jsonl": b"…"}, session="<uuid>")])

Every case gets a configuration directory of its own; cases run two at a time.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

PROBE = "CLEW-PROBE"
MODEL = "claude-sonnet-4-5-20250929"
CLIENT_SECONDS_MAX = 60
RUNS_AT_ONCE = 2


@dataclasses.dataclass(frozen=True)
class Case:
    """One run: the files of one project folder, and the session to resume (`None`: `--continue`)."""

    files: dict[str, bytes]
    session: str | None
    arguments: tuple[str, ...] = ()
    script: tuple[dict[str, Any], ...] = ()
    prompt: str = PROBE
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    config: Path | None = None
    """Taken as it is, in place; `files` are then written into it."""
    cwd: Path | None = None


@dataclasses.dataclass(frozen=True)
class Sent:
    """What came of it. `messages` is the first request with tools, `None` when nothing was sent."""

    exit_code: int
    stderr: str
    stdout: str
    messages: list[dict[str, Any]] | None
    appended: dict[str, bytes]


def resume(binary: Path, cases: list[Case], root: Path) -> list[Sent]:
    """Runs every case below `root` and answers in the order of the cases."""
    runs: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        cwd = case.cwd or root / f"work{number}"
        config = case.config or root / f"config{number}"
        folder = config / "projects" / project_folder(cwd)
        cwd.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in case.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        what = ["--resume", case.session] if case.session else ["--continue"]
        runs.append({
            "run": f"run{number}", "config": str(config), "cwd": str(cwd), "script": list(case.script),
            "environment": case.environment,
            "arguments": ["-p", case.prompt, "--output-format", "stream-json", "--verbose", "--model", MODEL,
                          *what, *case.arguments],
        })  # fmt: skip
    before = [_files(Path(run["config"])) for run in runs]
    answers = _in_namespace({"binary": str(binary), "runs": runs})
    sent = []
    for run, old, answer in zip(runs, before, answers, strict=True):
        new = _files(Path(run["config"]))
        grown = {name: data[len(old.get(name, b"")) :] for name, data in new.items() if data != old.get(name)}
        sent.append(Sent(appended=grown, **answer))
    return sent


def project_folder(cwd: Path) -> str:
    """The client's own name for a project's folder; these test directories are short and plain."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in os.path.realpath(cwd))


def conversation(messages: list[dict[str, Any]] | None, prompt: str = PROBE) -> list[dict[str, Any]] | None:
    """The messages without what the client adds of its own: reminders, cache marks, and the prompt of this run."""
    if messages is None:
        return None
    kept = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]
        blocks = [block for block in blocks if not _is_reminder(block)]
        if blocks:
            kept.append({"role": message["role"], "content": blocks})
    if kept and kept[-1]["role"] == "user" and kept[-1]["content"][-1].get("text") == prompt:
        kept[-1]["content"].pop()
        if not kept[-1]["content"]:
            kept.pop()
    return kept


def _is_reminder(block: dict[str, Any]) -> bool:
    text = block.get("text")
    return (
        block.get("type") == "text"
        and isinstance(text, str)
        and text.lstrip().startswith(("<system-reminder>", "<local-command-caveat>"))
    )


def _files(config: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(config)): path.read_bytes()
        for top in ("projects", "file-history")
        for path in sorted((config / top).rglob("*"))
        if path.is_file()
    }


def namespaces_work() -> bool:
    """Whether this machine lets us make a network namespace of our own."""
    unshare = shutil.which("unshare")
    return bool(unshare) and subprocess.run([*in_namespace(), "true"], capture_output=True, check=False).returncode == 0


def in_namespace() -> list[str]:
    """What a command begins with that runs in a network namespace of its own."""
    return ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]


def _in_namespace(job: dict[str, Any]) -> list[dict[str, Any]]:
    command = [*in_namespace(), sys.executable, "-I", os.path.abspath(__file__)]
    done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the isolated run failed: {done.stderr.decode(errors='replace')[-2000:]}")
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


# ---- what follows runs inside the namespace ----


def loopback_up() -> None:
    """Sets IFF_UP on "lo": a new namespace has it, but down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        siocgifflags, siocsifflags, iff_up = 0x8913, 0x8914, 0x1
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, siocgifflags, request))[1]
        fcntl.ioctl(control, siocsifflags, struct.pack("16sH14x", b"lo", flags | iff_up))


def _inside() -> None:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from messages_api import MessagesApi

    job = json.load(sys.stdin)
    loopback_up()
    api = MessagesApi({run["run"]: run["script"] for run in job["runs"]})
    threading.Thread(target=api.serve_forever, daemon=True).start()
    with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
        answers = list(pool.map(lambda run: _one(job["binary"], run, api), job["runs"]))
    if api.elsewhere:
        print("requests elsewhere:", api.elsewhere[:5], file=sys.stderr)
    json.dump(answers, sys.stdout)


def _one(binary: str, run: dict[str, Any], api: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="clew-home-") as home:
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/sh",
            "HOME": home, "TMPDIR": home,
            "CLAUDE_CONFIG_DIR": run["config"], "ANTHROPIC_API_KEY": "sk-ant-fake",
            "ANTHROPIC_BASE_URL": f"{api.url}/{run['run']}", "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1", **run["environment"],
        }  # fmt: skip
        try:
            done = subprocess.run([binary, *run["arguments"]], cwd=run["cwd"], env=environment, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=CLIENT_SECONDS_MAX, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"exit_code": -1, "stderr": "timed out", "stdout": "", "messages": None}
    main = [body for body in api.requests[run["run"]] if body.get("tools")]
    return {
        "exit_code": done.returncode,
        "stderr": done.stderr.decode(errors="replace"),
        "stdout": done.stdout.decode(errors="replace"),
        "messages": main[0]["messages"] if main else None,
    }


if __name__ == "__main__":
    _inside()
