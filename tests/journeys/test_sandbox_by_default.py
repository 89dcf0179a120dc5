"""A new conversation's commands run in the workspace sandbox without a question; what needs more asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.records import PermissionMode
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.program import ESC, Program, program
from tests.support.sandboxes import needs_full_enforcement
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty


def by_default(folder: Path, url: str) -> Phoenix:
    """An installation that sets no sandbox."""
    return with_claude(folder, url, PHOENIX_SANDBOX="")


async def asked(running: Program) -> None:
    await running.shows("y once", "asks")
    await typing_guard()


async def test_a_confined_command_runs_and_what_needs_more_asks_with_its_reason(tmp_path: Path) -> None:
    await needs_full_enforcement()
    outside = tmp_path / "outside.txt"
    answers = (
        calls("bash", command=f"echo made $((40 + 2)) > a.txt; cat a.txt; echo no > {outside}"),
        calls("bash", "toolu_2", command="pip download x"),
        calls("bash", "toolu_3", command=f"echo yes > {outside}", access="outside", why="the “file” lies there"),
        says("All done."),
    )
    async with serve(*answers) as server, program(by_default(tmp_path, server.url)) as running:
        await running.ready()
        await running.shows("ask · sandbox")
        await running.send("Do it")
        await asked(running)
        assert "made 42" in result_text(server.requests[1])
        assert not outside.exists()
        await running.shows("pip download x", "pypi.org")
        running.type("n")
        await running.shows("“the 'file'")
        await typing_guard()
        running.type("y")
        await running.shows("All done.")
        assert outside.read_text() == "yes\n"


async def test_sandbox_off_asks_as_before_and_the_wider_sandbox_is_confirmed(tmp_path: Path) -> None:
    await needs_full_enforcement()
    answers = (calls("bash", command="echo here"), says("First."), calls("bash", command="echo there"), says("Second."))
    async with serve(*answers) as server:
        phoenix = by_default(tmp_path, server.url)
        async with program(phoenix, "--sandbox", "off") as running:
            await running.ready()
            await running.shows("no sandbox")
            await running.send("Do it")
            await asked(running)
            await running.shows("in ask mode, commands need approval")
            running.type("y")
            await running.shows("First.", "○ ready")
            await running.send("/sandbox read-only")
            await running.shows("Sandbox read-only:")
            await running.send("/sandbox off")
            await running.shows("Change the sandbox from read-only to off?")
            running.type(ESC)
            await running.lacks("Change the sandbox from")
            await running.shows("sandbox read-only")
            await running.send("Again")
            await running.shows("Second.", "○ ready")
        async with program(phoenix, "-c", "--sandbox", "workspace") as running:
            await running.ready()
            await running.shows("--sandbox workspace allows more")
        async with program(phoenix, "-c") as running:
            await running.ready()
            await running.shows("Second.", "ask · sandbox")


async def test_a_run_that_nobody_watches_names_the_way_out(tmp_path: Path) -> None:
    await needs_full_enforcement()
    answers = (calls("bash", command="pip download x"), says("Refused."))
    async with serve(*answers) as server:
        ran = await by_default(tmp_path, server.url).run("-p", "--permission-mode", PermissionMode.ASK.value, "Do it")
        assert ran.code == 0
        assert "--sandbox off" in result_text(server.requests[1])
