"""`clew tree`: leaves, forks and the head, also of logs that are no trees at all."""

from __future__ import annotations

from pathlib import Path

from clew_calls import Run
from session_files import assistant, in_bytes, session_id, two_turns, user, write

ID = session_id(1)


def test_json_is_the_document_of_the_contract(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), user("u5", "the\nother way", "a2", 5))
    done = run("tree", "--json", ID)
    assert (done.code, done.err) == (0, "")
    assert done.json == {
        "head": "u5",
        "leaves": [
            {"uuid": "a4", "depth": 4, "timestamp": "2026-11-18T10:00:04.000Z", "preview": "second answer",
             "is_head": False},
            {"uuid": "u5", "depth": 3, "timestamp": "2026-11-18T10:00:05.000Z", "preview": "the other way",
             "is_head": True},
        ],
        "forks": [{"uuid": "a2", "children": ["u3", "u5"]}],
    }  # fmt: skip


def test_people_see_forks_leaves_and_the_head(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, *two_turns(), user("u5", "other way", "a2", 5))
    assert run("tree", ID).out.splitlines() == [
        f"{ID}  5 rows · 2 leaves · 1 fork",
        "head u5 (the last row of the file)",
        "",
        "│ u1 2026-11-18 10:00 first question",
        "┬ a2 2026-11-18 10:00 first answer",
        "  ○ a4 2026-11-18 10:00 second answer  +1",
        "  ● u5 2026-11-18 10:00 other way  ← head",
        "",
        f"To read a branch: clew show {ID} --at UUID",
    ]


def test_an_empty_log_has_an_empty_tree(run: Run, config_dir: Path) -> None:
    write(config_dir, 1, raw=b"")
    assert run("tree", "--json", ID).json == {"head": None, "leaves": [], "forks": []}
    assert run("tree", ID).code == 0


def test_a_circle_a_lost_parent_and_a_second_root_are_drawn(run: Run, config_dir: Path) -> None:
    rows = [user("c1", "circle", "c2", 1), assistant("c2", "back", "c1", 2), user("r1", "root", None, 3),
            user("l1", "lost", "nowhere", 4), user("s1", "itself", "s1", 5)]  # fmt: skip
    write(config_dir, 1, *rows)
    out = run("tree", ID).out
    for word in ("circle", "root", "lost", "itself"):
        assert word in out
    tree = run("tree", "--json", ID).json
    assert {leaf["uuid"]: leaf["depth"] for leaf in tree["leaves"]} == {"r1": 1, "l1": 1}


def test_a_drawing_has_an_end_and_json_has_every_leaf(run: Run, config_dir: Path) -> None:
    count = 5_000
    rows = [user("root", "root"), *(user(f"leaf{number:06}", f"try {number}", "root", 1) for number in range(count))]
    write(config_dir, 1, raw=in_bytes(*rows))
    out = run("tree", ID).out
    assert len(out.splitlines()) < 70
    assert "all 5,000 leaves" in out
    assert len(run("tree", "--json", ID).json["leaves"]) == count


def test_a_long_chain_and_a_deep_comb_need_no_recursion(run: Run, config_dir: Path) -> None:
    rows = [user("n0", "start")]
    for number in range(1, 3_000):
        rows += [user(f"n{number}", "next", f"n{number - 1}"), user(f"x{number}", "aside", f"n{number - 1}")]
    write(config_dir, 1, raw=in_bytes(*rows))
    assert run("tree", ID).code == 0
    tree = run("tree", "--json", ID).json
    assert max(leaf["depth"] for leaf in tree["leaves"]) == 3_000
    assert len(tree["forks"]) == 2_999


def test_hostile_rows_cannot_reach_the_terminal(run: Run, config_dir: Path) -> None:
    evil = "\x1b[2J\u202e\x9b"
    write(config_dir, 1, user(evil, evil, None) | {"timestamp": evil}, user("u2", "x", evil) | {"subtype": evil})
    out = run("tree", ID).out
    assert not set(out) & set(evil[0] + evil[-1] + "\u202e")
    assert "\\x1b[2J" in out
