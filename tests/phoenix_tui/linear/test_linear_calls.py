"""Calls of skills and commands in lines: Esc and Ctrl+C end what a message waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.hooked import write_hooks
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import CTRL_C, ESC, alive, mark, program
from tests.support.skills import command


@pytest.mark.pty
@pytest.mark.parametrize("key", [ESC, CTRL_C])
@pytest.mark.parametrize("waits_for", ["a shell line", "a hook"])
async def test_a_key_ends_what_a_message_waits_for(tmp_path: Path, key: bytes, waits_for: str) -> None:
    marked = mark()
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        command(
            phoenix.home / "commands", "fix", body=f"It is !`sleep {marked}`." if waits_for == "a shell line" else "x"
        )
        if waits_for == "a hook":
            write_hooks(phoenix.home / "hooks.json", UserPromptSubmit=f"sleep {marked}")
        async with program(phoenix, "--screen-reader", "--permission-mode", "auto") as running:
            await running.shows("You:")
            running.type("/fix now\r")
            await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the command runs")
            running.type(key)
            await running.shows("Refused: Stopped")
            await running.until(lambda: not alive(f"sleep\0{marked}"), "the command is gone")
            (phoenix.home / "hooks.json").unlink(missing_ok=True)
            running.type("then this\r")
            await running.shows("Assistant: Done.")
            running.type("/quit\r")
            assert await running.exit_code() == 0
        assert len(server.requests) == 1
