"""Runs an agent of the Agent SDK, with the real client, on a store of ours; offline, as real_client does.

    python live_agent.py < {"sdk": DIR, "binary": PATH, "store": URL, "root": DIR, "number": N,
                            "prompt": …, "options": …, "script": …}

Each number has a config directory of its own, so what a run knows of earlier ones comes out of the store. Prints the
session, the messages that were sent first, the errors of the mirror, and the files that the client itself wrote.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import clew
from messages_api import MessagesApi
from real_client import MODEL, loopback_up

SETTINGS = {
    "ANTHROPIC_API_KEY": "sk-ant-fake", "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
}  # fmt: skip


async def life(job: dict[str, Any], api: MessagesApi) -> dict[str, Any]:
    sys.path.append(job["sdk"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import claude_agent_sdk as sdk  # type: ignore[import-not-found]

    root = Path(job["root"])
    config, cwd = root / f"config{job['number']}", root / "app"
    for place in (config, cwd):
        place.mkdir(exist_ok=True)
    environment = SETTINGS | {"CLAUDE_CONFIG_DIR": str(config), "ANTHROPIC_BASE_URL": f"{api.url}/life"}
    told: dict[str, Any] = {"session": None, "mirror_errors": [], "stderr": []}
    with clew.open(job["store"]) as store:
        options = sdk.ClaudeAgentOptions(
            cli_path=job["binary"], cwd=str(cwd), env=environment, model=MODEL, permission_mode="bypassPermissions",
            session_store=store.claude(), stderr=told["stderr"].append, **job["options"],
        )  # fmt: skip
        async for message in sdk.query(prompt=job["prompt"], options=options):
            if isinstance(message, sdk.MirrorErrorMessage):
                told["mirror_errors"].append(message.error)
            elif isinstance(message, sdk.ResultMessage):
                told["session"] = message.session_id
    main = [body for body in api.requests["life"] if body.get("tools")]
    files = [path.read_text() for path in config.glob("projects/*/*.jsonl")]
    return {**told, "messages": main[0]["messages"] if main else None, "files": files}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    loopback_up()
    server = MessagesApi({"life": given["script"]})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    json.dump(asyncio.run(life(given, server)), sys.stdout)
