"""Views read every row that there is, and say what they could not read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from clew.errors import UsageError
from clew.plugins import entry_points_of
from clew.records import attachment, bookkeeping, file_history, heads, links, messages, system, titles, views
from clew.records.table import NOT_IN_TABLE, VIEWS
from clew.records.views import Envelope, JsonValue, Opaque, Unknown, View, view_class, view_of

Object = dict[str, JsonValue]

ROWS = (Path(__file__).parent.parent / "data" / "one_row_of_each.jsonl").read_bytes().splitlines(keepends=True)
NAMED_BY_THE_FORMAT = """
    user assistant system attachment progress
    file-history-snapshot file-history-delta last-prompt custom-title agent-name ai-title tag summary task-summary
    mode permission-mode queue-operation cost-state tools-used atis-latch agent-color agent-setting speculation-accept
    content-replacement pr-link worktree-state relocated bridge-session frame-link fork-context-ref saved_hook_context
    started result agent_metadata marble-origami-commit marble-origami-snapshot
    artifact-autoreact-ledger artifact-comment-monitor
    api-request-shape api-request-blob api-request
    continued-in resume-head-vouch session-owner memory-mode data-flow-records data-flow-incomplete derived-from
    isolation-latch ended-by-model attribution-snapshot observer-ref dev-mods repl-mode history-suppression
"""
OURS = ["clew-session", "clew-fork"]
KINDS_NAMED_BY_THE_FORMAT = """
    environment model date session_context total_tokens_reminder deferred_tools_delta agent_listing_delta skill_listing
    remote_session_change prompt_snapshot queued_command unknown_command_fallback
"""
KINDS = KINDS_NAMED_BY_THE_FORMAT.split()


def whole(raw: bytes) -> Object:
    value: Object = json.loads(raw)
    return value


def view(row: Object | bytes) -> View:
    raw = row if isinstance(row, bytes) else json.dumps(row).encode()
    fields = whole(raw)
    kind = fields.get("type")
    return view_of(raw, kind if isinstance(kind, str) else None, lambda: fields)


def never() -> dict[str, JsonValue]:
    raise AssertionError("the body was asked for")


def unread(fields: object, cls: type[msgspec.Struct], at: str = "") -> Iterator[str]:
    """The keys of a row that its view has no field for, inside objects of a known shape too."""
    assert isinstance(fields, dict)
    known = {field.encode_name: field.type for field in msgspec.structs.fields(cls)}
    for name, value in fields.items():
        if name not in known:
            yield at + name
        elif (found := views._struct_in(known[name])) is not None and value is not None:
            inner, container = found
            items = value.values() if container is dict else value if container is tuple else [value]
            for item in items:
                yield from unread(item, inner, f"{at}{name}.")


# The table


def test_every_type_that_the_format_names_has_a_view() -> None:
    assert sorted([*NAMED_BY_THE_FORMAT.split(), *OURS]) == sorted(VIEWS)


def test_every_line_of_the_table_leads_to_a_view() -> None:
    for kind in VIEWS:
        assert issubclass(view_class(kind), View), kind


def test_every_module_of_the_folder_is_in_the_table_or_is_named_as_none_of_its() -> None:
    folder = Path(views.__file__).parent
    there = {path.stem for path in folder.glob("*.py")} - {"__init__", "table"}
    used = {where.partition(":")[0].rpartition(".")[2] for where in VIEWS.values()}
    assert there == used | NOT_IN_TABLE


def test_every_view_class_of_the_families_is_used_by_the_table() -> None:
    used = {view_class(kind) for kind in VIEWS} | {View, Envelope, Opaque, Unknown}
    for name in {where.partition(":")[0] for where in VIEWS.values()}:
        for thing in vars(sys.modules[name]).values():
            if isinstance(thing, type) and issubclass(thing, View) and thing.__module__ == name:
                assert thing in used


def test_the_sample_has_a_row_of_every_type_and_kind() -> None:
    assert {whole(raw)["type"] for raw in ROWS} == set(VIEWS)
    kinds = {found.kind for raw in ROWS if isinstance(found := view(raw), attachment.Attachment)}
    assert kinds == {*KINDS, "never_seen_before"}
    assert set(KINDS) == set(attachment.PAYLOADS)


# Rows as the client writes them


@pytest.mark.parametrize("raw", ROWS)
def test_a_row_reads_without_misfits_and_without_its_body(raw: bytes) -> None:
    found = view_of(raw, str(whole(raw)["type"]), never)
    assert found.misfits == ()
    assert found.type == whole(raw)["type"]


@pytest.mark.parametrize("raw", ROWS)
def test_a_row_reads_the_same_when_the_fast_decoder_refuses_it(raw: bytes) -> None:
    row = whole(raw)
    slow = view_of(b"\xef\xbb\xbf" + raw, str(row["type"]), lambda: row)
    assert slow == view(raw)


@pytest.mark.parametrize("raw", ROWS)
def test_no_key_of_a_row_is_left_without_a_field(raw: bytes) -> None:
    found, row = view(raw), whole(raw)
    if isinstance(found, Opaque):
        return
    assert list(unread(row, type(found))) == []
    if isinstance(found, attachment.Attachment) and found.kind in attachment.PAYLOADS:
        assert list(unread(found.fields, type(found.payload))) == ["type"]


def test_the_views_of_a_compaction_say_what_is_kept() -> None:
    [row] = [raw for raw in ROWS if b'"compact_boundary"' in raw]
    boundary = view(row)
    assert isinstance(boundary, system.System)
    assert boundary.is_compact_boundary
    assert boundary.parent_uuid is None
    metadata = boundary.compact_metadata
    assert metadata is not None
    assert metadata.preserved_messages is not None
    assert metadata.preserved_segment is not None
    assert metadata.preserved_messages.uuids == (metadata.preserved_segment.head_uuid,)


def test_names_that_the_client_spells_its_own_way_are_read() -> None:
    user = view({"type": "user", "sourceToolAssistantUUID": "a", "sourceToolUseID": "b"})
    assert isinstance(user, messages.User)
    assert (user.source_tool_assistant_uuid, user.source_tool_use_id) == ("a", "b")
    cost = view({"type": "cost-state", "totalCostUSD": 1, "totalAPIDuration": 2})
    assert isinstance(cost, bookkeeping.CostState)
    assert (cost.total_cost_usd, cost.total_api_duration) == (1, 2)
    hook = view({"type": "saved_hook_context", "toolUseID": "c"})
    assert isinstance(hook, links.SavedHookContext)
    assert hook.tool_use_id == "c"


def test_the_two_spellings_of_the_session_id_are_two_fields() -> None:
    row = view({"type": "user", "sessionId": "now", "session_id": "first"})
    assert isinstance(row, messages.User)
    assert (row.session_id, row.first_session_id) == ("now", "first")


def test_a_row_that_no_model_wrote_is_synthetic() -> None:
    said = [row for raw in ROWS if isinstance(row := view(raw), messages.Assistant)]
    assert {row.is_synthetic for row in said} == {True, False}
    assert {row.made_by for row in said if not row.is_synthetic} == {"model", None}


# Absent, null and wrong are three things


def test_a_head_pointer_to_nothing_is_not_a_row_without_a_head_pointer() -> None:
    empty, silent, wrong = (
        view({"type": "last-prompt", "leafUuid": None, "explicit": True}),
        view({"type": "last-prompt", "lastPrompt": "hi"}),
        view({"type": "last-prompt", "leafUuid": 7, "explicit": True}),
    )
    assert isinstance(empty, heads.LastPrompt)
    assert empty.leaf_uuid is None
    assert isinstance(silent, heads.LastPrompt)
    assert silent.leaf_uuid is UNSET
    assert isinstance(wrong, heads.LastPrompt)
    assert wrong.leaf_uuid is UNSET
    assert wrong.explicit is True
    assert wrong.misfits == ("leafUuid",)


def test_a_backup_name_of_a_wrong_type_never_reads_as_a_file_that_did_not_exist() -> None:
    backups: Object = {"gone": {"backupFileName": None}, "bad": {"backupFileName": 5, "version": 2}, "none": 3}
    found = view({"type": "file-history-snapshot", "snapshot": {"messageId": "m", "trackedFileBackups": backups}})
    assert isinstance(found, file_history.FileHistorySnapshot)
    assert found.snapshot is not None
    names = {path: backup.backup_file_name for path, backup in found.snapshot.tracked_file_backups.items()}
    assert names == {"gone": None, "bad": UNSET, "none": UNSET}
    assert found.snapshot.tracked_file_backups["bad"].version == 2
    assert found.misfits == (
        "snapshot.trackedFileBackups.bad.backupFileName",
        "snapshot.trackedFileBackups.none",
    )


def test_a_null_where_none_belongs_counts_as_absent() -> None:
    found = view({"type": "tools-used", "tools": None, "sessionId": "s"})
    assert isinstance(found, bookkeeping.ToolsUsed)
    assert found.tools == ()
    assert found.session_id == "s"
    assert found.misfits == ()


def test_one_bad_field_costs_nothing_beside_it() -> None:
    metadata: Object = {"trigger": 4, "preTokens": 15, "preservedSegment": {"headUuid": "h", "tailUuid": []}}
    found = view({"type": "system", "subtype": "compact_boundary", "uuid": "u", "cwd": 1, "compactMetadata": metadata})
    assert isinstance(found, system.System)
    assert found.compact_metadata is not None
    assert (found.uuid, found.compact_metadata.pre_tokens) == ("u", 15)
    assert found.compact_metadata.preserved_segment == system.PreservedSegment(head_uuid="h")
    assert set(found.misfits) == {"cwd", "compactMetadata.trigger", "compactMetadata.preservedSegment.tailUuid"}


def test_one_of_several_that_is_no_object_leaves_the_others_in_their_places() -> None:
    found = view({"type": "derived-from", "sessions": [{"id": "a"}, 5, {"id": "b", "via": 1}]})
    assert isinstance(found, links.DerivedFrom)
    assert [session.id for session in found.sessions] == ["a", None, "b"]
    assert found.misfits == ("sessions.1", "sessions.2.via")


# Hostile rows


@pytest.mark.parametrize("first_decoder_takes_it", [True, False])
def test_misfits_are_never_read_from_a_row(first_decoder_takes_it: bool) -> None:
    lie: Object = {"<misfits>": ["lie"], "misfits": ["lie"], "type": "tag"}
    found = view({**lie, "tag": "x" if first_decoder_takes_it else 1})
    assert found.misfits == (() if first_decoder_takes_it else ("tag",))
    assert view({"type": "tag", "tag": "x", "<misfits>": 1}).misfits == ()
    assert view({**lie, "type": "nobody-knows"}).misfits == ()


def test_the_payload_of_an_attachment_is_never_read_from_beside_it() -> None:
    lies: list[JsonValue] = [{"date": "never"}, 5]
    for lie in lies:
        found = view({"type": "attachment", "attachment": {"type": "date", "date": "today"}, "<payload>": lie})
        assert isinstance(found, attachment.Attachment)
        assert found.payload == attachment.DateNote(date="today")


@pytest.mark.parametrize(
    "odd", ['"\\ud800"', '{"\\ud800":1}', "NaN", "1e999", "9" * 400, "[" * 300 + "]" * 300, "true"]
)
@pytest.mark.parametrize("kind", VIEWS)
def test_an_odd_value_in_every_field_never_raises(kind: str, odd: str) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(view_class(kind)) if field.name != "type"]
    fields = ",".join(f'"{name}":{odd}' for name in names)
    raw = f'{{"type":"{kind}",{fields}}}'.encode()
    assert view(raw).type == kind


def test_a_lone_surrogate_costs_no_field() -> None:
    found = view(b'{"type":"custom-title","customTitle":"a\\ud83d","sessionId":"s"}')
    assert isinstance(found, titles.CustomTitle)
    assert (found.custom_title, found.session_id, found.misfits) == ("a\ud83d", "s", ())


def test_an_attachment_that_is_no_object_or_has_no_kind_is_unknown_and_says_so() -> None:
    cases: list[tuple[JsonValue, tuple[str, ...]]] = [
        (5, ("attachment",)),
        ({"type": 5}, ("attachment.type",)),
        ({}, ()),
    ]
    for payload, misfits in cases:
        found = view({"type": "attachment", "attachment": payload, "uuid": "u"})
        assert isinstance(found, attachment.Attachment)
        assert isinstance(found.payload, attachment.UnknownAttachment)
        assert (found.kind, found.uuid, found.misfits) == (None, "u", misfits)


def test_a_misfit_inside_an_attachment_is_named_from_the_top_of_the_row() -> None:
    payload: Object = {"type": "environment", "snapshot": {"shell": 1, "platform": "linux"}}
    found = view({"type": "attachment", "attachment": payload})
    assert isinstance(found, attachment.Attachment)
    assert found.payload == attachment.EnvironmentNote(attachment.EnvironmentSnapshot(platform="linux"))
    assert found.misfits == ("attachment.snapshot.shell",)


def test_an_unknown_kind_of_attachment_keeps_all_it_says() -> None:
    payload: Object = {"type": "never_seen_before", "whatever": [1, {"deep": None}]}
    found = view({"type": "attachment", "attachment": payload})
    assert isinstance(found, attachment.Attachment)
    assert found.payload == attachment.UnknownAttachment(payload)
    assert found.misfits == ()


def test_an_unknown_type_and_a_row_without_one_keep_all_fields() -> None:
    rows: list[Object] = [
        {"type": "new-thing", "sessionId": "s", "x": [1]},
        {"sessionId": "s"},
        {"type": 5, "sessionId": "s"},
    ]
    for row in rows:
        found = view(row)
        assert isinstance(found, Unknown)
        assert (found.fields, found.session_id) == (row, "s")
    assert found.misfits == ("type",)


def json_objects(names: Callable[[], st.SearchStrategy[str]]) -> st.SearchStrategy[Object]:
    scalars: st.SearchStrategy[JsonValue] = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=8)
    )
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names() | st.text(max_size=4), inner, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(names() | st.text(max_size=4), values, max_size=8)


def inner_names() -> st.SearchStrategy[str]:
    """Keys that the views read, at any depth, so that wrong types meet right names."""
    classes: set[type[msgspec.Struct]] = {view_class(kind) for kind in VIEWS} | set(attachment.PAYLOADS.values())
    names: set[str] = {"misfits"}
    waiting = list(classes)
    while waiting:
        for field in msgspec.structs.fields(waiting.pop()):
            names.add(field.encode_name)
            found = views._struct_in(field.type)
            if found is not None and found[0] not in classes:
                classes.add(found[0])
                waiting.append(found[0])
    return st.sampled_from(sorted(names))


@given(kind=st.sampled_from(sorted(VIEWS)), row=json_objects(inner_names))
def test_any_object_with_a_known_type_has_a_view(kind: str, row: Object) -> None:
    found = view({**row, "type": kind})
    assert type(found) is view_class(kind)
    assert found.type == kind
    for name in found.misfits:
        assert any(name == key or name.startswith(key + ".") for key in row), name


@given(kind=st.sampled_from(KINDS), payload=json_objects(inner_names))
def test_any_object_as_an_attachment_of_a_known_kind_has_its_payload(kind: str, payload: Object) -> None:
    found = view({"type": "attachment", "attachment": {**payload, "type": kind}})
    assert isinstance(found, attachment.Attachment)
    assert type(found.payload) is attachment.PAYLOADS[kind]


# Outside packages


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that registers views: a good one, one that does not load, one that is none, one of ours."""
    (tmp_path / "outside_views.py").write_text(
        "from clew.records.views import View\n"
        "class Weather(View, frozen=True):\n    degrees: int | None = None\n"
        "class Stolen(View, frozen=True):\n    pass\n"
    )
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[clew.records]\nweather = outside_views:Weather\ntag = outside_views:Stolen\n"
        "lost = outside_views:Nothing\nnone = builtins:int\n"
    )
    caches = (entry_points_of, views._theirs)
    monkeypatch.syspath_prepend(tmp_path)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()
    sys.modules.pop("outside_views", None)


@pytest.mark.usefixtures("outside")
def test_an_outside_package_reads_its_own_type() -> None:
    found = view({"type": "weather", "degrees": 4, "sessionId": "s"})
    assert type(found).__name__ == "Weather"
    assert msgspec.structs.asdict(found)["degrees"] == 4
    assert view({"type": "weather", "degrees": "four"}).misfits == ("degrees",)


@pytest.mark.usefixtures("outside")
def test_an_outside_package_takes_no_type_of_ours() -> None:
    assert isinstance(view({"type": "tag", "tag": "x"}), titles.Tag)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("kind", ["lost", "none"])
def test_an_outside_view_that_cannot_be_used_is_named_with_its_package(kind: str) -> None:
    with pytest.raises(UsageError, match=f"records of type {kind}") as caught:
        view({"type": kind})
    assert caught.value.hint == "pip uninstall outside"


@pytest.mark.usefixtures("outside")
def test_outside_packages_are_loaded_only_when_their_type_is_read() -> None:
    view({"type": "tag", "tag": "x"})
    assert entry_points_of.cache_info().currsize == 0
    view({"type": "nobody-knows"})
    assert "outside_views" not in sys.modules
