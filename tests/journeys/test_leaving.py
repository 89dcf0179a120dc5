"""Every way out: asked while something runs, nothing alive afterwards, the terminal as it was."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, ended, with_claude
from tests.support.journeys import calls, rows, says, starts_to_say
from tests.support.loopback import serve
from tests.support.program import CTRL_Q, ESC, Program, alive, family, gone, mark, program
from tests.support.waiting import poll

pytestmark = pytest.mark.pty


@dataclass(frozen=True, slots=True)
class Busy:
    """A program whose model runs a command."""

    running: Program
    phoenix: Phoenix
    marked: str


@asynccontextmanager
async def busy(folder: Path) -> AsyncGenerator[Busy]:
    marked = mark()
    command = f"sleep {marked} & setsid sleep {marked} & sleep {marked}"
    async with serve(calls("bash", command=command), says("Late.")) as server:
        phoenix = with_claude(folder, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Sleep")
            await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
            yield Busy(running, phoenix, marked)


def given_back(running: Program) -> list[str]:
    """Modes of the terminal that were not restored; none, if all is well."""
    raw, missing = bytes(running.raw), [] if running.terminal_is_back else ["termios"]
    for name, on, off in (
        ("alternate screen", b"\x1b[?1049h", b"\x1b[?1049l"),
        ("mouse", b"\x1b[?1000h", b"\x1b[?1000l"),
        ("mouse moves", b"\x1b[?1003h", b"\x1b[?1003l"),
        ("mouse form", b"\x1b[?1006h", b"\x1b[?1006l"),
        ("paste", b"\x1b[?2004h", b"\x1b[?2004l"),
        ("cursor", b"\x1b[?25l", b"\x1b[?25h"),
    ):
        if raw.rfind(off) <= raw.rfind(on):
            missing.append(name)
    return missing


async def test_quitting_with_a_running_command_asks_then_leaves_nothing(tmp_path: Path) -> None:
    async with busy(tmp_path) as one:
        children = family(one.running.pid)
        one.running.type(CTRL_Q)
        await one.running.shows("1 run is still active. Quit and stop it?")
        one.running.type(ESC)
        await one.running.lacks("Quit and stop it?")
        assert len(alive(f"sleep\0{one.marked}")) == 3
        one.running.type(CTRL_Q)
        await one.running.shows("1 run is still active. Quit and stop it?")
        one.running.type("y")
        assert await one.running.exit_code() == 0
        assert given_back(one.running) == []
        (conversation,) = rows(one.phoenix, "select id from conversations")[0]
        assert f"phoenix --resume {conversation}".encode() in one.running.raw
        assert alive(one.marked) == []
        await one.running.until(lambda: gone(children), "the end of every process of Phoenix")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_gives_the_terminal_back_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with busy(tmp_path) as one:
        children = family(one.running.pid)
        one.running.signal(number)
        assert await one.running.exit_code() == code
        assert given_back(one.running) == []
        assert alive(one.marked) == []
        await one.running.until(lambda: gone(children), "the end of every process of Phoenix")
        (state,) = rows(one.phoenix, "select state from conversations")[0]
        assert "idle" in str(state).lower()


async def test_a_second_signal_does_not_undo_the_first(tmp_path: Path) -> None:
    async with busy(tmp_path) as one:
        one.running.signal(signal.SIGTERM)
        one.running.signal(signal.SIGHUP)
        one.running.signal(signal.SIGTERM)
        assert await one.running.exit_code(5.0) in {129, 143}
        assert alive(one.marked) == []


async def test_a_terminal_that_hangs_up_leaves_nothing(tmp_path: Path) -> None:
    async with busy(tmp_path) as one:
        children = family(one.running.pid) | {one.running.pid}
        one.running.hang_up()
        assert await poll(lambda: gone(children))
        assert alive(one.marked) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
async def test_a_headless_run_ends_by_signal_with_a_valid_conversation(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    marked = mark()
    command = f"setsid sleep {marked} & sleep {marked}"
    async with serve(calls("bash", command=command), says("Going on.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        process = await phoenix.start("-p", "--permission-mode", "auto", "Sleep")
        assert await poll(lambda: len(alive(f"sleep\0{marked}")) == 2)
        process.send_signal(number)
        ran = await ended(process)
        assert ran.code == code
        assert "Traceback" not in ran.err
        assert alive(marked) == []
        again = await phoenix.run("-p", "-c", "Go on")
        assert (again.code, again.out) == (0, "Going on.\n")
        told = "Cancelled by user" if number is signal.SIGINT else "[Tool execution interrupted by restart]"
        assert told in str(server.requests[1].json["messages"])
        status = "cancelled" if number is signal.SIGINT else "interrupted"
        assert rows(phoenix, "select status from runs order by rowid limit 1") == [(status,)]


async def test_a_headless_run_stopped_while_it_writes_keeps_the_question(tmp_path: Path) -> None:
    async with serve(starts_to_say("Half an "), says("Whole.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        process = await phoenix.start("-p", "Tell me")
        await server.wait_asked()
        process.send_signal(signal.SIGINT)
        assert (await ended(process)).code == 130
        await server.wait_closed()
        again = await phoenix.run("-p", "-c", "Go on")
        assert (again.code, again.out) == (0, "Whole.\n")
        messages = str(server.requests[1].json["messages"])
        assert "Tell me" in messages
        assert "Half an" not in messages
