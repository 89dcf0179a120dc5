"""`--worktree`: made before the conversation, whose working directory it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.git_repositories import git, repository
from tests.support.journeys import rows, says
from tests.support.loopback import serve
from tests.support.program import program
from tools.git.worktree_names import FOLDER


async def test_a_run_works_in_its_worktree_and_says_where_that_is(tmp_path: Path) -> None:
    async with serve(*(says("Yes.") for _ in range(3))) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix-it"
        ran = await phoenix.run("-p", "-w", "Fix it", "--", "a")
        assert (ran.code, ran.out.strip()) == (0, "Yes.")
        assert f"Worktree fix-it: branch phoenix/fix-it of main, in {tree}." in ran.err
        assert git(tree, "branch", "--show-current") == "phoenix/fix-it"
        ran = await phoenix.run("-p", "--worktree", "fix-it", "b")
        assert "is used again" in ran.err
        assert (await phoenix.run("-p", "-w", "--base", "main", "c")).code == 0
        folders = rows(phoenix, "SELECT cwd FROM conversations ORDER BY rowid")
        assert folders == [(str(tree),), (str(tree),), (str(tree.with_name("work-1")),)]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-c", "-w", "x"), "--worktree begins a new conversation; leave it out with -c and -r."),
        (("--base", "main"), "--base works with --worktree; add -w NAME."),
        (("-w", "x", "--base", "nothing"), "There is no branch, tag or commit nothing here; `git branch` lists them."),
        (("-w", "merge"), "The name merge has no letters or digits of ASCII, or is a word of /worktree."),
    ],
)
async def test_what_cannot_be_is_one_sentence(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    repository(phoenix.cwd)
    ran = await phoenix.run("-p", *flags, "--", "a")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


async def test_outside_a_repository_it_is_one_sentence(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    ran = await phoenix.run("-p", "-w", "x", "--", "a")
    assert ran.code == 2
    assert "is in no git repository" in ran.err


async def test_the_doctor_counts_worktrees_and_names_what_a_crash_left(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")

    async def said() -> tuple[str, str]:
        found = {row["topic"]: row for row in (await phoenix.run("doctor", "--json")).json}
        return found["git worktree"]["health"], found["git worktree"]["text"]

    health, text = await said()
    assert health == "ok"
    assert text.startswith("not here: ")
    repository(phoenix.cwd)
    assert await said() == ("ok", "0 worktrees of this repository")
    (phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix").mkdir(parents=True)
    health, text = await said()
    assert health == "note"
    assert text.startswith("fix left by a crash; ")


async def test_the_screen_begins_in_the_worktree_and_counts_its_commits_after_a_run(tmp_path: Path) -> None:
    async with serve(says("Yes."), says("Yes.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        async with program(phoenix, "-w", "fix", rows=30, columns=160) as running:
            await running.shows("Worktree fix: branch phoenix/fix of main", "(phoenix/fix)")
            running.type("!git -c user.name=n -c user.email=e commit -q --allow-empty -m x; touch new\r")
            await running.shows("(phoenix/fix +1 *)")
