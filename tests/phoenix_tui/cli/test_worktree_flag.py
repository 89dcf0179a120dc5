"""`--worktree`: made before the conversation, whose working directory it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.git_repositories import git, repository
from tests.support.journeys import rows, says
from tests.support.loopback import serve
from tests.support.program import program
from tools.git.repository import FOLDER


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


@pytest.mark.parametrize("flags", [("-c",), ("-r", "ask-first")])
async def test_a_copy_of_a_conversation_works_in_a_worktree_of_its_folder(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    async with serve(*(says("Yes.") for _ in range(2))) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix-it"
        await phoenix.run("-p", "--name", "Ask first", "a")
        ran = await phoenix.run("-p", *flags, "--fork", "-w", "Fix it", "--", "b")
        assert (ran.code, ran.out.strip()) == (0, "Yes."), ran.err
        assert f"in {tree}." in ran.err
        told = server.requests[1].body.decode()
        found = rows(phoenix, "SELECT cwd FROM conversations ORDER BY rowid")
    assert found == [(str(phoenix.cwd),), (str(tree),)]
    assert f"a git worktree on the branch phoenix/fix-it that began with the newest commit of {phoenix.cwd}" in told


async def test_a_copy_of_nothing_makes_no_worktree(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    repository(phoenix.cwd)
    ran = await phoenix.run("-p", "-r", "nothing", "--fork", "-w", "x", "--", "a")
    assert (ran.code, ran.out) == (2, "")
    assert "nothing" in ran.err
    assert not (phoenix.cwd.parent / FOLDER).exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("-c", "-w", "x"),
            "--worktree begins a new conversation; add --fork to copy one into it, or leave out -c and -r.",
        ),
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


async def test_the_screen_opens_a_copy_in_its_worktree(tmp_path: Path) -> None:
    async with serve(says("Yes.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        await phoenix.run("-p", "--name", "Ask first", "a")
        async with program(phoenix, "-r", "ask-first", "--fork", "-w", "fix", rows=30, columns=160) as running:
            await running.shows("Worktree fix: branch phoenix/fix of main", "Yes.", "(phoenix/fix)")
