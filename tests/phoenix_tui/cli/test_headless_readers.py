"""A reader of `phoenix -p` that waits: the run goes on without it, and it gets every word."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import picks
from tests.support.loopback import serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tests.support.waiting import poll

WORDS = [f"word {number} " for number in range(3_000)]
"""Length of an answer whose partial messages are ten times the capacity of a pipe."""
STREAM = ("--output-format", "stream-json", "--include-partial-messages")


@dataclass(frozen=True, slots=True)
class Started:
    """A run whose stdout only the test reads."""

    process: asyncio.subprocess.Process
    pipe: int
    phoenix: Phoenix

    async def ran_the_command(self) -> bool:
        """True once the file that the model asks for is there."""
        return await poll((self.phoenix.cwd / "ran").exists)

    async def rest(self) -> str:
        """All that is printed."""
        read = await asyncio.to_thread(_read_all, self.pipe)
        await self.process.wait()
        return read.decode()


@contextlib.asynccontextmanager
async def unread(folder: Path, *options: str, blocking: bool = True) -> AsyncGenerator[Started]:
    """A run that prints more than its pipe holds, has a command run, and ends with one word."""
    asks = plays(recording(start(), text(0, *WORDS), tool(1, "bash", '{"command": "touch ran"}'), stop("tool_use")))
    ends = plays(recording(start(), text(0, "Done."), stop()))
    async with serve(picks(lambda seen: ends if b"tool_result" in seen.body else asks)) as server:
        phoenix = with_claude(folder, server.url)
        reading, writing = os.pipe()
        os.set_blocking(writing, blocking)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "phoenix_tui", "-p", "go", "--permission-mode", "auto", *options),
            cwd=phoenix.cwd,
            env=phoenix.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=asyncio.subprocess.PIPE,
        )
        os.close(writing)
        try:
            yield Started(process, reading, phoenix)
        finally:
            os.close(reading)
            if process.returncode is None:
                process.kill()
            await process.communicate()  # to the end of stderr, or the loop may close before its pipe


def _read_all(pipe: int) -> bytes:
    read = b""
    while piece := os.read(pipe, 4_096):
        read += piece
    return read


async def test_a_reader_that_waits_holds_up_neither_the_answer_nor_its_commands(tmp_path: Path) -> None:
    async with unread(tmp_path, *STREAM) as run:
        assert await run.ran_the_command()
        lines = [json.loads(line) for line in (await run.rest()).splitlines()]
    pieces = [line["event"]["delta"] for line in lines if line.get("event", {}).get("type") == "content_block_delta"]
    assert "".join(piece.get("text", "") for piece in pieces) == "".join(WORDS) + "Done."
    assert (lines[-1]["type"], lines[-1]["result"], run.process.returncode) == ("result", "Done.", 0)


async def test_a_stop_ends_the_wait_for_the_reader_and_the_run_is_stored(tmp_path: Path) -> None:
    async with unread(tmp_path, *STREAM) as run:
        assert await run.ran_the_command()
        run.process.send_signal(signal.SIGTERM)
        _, error = await asyncio.wait_for(run.process.communicate(), 20)
        shown = await run.phoenix.run("conversations", "show", "go")
    assert run.process.returncode == 143
    assert b"Did not react" not in error
    assert WORDS[-1].strip() in shown.out


async def test_a_pipe_that_does_not_block_gets_the_whole_answer(tmp_path: Path) -> None:
    async with unread(tmp_path, "--output-format", "json", blocking=False) as run:
        assert json.loads(await run.rest())["result"] == "Done."
    async with unread(tmp_path, *STREAM, blocking=False) as run:
        assert await run.ran_the_command()
        assert json.loads((await run.rest()).splitlines()[-1])["result"] == "Done."
