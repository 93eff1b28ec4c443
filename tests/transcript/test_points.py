"""A point names a place in a conversation, always inclusive; what it cannot name is told apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import Ambiguous, NotFound, UsageError
from clew.plugins import entry_points_of
from clew.records.codec import decode_lines
from clew.records.record import Record, records_in
from clew.testing.corpus import SessionDraft, lines_of
from clew.testing.strategies import sessions
from clew.transcript import points
from clew.transcript.chain import chain_to
from clew.transcript.head import find_head
from clew.transcript.links import links_of
from clew.transcript.points import Point, chain_at, cut, parse_point
from clew.transcript.prompts import is_prompt
from clew.transcript.selectors.message import AtMessage
from clew.transcript.selectors.record import AtRecord
from clew.transcript.selectors.time import AtTime
from clew.transcript.selectors.turn import Turn
from clew.transcript.tree import Tree


def tree_of(draft: SessionDraft | bytes) -> Tree:
    data = draft if isinstance(draft, bytes) else draft.to_bytes()
    return Tree(records_in(decode_lines(lines_of(data))))


def chain_of(draft: SessionDraft | bytes) -> list[Record]:
    tree = tree_of(draft)
    return chain_to(tree, find_head(tree).uuid).records


def at(draft: SessionDraft | bytes, point: Point) -> list[str | None]:
    tree = tree_of(draft)
    return [record.uuid for record in chain_at(tree, links_of(tree), point).records]


def uuids(records: list[Record]) -> list[str | None]:
    return [record.uuid for record in records]


@pytest.fixture
def three() -> SessionDraft:
    """Three turns of a prompt and an answer, a second each."""
    draft = SessionDraft()
    for number in (1, 2, 3):
        draft.user(f"q{number}")
        draft.assistant(f"a{number}")
    draft.head()
    return draft


# ---- reading ----


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("0b0c1d2e-0000-4000-8000-000000000001", AtRecord("0b0c1d2e-0000-4000-8000-000000000001")),
        ("row-7", AtRecord("row-7")),
        ("msg:msg_01abc", AtMessage("msg_01abc")),
        ("turn:3", Turn(3)),
        ("turn:-1", Turn(-1)),
        ("TURN: 2", Turn(2)),
        ("time:1970-01-01T00:00:01Z", AtTime(1000.0)),
        ("time:1970-01-01T01:00:01+01:00", AtTime(1000.0)),
        ("time:1970-01-01T00:00:01", AtTime(1000.0)),
        ("time:1970-01-02", AtTime(86_400_000.0)),
    ],
)
def test_each_form_of_a_point_is_read(text: str, point: Point) -> None:
    assert parse_point(text) == point


@pytest.mark.parametrize(
    "text",
    ["", " ", "a b", "turn:", "turn:0", "turn:x", "turn:1.5", "turn:-", "turn:" + "9" * 40, "msg:", "msg: ", "time:",
     "time:yesterday", "when:now", "uuid:abc", "ro\nw", "row\x1b[31m"],
)  # fmt: skip
def test_a_text_that_names_no_point_is_a_usage_error_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_point(text)
    assert error.value.hint
    assert "\x1b" not in error.value.message


@given(st.text(max_size=30))
def test_any_text_is_a_point_or_a_usage_error(text: str) -> None:
    hint = ""
    try:
        point = parse_point(text)
    except UsageError as error:
        point, hint = None, error.hint
    assert (point is None) == bool(hint)


# ---- records ----


def test_a_record_is_kept_itself(three: SessionDraft) -> None:
    chain = chain_of(three)
    for place, record in enumerate(chain):
        assert cut(chain, AtRecord(record.uuid or "")) == chain[: place + 1]


def test_the_beginning_of_a_uuid_is_enough_when_it_fits_one(three: SessionDraft) -> None:
    chain = chain_of(three)
    uuid = chain[2].uuid or ""
    assert cut(chain, AtRecord(uuid[:6])) == chain[:3]
    with pytest.raises(NotFound):
        cut(chain, AtRecord(uuid[:5]))


def test_the_beginning_of_two_uuids_is_ambiguous_and_names_both() -> None:
    draft = SessionDraft()
    draft.user("q", uuid="same-beginning-1")
    draft.assistant("a", uuid="same-beginning-2")
    with pytest.raises(Ambiguous) as error:
        cut(chain_of(draft), AtRecord("same-beg"))
    assert error.value.candidates == ("same-beginning-1", "same-beginning-2")


def test_a_whole_uuid_wins_over_one_that_only_begins_so() -> None:
    draft = SessionDraft()
    draft.user("q", uuid="record-1")
    draft.assistant("a", uuid="record-12")
    assert uuids(cut(chain_of(draft), AtRecord("record-1"))) == ["record-1"]


def test_an_unknown_record_is_not_found_and_the_prompts_are_offered(three: SessionDraft) -> None:
    with pytest.raises(NotFound, match="no record 'nowhere'") as error:
        cut(chain_of(three), AtRecord("nowhere"))
    assert error.value.hint
    assert list(error.value.candidates) == [three.rows[place]["uuid"] for place in (0, 2, 4)]


# ---- messages ----


def test_all_rows_of_an_answer_are_kept_and_what_stands_between_them() -> None:
    draft = SessionDraft()
    draft.user("q")
    first = draft.tool_use(message_id="msg_1")
    draft.tool_result(first)
    second = draft.tool_use(message_id="msg_1")
    last = draft.at
    draft.tool_result(second)
    draft.assistant("done", message_id="msg_2")
    kept = cut(chain_of(draft), AtMessage("msg_1"))
    assert kept[-1].uuid == last
    assert [record.type for record in kept] == ["user", "assistant", "user", "assistant"]


def test_an_unknown_message_is_not_found_and_the_known_ones_are_offered(three: SessionDraft) -> None:
    with pytest.raises(NotFound) as error:
        cut(chain_of(three), AtMessage("msg_none"))
    assert error.value.candidates[-1] == f"msg_{3:024}"


# ---- times ----


@pytest.mark.parametrize(
    ("moment", "count"),
    [
        ("03:04:05Z", 1),
        ("03:04:05.999Z", 1),
        ("03:04:06Z", 2),
        ("03:04:10Z", 6),
        ("23:00:00Z", 6),
        ("05:04:06+02:00", 2),
    ],
)
def test_a_time_keeps_everything_that_is_not_later(three: SessionDraft, moment: str, count: int) -> None:
    assert len(cut(chain_of(three), parse_point(f"time:2026-01-02T{moment}"))) == count


def test_a_time_before_the_conversation_is_not_found(three: SessionDraft) -> None:
    with pytest.raises(NotFound, match=r"2026-01-02T03:04:05\.000Z") as error:
        cut(chain_of(three), parse_point("time:2025"))
    assert error.value.hint


def test_a_row_without_a_time_belongs_to_the_row_before_it(three: SessionDraft) -> None:
    three.rows[3]["timestamp"] = "soon"
    assert len(cut(chain_of(three), parse_point("time:2026-01-02T03:04:07Z"))) == 4


def test_kept_rows_of_a_compaction_do_not_carry_a_time_back_before_it(three: SessionDraft) -> None:
    three.compaction(kept=[three.at or ""])
    three.user("q4")
    three.head()
    chain = chain_of(three)
    assert chain[0].subtype == "compact_boundary"
    with pytest.raises(NotFound, match="compacted"):
        cut(chain, parse_point("time:2026-01-02T03:04:10Z"))
    assert len(cut(chain, parse_point("time:2026-01-02T03:04:12Z"))) == 3


# ---- turns ----


@pytest.mark.parametrize(("turn", "last"), [(1, "a1"), (2, "a2"), (3, "a3"), (-1, "a3"), (-2, "a2"), (-3, "a1")])
def test_a_turn_ends_before_the_next_prompt(three: SessionDraft, turn: int, last: str) -> None:
    content = cut(chain_of(three), Turn(turn))[-1].content()
    assert content == [{"type": "text", "text": last}]


def test_the_last_turn_keeps_everything(three: SessionDraft) -> None:
    three.attachment({"type": "date", "date": "2026-01-02"})
    three.head()
    chain = chain_of(three)
    assert cut(chain, Turn(-1)) == chain
    assert len(cut(chain, Turn(-2))) == 4


@pytest.mark.parametrize("turn", [4, -4, 100])
def test_a_turn_that_is_not_there_is_not_found_and_the_hint_says_which_are(three: SessionDraft, turn: int) -> None:
    with pytest.raises(NotFound, match="3 turns") as error:
        cut(chain_of(three), Turn(turn))
    assert "turn:3" in error.value.hint


def test_turn_zero_is_a_usage_error_however_it_is_given(three: SessionDraft) -> None:
    with pytest.raises(UsageError):
        cut(chain_of(three), Turn(0))


def test_an_empty_chain_has_no_point() -> None:
    for point in (Turn(-1), Turn(1), AtRecord("abcdefgh"), AtMessage("m"), AtTime(0.0)):
        with pytest.raises(NotFound):
            cut([], point)


def test_a_prompt_sent_while_the_model_worked_is_a_turn_and_what_the_client_wrote_is_none() -> None:
    draft = SessionDraft()
    draft.user("first")
    call = draft.tool_use()
    draft.tool_result(call)
    draft.queued_prompt("second, while you work")
    draft.assistant("both done")
    draft.user("<local-command-caveat>…</local-command-caveat>", isMeta=True)
    draft.user("<command-name>/clear</command-name>")
    draft.user("<local-command-stdout></local-command-stdout>")
    draft.user("third")
    chain = chain_of(draft)
    assert len(cut(chain, Turn(1))) == 3
    assert len(cut(chain, Turn(2))) == 8
    assert len(cut(chain, Turn(3))) == 9


# ---- beside the conversation ----


def test_a_record_on_a_dead_branch_is_taken_with_its_branch(three: SessionDraft) -> None:
    rows = [row["uuid"] for row in three.rows[:6]]
    three.at = str(rows[1])
    three.user("q2 again")
    three.assistant("a2 again")
    three.head()
    assert at(three, Turn(-1)) == [*rows[:2], *(row["uuid"] for row in three.rows[7:9])]
    assert at(three, AtRecord(str(rows[4]))) == rows[:5]
    assert at(three, AtRecord(str(rows[4])[:8])) == rows[:5]
    assert at(three, AtMessage(f"msg_{3:024}")) == rows[:6]


def test_a_record_that_was_compacted_away_is_taken_with_the_records_of_its_time(three: SessionDraft) -> None:
    rows = [row["uuid"] for row in three.rows[:6]]
    three.compaction(kept=[str(rows[5])])
    three.user("q4")
    three.head()
    assert rows[2] not in at(three, Turn(-1))
    assert at(three, AtRecord(str(rows[2]))) == rows[:3]
    assert at(three, AtMessage(f"msg_{1:024}")) == rows[:2]


def test_repairs_and_rows_put_back_after_the_point_are_not_told() -> None:
    draft = SessionDraft()
    draft.user("q")
    calls = [draft.tool_use(message_id="m") for _ in range(2)]
    for call in calls:
        draft.tool_result(call)
    draft.user("next", parentUuid="lost")
    draft.head()
    tree = tree_of(draft)
    whole = chain_at(tree, links_of(tree), Turn(-1))
    assert whole.repairs
    assert whole.put_back
    start = chain_at(tree, links_of(tree), AtRecord(str(draft.rows[0]["uuid"])))
    assert (len(start.records), start.repairs, start.put_back) == (1, [], frozenset())


@given(sessions())
def test_every_record_of_a_log_can_be_reached_by_its_uuid(data: bytes) -> None:
    tree = tree_of(data)
    links = links_of(tree)
    for uuid in filter(None, tree.records):
        assert chain_at(tree, links, AtRecord(uuid)).records[-1].uuid == uuid


@given(sessions())
def test_turns_cut_a_chain_before_its_prompts(data: bytes) -> None:
    chain = chain_of(data)
    starts = [place for place, record in enumerate(chain) if is_prompt(record)]
    for number, start in enumerate(starts[1:], 1):
        assert len(cut(chain, Turn(number))) == start
        assert cut(chain, Turn(number)) == cut(chain, Turn(number - len(starts) - 1))
    if starts:
        assert cut(chain, Turn(len(starts))) == cut(chain, Turn(-1)) == chain


# ---- selectors of other packages ----


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with selectors: a good one, one of a word of ours, one that is none, one that is lost."""
    (tmp_path / "outside_points.py").write_text(
        "from clew.transcript.points import Point\n"
        "class First(Point, frozen=True):\n"
        "    rows: int\n"
        "    @classmethod\n"
        "    def parse(cls, value, text):\n"
        "        return cls(int(value))\n"
        "    def place(self, chain):\n"
        "        return self.rows - 1\n"
    )
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[clew.points]\nrows = outside_points:First\nturn = outside_points:First\n"
        "none = builtins:int\nlost = outside_points:Nothing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    caches = (entry_points_of, points._theirs)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()
    sys.modules.pop("outside_points", None)


@pytest.mark.usefixtures("outside")
def test_another_package_names_points_in_its_own_way(three: SessionDraft) -> None:
    assert len(at(three, parse_point("rows:3"))) == 3
    assert parse_point("turn:1") == Turn(1)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("word", ["none", "lost"])
def test_a_selector_that_cannot_be_used_is_named_with_its_package(word: str) -> None:
    with pytest.raises(UsageError, match=f"for {word}:") as error:
        parse_point(f"{word}:1")
    assert error.value.hint == "pip uninstall outside"
