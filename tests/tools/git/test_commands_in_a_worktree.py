"""Commands in the sandbox of a worktree: git works there, and nothing of the repository's own tree changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.git_repositories import git, repository
from tests.support.plain_runner import PlainRunner
from tools.contract import Command, Sandbox, SandboxMode
from tools.git.ending import standing_of
from tools.git.making import make_worktree
from tools.process.start import ProcessSettings, start_processes


async def test_a_command_in_the_sandbox_commits_on_the_branch_of_the_worktree(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = (await make_worktree(PlainRunner(), repo, "fix")).folder
    processes = await start_processes(ProcessSettings(environment=dict(os.environ)))
    try:
        if not (await processes.probe()).sandbox:
            pytest.skip("no sandbox here")
        line = (
            "echo 1 > new && git add new && git -c user.name=n -c user.email=e commit -qm sandboxed; "
            f"echo x > {repo}/README; echo x > {tree.parent}/beside; git config user.name evil; true"
        )
        limits = Sandbox(SandboxMode.WORKSPACE, network=False)
        ended = await processes.runner.run(Command(("/bin/sh", "-c", line), tree, 30.0, sandbox=limits))
    finally:
        await processes.close()
    assert git(tree, "log", "-1", "--format=%s") == "sandboxed", ended.captured.head
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "README").read_text("ascii") == "one\n"
    assert not (tree.parent / "beside").exists()
    assert "evil" not in (repo / ".git" / "config").read_text("utf-8")
    found = await standing_of(PlainRunner(), tree)
    assert found is not None
    assert (found.ahead, found.dirty) == (1, False)
