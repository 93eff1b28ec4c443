"""Sessions as large as real ones, invented: rows in the shape, sizes and mix in which client 2.1.327 writes them.

The same sizes give the same bytes. A turn is a prompt, on average five answers with their thoughts, texts, calls and
results, what the client notes beside them, and its metadata: some 26 rows of 1,360 bytes each. One answer in four has
several calls at once. One turn in twenty goes back to an older one, which leaves a fifth of them beside the chain.
"""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path

from clew.records.views import JsonObject, JsonValue
from clew.testing.corpus import CWD, SessionDraft, text, thinking, to_bytes, tool_use, write_session, write_subagent

SEED = 7
ROW_BYTES = 1_360
TURNS_BACK_MAX = 8
"""A rewind goes back by so many turns at most."""
TURNS_TO_COMPACTION = 150
LARGEST_SHARE = 0.3
"""Of the bytes of many sessions, in the largest one."""
ROWS_MEDIAN = 250
"""Of the other sessions."""
SESSIONS_A_PROJECT = 20

_SYLLABLES = (
    "ab", "con", "de", "er", "fi", "gra", "hel", "in", "jo", "ker", "lo", "mer", "no", "op", "par", "qua", "re", "st",
    "tor", "un", "ver", "wi", "ex", "yo", "zed", "cache", "node",
)  # fmt: skip
_FOREIGN = (
    "設定を読み込みました。 ",
    "Größe überschritten — bitte prüfen. ",
    "Проверка завершена. ",
    "🚀 Deployed 🎉. ",
)
_CODE = (
    'def {0}_{1}(self, {2}: str) -> dict[str, int]:\n    return {{"{0}": {3}, "{2}": self.{1}["{0}"]}}\n',
    '    if {0} is None or len({1}) > {3}:\n\t\traise ValueError(f"{0}: unexpected {{{1}}}")\n',
    "src/{0}/{1}.py:{3}:    {2} = re.compile(r'\\b{0}\\s+(\\d+)\\\\{1}')\n",
    "\x1b[32m✓\x1b[39m {0} {1} ({3} ms)\n",
)


def write_one(config: Path, *, rows: int) -> None:
    """One session of about so many rows, without compactions, so that its chain is long."""
    texts = _Texts(random.Random(SEED))
    write_session(config, _session(_id(0), CWD, rows, texts, random.Random(SEED), compacts=False), session=_id(0))


def write_many(config: Path, *, size: int) -> None:
    """Sessions of about `size` bytes together, in projects of 20, each with a subagent; the first is the largest."""
    texts, rng = _Texts(random.Random(SEED)), random.Random(SEED)
    rows = round(size * LARGEST_SHARE / ROW_BYTES)
    left, number = size, 0
    while left > 0:
        session, cwd = _id(number), f"{CWD}-{number // SESSIONS_A_PROJECT}"
        log = _session(session, cwd, rows, texts, rng, compacts=True)
        agent = _session(session, cwd, max(rows // 10, 10), texts, rng, compacts=False)
        write_session(config, log, session=session, cwd=cwd)
        write_subagent(config, agent, agent=f"a{number:016x}", session=session, cwd=cwd)
        left -= len(log) + len(agent)
        number += 1
        rows = min(round(rng.lognormvariate(0, 1) * ROWS_MEDIAN), round(max(left, 0) / ROW_BYTES)) + 10


def _id(number: int) -> str:
    return f"{number * 2_654_435_761 % 2**32:08x}-0000-4000-8000-{number:012x}"


def _session(session: str, cwd: str, rows: int, texts: _Texts, rng: random.Random, *, compacts: bool) -> bytes:
    """The bytes of a log. Rows are let go turn by turn, since as objects they take three times as much memory."""
    draft = SessionDraft(session, cwd=cwd)
    writer = _Writer(draft, rng, texts)
    pieces: list[bytes] = []
    turn = 0
    while rows > 0:
        turn += 1
        if compacts and turn % TURNS_TO_COMPACTION == 0:
            draft.compaction(texts.prose(3_000))
            writer.forget()
        writer.turn()
        rows -= len(draft.rows)
        pieces.append(to_bytes(draft.rows))
        draft.rows.clear()
    return b"".join(pieces)


class _Texts:
    """Prose and code of any length, cut out of two long texts."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(5_000)]
        sentences = [" ".join(rng.choices(words, k=rng.randint(6, 16))).capitalize() + ". " for _ in range(4_000)]
        sentences[::100] = [rng.choice(_FOREIGN) for _ in sentences[::100]]
        lines = (rng.choice(_CODE).format(*rng.choices(words, k=3), rng.randrange(10_000)) for _ in range(4_000))
        self._prose, self._code = "".join(sentences), "".join(lines)

    def prose(self, mean: int) -> str:
        return self._cut(self._prose, mean)

    def code(self, mean: int) -> str:
        return self._cut(self._code, mean)

    def _cut(self, whole: str, mean: int) -> str:
        # Most are short and a few are long, as it is with the results of tools.
        size = min(round(self._rng.expovariate(1 / mean)) + 10, 20 * mean)
        start = self._rng.randrange(len(whole) - size)
        return whole[start : start + size]


class _Writer:
    """Adds turns to a draft as the client would write them."""

    def __init__(self, draft: SessionDraft, rng: random.Random, texts: _Texts) -> None:
        self._draft, self._rng, self._texts = draft, rng, texts
        self._ends: list[str] = []
        """The last rows of the newest turns of this branch."""

    def forget(self) -> None:
        """Says that no turn goes back to before this one."""
        self._ends.clear()

    def turn(self) -> None:
        """One prompt and everything up to the next one, with the metadata that the client writes after it."""
        draft, rng, texts = self._draft, self._rng, self._texts
        if len(self._ends) > 1 and rng.random() < 1 / 20:
            del self._ends[rng.randrange(1, len(self._ends)) :]
            draft.at = self._ends[-1]
        if rng.random() < 1 / 250:
            source: JsonObject = {"type": "base64", "media_type": "image/png"}
            image: JsonObject = {
                "type": "image",
                "source": {**source, "data": b64encode(rng.randbytes(45_000)).decode()},
            }
            draft.user([text(texts.prose(200)), image])
        else:
            draft.user(texts.prose(200), promptId=_id(rng.randrange(2**32)), permissionMode="default")
        for _ in range(1 + round(rng.expovariate(1 / 4))):
            self._answer_with_calls()
        self._answer(text(texts.prose(800)), draft.next_message_id())
        # A row of the system is a row beside the conversation like any other, but for what it is called.
        draft.attachment({}, type="system", subtype="turn_duration", durationMs=rng.randrange(90_000), isMeta=False)
        del draft.rows[-1]["attachment"]
        self._ends = [*self._ends[-TURNS_BACK_MAX:], str(draft.at)]
        self._metadata()

    def _answer_with_calls(self) -> None:
        draft, rng, texts = self._draft, self._rng, self._texts
        message_id = draft.next_message_id()
        if rng.random() < 0.35:
            self._answer(thinking(texts.prose(600)), message_id)
        if rng.random() < 0.35:
            self._answer(text(texts.prose(200)), message_id)
        calls = [f"toolu_{rng.getrandbits(96):024x}" for _ in range(rng.choice((1, 1, 1, 1, 1, 1, 2, 2, 3)))]
        for call in calls:
            name = rng.choice(("Read", "Bash", "Edit"))
            arguments: JsonObject = {"file_path": f"{draft.cwd}/src/{texts.prose(1)[:10]}.py"}
            if name != "Read":
                arguments = {"command": texts.code(200), "description": texts.prose(30)}
            self._answer(tool_use(name, arguments, call), message_id)
        for call in calls:
            content = texts.code(550)
            told: JsonObject = {"stdout": content, "stderr": "", "interrupted": False, "isImage": False}
            draft.tool_result(call, content, toolUseResult=told, promptId=_id(rng.randrange(2**32)))
        if rng.random() < 0.45:
            draft.attachment({"type": "total_tokens_reminder", "used": rng.randrange(200_000), "total": 200_000})

    def _answer(self, block: JsonObject, message_id: str) -> None:
        """One row of an answer with the note of what it took, which the client repeats on every row."""
        rng = self._rng
        fields: dict[str, JsonValue] = {
            "apiBlockIndex": 0, "requestId": f"req_{message_id[4:]}", "requestRef": _id(0), "perTurnEffort": None,
            "requestedModel": "claude-sonnet-4-5-20250929", "promptCacheRequested": "5m", "madeBy": "model",
        }  # fmt: skip
        self._draft.assistant(block, message_id=message_id, **fields)
        message = self._draft.rows[-1]["message"]
        assert isinstance(message, dict)
        message["usage"] = {
            "input_tokens": rng.randrange(40), "cache_creation_input_tokens": rng.randrange(9_000),
            "cache_read_input_tokens": rng.randrange(150_000), "output_tokens": rng.randrange(900),
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": rng.randrange(9_000)},
            "output_tokens_details": {"thinking_tokens": 0}, "inference_geo": "", "iterations": [], "speed": "standard",
        }  # fmt: skip

    def _metadata(self) -> None:
        draft, rng = self._draft, self._rng
        name, at = f"src/{self._texts.prose(1)[:10]}.py", str(draft.rows[-1]["timestamp"])
        backups: JsonObject = {
            f"{name}{number}": {"backupFileName": f"{rng.getrandbits(64):016x}@v1", "version": 1, "backupTime": at}
            for number in range(rng.randrange(24))
        }
        snapshot: JsonObject = {"messageId": draft.at, "trackedFileBackups": backups, "timestamp": at}
        draft.note("file-history-snapshot", messageId=draft.at, snapshot=snapshot, isSnapshotUpdate=False)
        draft.head()
        draft.note("mode", mode="normal")
        if rng.random() < 0.6:
            usage: JsonObject = {"claude-sonnet-4-5": {"inputTokens": 69, "outputTokens": 1_927, "costUSD": 0.03}}
            draft.note("cost-state", totalCostUSD=0.03, totalDuration=rng.randrange(90_000), modelUsage=usage)
        if rng.random() < 0.3:
            title = self._texts.prose(10)[:40]
            draft.note("custom-title", customTitle=title)
            draft.note("agent-name", agentName=title)
