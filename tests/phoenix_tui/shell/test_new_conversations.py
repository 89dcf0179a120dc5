"""Options of a new conversation: from the settings and the profile, independent of the one it is opened from."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from engine.records import PermissionMode
from phoenix_tui.commands.conversations import split_with
from phoenix_tui.commands.settings import run_sandbox
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.cli import phoenix_in
from tests.support.live_shell import LiveShell
from tools.contract import SandboxMode

ASK, AUTO, PLAN = PermissionMode.ASK, PermissionMode.AUTO, PermissionMode.PLAN


async def by_command(shell: LiveShell) -> None:
    await shell.command("/new")


async def by_key(shell: LiveShell) -> None:
    await shell.pilot.press("ctrl+n")
    await shell.until(lambda: shell.in_view is None)


async def beside(shell: LiveShell) -> None:
    await split_with(shell.ctx, "")


@pytest.mark.parametrize("opens", [by_command, by_key, beside])
async def test_the_mode_of_one_conversation_is_not_that_of_the_next(
    open_live: OpenLive, opens: Callable[[LiveShell], Awaitable[None]]
) -> None:
    async with open_live((200, 60)) as shell:
        first = await shell.say("go")
        await shell.command("/permissions auto")
        await shell.command("/sandbox read-only")
        assert (first.record.permission_mode, first.record.sandbox) == (AUTO, SandboxMode.READ_ONLY)
        await opens(shell)
        await shell.pilot.pause()
        assert shell.status.startswith("ask · sandbox ·")
        second = await shell.say("and this")
        assert second is not first
        assert (second.record.permission_mode, second.record.sandbox) == (ASK, SandboxMode.WORKSPACE)
        assert (first.record.permission_mode, first.record.sandbox) == (AUTO, SandboxMode.READ_ONLY)


async def test_what_is_chosen_for_an_empty_conversation_holds_for_that_one_alone(open_live: OpenLive) -> None:
    async with open_live() as shell:
        await shell.pilot.press("shift+tab", "shift+tab")
        await shell.until(lambda: shell.active.mode is AUTO)
        await run_sandbox(shell.ctx, "read-only")
        assert shell.status.startswith("auto · sandbox read-only ·")
        first = await shell.say("go")
        assert (first.record.permission_mode, first.record.sandbox, first.record.sandbox_required) == (
            AUTO,
            SandboxMode.READ_ONLY,
            True,
        )
        await by_command(shell)
        second = await shell.say("and this")
        assert (second.record.permission_mode, second.record.sandbox, second.record.sandbox_required) == (
            ASK,
            SandboxMode.WORKSPACE,
            False,
        )


async def test_a_mode_from_the_command_line_holds_for_every_new_conversation(open_live: OpenLive) -> None:
    async with open_live(permission_mode=PLAN) as shell:
        first = await shell.say("go")
        await shell.command("/permissions auto")
        await by_command(shell)
        assert (first.record.permission_mode, (await shell.say("on")).record.permission_mode) == (AUTO, PLAN)


async def test_the_same_holds_in_lines(tmp_path: Path) -> None:
    lines = ["/permissions auto", "/sandbox read-only", "help", "/new", "help", "/new", "/permissions auto", "help"]
    lines += ["/new", "help", ""]
    phoenix = phoenix_in(tmp_path, PHOENIX_SANDBOX="")
    await phoenix.run("--screen-reader", stdin="\n".join(lines).encode())
    modes = []
    for one in reversed((await phoenix.run("conversations", "list", "--json")).json):
        shown = json.loads((await phoenix.run("conversations", "show", one["session_id"], "--json")).out)
        modes.append((shown["permission_mode"], shown["sandbox"]))
    assert modes == [("auto", "read-only"), ("ask", "workspace"), ("auto", "workspace"), ("ask", "workspace")]
