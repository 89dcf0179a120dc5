"""/worktree in lines: begin in one, list them, merge and remove one, with a yes for each end."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.git_repositories import commit, git, repository
from tests.support.journeys import rows, says
from tests.support.loopback import serve
from tests.support.program import program
from tools.git.repository import FOLDER

ROWS, COLUMNS = 200, 400
"""Rows of a terminal on which nothing scrolls away or wraps during a test."""


async def test_a_worktree_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    async with serve(says("Yes."), says("Yes.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/worktree merge\r")
            await running.shows("This conversation is in no worktree of Phoenix; name one, as in /worktree merge NAME.")
            running.type("/worktree list\r")
            await running.shows("There are no worktrees of this repository; /worktree NAME makes one.")
            running.type("/worktree Fix --base main\r")
            await running.shows(f"Worktree fix: branch phoenix/fix of main, in {tree}.")
            running.type("hello\r")
            await running.shows("Assistant: Yes.")
            commit(tree, "new", "1\n")
            (tree / "left").write_text("x\n", "ascii")
            running.type("/worktree merge\r")
            await running.shows(
                "Merge 1 commit of phoenix/fix into main? Not committed, and so not merged: 1 untracked"
            )
            running.type("2\r")
            await running.shows(f"main in {phoenix.cwd} was fast-forwarded to phoenix/fix. `git reset --keep")
            assert git(phoenix.cwd, "log", "-1", "--format=%s") == "change new"
            running.type("/worktree remove\r")
            await running.shows("Remove the worktree fix? It has 1 untracked file not committed; both can be restored.")
            running.type("1\r")
            running.type("/new\r")
            await running.shows("New conversation.")
            running.type("/worktree list\r")
            await running.shows("1. fix, 0 ahead of main, 0 behind, 1 untracked file")
            running.type("\r")
            running.type("/worktree remove fix\r")
            await running.shows("2. remove the worktree")
            running.type("2\r")
            await running.shows("The branch phoenix/fix is kept: /worktree fix restores all but ignored files.")
            assert not tree.is_dir()
            running.type("/worktree fix\r")
            await running.shows("The changes that were not committed when it was removed are back.")
            assert (tree / "left").read_text("ascii") == "x\n"
    assert rows(
        phoenix, "SELECT DISTINCT cwd FROM conversations JOIN messages ON conversation_id = conversations.id"
    ) == [(str(tree),)]


async def test_files_of_a_trusted_folder_are_asked_about_once_more(tmp_path: Path) -> None:
    async with serve(says("Yes."), says("Yes.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        commit(phoenix.cwd, "AGENTS.md", "Say please.\n")
        async with program(phoenix, "--screen-reader", "--trust", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/worktree one\r")
            await running.shows("Use AGENTS.md in the worktree too? They are the same as in", "2. use them there too")
            running.type("2\r")
            await running.until(lambda: running.text.rstrip().endswith("You:"))
            running.type("hello\r")
            await running.shows("Assistant: Yes.")
            assert "Say please." in str(server.requests[-1].json)


async def test_a_copy_in_a_worktree(tmp_path: Path) -> None:
    async with serve(says("Yes."), says("Yes.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("hello\r")
            await running.shows("Assistant: Yes.")
            running.type("/fork elsewhere\r")
            await running.shows("/fork --worktree NAME copies it into a git worktree,")
            running.type("/fork -w Fix\r")
            await running.shows(f"Worktree fix: branch phoenix/fix of main, in {tree}.", "Forked. You are in the copy.")
    assert {str(row[0]) for row in rows(phoenix, "SELECT cwd FROM conversations")} == {str(phoenix.cwd), str(tree)}
