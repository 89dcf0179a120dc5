"""A command that takes long goes to the background by a key: the agent goes on, the command too, until it must not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, rows, says
from tests.support.loopback import serve
from tests.support.program import CTRL_Q, ENTER, ESC, Program, alive, mark, program

pytestmark = pytest.mark.pty
CTRL_B = b"\x02"


def command(marked: str) -> str:
    return f"echo begun; sleep {marked} & setsid sleep {marked} & sleep {marked}"


async def started(running: Program, marked: str) -> None:
    """Send a message; its command runs and has printed something."""
    await running.ready()
    await running.send("Sleep")
    await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
    await running.shows("begun", "Esc stops")


async def test_the_key_sends_it_there_and_the_agent_goes_on(tmp_path: Path) -> None:
    marked = mark()
    answers = (calls("bash", command=command(marked)), says("I go on."), says("Here I am."))
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await started(running, marked)
            running.type(CTRL_B)
            await running.shows("I go on.", "in background (job-1)", "1 in background")
            told = result_text(server.requests[1])
            assert told.startswith("begun\n[sent to the background by the user after ")
            assert told.endswith("as job job-1. Read it with job_output, end it with job_kill.]")
            assert len(alive(f"sleep\0{marked}")) == 3
            await running.send("Still there?")
            await running.shows("Here I am.", "ready")
            assert len(alive(f"sleep\0{marked}")) == 3
            running.type(CTRL_Q)
            await running.shows("1 background command is still active. Quit and stop it?")
            running.type("y")
            assert await running.exit_code() == 0
            assert alive(marked) == []
        statuses = rows(phoenix, "SELECT status FROM tool_calls")
        assert statuses == [("success",)]


async def test_esc_in_the_same_read_stops_the_run_alone(tmp_path: Path) -> None:
    marked = mark()
    async with serve(calls("bash", command=command(marked)), says("Not asked.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await started(running, marked)
            running.type(CTRL_B + ESC)
            await running.shows("ready", "1 in background")
            assert len(alive(f"sleep\0{marked}")) == 3


async def test_the_users_own_command_goes_there_by_its_name(tmp_path: Path) -> None:
    marked = mark()
    async with program(with_claude(tmp_path, "http://127.0.0.1:9"), "--permission-mode", "auto") as running:
        await running.ready()
        await running.send(f"!sleep {marked}")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 1, "a sleeping process")
        running.type("/background" + " ")
        await running.shows("/background")
        running.type(ENTER)
        await running.shows("in background (job-1)", "1 in background", "ready")
        assert len(alive(f"sleep\0{marked}")) == 1


async def test_kill_9_takes_it_along_and_the_next_start_finds_its_result(tmp_path: Path) -> None:
    marked = mark()
    async with serve(calls("bash", command=command(marked)), says("I go on."), says("Here I am.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await started(running, marked)
            running.type(CTRL_B)
            await running.shows("I go on.", "1 in background", "ready")
            running.signal(signal.SIGKILL)
            await running.until(lambda: not alive(marked), "the end of every process")
        async with program(phoenix, "-c", "--permission-mode", "auto") as running:
            await running.ready()
            await running.shows("I go on.", "in background (job-1)")
            assert "1 in background" not in running.text
            await running.send("Still there?")
            await running.shows("Here I am.")
            assert len(server.requests) == 3
