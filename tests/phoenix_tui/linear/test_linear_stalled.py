"""A terminal that accepts nothing (Ctrl+S, a link that hangs) blocks neither a run nor the end."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
import termios
from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import picks
from tests.support.loopback import serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tests.support.waiting import poll

PARAGRAPHS = [f"Paragraph {number} of a long answer.\n\n" for number in range(3_000)]
"""Ten times what a terminal keeps for its reader."""


async def test_a_run_goes_on_and_ends_though_nothing_of_it_can_be_shown(tmp_path: Path) -> None:
    asks = plays(
        recording(start(), text(0, *PARAGRAPHS), tool(1, "bash", '{"command": "touch ran"}'), stop("tool_use"))
    )
    ends = plays(recording(start(), text(0, "Done."), stop()))
    async with serve(picks(lambda seen: ends if b"tool_result" in seen.body else asks)) as server:
        phoenix = with_claude(tmp_path, server.url)
        master, slave = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "phoenix_tui", "--screen-reader", "--permission-mode", "auto"),
            cwd=phoenix.cwd,
            env=phoenix.environment,
            stdin=slave,
            stdout=slave,
            stderr=asyncio.subprocess.PIPE,
        )
        os.close(slave)
        try:
            said = b""
            while b"You:" not in said:
                said += await asyncio.to_thread(os.read, master, 4_096)
            os.write(master, b"go\r")
            assert await poll((phoenix.cwd / "ran").exists)
            process.send_signal(signal.SIGTERM)
            _, error = await asyncio.wait_for(process.communicate(), 20)
        finally:
            os.close(master)
            if process.returncode is None:
                process.kill()
            await process.communicate()
    assert (process.returncode, error) == (143, b"")


async def test_a_terminal_that_was_stopped_is_started_again_by_the_reset(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    termios.tcflow(slave, termios.TCOOFF)
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phoenix_tui", "--reset-terminal"),
        env=with_claude(tmp_path, "http://127.0.0.1:9").environment,
        stdin=slave,
        stdout=slave,
    )
    try:
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO) == termios.ICANON | termios.ECHO
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(master)
        os.close(slave)
