"""A small mock of the Messages API, enough for the real client to finish a turn.

It answers every `POST …/v1/messages` from a script and keeps what it was sent. The path before `/v1` names the run, so
that one server can serve many clients at once. Standard library only: it runs inside a network namespace with
`python -I`.

A script is a list of turns, `{"text": …}` or `{"tools": [{"name": …, "input": …}]}` with an optional `"thinking"`;
after the last one the answer is "ok".
"""

from __future__ import annotations

import http.server
import json
import threading
from collections import defaultdict
from typing import Any

SERVER_STOPS_S = 5


class MessagesApi(http.server.ThreadingHTTPServer):
    """Serves on a free port of loopback; `requests[run]` holds the bodies of that run in order."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, scripts: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scripts = {run: list(turns) for run, turns in scripts.items()}
        self.requests: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.elsewhere: list[str] = []
        self.lock = threading.Lock()
        self.count = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, run: str, body: dict[str, Any]) -> dict[str, Any]:
        """Returns the message for this request. Requests without tools are the client's side questions: always "ok"."""
        with self.lock:
            self.requests[run].append(body)
            self.count += 1
            script = self.scripts.get(run)
            turn = script.pop(0) if script and body.get("tools") else {"text": "ok"}
            # The client joins rows that share a message id over the whole file, so ids never repeat.
            mark = f"{abs(hash(run)) % 16**8:08x}{self.count:016d}"
        content: list[dict[str, Any]] = []
        if turn.get("thinking"):
            content.append({"type": "thinking", "thinking": turn["thinking"], "signature": "c2lnbmF0dXJl"})
        if turn.get("text"):
            content.append({"type": "text", "text": turn["text"]})
        for number, tool in enumerate(turn.get("tools", [])):
            content.append({"type": "tool_use", "id": f"toolu_{mark}{number}", **tool})
        return {
            "id": f"msg_{mark}", "type": "message", "role": "assistant", "model": body.get("model"), "content": content,
            "stop_reason": "tool_use" if turn.get("tools") else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5,
                      "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        }  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MessagesApi

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        run, _, what = self.path.split("?")[0].lstrip("/").partition("/")
        if what == "v1/messages/count_tokens":
            self._send(json.dumps({"input_tokens": 100}).encode(), "application/json")
        elif what == "v1/messages":
            message = self.server.answer(run, body)
            if body.get("stream"):
                self._send("".join(_events(message)).encode(), "text/event-stream")
            else:
                self._send(json.dumps(message).encode(), "application/json")
        else:
            self._refuse()

    def _refuse(self) -> None:
        self.server.elsewhere.append(f"{self.command} {self.path}")
        self._send(b'{"type":"error","error":{"type":"not_found_error","message":"mock"}}', "application/json", 404)

    do_GET = do_HEAD = _refuse

    def _send(self, payload: bytes, content_type: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)


def _events(message: dict[str, Any]) -> list[str]:
    """The server-sent events of one streamed message."""

    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    events = [event("message_start", message={**message, "content": [], "stop_reason": None})]
    for index, block in enumerate(message["content"]):
        kind = block["type"]
        if kind == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": block["text"]}]
        elif kind == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]},
                      {"type": "signature_delta", "signature": block["signature"]}]  # fmt: skip
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append(event("content_block_start", index=index, content_block=empty))
        events.extend(event("content_block_delta", index=index, delta=delta) for delta in deltas)
        events.append(event("content_block_stop", index=index))
    events.append(event("message_delta", delta={"stop_reason": message["stop_reason"], "stop_sequence": None},
                        usage=message["usage"]))  # fmt: skip
    events.append(event("message_stop"))
    return events
