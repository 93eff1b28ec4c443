"""Which session is gone on with, by which policy, and why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import clew
from clew import NotFound, UsageError
from clew.engines.files_reader import CHUNK_BYTES
from clew.resume.choosing import PassedOver
from continuing import SITUATIONS, A, B, Situation, made, title, turn
from session_files import assistant, in_bytes
from stores import ENGINES, store_on


def taken(of: Situation, policy: str = "newest", **options: object) -> str | None:
    try:
        return clew.open(of.config).continued(of.cwd, policy=policy, **options).session.id  # type: ignore[arg-type]
    except NotFound:
        return None


@pytest.fixture
def of(tmp_path: Path) -> Situation:
    """The older A, with nothing beside it yet."""
    (tmp_path / "work").mkdir()
    found = Situation(tmp_path / "config", tmp_path / "work")
    found.older()
    return found


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_default_takes_what_the_client_was_seen_to_take(tmp_path: Path, name: str) -> None:
    of = made(name, tmp_path)
    assert taken(of) in (of.taken or (None,))


@pytest.mark.usefixtures("permissions_count")
def test_one_that_may_not_be_read_is_passed_over(of: Situation) -> None:
    of.put(B, *turn("secret"), at=10).chmod(0)
    assert taken(of) == A


def test_the_reason_is_told_and_who_was_passed_over_and_why(of: Situation) -> None:
    of.put(B, title("t"), at=10)
    choice = clew.open(of.config).continued(of.work)
    assert choice.session.id == A
    assert choice.reason == "the newest that Claude Code would continue"
    assert choice.passed_over == (PassedOver(B, "it holds no row of a conversation"),)


def test_where_all_are_passed_over_the_error_names_them(of: Situation) -> None:
    of.put(A, title("t"))
    with pytest.raises(NotFound, match="all 1 were passed over") as caught:
        clew.open(of.config).continued(of.work)
    assert caught.value.candidates == (A,)
    assert "no row of a conversation" in caught.value.hint


ERRORS = {
    "a message": [assistant("x3", "API Error: 500", "na2-0000", 3, isApiErrorMessage=True)],
    "a system row": [{"type": "system", "subtype": "api_error", "uuid": "x3", "parentUuid": "na2-0000",
                      "timestamp": "2026-11-18T10:00:05.000Z"}],
    "a summary": [{"type": "summary", "summary": "API Error: overloaded", "leafUuid": "na2-0000"}],
}  # fmt: skip


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("after", [[], [title("t"), {"type": "tag", "tag": "x"}]], ids=["at the end", "and metadata"])
def test_sessions_that_end_in_an_error_can_be_skipped(of: Situation, kind: str, after: list[dict[str, object]]) -> None:
    of.put(B, *turn("n"), *ERRORS[kind], *after, at=10)
    assert taken(of) == B
    assert taken(of, "skip-errors") == A


def test_an_error_that_was_overcome_is_none(of: Situation) -> None:
    of.put(B, *turn("n"), *ERRORS["a message"], *turn("m"), at=10)
    assert taken(of, "skip-errors") == B


def test_sessions_without_a_message_can_be_skipped(of: Situation) -> None:
    of.put(B, raw=b"", at=10)
    assert taken(of) == B
    assert taken(of, "skip-empty") == A


def test_archived_sessions_can_be_skipped(of: Situation) -> None:
    of.put(B, *turn("n"), at=10)
    clew.open(of.config).session(B).set(archived=True)
    assert taken(of) == B
    assert taken(of, "skip-archived") == A


def test_sidechains_beyond_the_clients_window_can_be_skipped(of: Situation) -> None:
    of.put(B, *[title("t" * 900)] * 100, *turn("side", isSidechain=True), at=10)
    assert taken(of) == B
    assert taken(of, "skip-sidechains") == A


def test_sessions_that_are_running_can_be_skipped(of: Situation) -> None:
    of.put(B, *turn("n"), at=10)
    running = of.config / "sessions" / f"{os.getpid()}.json"
    running.parent.mkdir()
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19] if Path("/proc").exists() else ""
    running.write_text(json.dumps({"pid": os.getpid(), "sessionId": B, "procStart": started, "startedAt": 0}))
    if not clew.open(of.config).session(B).is_live:
        pytest.skip("this machine does not tell who runs")
    assert taken(of, "skip-live") == A


def test_a_tag_is_preferred_and_where_none_has_it_the_newest_is_taken(of: Situation) -> None:
    of.put(A, *turn("old"), {"type": "tag", "tag": "Active"})
    of.put(B, *turn("new"), {"type": "tag", "tag": "active"}, {"type": "tag", "tag": ""}, at=10)
    assert taken(of, "prefer-tag:active") == A
    assert taken(of, "prefer-tag:other") == B
    choice = clew.open(of.config).continued(of.work, policy="prefer-tag:active")
    assert choice.reason.startswith("it has the tag active; ")


def test_the_present_directory_is_preferred_then_its_project_then_its_worktrees(tmp_path: Path) -> None:
    of = made("a_newer_one_in_a_worktree", tmp_path)
    store = clew.open(of.config)
    assert store.continued(None).session.id == A
    assert store.continued(None, policy="prefer-here", cwd=of.work).session.id == B
    here = [row | {"cwd": os.path.realpath(of.work)} for row in turn("here")]
    of.put(session := "0000000d-0000-4000-8000-000000000000", *here, at=-5)
    assert store.continued(None, policy="prefer-here", cwd=of.work).session.id == session
    other = of.put("0000000e-0000-4000-8000-000000000000", *turn("x"), at=50, folder=of.config / "projects" / "-z")
    assert store.continued(None).session.where == str(other)


def test_policies_are_composed_in_their_order(of: Situation) -> None:
    of.put(B, *turn("n"), {"type": "tag", "tag": "active"}, *ERRORS["a message"], at=10)
    assert taken(of, "prefer-tag:active") == B
    assert taken(of, "skip-errors,prefer-tag:active,newest") == A
    assert taken(of, " skip-errors , prefer-tag:active ") == A


@pytest.mark.parametrize("text", ["", ",", "newest,", "nope", "prefer-tag", "prefer-tag:", "newest," * 30 + "newest"])
def test_what_is_no_policy_is_a_wrong_call(of: Situation, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        clew.open(of.config).continued(of.work, policy=text)
    assert "prefer-tag" in caught.value.hint


def test_a_row_that_lies_over_the_end_of_a_chunk_is_seen(of: Situation) -> None:
    filler = in_bytes(title("t" * (CHUNK_BYTES - 100)))
    of.put(B, raw=filler + b" " * (CHUNK_BYTES - len(filler) - 5) + in_bytes(*turn("n")), at=10)
    assert taken(of) == B


def test_of_two_in_one_millisecond_the_later_is_taken_where_the_client_takes_either(of: Situation) -> None:
    of.put(B, *turn("n"))
    for name, ns in ((A, 900_000), (B, 100_000)):
        os.utime(of.folder / f"{name}.jsonl", ns=(10**18 + ns, 10**18 + ns))
    assert taken(of) == A
    os.utime(of.folder / f"{B}.jsonl", ns=(10**18 + 950_000, 10**18 + 950_000))
    assert taken(of) == B


def test_only_the_newest_is_read(of: Situation) -> None:
    for number in range(30):
        of.put(f"000001{number:02x}-0000-4000-8000-000000000000", *turn("n"), at=100 + number)
    read: list[str] = []
    store = clew.open(of.config)
    real = store.engine.read_range
    store.engine.read_range = lambda key, **named: (read.append(key.session), real(key, **named))[1]  # type: ignore
    store.continued(of.work)
    assert len({*read}) == 1


@pytest.mark.parametrize("kind", ENGINES)
def test_other_engines_continue_the_newest(kind: str, tmp_path: Path) -> None:
    store = store_on(ENGINES[kind](tmp_path))
    for name in ("one", "two"):
        session = store.create(tmp_path)
        session.append({"role": "user", "content": name})
    assert store.continued(tmp_path).session.id == session.id


def test_a_torn_row_is_no_reason_to_pass_a_session_over(of: Situation) -> None:
    of.put(B, raw=in_bytes(*turn("n")) + b'{"type":"continued-in","continuedInSe', at=10)
    assert taken(of) == B
