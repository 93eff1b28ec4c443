"""`clew show`: the conversation as the client would send it, for programs and for people."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import clew
from clew_calls import Run
from session_files import Row, append, assistant, in_bytes, session_id, two_turns, user, write

ID = session_id(1)


def calls(*uses: tuple[str, str, dict[str, object]]) -> list[dict[str, object]]:
    return [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given in uses]


def result(id_: str, content: object, *, is_error: bool = False) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, "is_error": is_error}


def test_json_is_the_document_of_the_contract(run: Run, config_dir: Path) -> None:
    append(write(config_dir, 1, *two_turns()), raw=b"garbage\n")
    done = run("show", "--json", ID)
    assert (done.code, done.err) == (0, "")
    shown = done.json
    assert list(shown) == ["session", "head", "state", "messages", "malformed"]
    assert (shown["session"], shown["head"], shown["state"]) == (ID, "a4", "complete")
    assert shown["messages"][1] == {
        "role": "assistant", "content": [{"type": "text", "text": "first answer"}], "uuids": ["a2"],
        "timestamp": "2026-11-18T10:00:02.000Z"}  # fmt: skip
    (malformed,) = shown["malformed"]
    assert malformed["line"] == 5
    assert malformed["offset"] == len(in_bytes(*two_turns()))
    assert malformed["reason"]


def test_a_session_is_named_by_id_prefix_path_or_latest(run: Run, config_dir: Path) -> None:
    write(config_dir, 0xAAAA0001, *two_turns("old"), at=1)
    path = write(config_dir, 0xBBBB0001, *two_turns("new"), at=2)
    for name in (session_id(0xBBBB0001), "bbbb", "BBBB0001", path, "latest", "recent", "last"):
        assert run("show", "--json", "--all", name).json["head"] == "newa4"
    assert run("show", "--json", "aaaa").json["head"] == "olda4"


def test_a_conversation_can_be_shown_up_to_a_point(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), user("u5", "other way", "a2", 5))
    assert len(run("show", "--json", ID).json["messages"]) == 3
    assert len(run("show", "--json", ID, "--at", "turn:1").json["messages"]) == 2
    other = run("show", "--json", ID, "--at", "a4").json
    assert [message["uuids"] for message in other["messages"]] == [["u1"], ["a2"], ["u3"], ["a4"]]
    assert (other["head"], other["state"]) == ("u5", "complete")
    assert run("show", ID, "--at", "nowhere").code == 4


def test_reminders_are_shown_only_when_asked_for(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, user("u1", "question <system-reminder>be good</system-reminder>"), assistant("a2", "ok", "u1"))
    assert "be good" not in run("show", "--json", ID).out
    assert "be good" not in run("show", ID).out.partition("❯")[2]
    assert "be good" in run("show", "--json", ID, "--reminders").out
    assert "be good" in run("show", ID, "--reminders").out


def test_people_see_prompts_answers_and_calls_folded_to_a_line(run: Run, config_dir: Path) -> None:
    picture = base64.b64encode(b"x" * 300).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    write(
        config_dir, 1,
        user("u1", [{"type": "text", "text": "look at this\nand that"}, image]),
        assistant("a2", [{"type": "thinking", "thinking": "hm\nlet me see", "signature": "s"},
                         {"type": "text", "text": "# Plan\nI will read."},
                         *calls(("t1", "Bash", {"description": "lists", "command": "ls -la\n--color"}),
                                ("t2", "Read", {"file_path": "/x/y.txt"}), ("t3", "Odd", {"n": 1}))], "u1", 1),
        user("u3", [result("t1", "one\ntwo\nthree"), result("t3", [image]),
                    result("t2", [{"type": "text", "text": "no such file"}], is_error=True)], "a2", 2),
        assistant("a4", "done", "u3", 3),
    )  # fmt: skip
    out = run("show", ID).out
    assert out.splitlines() == [
        "look at this and that",
        ID,
        "/home/me/proj · main · claude-x · 4 messages · " + out.splitlines()[2].split(" · ")[4] + " · 2h ago",
        "",
        "❯ look at this",
        "  and that",
        "",
        "❯ [image: image/png, 300 bytes]",
        "",
        "∴ thinking (13 characters): hm let me see",
        "",
        "# Plan",
        "I will read.",
        "  ✓ Bash ls -la --color  3 lines",
        "  ✗ Read /x/y.txt  error: no such file",
        "  ✓ Odd [image: image/png, 300 bytes]",
        "",
        "done",
    ]
    assert picture not in out


def test_how_a_conversation_ends_is_said(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, user("u1", "go"), assistant("a2", calls(("t1", "Bash", {"command": "sleep 9"})), "u1", 1))
    write(config_dir, 2, user("u1", "go"))
    assert "  ○ Bash sleep 9  no result\n\nInterrupted: the last call has no result.\n" in run("show", ID).out
    assert run("show", "--json", ID).json["state"] == "interrupted"
    assert run("show", session_id(2)).out.endswith("Unanswered: the last prompt has no answer.\n")
    assert run("show", "--json", session_id(2)).json["state"] == "unanswered"


def test_a_compaction_is_named_and_its_summary_folded(run: Run, config_dir: Path) -> None:
    summary = "\n".join(f"summary line {number}" for number in range(30))
    boundary: Row = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None,
                "timestamp": "2026-11-18T10:00:05Z", "compactMetadata": {}}  # fmt: skip
    write(config_dir, 1, *two_turns(), boundary, user("s", summary, "b", 6, isCompactSummary=True),
          user("u6", "go on", "s", 7), assistant("a7", "going on", "u6", 8))  # fmt: skip
    out = run("show", ID).out
    assert "Compacted: the model goes on from this summary.\nsummary line 0\n" in out
    assert "summary line 11\n… 18 more lines\n" in out
    assert "summary line 12\n" not in out
    assert "\n❯ go on\n\ngoing on\n" in out
    assert "first question" not in out.split("─")[1]


def test_slash_commands_and_what_the_client_says_to_them_are_readable(run: Run, config_dir: Path) -> None:
    command = (
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>x</command-args>"
    )
    write(config_dir, 1, *two_turns(), user("u5", command, "a4", 5),
          user("u6", "<local-command-stdout>Set model</local-command-stdout>", "u5", 6))  # fmt: skip
    out = run("show", ID).out
    assert "\n❯ /model x\n" in out
    assert "\n  Set model\n" in out
    assert "<command-name>" not in out


def test_malformed_lines_are_listed_and_are_no_failure(run: Run, config_dir: Path) -> None:
    append(write(config_dir, 1, *two_turns()), raw=b"garbage\n[1]\n")
    done = run("show", ID)
    assert done.code == 0
    assert "2 lines of the log are no records:" in done.out
    assert f"  line 5, byte {len(in_bytes(*two_turns()))}: " in done.out
    append(config_dir / "projects" / "-home-me-proj" / f"{ID}.jsonl", raw=b"garbage\n" * 100)
    assert "… 52 more lines" in run("show", ID).out
    assert len(run("show", ID, "--json").json["malformed"]) == 102


def test_where_the_client_finds_nothing_stderr_says_why_and_how_to_look(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *(row | {"isSidechain": True} for row in two_turns()))
    done = run("show", ID, "--json")
    assert (done.code, done.json["messages"], done.json["head"]) == (0, [], None)
    assert "Claude Code finds no conversation in this session" in done.err
    assert f"clew tree {ID}" in done.err
    assert len(run("show", ID, "--json", "--at", "a4").json["messages"]) == 4
    assert run("show", ID, "--json", "-q").err == ""


def test_the_log_of_a_subagent_can_be_shown_by_its_path(run: Run, config_dir: Path) -> None:
    folder = write(config_dir, 1, *two_turns()).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    path = folder / "agent-a1.jsonl"
    path.write_bytes(in_bytes(*(row | {"isSidechain": True} for row in two_turns())))
    (folder / "agent-a1.meta.json").write_text('{"description": "looks around"}')
    done = run("show", path, "--json")
    assert (done.code, done.err, done.json["session"], done.json["head"]) == (0, "", "agent-a1", "a4")
    assert run("show", path).code == 0


EVIL = "a\x1b]0;x\x07\x1b[2Jb\u202ec\r\nd\x9b1m[red]e[/red]\x00\u2066\U000e0041f"
HARMLESS = "a\\x1b]0;x\\x07\\x1b[2Jb\\u202ec\nd\\x9b1m[red]e[/red]\\x00\\u2066\\U000e0041f"


@pytest.mark.parametrize("where", ["prompt", "answer", "thinking", "tool", "result", "id", "media", "title"])
def test_nothing_in_a_session_can_control_the_terminal(run: Run, config_dir: Path, where: str) -> None:
    evil = dict.fromkeys(("prompt", "answer", "thinking", "tool", "result", "id"), "plain") | {where: EVIL}
    title: Row = {"type": "custom-title", "customTitle": EVIL if where == "title" else "T", "sessionId": ID}
    media = {"type": "image", "source": {"type": "url", "url": EVIL}}
    write(
        config_dir, 1,
        user("u1", [{"type": "text", "text": evil["prompt"]}, *([media] if where == "media" else [])]),
        assistant("a2", [{"type": "thinking", "thinking": evil["thinking"]}, {"type": "text", "text": evil["answer"]},
                         *calls((evil["id"], evil["tool"], {"command": evil["tool"]}))], "u1", 1),
        user("u3", [result(evil["id"], evil["result"], is_error=True)], "a2", 2),
        title,
    )  # fmt: skip
    out = run("show", ID).out
    assert not set(out) & set("\x1b\x07\x9b\x00\r\u202e\u2066\U000e0041")
    if where in ("prompt", "answer"):
        assert HARMLESS.replace("\n", "\n  " if where == "prompt" else "\n") in out


def test_json_keeps_what_is_in_the_session_as_it_is(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, user("u1", EVIL))
    assert run("show", ID, "--json").json["messages"][0]["content"] == [{"type": "text", "text": EVIL}]


ODD = [
    rb'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"content":[{"type":"x","n":NaN,"b":1e999}]}}',
    rb'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"content":[{"type":"x","n":'
    + b"9" * 400 + rb'}]}}',
    rb'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"content":[{"type":"x","n":'
    + b"[" * 900 + b"]" * 900 + rb'}]}}',
    rb'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"content":[{"type":"x","n":'
    + b"[" * 50_000 + b"]" * 50_000 + rb'}]}}',
    rb'{"type":"user","uuid":"\udc00","timestamp":"2026-01-01T00:00:00Z","message":{"content":[{"type":"x","n":NaN}]}}',
    b'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"content":"\xff\xfe"}}',
]  # fmt: skip


@pytest.mark.parametrize("row", ODD)
def test_odd_values_still_give_one_valid_document(run: Run, config_dir: Path, row: bytes) -> None:
    write(config_dir, 1, raw=row + b"\n")
    done = run("show", ID, "--json")
    assert done.code == 0
    assert len(done.json["messages"]) == 1
    assert "NaN" not in done.out
    for command in ("show", "tree"):
        assert run(command, ID).code == 0
    assert run("ls", "--all", "--json").json[0]["message_count"] == 1


@pytest.mark.parametrize("beside", [b"", rb"\ud800"])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"type":"tool_result","content":[', b"]}")])
def test_no_depth_of_a_content_stops_a_command(
    run: Run, config_dir: Path, opening: bytes, closing: bytes, beside: bytes
) -> None:
    """Reading, walking and writing each give up at another depth; one such row must not hide the others."""
    write(config_dir, 2, *two_turns())
    called = in_bytes(user("u1", "go"), assistant("a2", calls(("t", "Bash", {})), "u1", 2))
    for depth in (300, 480, 600, *range(880, 1_000, 8), 5_000):
        block = b'{"type":"tool_result","tool_use_id":"t","content":[%s%s]}' % (opening * depth, closing * depth)
        content = b'[%s,{"type":"text","text":"hi%s"}]' % (block, beside)
        message = in_bytes(user("u3", "ROW", "a2", 3)).replace(b'"ROW"', content)
        write(config_dir, 1, raw=called + message)
        shown = run("show", ID, "--json").json["messages"][-1]["content"]
        assert [each["type"] for each in shown] == ["tool_result", "text"]
        assert [run(*words).code for words in (("show", ID), ("tree", ID))] == [0, 0]
        assert len(run("ls", "--all", "--json").json) == 2


# On a terminal.


def on_terminal(arguments: list[str], **environment: str) -> str:
    """What a terminal of 80 columns and 24 lines gets from a call of `clew`."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        path = {"PYTHONPATH": str(Path(clew.__file__).parent.parent), "TERM": "xterm-256color"}
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LESS", "PAGER")}
        process = subprocess.Popen([sys.executable, "-m", "clew", *arguments], env=inherited | path | environment,
                                   stdin=theirs, stdout=theirs, stderr=theirs)  # fmt: skip
        os.close(theirs)
        printed = b""
        # When the other end is closed, Linux says EIO and others that there is nothing more.
        with contextlib.suppress(OSError):
            while piece := terminal.read(65536):
                printed += piece
        assert process.wait(timeout=60) == 0
        return printed.decode()


def test_a_terminal_gets_the_conversation_through_its_pager(config_dir: Path, tmp_path: Path) -> None:
    write(config_dir, 1, *two_turns())
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\necho PAGED\nexec cat > "{tmp_path}/seen"\n')
    pager.chmod(0o755)
    assert "PAGED" in on_terminal(["show", ID], PAGER=str(pager))
    assert "second answer" in (tmp_path / "seen").read_text()
    printed = on_terminal(["show", ID, "--no-pager"], PAGER=str(pager))
    assert "PAGED" not in printed
    assert "second answer" in printed
    assert "PAGED" not in on_terminal(["show", ID, "--json"], PAGER=str(pager))


def test_a_terminal_gets_colour_unless_the_person_says_no(config_dir: Path) -> None:
    write(config_dir, 1, *two_turns())
    command = ["show", ID, "--no-pager"]
    assert "\x1b[" in on_terminal(command)
    assert "\x1b[" not in on_terminal([*command, "--no-color"])
    assert "\x1b[" not in on_terminal(command, NO_COLOR="1")
    assert "\x1b[" not in on_terminal(command, TERM="dumb")


def test_a_terminal_gets_a_page_of_sessions_and_how_many_more_there_are(config_dir: Path) -> None:
    for number in range(40):
        write(config_dir, number, *two_turns(), at=number)
    printed = on_terminal(["ls", "--all", "--no-color"], CLEW_NOW="2026-11-18T12:00:00Z")
    assert len(printed.splitlines()) <= 24
    assert "… 24 more of 40: clew ls --all --limit 40" in printed
    assert len(on_terminal(["ls", "--all", "--limit", "30"]).splitlines()) >= 30


def long_talk(turns: int) -> list[Row]:
    rows: list[Row] = []
    for turn in range(turns):
        before = rows[-1]["uuid"] if rows else None
        time = f"2026-11-18T10:{turn // 60:02}:{turn % 60:02}"
        rows.append(user(f"q{turn}", f"prompt {turn}", before, timestamp=f"{time}.000Z"))
        rows.append(assistant(f"a{turn}", f"answer {turn}", f"q{turn}", timestamp=f"{time}.500Z"))
    return rows


@pytest.fixture
def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session counts as a large one."""
    monkeypatch.setattr("clew.cli.show.LARGE_BYTES", 0)


def test_a_large_session_shows_the_same_conversation(
    run: Run, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title: Row = {"type": "custom-title", "customTitle": "The title", "sessionId": ID}
    write(config_dir, 1, *long_talk(600), title)
    plain = run("show", ID)
    monkeypatch.setattr("clew.cli.show.LARGE_BYTES", 0)
    large = run("show", ID)
    heading, _, body = large.out.partition("\n❯")
    assert plain.out.partition("\n❯")[2] == body.removesuffix("\n1,200 messages\n")
    assert body.endswith("\n1,200 messages\n")
    assert heading.splitlines()[0] == "The title"
    assert "1,200 messages · " in plain.out
    assert (large.code, large.err) == (0, "")


@pytest.mark.usefixtures("as_large")
def test_rows_further_on_that_change_the_beginning_are_told_and_all_is_shown_again(
    run: Run, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, answer, *_ = rows = long_talk(2)
    more = {**answer, "uuid": "more", "parentUuid": "a0", "message": dict(answer["message"])}
    more["message"]["content"] = [{"type": "text", "text": "and more"}]
    rows[2]["parentUuid"] = "more"
    write(config_dir, 1, prompt, answer, more, *rows[2:])
    monkeypatch.setattr("clew.cli.show.EARLY_ROWS", 2)
    monkeypatch.setattr("clew.cli.show.EARLY_MESSAGES_LEFT", 0)
    early, told, whole = run("show", ID).out.partition("It begins again:")
    assert ("answer 0" in early, "and more" in early, bool(told)) == (True, False, True)
    lines = [text for text in whole.splitlines() if text]
    assert lines == ["❯ prompt 0", "answer 0", "and more", "❯ prompt 1", "answer 1", "4 messages"]


@pytest.mark.usefixtures("as_large")
def test_a_large_session_can_be_shown_up_to_a_point(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *long_talk(30))
    out = run("show", ID, "--at", "turn:3").out
    assert ("answer 2" in out, "prompt 3" in out, "\n6 messages\n" in out) == (True, False, True)
