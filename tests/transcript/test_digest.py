"""The digest of a log is what its rows say, the whole log through, whatever their order and however odd they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.records.codec import decode_lines
from clew.records.record import Record, records_in
from clew.records.views import JsonObject, JsonValue
from clew.testing.corpus import (
    CWD,
    MODEL,
    VERSION,
    Row,
    SessionDraft,
    assistant,
    lines_of,
    text,
    thinking,
    to_bytes,
    user,
)
from clew.testing.strategies import broken_lines, records, sessions
from clew.transcript.digest import AnswerUsage, Digest, DigestFold


def records_of(data: bytes) -> list[Record]:
    return list(records_in(decode_lines(lines_of(data))))


def fold_of(rows: SessionDraft | list[Row | bytes] | bytes) -> DigestFold:
    data = rows if isinstance(rows, bytes) else rows.to_bytes() if isinstance(rows, SessionDraft) else to_bytes(rows)
    return DigestFold(records_of(data))


def digest_of(rows: SessionDraft | list[Row | bytes] | bytes) -> Digest:
    return fold_of(rows).digest()


def note(kind: str, **fields: JsonValue) -> Row:
    return {"type": kind, **fields}


def prompt(words: str = "q", **fields: JsonValue) -> Row:
    return user(words, uuid="u", parent=None, **fields)


def answer(message_id: str = "m1", *, usage: dict[str, int] | None = None, **fields: JsonValue) -> Row:
    return assistant("a", uuid="a", parent="u", message_id=message_id, usage=usage, **fields)


@pytest.fixture
def draft() -> SessionDraft:
    draft = SessionDraft()
    draft.user("Fix the\n\n login, please")
    call = draft.tool_use()
    draft.tool_result(call)
    draft.assistant(thinking("hm"), "done")
    draft.head()
    return draft


def test_an_empty_log_says_nothing() -> None:
    assert digest_of(b"") == Digest()


def test_a_plain_session_says_what_its_rows_say(draft: SessionDraft) -> None:
    found = digest_of(draft)
    assert found.first_prompt == "Fix the login, please"
    assert found.title == found.last_prompt == "Fix the\n\n login, please"
    assert (found.cwd, found.version, found.git_branch, found.model) == (CWD, VERSION, "main", MODEL)
    assert (found.created_at, found.updated_at) == ("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:09.000Z")
    assert (found.records, found.turn_count, found.compactions) == (6, 1, 0)


def test_a_digest_may_be_asked_for_at_any_moment(draft: SessionDraft) -> None:
    rows = records_of(draft.to_bytes())
    asked, unasked = DigestFold(), DigestFold(rows)
    for record in rows:
        asked.add(record)
        asked.digest()
    assert asked.digest() == unasked.digest()


# ---- titles and tags ----


NAMES = {
    "custom-title": note("custom-title", customTitle="given"),
    "ai-title": note("ai-title", aiTitle="made"),
    "last-prompt": note("last-prompt", lastPrompt="asked last"),
    "summary": note("summary", summary="summed up"),
}
WORDS = {"custom-title": "given", "ai-title": "made", "last-prompt": "asked last", "summary": "summed up"}


@given(st.permutations([*NAMES]), st.integers(0, 4))
def test_the_title_is_the_best_there_is_wherever_it_stands(order: list[str], count: int) -> None:
    there = order[:count]
    found = digest_of([prompt("first"), *(NAMES[kind] for kind in there), answer()])
    best = next((kind for kind in NAMES if kind in there), None)
    assert found.title == (WORDS[best] if best else "first")
    assert found.title_source == (best or "first-prompt")


def test_the_last_title_of_a_kind_counts_even_far_from_the_end() -> None:
    rows: list[Row | bytes] = [note("custom-title", customTitle="old"), note("custom-title", customTitle="new")]
    rows += [prompt("x" * 1000) for _ in range(200)]
    assert digest_of(rows).title == "new"


def test_an_empty_title_takes_the_title_off() -> None:
    found = digest_of([prompt("first"), NAMES["custom-title"], NAMES["ai-title"], note("custom-title", customTitle="")])
    assert (found.custom_title, found.title) == ("", "made")


def test_an_empty_tag_is_none_and_the_last_one_counts() -> None:
    tags = [note("tag", tag="wip"), note("tag", tag="done")]
    assert digest_of([*tags]).tag == "done"
    assert digest_of([*tags, note("tag", tag="")]).tag is None
    assert digest_of([*tags, note("tag", tag=""), note("tag", tag="again")]).tag == "again"


def test_a_head_record_without_a_prompt_keeps_the_last_prompt() -> None:
    assert (
        digest_of([NAMES["last-prompt"], note("last-prompt", leafUuid="x", explicit=True)]).last_prompt == "asked last"
    )


def test_a_name_of_another_type_than_text_is_no_name() -> None:
    odd: list[JsonValue] = [None, 5, ["x"], {"a": "b"}, True]
    assert (
        digest_of([NAMES["custom-title"], *(note("custom-title", customTitle=value) for value in odd)]).title == "given"
    )


def test_a_title_in_a_tool_input_is_no_title() -> None:
    row = answer()
    row["message"] = {"id": "m", "role": "assistant", "content": [{"type": "tool_use", "input": {"customTitle": "x"}}]}
    assert digest_of([row]).title is None


def test_other_names_are_kept_beside_the_title() -> None:
    found = digest_of([note("agent-name", agentName="Ada"), note("continued-in", continuedInSessionId="s2")])
    assert (found.agent_name, found.continued_in) == ("Ada", "s2")


# ---- prompts ----


def test_the_first_prompt_is_what_a_person_typed_and_not_what_came_before() -> None:
    draft = SessionDraft()
    draft.user("<local-command-caveat>…</local-command-caveat>", isMeta=True)
    draft.user("<command-name>/clear</command-name>")
    draft.user("<local-command-stdout></local-command-stdout>")
    draft.user("really first")
    draft.user("second")
    found = digest_of(draft)
    assert (found.first_prompt, found.turn_count) == ("really first", 2)


def test_a_command_is_the_first_prompt_only_when_nothing_was_typed() -> None:
    command = "<command-message>init</command-message><command-name>/init</command-name>"
    assert digest_of([prompt(command)]).first_prompt == "/init"
    assert digest_of([prompt(command), prompt("typed")]).first_prompt == "typed"


def test_a_long_first_prompt_is_cut_with_an_ellipsis() -> None:
    assert digest_of([prompt("word " * 100)]).first_prompt == ("word " * 40).rstrip() + "…"


def test_a_title_made_of_the_first_prompt_keeps_its_blanks_as_the_clients_lists_do() -> None:
    found = digest_of([prompt("a\n\n   b" + " c" * 200)])
    assert (found.title or "").startswith("a     b c c")
    assert (found.first_prompt or "").startswith("a b c c")
    assert (found.title or "").endswith("c…")


def test_a_subagents_rows_in_the_main_log_are_no_prompts_of_the_person() -> None:
    found = digest_of([prompt("task", isSidechain=True, cwd="/else"), prompt("mine")])
    assert (found.first_prompt, found.turn_count, found.cwd) == ("mine", 1, CWD)


def test_a_prompt_sent_while_the_model_worked_counts() -> None:
    draft = SessionDraft()
    draft.user("one")
    draft.queued_prompt("two")
    assert digest_of(draft).turn_count == 2


# ---- places and times ----


def test_version_and_branch_are_the_last_seen_and_the_directory_the_first() -> None:
    rows = [
        prompt(version="1.0", gitBranch="main", cwd="/first"),
        prompt(version="2.0", gitBranch="topic", cwd="/second"),
        {"type": "user", "uuid": "bare", "message": {"content": "no envelope"}},
    ]
    found = digest_of([*rows])
    assert (found.version, found.git_branch, found.cwd) == ("2.0", "topic", "/first")


def test_each_is_found_where_only_one_of_them_stands() -> None:
    rows: list[Row | bytes] = [
        {"type": "user", "uuid": "1", "version": "1.0"},
        {"type": "user", "uuid": "2", "gitBranch": "topic"},
        {"type": "user", "uuid": "3", "cwd": "/there"},
    ]
    found = digest_of(rows)
    assert (found.version, found.git_branch, found.cwd) == ("1.0", "topic", "/there")


@pytest.mark.parametrize("place", ["input", "text", "result"])
def test_what_a_text_or_an_input_says_of_versions_is_not_believed(place: str) -> None:
    fake = '"version":"9.9","gitBranch":"fake"}'
    row = {"type": "user", "uuid": "2"}
    if place == "input":
        data = b'{"type":"assistant","uuid":"2","message":{"content":[]},"x":{"version":"9.9","gitBranch":"fake"}}\n'
    elif place == "text":
        data = to_bytes([{**row, "message": {"content": fake}}])
    else:
        data = to_bytes([{**row, "toolUseResult": {"version": "9.9", "gitBranch": "fake"}}])
    found = digest_of(to_bytes([prompt()]) + data)
    assert (found.version, found.git_branch) == (VERSION, "main")


def test_rows_of_older_clients_have_their_envelope_in_front() -> None:
    row = b'{"parentUuid":null,"isSidechain":false,"cwd":"/old","sessionId":"s","version":"1.0.9","gitBranch":"%s",'
    row += (
        b'"type":"user","message":{"role":"user","content":"q"},"uuid":"u%s","timestamp":"2025-01-01T00:00:00.000Z"}\n'
    )
    found = digest_of(b"".join(row % (branch, branch) for branch in (b"main", b"topic", b"")))
    assert (found.cwd, found.version, found.git_branch) == ("/old", "1.0.9", "topic")


def test_a_moved_session_is_where_it_was_moved_to_last() -> None:
    moves = [note("relocated", relocatedCwd="/there"), note("relocated", relocatedCwd="/elsewhere")]
    assert digest_of([prompt(cwd="/here"), *moves, prompt(cwd="/here")]).cwd == "/elsewhere"


def test_times_are_the_earliest_and_the_latest_in_any_form() -> None:
    times = ["2026-05-01T00:00:00.000Z", "2026-05-01T01:30:00.000+02:00", "2026-05-02T00:00:00Z", "soon", "",
             "2026-04-30T23:00:00-05:00", "2026-13-45T99:99:99.999Z"]  # fmt: skip
    found = digest_of([prompt(timestamp=when) for when in times])
    assert (found.created_at, found.updated_at) == ("2026-04-30T23:30:00.000Z", "2026-05-02T00:00:00.000Z")


@pytest.mark.parametrize(
    "when", ["soon", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-14:00", "1 Jan 99999999999"]
)
def test_no_time_that_can_be_read_is_no_time(when: str) -> None:
    found = digest_of([prompt(timestamp=when)])
    assert (found.created_at, found.updated_at) == (None, None)


def test_the_parent_is_the_session_that_the_first_row_came_from() -> None:
    came: JsonObject = {"sessionId": "parent", "messageUuid": "x"}
    assert digest_of([prompt(forkedFrom=came), prompt()]).parent_id == "parent"
    assert digest_of([prompt(), prompt(forkedFrom=came)]).parent_id is None


def test_compactions_are_counted(draft: SessionDraft) -> None:
    draft.compaction()
    draft.compaction()
    assert digest_of(draft).compactions == 2


# ---- tokens ----


def test_an_answer_counts_once_with_the_row_that_has_most_output() -> None:
    rows = [answer(usage={"output_tokens": count}) for count in (1, 9, 4)]
    assert [usage.output_tokens for usage in fold_of([*rows]).usage()] == [9]
    assert digest_of([*rows]).total_tokens == 3 + 9


def test_all_four_counts_make_the_total() -> None:
    four = {"input_tokens": 1, "output_tokens": 20, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 4000}
    fold = fold_of([answer(usage=four), answer("m2", usage=four)])
    assert fold.digest().total_tokens == 2 * 4321
    assert next(fold.usage()) == AnswerUsage("m1", MODEL, "2026-01-02", 1, 20, 300, 4000)


def test_a_row_of_the_client_costs_nothing_and_is_no_model() -> None:
    row = answer()
    message = row["message"]
    assert isinstance(message, dict)
    row["message"] = {**message, "model": "<synthetic>"}
    found = digest_of([answer(usage={"output_tokens": 1}), row])
    assert (found.model, found.total_tokens) == (MODEL, 4)


@pytest.mark.parametrize("count", ["12", None, [1], {"a": 1}, True, -0.0, 1e400, 10**30])
def test_a_count_that_is_no_count_breaks_nothing(count: JsonValue) -> None:
    row = answer()
    message = row["message"]
    assert isinstance(message, dict)
    row["message"] = {**message, "usage": {"input_tokens": 7, "output_tokens": count}}
    total = digest_of([row]).total_tokens
    assert total >= 7
    assert total == 7 or count == 10**30


# ---- anything ----


@given(st.lists(records(), max_size=8))
def test_any_rows_are_taken(rows: list[JsonObject]) -> None:
    found = digest_of([*rows])
    assert found.records == len(rows)
    assert found.first_prompt is None or len(found.first_prompt) <= 201


@given(sessions() | st.lists(broken_lines(), max_size=5).map(b"".join))
def test_any_log_has_a_digest_that_can_be_written(data: bytes) -> None:
    found = digest_of(data)
    for value in (found.title, found.first_prompt, found.tag, found.cwd, found.git_branch, found.model, found.version):
        assert value is None or value.encode()


@given(sessions())
def test_the_short_way_to_versions_finds_what_reading_every_row_finds(data: bytes) -> None:
    version = branch = None
    for record in records_of(data):
        body = record.body()
        if record.type in {"user", "assistant", "attachment", "system"} and not record.is_sidechain:
            version = value if isinstance(value := body.get("version"), str) and value else version
            branch = value if isinstance(value := body.get("gitBranch"), str) and value else branch
    found = digest_of(data)
    assert (found.version, found.git_branch) == (version, branch)


def test_a_block_of_text_beside_the_prompt_is_part_of_it() -> None:
    assert digest_of([user([text("one"), text("two")], uuid="u", parent=None)]).first_prompt == "one two"


def test_what_clew_noted_of_a_fork_says_more_than_its_first_row() -> None:
    copied = prompt(forkedFrom={"sessionId": "first", "messageUuid": "u"})
    noted = [note("clew-fork", parentSessionId="one"), note("clew-fork", parentSessionId="two")]
    assert digest_of([copied, *noted]).parent_id == "two"
    assert digest_of([*noted, copied]).parent_id == "two"
    assert digest_of([copied, note("clew-fork", parentSessionId=7)]).parent_id == "first"


def test_of_each_mark_the_last_row_that_has_it_counts() -> None:
    rows = [note("clew-session", owner="ada", pinned=True), note("clew-session", owner="bob"), note("clew-session")]
    marks = digest_of([*rows]).marks
    assert (marks.owner, marks.pinned) == ("bob", True)
    assert digest_of([*rows, note("clew-session", owner=None)]).marks.owner is None
