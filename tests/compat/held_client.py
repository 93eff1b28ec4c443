"""Runs the real client on a session and holds it between two prompts; offline, as real_client does.

    python held_client.py < {"binary": PATH, "config": DIR, "cwd": DIR, "session": ID, "prompts": [ONE, TWO]}

Prints a line when the first prompt was answered, and says the second one when it gets a line on stdin. At the end it
prints the messages that were sent for the second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from messages_api import MessagesApi
from real_client import MODEL, loopback_up


def say(client: subprocess.Popen[str], prompt: str) -> None:
    """Says one prompt and waits for the end of its turn."""
    assert client.stdin is not None
    assert client.stdout is not None
    message = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    client.stdin.write(json.dumps({"type": "user", "message": message}) + "\n")
    client.stdin.flush()
    for line in client.stdout:
        if json.loads(line).get("type") == "result":
            return
    raise RuntimeError(f"the client ended before it answered {prompt!r}")


def life(job: dict[str, Any], api: MessagesApi) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="clew-home-") as home:
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/sh",
            "HOME": home, "TMPDIR": home, "CLAUDE_CONFIG_DIR": job["config"], "ANTHROPIC_API_KEY": "sk-ant-fake",
            "ANTHROPIC_BASE_URL": f"{api.url}/life", "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }  # fmt: skip
        command = [job["binary"], "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
                   "--model", MODEL, "--resume", job["session"]]  # fmt: skip
        with subprocess.Popen(
            command, cwd=job["cwd"], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as client:
            try:
                say(client, job["prompts"][0])
                print("held", flush=True)
                sys.stdin.readline()
                say(client, job["prompts"][1])
            finally:
                assert client.stdin is not None
                client.stdin.close()
                client.wait(timeout=60)
    messages: list[dict[str, Any]] = [body for body in api.requests["life"] if body.get("tools")][-1]["messages"]
    return messages


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    loopback_up()
    server = MessagesApi({"life": []})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps(life(given, server)), flush=True)
