"""Worktrees of a repository, found without git, and pointers that lie."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.engines.filesystem import OsFileSystem
from clew.engines.worktrees import POINTER_BYTES_MAX, repository_root, worktrees
from clew.layouts.keys import ClaudeKeys, GitRootKeys

FS = OsFileSystem()


def repository(top: Path) -> Path:
    """A main worktree as git makes it, as far as it matters here."""
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return top


def linked(main: Path, top: Path, *, relative: bool = False, name: str = "") -> Path:
    """A linked worktree of `main` at `top`, with pointers both ways."""
    common = main / ".git" if (main / ".git").is_dir() else main
    own = common / "worktrees" / (name or top.name)
    own.mkdir(parents=True)
    top.mkdir(parents=True, exist_ok=True)
    (own / "HEAD").write_text("ref: refs/heads/branch\n")
    (own / "commondir").write_text("../..\n")
    back, there = (os.path.relpath(top / ".git", own), os.path.relpath(own, top)) if relative else (top / ".git", own)
    (own / "gitdir").write_text(f"{back}\n")
    (top / ".git").write_text(f"gitdir: {there}\n")
    return top


def found(cwd: Path) -> list[str]:
    return worktrees(FS, str(cwd))


@pytest.mark.parametrize("relative", [False, True])
def test_every_worktree_knows_all_of_them_the_main_one_first(tmp_path: Path, relative: bool) -> None:
    main = repository(tmp_path / "main")
    others = [linked(main, tmp_path / name, relative=relative) for name in ("zeta", "alpha")]
    (main / "src" / "deep").mkdir(parents=True)
    for cwd in (main, main / "src" / "deep", *others):
        assert found(cwd) == [str(main), str(tmp_path / "alpha"), str(tmp_path / "zeta")]
        assert repository_root(FS, str(cwd)) == str(main)


def test_outside_a_repository_there_are_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert found(tmp_path) == []
    assert repository_root(FS, str(tmp_path)) is None


def test_a_worktree_that_was_removed_is_remembered_as_long_as_the_repository_does(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    gone = linked(main, tmp_path / "gone")
    shutil.rmtree(gone)
    assert found(main) == [str(main), str(gone)]


def test_a_directory_that_does_not_confirm_the_repository_is_no_worktree_of_it(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    victim = linked(main, tmp_path / "victim")
    (victim / ".git").unlink()
    assert found(main) == [str(main)]
    other = repository(tmp_path / "other")
    own = linked(main, tmp_path / "liar", name="liar")
    (main / ".git/worktrees/liar/gitdir").write_text(f"{other}/.git\n")
    assert found(main) == [str(main)]
    assert found(own) == [str(own)]


@pytest.mark.parametrize("claim", ["../main/.git", "../main/.git/worktrees/true"])
def test_a_directory_that_claims_a_repository_stands_for_itself(tmp_path: Path, claim: str) -> None:
    main = repository(tmp_path / "main")
    linked(main, tmp_path / "true")
    liar = tmp_path / "liar"
    liar.mkdir()
    (liar / ".git").write_text(f"gitdir: {claim}\n")
    assert found(liar) == [str(liar)]
    assert repository_root(FS, str(liar)) == str(liar)


def test_a_submodule_stands_for_itself(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    module = main / ".git" / "modules" / "sub"
    module.mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    sub = main / "sub"
    sub.mkdir()
    (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert found(sub) == [str(sub)]
    assert found(main) == [str(main)]


def test_worktrees_of_a_bare_repository_have_no_main_one(tmp_path: Path) -> None:
    bare = tmp_path / "repo.git"
    bare.mkdir()
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    one, two = linked(bare, tmp_path / "one"), linked(bare, tmp_path / "two")
    assert found(one) == found(two) == [str(one), str(two)]
    assert repository_root(FS, str(one)) == repository_root(FS, str(two)) == str(bare)


@pytest.mark.parametrize(
    "content",
    [b"", b"gitdir:", b"gitdir: \n", b"nonsense", b"gitdir: a\0b\n", b"gitdir: a\nb\n", b"gitdir: /\n", b"gitdir: ..",
     b"gitdir: \xff\xfe\n", b"gitdir: " + b"a" * POINTER_BYTES_MAX, b"gitdir: /dev/zero\n"],
)  # fmt: skip
def test_a_broken_git_file_breaks_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert found(tmp_path) in ([], [str(tmp_path)])
    main = repository(tmp_path / "main")
    other = linked(main, tmp_path / "other")
    (main / ".git/worktrees/other/gitdir").write_bytes(content.removeprefix(b"gitdir: "))
    assert str(other) not in found(main)
    (other / ".git").write_bytes(content)
    assert found(main) == [str(main)]


def test_a_pipe_or_a_circle_in_the_place_of_a_git_file_does_not_stop_us(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert found(tmp_path) == []
    main = repository(tmp_path / "main")
    other = linked(main, tmp_path / "other")
    (other / ".git").unlink()
    (other / ".git").symlink_to(other / ".git")
    assert found(main) == [str(main)]


def test_a_repository_that_is_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    other = linked(main, tmp_path / "other")
    (tmp_path / "link").symlink_to(main)
    (other / ".git").write_text(f"gitdir: {tmp_path}/link/.git/worktrees/other\n")
    assert found(main) == [str(main), str(other)]


def test_worktrees_share_a_project_key_by_the_root_of_their_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    other = linked(main, tmp_path / "other")
    keys = GitRootKeys(ClaudeKeys(), lambda cwd: repository_root(FS, cwd))
    assert keys.key(str(other)) == keys.key(str(main)) == ClaudeKeys().key(str(main))


GIT = shutil.which("git")


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_git_itself_agrees(tmp_path: Path) -> None:
    def git(*arguments: str, cwd: Path = tmp_path) -> str:
        run = subprocess.run([str(GIT), *arguments], cwd=cwd, check=True, capture_output=True, text=True)
        return run.stdout

    main = tmp_path / "main"
    git("init", "--quiet", str(main))
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x", cwd=main)
    for name in ("one", "two", "sub/three"):
        git("worktree", "add", "--quiet", "--detach", str(tmp_path / name), cwd=main)
    shutil.rmtree(tmp_path / "two")
    listed = [row.split(" ", 1)[1] for row in git("worktree", "list", "--porcelain", cwd=main).splitlines()
              if row.startswith("worktree ")]  # fmt: skip
    assert len(listed) == 4
    for cwd in (main, tmp_path / "one", tmp_path / "sub" / "three"):
        assert set(found(cwd)) == set(listed)
        assert found(cwd)[0] == str(main)
