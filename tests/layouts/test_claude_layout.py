"""Names to paths and back, and the names that are refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.layouts.claude import ClaudeLayout, Kind, Place, config_root_of, is_part_of_session_id, is_session_id

LAYOUT = ClaudeLayout()
LOOSE = ClaudeLayout(loose=True)
SID = "3718cb31-3d94-4771-8a5a-a8054819576e"
KEY = "-home-me-proj"
IN_SESSION = f"projects/{KEY}/{SID}"

PLACES = {
    f"{IN_SESSION}.jsonl": Place(Kind.MAIN_LOG, KEY, SID),
    f"projects/{KEY}/{SID.upper()}.jsonl": Place(Kind.MAIN_LOG, KEY, SID.upper()),
    f"projects/{KEY}/notes.jsonl": Place(Kind.STRAY_LOG, KEY, "notes"),
    f"projects/{KEY}/{SID}-copy.jsonl": Place(Kind.STRAY_LOG, KEY, f"{SID}-copy"),
    IN_SESSION: Place(Kind.SESSION_FOLDER, KEY, SID),
    f"{IN_SESSION}/subagents/agent-a1.jsonl": Place(Kind.SUBLOG, KEY, SID, "subagents/agent-a1"),
    f"{IN_SESSION}/subagents/workflows/run/agent-a1.jsonl": Place(
        Kind.SUBLOG, KEY, SID, "subagents/workflows/run/agent-a1"
    ),
    f"{IN_SESSION}/subagents/workflows/run/journal.jsonl": Place(
        Kind.SUBLOG, KEY, SID, "subagents/workflows/run/journal"
    ),
    f"{IN_SESSION}/transcript.jsonl": Place(Kind.SUBLOG, KEY, SID, "transcript"),
    f"{IN_SESSION}/subagents/agent-a1.meta.json": Place(Kind.META, KEY, SID, "subagents/agent-a1.meta.json"),
    f"projects/{KEY}/agent-a1.jsonl": Place(Kind.FLAT_SUBLOG, KEY, name="agent-a1"),
    f"projects/{KEY}/agent-a1.meta.json": Place(Kind.META, KEY, name="agent-a1.meta.json"),
    f"{IN_SESSION}/tool-results/b4.txt": Place(Kind.TOOL_RESULT, KEY, SID, "tool-results/b4.txt"),
    f"{IN_SESSION}/tool-results/b4.jsonl": Place(Kind.TOOL_RESULT, KEY, SID, "tool-results/b4.jsonl"),
    f"{IN_SESSION}/custom-title.json": Place(Kind.CUSTOM_TITLE, KEY, SID, "custom-title.json"),
    f"{IN_SESSION}/archived.json": Place(Kind.ARCHIVED, KEY, SID, "archived.json"),
    f"{IN_SESSION}/what/is-this": Place(Kind.SIDECAR, KEY, SID, "what/is-this"),
    f"{IN_SESSION}/.jsonl": Place(Kind.SIDECAR, KEY, SID, ".jsonl"),
    f"{IN_SESSION}/agent-a1.jsonl": Place(Kind.SIDECAR, KEY, SID, "agent-a1.jsonl"),
    f"file-history/{SID}/89ac1c80@v1": Place(Kind.BACKUP, session=SID, name="89ac1c80@v1"),
    "history.jsonl": Place(Kind.HISTORY),
    "sessions/5523.json": Place(Kind.LIVE, name="5523.json"),
}
FOREIGN = [
    "", ".claude.json", "settings.json", "projects", f"projects/{KEY}", f"projects/{KEY}/memory/MEMORY.md",
    f"projects/{KEY}/sessions-index.json", f"projects/{KEY}/.jsonl", f"projects/{KEY}/...jsonl", "plugins/x.jsonl",
    "sessions/5523.key", f"projects/../{SID}.jsonl", f"projects//{SID}.jsonl", f"/projects/{KEY}/{SID}.jsonl",
    f"projects/{KEY}/{SID}.jsonl\0", "projects/./x.jsonl", f"projects/{KEY}/{'a' * 250}.jsonl",
]  # fmt: skip
UNSAFE = ["", ".", "..", "/", "a/b", "../../etc/passwd", "/etc/passwd", "a\0b", "a" * 250, "é" * 125, "\ud800"]


@pytest.mark.parametrize(("relative", "place"), PLACES.items())
def test_a_path_is_what_the_client_keeps_there(relative: str, place: Place) -> None:
    assert LAYOUT.place(relative) == place


@pytest.mark.parametrize("relative", FOREIGN)
def test_what_is_no_session_data_is_foreign(relative: str) -> None:
    assert LAYOUT.place(relative) == Place(Kind.FOREIGN)


@pytest.mark.parametrize("relative", [path for path, place in PLACES.items() if "log" in place.kind.value])
def test_a_log_has_the_path_that_it_was_recognised_by(relative: str) -> None:
    place = LAYOUT.place(relative)
    assert LAYOUT.log(place.project, place.session or "any", place.name) == relative


segments = st.sampled_from(
    ["projects", "file-history", "sessions", "subagents", "tool-results", "history.jsonl", KEY, SID, f"{SID}.jsonl",
     "agent-1.jsonl", "agent-.jsonl", "agent-1.meta.json", "journal.jsonl", ".jsonl", "..jsonl", "...jsonl", "..", "."]
) | st.text(st.characters(categories=None), max_size=6)  # fmt: skip


@given(st.lists(segments, min_size=1, max_size=20).map("/".join))
@example(f"{IN_SESSION}/" + "a/" * 30 + "x.jsonl")
def test_any_path_is_placed_and_every_log_goes_back_to_it(relative: str) -> None:
    place = LAYOUT.place(relative)
    if place.kind in (Kind.MAIN_LOG, Kind.STRAY_LOG, Kind.SUBLOG):
        assert LAYOUT.log(place.project, place.session, place.name) == relative
    elif place.kind is Kind.FLAT_SUBLOG:
        assert LAYOUT.log(place.project, "any", place.name) == relative


@given(*[st.text(st.characters(categories=None), max_size=12) | st.sampled_from(UNSAFE)] * 3)
@example("..", SID, "")
@example(KEY, SID, "subagents/../../../x")
def test_a_path_is_below_projects_or_it_is_refused(project: str, session: str, subpath: str) -> None:
    try:
        relative = LAYOUT.log(project, session, subpath)
    except UsageError as refusal:
        error = refusal
    else:
        names = relative.split("/")
        assert names[:2] == ["projects", project]
        assert not {"", ".", ".."} & set(names)
        assert "\0" not in relative
        return
    assert error.hint
    assert error.message.isascii()


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_name_is_refused_wherever_it_stands(name: str) -> None:
    with pytest.raises(UsageError):
        LAYOUT.log(KEY, name)
    with pytest.raises(UsageError):
        LAYOUT.session_folder(KEY, name + "a" * 255 if len(name) > 100 else name)
    with pytest.raises(UsageError):
        LAYOUT.log(KEY, SID, f"subagents/{'..' if '/' in name else name}")


@pytest.mark.parametrize("project", ["", ".", "..", "a/b", "a\0b", "a" * 256])
def test_an_unsafe_project_is_refused(project: str) -> None:
    with pytest.raises(UsageError):
        LAYOUT.log(project, SID)


def test_a_subpath_that_nests_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="17 names"):
        LAYOUT.log(KEY, SID, "/".join("a" * 17))


@pytest.mark.parametrize(
    ("name", "is_one"),
    [(SID, True), (SID.upper(), True), ("00000000-0000-0000-0000-000000000000", True), (SID + "\n", False),
     (SID[:-1], False), (SID + "0", False), (SID.replace("-", ""), False), ("agent-a1", False), ("", False),
     (SID.replace("3", "٣"), False)],
)  # fmt: skip
def test_a_session_id_is_a_uuid_of_any_version_and_case(name: str, is_one: bool) -> None:
    assert is_session_id(name) is is_one


def test_a_prefix_of_an_id_has_its_characters_and_no_more() -> None:
    assert all(is_part_of_session_id(SID[:length]) for length in range(1, 37))
    assert not any(map(is_part_of_session_id, ["", "latest", SID + "0", "3718 ", "3718\n"]))


def test_a_loose_folder_holds_sessions_without_a_config_directory() -> None:
    assert LOOSE.log("", SID) == f"{SID}.jsonl"
    assert LOOSE.log("", SID, "subagents/agent-a1") == f"{SID}/subagents/agent-a1.jsonl"
    assert LOOSE.log("", SID, "agent-a1") == "agent-a1.jsonl"
    assert LOOSE.place(f"{SID}.jsonl") == Place(Kind.MAIN_LOG, "", SID)
    assert LOOSE.backups_folder(SID) is LOOSE.history() is LOOSE.live_folder() is None


def test_the_config_directory_of_a_log_is_above_the_innermost_projects_folder() -> None:
    def found(path: str) -> tuple[int, Place] | None:
        return config_root_of(path.split("/"))

    assert found(f"projects/{KEY}/{SID}.jsonl") == (0, Place(Kind.MAIN_LOG, KEY, SID))
    assert found(f"/home/projects/.claude/projects/{KEY}/{SID}.jsonl".removeprefix("/"))[0] == 3  # type: ignore[index]
    assert found(f"a/projects/{KEY}/{SID}/subagents/agent-1.jsonl") == (
        1, Place(Kind.SUBLOG, KEY, SID, "subagents/agent-1")
    )  # fmt: skip
    assert found(f"a/projects/{KEY}/../{SID}.jsonl") is None
    assert found(f"a/{SID}.jsonl") is None
