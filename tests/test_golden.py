"""What `clew show --json` says of sessions that the real client wrote is what the client sends when it resumes them.

`tests/data/corpus/golden.json` holds, for each of these files, the messages that the client (2.1.327) sent.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from clew import cli
from clew.records.views import JsonObject, JsonValue

CORPUS = Path(__file__).parent / "data" / "corpus"
REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)


class Sent(msgspec.Struct):
    """A message as the client sent it."""

    role: str
    content: list[JsonObject]


class Golden(msgspec.Struct):
    """One session file, and what the client sends of it; None when it finds no conversation."""

    config: str
    file: str
    session: str
    cwd: str
    conversation: list[Sent] | None


class Shown(msgspec.Struct):
    """The document that `clew show --json` prints."""

    session: str
    head: str | None
    state: str
    messages: list[Sent]
    malformed: list[JsonObject]


GOLDEN = msgspec.json.decode((CORPUS / "golden.json").read_bytes(), type=list[Golden])


def essence(value: JsonValue) -> JsonValue:
    """What counts of a block: reminders, blank ends of texts and texts that are then empty do not."""
    if isinstance(value, str):
        return REMINDER.sub("", value).strip()
    if isinstance(value, list):
        kept = [essence(item) for item in value]
        return [
            item for item in kept if not (isinstance(item, dict) and item.get("type") == "text" and not item["text"])
        ]
    if isinstance(value, dict):
        left_out = {"cache_control", "citations"}
        return {key: essence(item) if key in {"text", "content"} else item
                for key, item in value.items() if key not in left_out}  # fmt: skip
    return value


def essences(messages: list[Sent]) -> list[tuple[str, JsonValue]]:
    return [(message.role, essence(list(message.content))) for message in messages]


def test_the_corpus_is_there() -> None:
    assert len(GOLDEN) == 48


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden.config}-{golden.session[:8]}")
def test_show_says_what_the_client_sends(golden: Golden, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    code = cli.main(["show", "--json", golden.session, "--config-dir", str(CORPUS / golden.config)])
    shown = msgspec.json.decode(capfdbinary.readouterr().out, type=Shown)
    assert (code, shown.session, shown.malformed) == (0, golden.session, [])
    sent = essences(golden.conversation or [])
    # The client makes up a result for a call that was killed and an answer to it; these are no part of the session.
    made_up = 2 if shown.state == "interrupted" else 0
    assert essences(shown.messages) == sent[: len(sent) - made_up]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden.config}-{golden.session[:8]}")
def test_tree_and_show_agree_on_the_head(golden: Golden, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    where = ["--config-dir", str(CORPUS / golden.config)]
    assert cli.main(["show", "--json", golden.session, *where]) == 0
    shown = msgspec.json.decode(capfdbinary.readouterr().out, type=Shown)
    assert cli.main(["tree", "--json", golden.session, *where]) == 0
    tree = json.loads(capfdbinary.readouterr().out)
    assert tree["head"] == shown.head
    assert [leaf["uuid"] for leaf in tree["leaves"] if leaf["is_head"]] in ([shown.head], [])


def test_exactly_one_session_of_the_corpus_was_killed(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    killed = []
    for golden in GOLDEN:
        cli.main(["show", "--json", golden.session, "--config-dir", str(CORPUS / golden.config)])
        if msgspec.json.decode(capfdbinary.readouterr().out, type=Shown).state == "interrupted":
            killed.append(golden.config)
    assert killed == ["15_interrupted/config.killed"]
