"""The client's project keys, as measured, and what must hold for any path."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.layouts.keys import KEY_UNITS_MAX, ClaudeKeys, DigestKeys, GitRootKeys, KeyStrategy, base36, java_hash

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
DEEP = "/home/me/" + "/".join(f"seg{n:02d}-{ALPHABET}" for n in range(8))
# Directories that the client was started in, under the names the fact sheet gives them, and the folders it made.
MEASURED = {
    "/home/me/proj": "-home-me-proj",
    "/home/me/under_score": "-home-me-under-score",
    "/home/me/dot.ted": "-home-me-dot-ted",
    "/home/me/sp ace": "-home-me-sp-ace",
    "/home/me/UPPER-Case123": "-home-me-UPPER-Case123",
    "/home/me/a--b": "-home-me-a--b",
    "/home/me/-lead": "-home-me--lead",
    "/home/me/ünïcödé-日本": "-home-me--n-c-d----",
    "/home/me/emoji-😀-x": "-home-me-emoji----x",
    "/home/me/e\u0301-nfd": "-home-me-e--nfd",
    "/a/b_c": "-a-b-c",
    "/a/b-c": "-a-b-c",
    DEEP: "-home-me-" + "".join(f"seg{n:02d}-{ALPHABET}-" for n in range(5)) + "seg05-abcdefghijklmnopqrst" + "-sz8x11",
    # Recorded from a run of the client: 289 units, and the hash is over the path with its underscores.
    "/home/user/20_paths/" + "/".join(f"seg{n:02d}_{ALPHABET}" for n in range(9)): "-home-user-20-paths-"
    + "".join(f"seg{n:02d}-{ALPHABET}-" for n in range(5))
    + "seg05-abcdefghi-j7xbpu",
    "/home/user/20_paths/plain": "-home-user-20-paths-plain",
    "/home/user/20_paths/under_score": "-home-user-20-paths-under-score",
    "/home/user/20_paths/ünïcödé-日本": "-home-user-20-paths--n-c-d----",
    "/home/user/20_paths/emoji-😀-x": "-home-user-20-paths-emoji----x",
}
CLAUDE, DIGEST = ClaudeKeys(), DigestKeys()


@pytest.mark.parametrize(("cwd", "key"), MEASURED.items())
def test_a_measured_directory_has_the_folder_that_the_client_made(cwd: str, key: str) -> None:
    assert CLAUDE.key(cwd) == key
    assert CLAUDE.matches(key, cwd)


def test_200_units_are_not_cut_and_201_are() -> None:
    assert CLAUDE.key("/" + "a" * 199) == "-" + "a" * 199
    cut = CLAUDE.key("/" + "a" * 200)
    assert cut.startswith("-" + "a" * 199 + "-")
    assert len(cut) > KEY_UNITS_MAX + 1


def test_an_emoji_counts_as_two_units_towards_the_limit() -> None:
    assert len(CLAUDE.key("/" + "😀" * 99 + "a")) == KEY_UNITS_MAX
    assert CLAUDE.key("/" + "😀" * 100).startswith("-" * KEY_UNITS_MAX + "-")


def test_a_long_key_matches_any_suffix_and_a_short_one_only_itself() -> None:
    first = CLAUDE.key(DEEP)[:KEY_UNITS_MAX]
    assert CLAUDE.matches(first + "-anything", DEEP)
    assert not CLAUDE.matches(first, DEEP)
    assert not CLAUDE.matches("x" + first + "-anything", DEEP)
    assert not CLAUDE.matches("-home-me-proj-more", "/home/me/proj")


def test_directories_with_one_sanitised_path_are_the_same_project_however_long() -> None:
    assert CLAUDE.is_same("/a/b_c", "/a/b-c")
    assert CLAUDE.is_same(DEEP.replace("-", "_"), DEEP)
    assert not CLAUDE.is_same(DEEP + "/x", DEEP)


def test_the_hash_is_the_one_of_java_strings() -> None:
    assert java_hash("") == 0
    assert java_hash("hello") == 99162322
    assert java_hash("polygenelubricants") == -(2**31)
    assert base36(abs(java_hash("polygenelubricants"))) == "zik0zk"


@pytest.mark.parametrize(("number", "digits"), [(0, "0"), (35, "z"), (36, "10"), (36**3 - 1, "zzz")])
def test_base36_counts_like_everyone(number: int, digits: str) -> None:
    assert base36(number) == digits
    assert int(digits, 36) == number


def test_bytes_that_are_no_utf8_count_as_the_replacement_characters_of_the_client() -> None:
    # A cut three-byte sequence is one U+FFFD to the client and two lone surrogates to Python.
    cwd = os.fsdecode(b"/caf\xe9/\xe6\x97")
    assert CLAUDE.key(cwd) == "-caf---"
    assert CLAUDE.is_same(cwd, "/caf\ufffd/\ufffd")


@given(st.text(st.characters(categories=None), max_size=300) | st.binary(max_size=300).map(os.fsdecode))
def test_any_text_has_a_key_that_is_one_plain_name(cwd: str) -> None:
    for keys in (CLAUDE, DIGEST):
        key = keys.key(cwd)
        assert key.isascii()
        assert key.replace("-", "a").isalnum()
        assert len(key) <= KEY_UNITS_MAX + 8
        assert keys.matches(key, cwd)
        assert keys.is_same(cwd, cwd)


def test_a_digest_tells_nothing_of_the_path_and_is_never_shared() -> None:
    assert DIGEST.key("/a/b_c") != DIGEST.key("/a/b-c")
    assert not DIGEST.is_same("/a/b_c", "/a/b-c")
    assert not DIGEST.matches(DIGEST.key("/a/b_c"), "/a/b-c")
    # `printf /home/me | sha256sum`
    assert DIGEST.key("/home/me") == "1f19107742728ff867bbfbb138fdea3b7ab8ef4c487fa519ebc811980ff7b27d"


ROOTS = {"/repo": "/repo", "/repo/src": "/repo", "/repo-branch": "/repo"}


@pytest.mark.parametrize("inner", [CLAUDE, DIGEST])
def test_worktrees_of_a_repository_share_the_key_of_its_root(inner: KeyStrategy) -> None:
    keys = GitRootKeys(inner, ROOTS.get)
    assert keys.key("/repo-branch") == keys.key("/repo/src") == inner.key("/repo")
    assert keys.matches(inner.key("/repo"), "/repo-branch")
    assert keys.is_same("/repo/src", "/repo-branch")
    assert keys.key("/elsewhere") == inner.key("/elsewhere")
    assert not keys.is_same("/elsewhere", "/repo")
