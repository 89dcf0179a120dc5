"""SECURITY V8: a rule holds in its project, a path rule below its folder, and no pattern holds the program up."""

from __future__ import annotations

import fnmatch
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.permissions.globs import glob_matches
from engine.permissions.place import project_of
from engine.permissions.rules import KeptRule, Rule, RuledCall, allows, rules_in_force, suggest
from tools.contract import ToolClass, ToolRequest, ToolSpec

CWD = Path("/work/project")
EDIT = ToolSpec("write_file", "", {}, ToolClass.EDIT)
SLOW = ("*a" * 2_000 + "b", "*" * 4_000 + "b", "[a-b]*" * 680, "?*" * 2_000 + "b", "*ab" * 1_300)


# Projects.


def test_a_rule_of_one_project_does_not_hold_in_another() -> None:
    kept = [KeptRule("bash(make test)", project="/work/a"), KeptRule("bash(ls*)")]
    assert [str(rule) for rule in rules_in_force(kept, Path("/work/a"))] == ["bash(make test)", "bash(ls*)"]
    assert [str(rule) for rule in rules_in_force(kept, Path("/work/b"))] == ["bash(ls*)"]
    assert [str(rule) for rule in rules_in_force(kept, Path("/work"))] == ["bash(ls*)"]


# Path rules.


def writes(path: str, folder: Path = CWD) -> RuledCall:
    return RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (Path(path),)), folder)


def test_a_path_rule_is_offered_whole_and_holds_for_that_path_alone() -> None:
    rule = suggest(EDIT, ToolRequest("x", (CWD / "a[1]*.txt",)), CWD)
    assert rule == Rule("write_file", "/work/project/a[[]1][*].txt")
    assert allows(rule, writes("/work/project/a[1]*.txt", Path("/elsewhere")))
    assert not allows(rule, writes("/work/project/a[1]b.txt"))


@pytest.mark.parametrize("pattern", ["*", "?*", "[!a]*", "*/passwd", "**/*", "[/]etc/*", "*etc*", "src/*"])
@pytest.mark.parametrize("path", ["/etc/passwd", "/work/other/src/a", "/work/projects/x"])
def test_a_relative_pattern_never_leaves_its_folder(pattern: str, path: str) -> None:
    assert not allows(Rule("write_file", pattern), writes(path))
    (bound,) = rules_in_force([KeptRule(f"write_file({pattern})", project="/work/project")], CWD)
    assert not allows(bound, writes(path, CWD / "below"))


def test_a_relative_pattern_of_a_project_starts_at_the_project_wherever_one_works() -> None:
    (rule,) = rules_in_force([KeptRule("write_file(src/*)", project="/work/project")], CWD)
    assert allows(rule, writes("/work/project/src/a", CWD / "below"))
    assert not allows(rule, writes("/work/project/below/src/a", CWD / "below"))


@pytest.mark.parametrize("pattern", ["../*", "/work/project/../*", "src/../../*", "/..", ".."])
def test_a_pattern_with_dots_that_lead_up_matches_nothing(pattern: str) -> None:
    for path in ("/work/x", "/work/project/x", "/etc/passwd", "/work/project/../x", "/"):
        assert not allows(Rule("write_file", pattern), writes(path))


@settings(max_examples=300)
@given(st.text("ab*?[]!-/\n", max_size=8), st.text("ab-]!/\n[", max_size=8))
def test_wildcards_mean_what_fnmatch_means_by_them(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_no_pattern_holds_the_program_up(pattern: str) -> None:
    began = time.monotonic()
    glob_matches(pattern, "a" * 4_096)
    assert time.monotonic() - began < 5.0, "exponential before; 20 ms now"


# Which project it is.


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=30)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "main" / "src").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    git(home / "main", "init", "-q")
    git(home / "main", "commit", "-q", "--allow-empty", "-m", "x")
    return home / "main"


def test_a_project_is_the_repository_or_the_folder_itself(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "plain" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(repository / "src")
    inner = repository / "src" / "vendored"
    inner.mkdir()
    git(inner, "init", "-q")
    assert project_of(repository / "src") == repository
    assert project_of(tmp_path / "link") == repository
    assert project_of(inner) == inner, "another repository in it"
    assert project_of(tmp_path / "plain" / "inner") == tmp_path / "plain" / "inner"


def test_a_repository_around_the_home_folder_is_no_project_of_what_lies_in_it(repository: Path) -> None:
    home = repository.parent
    git(home, "init", "-q")
    unpacked = home / "downloads" / "evil"
    unpacked.mkdir(parents=True)
    assert project_of(unpacked) == unpacked
    assert project_of(home) == home


def test_a_worktree_belongs_to_its_repository_only_if_that_names_it(repository: Path) -> None:
    tree, evil = repository.parent / "tree", repository.parent / "evil"
    git(repository, "worktree", "add", "-q", str(tree))
    assert project_of(tree) == repository
    evil.mkdir()
    (evil / ".git").write_bytes((tree / ".git").read_bytes())
    assert project_of(evil) == evil, "it claims to be a worktree"
    for content in (f"gitdir: {repository}/.git\n", f"gitdir: {repository}/.git/worktrees/none\n", "gitdir: \0\n", ""):
        (evil / ".git").write_text(content)
        assert project_of(evil) == evil
    (evil / ".git").unlink()
    os.mkfifo(evil / ".git")
    assert project_of(evil) == evil, "a pipe holds nothing up"
    (evil / ".git").unlink()
    (evil / ".git").symlink_to(repository / ".git")
    assert project_of(evil) == evil
