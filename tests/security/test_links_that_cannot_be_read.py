"""SECURITY T7: a link of a repository to what this user cannot read stops no command and no tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.git_repositories import empty_repository
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.sandboxes import sandbox

CLOSED = "/proc/1/cwd"
"""A link that neither another user nor a container may follow."""


@pytest.mark.parametrize("target", [CLOSED, f"{CLOSED}/x"])
@pytest.mark.parametrize(
    "name",
    [
        ".git",
        "sub/.git",
        ".hg",
        "AGENTS.md",
        ".claude",
        *(f".git/{one}" for one in ("hooks", "config", "commondir", "info")),
    ],
)
async def test_commands_run_beside_a_link_that_cannot_be_read(tmp_path: Path, name: str, target: str) -> None:
    if name.startswith(".git/"):
        empty_repository(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(target)
    async with sandbox(tmp_path) as box:
        assert await box.sh(f"mkdir x; ln -s {CLOSED} x/.git; ln -s {CLOSED} .svn; echo one") == "one\n"
        assert await box.sh("echo two") == "two\n"


async def test_a_tool_names_a_link_that_cannot_be_read(tmp_path: Path) -> None:
    async with serve(calls("search", pattern="x", path="link"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "link").symlink_to(CLOSED)
        (phoenix.cwd / "AGENTS.md").symlink_to(CLOSED)
        ran = await phoenix.run("-p", "--permission-mode", "auto", "Search")
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert b"[no match in 0 files]" in server.requests[-1].body
