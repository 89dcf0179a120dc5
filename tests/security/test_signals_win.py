"""Weakness D1: TERM and HUP end Phoenix whatever its loop does, with the terminal given back and no program left."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.bounded import bounded
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.program import CTRL_C, CTRL_Q, Program, alive, mark, program

pytestmark = pytest.mark.pty
CHILD = "tests.support.stuck_child"
WINS_WITHIN = 15.0
"""Seconds; 2 are promised, on a machine with nothing else to do. Without the watch it takes for ever."""
STANDING = 0.3


def stuck(folder: Path, how: str, url: str = "") -> Phoenix:
    """Phoenix whose Ctrl+Q stops the loop."""
    one = with_claude(folder, url or "http://127.0.0.1:9")
    return Phoenix(one.home, one.cwd, {**one.extra, "STUCK": how})


async def stand(running: Program, home: Path) -> None:
    """Stop the loop once the log is open."""
    await running.ready()
    await running.until(lambda: any(home.rglob("phoenix.jsonl")), "the log")
    running.type(CTRL_Q)
    began = time.monotonic()
    await running.until(lambda: time.monotonic() - began > STANDING, "a loop that stands")


def given_back(running: Program) -> bool:
    """The settings, the main screen and the cursor."""
    raw = bytes(running.raw)
    left = raw.rfind(b"\x1b[?1049l") > raw.rfind(b"\x1b[?1049h")
    return running.terminal_is_back and left and raw.rfind(b"\x1b[?25h") > raw.rfind(b"\x1b[?25l")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("how", ["python", "lock"])
async def test_a_loop_that_stands_is_ended_with_the_exit_code_of_the_signal(
    tmp_path: Path, how: str, number: signal.Signals
) -> None:
    async with program(stuck(tmp_path, how), module=CHILD) as running:
        with bounded(running.pid, seconds=60):
            await stand(running, tmp_path)
            running.signal(number)
            assert await running.exit_code(WINS_WITHIN) == 128 + number
            await running.until(lambda: given_back(running), "the terminal")
            await running.shows(f"did not react to signal {int(number)}")
    (told,) = [line for line in log_of(tmp_path) if "ended by signal" in line["message"]]
    assert "stuck_child.py" in told["message"]


async def test_an_interpreter_that_is_held_is_killed_and_the_terminal_comes_back(tmp_path: Path) -> None:
    async with program(stuck(tmp_path, "regex"), module=CHILD) as running:
        with bounded(running.pid, seconds=60):
            await stand(running, tmp_path)
            running.signal(signal.SIGTERM)
            assert await running.exit_code(WINS_WITHIN) == -signal.SIGKILL
            await running.until(lambda: given_back(running), "the terminal")


@pytest.mark.parametrize("how", ["python", "regex"])
async def test_what_runs_for_a_loop_that_stands_ends_with_it(tmp_path: Path, how: str) -> None:
    marked = mark()
    async with serve(calls("bash", command=f"sleep {marked}"), says("Late.")) as server:
        phoenix = stuck(tmp_path, how, server.url)
        async with program(phoenix, "--permission-mode", "auto", module=CHILD) as running:
            with bounded(running.pid, seconds=60):
                await running.ready()
                await running.send("Sleep")
                await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the command")
                running.type(CTRL_Q)
                running.signal(signal.SIGTERM)
                await running.exit_code(WINS_WITHIN)
                await running.until(lambda: not alive(marked), "the end of the command")


async def test_ctrl_c_again_and_again_ends_a_loop_that_stands(tmp_path: Path) -> None:
    async with program(stuck(tmp_path, "python"), module=CHILD) as running:
        with bounded(running.pid, seconds=60):
            await stand(running, tmp_path)
            pressed: list[float] = []

            def press() -> bool:
                if not pressed or time.monotonic() - pressed[-1] > STANDING:
                    pressed.append(time.monotonic())
                    running.type(CTRL_C)
                return not running.process.isalive()

            await running.until(press, "the end of the program")
            assert await running.exit_code() == 128 + signal.SIGTERM
            assert given_back(running)


async def test_ctrl_c_again_and_again_does_not_end_a_loop_that_listens(tmp_path: Path) -> None:
    async with program(Phoenix(tmp_path, tmp_path)) as running:
        await running.ready()
        for letter in "abcd":
            running.type(letter)
            await running.shows(letter)
            running.type(CTRL_C)
            await running.lacks(f"┃ {letter}")
        running.type("alive")
        await running.shows("alive")


async def test_a_second_signal_does_not_wait_for_a_proper_end(tmp_path: Path) -> None:
    async with program(Phoenix(tmp_path, tmp_path)) as running:
        await running.ready()
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
            if running.process.isalive():
                running.signal(number)
        assert await running.exit_code(WINS_WITHIN) in {128 + signal.SIGHUP, 128 + signal.SIGTERM}
        assert given_back(running)


async def test_a_signal_to_a_stopped_program_ends_it_when_it_goes_on(tmp_path: Path) -> None:
    async with program(Phoenix(tmp_path, tmp_path)) as running:
        await running.ready()
        running.type("kept words")
        await running.shows("kept words")
        for number in (signal.SIGTSTP, signal.SIGTERM, signal.SIGCONT):
            running.signal(number)
        assert await running.exit_code(WINS_WITHIN) == 128 + signal.SIGTERM
        assert given_back(running)
    async with program(Phoenix(tmp_path, tmp_path), "-c") as again:  # no conversation yet: the draft waits in a new one
        await again.until(lambda: bool(again.raw), "any word")


async def test_a_program_that_must_ignore_hang_ups_does(tmp_path: Path) -> None:
    async with program(Phoenix(tmp_path, tmp_path), module="tests.support.no_hang_up") as running:
        await running.ready()
        running.signal(signal.SIGHUP)
        running.type("still here")
        await running.shows("still here")
        running.signal(signal.SIGTERM)
        assert await running.exit_code(WINS_WITHIN) == 128 + signal.SIGTERM


def log_of(home: Path) -> list[dict[str, str]]:
    """The lines of the log."""
    return [json.loads(line) for path in home.rglob("phoenix.jsonl") for line in path.read_text("utf-8").splitlines()]
