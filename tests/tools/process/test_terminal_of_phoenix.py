"""The user's terminal: out of reach for commands (FAULTS 12, 82, 3.4), or lent to one and supervised there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.processes import ROOT, Watch
from tests.support.waiting import poll, poll_blocking
from tests.tools.process.test_commands_in_a_terminal import PLACE, newest, running, shell, terminal_of, text_of
from tools.contract import Finished, OutputSoFar, Progress
from tools.process.command_terminal import AT_ONCE, MOST_DRAWN, MOST_WAITING, READ_SIZE, CommandTerminal, TerminalLoan
from tools.process.start import Processes
from tools.process.zygote.terminal import RESET, describe, restore
from tools.terminal.text import WHOLE_SCREEN
from tools.terminal.values import TerminalRows, TerminalSize

HOST = """
import asyncio, os, sys, tty
from pathlib import Path
from tests.support.processes import start_plain
from tools.contract import Command
from tools.process.link import spawn_zygote
from tools.process.start import ProcessSettings, start_processes

async def main():
    link = spawn_zygote(0)
    processes = await start_processes(ProcessSettings(), link)
    tty.setraw(0)
    finished = await processes.runner.run(Command(("/bin/bash", "-c", sys.argv[1]), Path("/")))
    sys.stderr.write(finished.captured.head.decode() + "\\nREADY\\n")
    sys.stderr.flush()
    await asyncio.sleep(float(sys.argv[2]))
    tty.setcbreak(0)
    await processes.close()

asyncio.run(main())
"""


@dataclass(slots=True)
class Screen:
    """A pseudo-terminal and Phoenix on it."""

    master: int
    slave: int
    host: subprocess.Popen[bytes]

    def shown(self) -> bytes:
        """Output to the terminal that has not been read yet."""
        shown = b""
        while select.select([self.master], [], [], 0)[0]:
            shown += os.read(self.master, 65536)
        return shown


@contextlib.contextmanager
def on_a_terminal(script: str, linger: float) -> Iterator[Screen]:
    master, slave = pty.openpty()
    arguments = [sys.executable, "-c", HOST, script, str(linger)]
    host = subprocess.Popen(arguments, cwd=ROOT, stdin=slave, stdout=slave, stderr=subprocess.PIPE, process_group=0)
    try:
        yield Screen(master, slave, host)
    finally:
        host.kill()
        host.wait()
        assert host.stderr is not None
        host.stderr.close()
        os.close(master)
        os.close(slave)


def until_ready(screen: Screen) -> bytes:
    assert screen.host.stderr is not None
    lines = b""
    while not lines.endswith(b"READY\n"):
        line = screen.host.stderr.readline()
        assert line, lines
        lines += line
    return lines


def test_a_command_reaches_no_terminal() -> None:
    script = "echo x > /dev/tty; stty -echo < /dev/tty; read y < /dev/tty; tty; exit 0"
    with on_a_terminal(script, linger=0.0) as screen:
        told = until_ready(screen)
        assert told.count(b"No such device or address") == 3
        assert b"not a tty" in told
        screen.host.wait(timeout=20)
        assert screen.shown() == b""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_killed_phoenix_gets_its_terminal_restored(number: signal.Signals) -> None:
    with on_a_terminal("true", linger=60) as screen:
        before = termios.tcgetattr(screen.slave)
        until_ready(screen)
        screen.host.send_signal(number)
        screen.host.wait(timeout=20)
        assert poll_blocking(lambda: bool(select.select([screen.master], [], [], 0)[0]))
        assert poll_blocking(lambda: termios.tcgetattr(screen.slave)[3] & termios.ECHO != 0)
        assert b"\x1b[?1049l" in screen.shown()
        assert before[3] & termios.ECHO


def test_a_clean_end_leaves_the_terminal_alone() -> None:
    with on_a_terminal("true", linger=0.0) as screen:
        until_ready(screen)
        screen.host.wait(timeout=20)
        assert screen.shown() == b""
        assert not termios.tcgetattr(screen.slave)[3] & termios.ECHO


def test_settings_survive_their_description() -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    described = describe(slave)
    changed = termios.tcgetattr(slave)
    changed[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(slave, termios.TCSANOW, changed)
    restore(slave, described)
    assert termios.tcgetattr(slave) == before
    assert os.read(master, 4096).rstrip(b"\r") == RESET.rstrip(b"\r")
    os.close(master)
    os.close(slave)


def test_something_that_is_no_terminal_has_no_description() -> None:
    with Path(os.devnull).open("rb") as nothing:
        assert describe(nothing.fileno()) == ""


REAL = TerminalSize(30, 100)
DRAWS = "printf '\\033[?1049hdrawn'"
LEAVES = "printf '\\033[?1049l'"


async def waiting(processes: Processes) -> CommandTerminal:
    terminal = await terminal_of(processes)
    assert await poll(lambda: terminal.wants_screen)
    return terminal


class Shown:
    """A terminal that reads all it is given."""

    def __init__(self, lent: TerminalLoan) -> None:
        self.lent, self.content = lent, b""
        self.task = asyncio.create_task(self._read())

    async def until(self, holds: Callable[[bytes], bool]) -> None:
        assert await poll(lambda: holds(self.content)), self.content[-500:]

    async def _read(self) -> None:
        while content := await self.lent.read():
            assert len(content) <= AT_ONCE + READ_SIZE
            self.content += content


async def rest_of(lent: TerminalLoan) -> AsyncIterator[bytes]:
    while content := await lent.read():
        yield content


async def test_it_waits_is_lent_a_terminal_of_its_size_and_what_it_writes_as_lines_is_kept(
    processes: Processes,
) -> None:
    seen: list[Progress] = []
    script = f"echo before; {DRAWS}; stty -echo; read x; stty size; {LEAVES}; echo after $x"
    async with running(processes, shell(script), seen) as task:
        terminal = await waiting(processes)
        assert await poll(lambda: newest(seen) == "before\n")
        shown = Shown(terminal.lend(REAL))
        await shown.until(lambda content: content.startswith(b"\x1b[?1049h") and b"drawn\x1b7\x1b[r\x1b8" in content)
        terminal.resize(TerminalSize(5, 5))
        shown.lent.type(b"word\r")
        finished = await task
        await shown.task
    assert isinstance(finished, Finished)
    assert b"30 100\r\n\x1b[?1049lafter word\r\n" in shown.content
    assert text_of(finished.captured) == "before\nafter word"


async def test_a_terminal_that_is_given_back_can_be_lent_again(processes: Processes) -> None:
    tells = 'size=$(stty size); [ "$size" = "$told" ] || echo $size; told=$size'  # bash may lose a trap
    script = f"printf '\\033[?1h'; {DRAWS}; while :; do {tells}; sleep 0.02; done"
    async with running(processes, shell(script)):
        terminal = await waiting(processes)
        shown = Shown(terminal.lend(REAL))
        await shown.until(lambda content: b"30 100" in content)
        shown.lent.give_back()
        await shown.task
        assert terminal.wants_screen
        terminal.resize(TerminalSize(20, 50))
        again = Shown(terminal.lend(TerminalSize(31, 101)))
        await again.until(lambda content: content.startswith(b"\x1b[?1049h\x1b[H\x1b[2J\x1b[?1h"))
        await again.until(lambda content: b"31 101" in content)
        again.content = b""
        again.lent.draw_again(TerminalSize(24, 80))
        await again.until(lambda content: content.startswith(b"\x1b[?1049h") and b"24 80" in content)


async def test_a_flood_for_a_screen_waits_and_nothing_of_it_is_kept(processes: Processes) -> None:
    seen: list[Progress] = []
    async with running(processes, shell(f"{DRAWS}; yes drawn"), seen) as task:
        terminal = await waiting(processes)
        lent, size = terminal.lend(REAL), 0
        while size < 8 * MOST_WAITING:
            size += len(await lent.read())
        assert isinstance(lent, TerminalLoan)
        assert await poll(lambda: lent.is_full)
        lent.give_back()
        rest = [content async for content in rest_of(lent)]
        assert sum(map(len, rest)) <= MOST_WAITING + READ_SIZE
        task.cancel()
        await asyncio.wait({task})
    [_, last] = [one for one in seen if isinstance(one, OutputSoFar)]
    assert text_of(last.captured) == ""


async def test_what_it_draws_before_it_has_a_terminal_is_bounded_and_comes_in_order(processes: Processes) -> None:
    async with running(processes, shell(f"{DRAWS}; seq 200000; {LEAVES}; echo done")) as task:
        terminal = await waiting(processes)
        shown = Shown(terminal.lend(REAL))
        finished = await task
        await shown.task
    assert isinstance(finished, Finished)
    assert shown.content.replace(WHOLE_SCREEN, b"").count(b"\r\n") == 200_001
    assert b"\r\n199999\r\n200000\r\n\x1b[?1049ldone\r\n" in shown.content
    assert text_of(finished.captured) == "done"
    assert len(shown.content) > 4 * MOST_DRAWN


async def test_a_short_visit_to_the_screen_needs_no_terminal(processes: Processes) -> None:
    seen: list[Progress] = []
    script = f"echo before; {DRAWS}; {LEAVES}; echo after; sleep 60"
    async with running(processes, shell(script), seen):
        assert await poll(lambda: newest(seen) == "before\nafter\n")
        assert not (await terminal_of(processes)).wants_screen


async def test_one_that_dies_on_the_screen_and_ignores_signals_leaves_nothing(
    processes: Processes, watch: Watch
) -> None:
    script = f"(setsid sleep 60 &); {DRAWS}; trap '' INT HUP TERM; sleep 60; :"
    command = replace(watch.command(script), terminal=True)
    async with running(processes, command) as task:
        shown = Shown((await waiting(processes)).lend(REAL))
        assert await poll(lambda: watch.stands(3))
        task.cancel()
        await asyncio.wait({task, shown.task})
    assert watch.alive() == set()
    assert processes.jobs.terminal(*PLACE) is None


async def test_a_job_is_not_held_up_by_a_screen_that_nobody_lends(processes: Processes) -> None:
    async with running(processes, shell(f"{DRAWS}; seq 100000; {LEAVES}; echo done; read x")) as task:
        await waiting(processes)
        job = processes.jobs.background(*PLACE)
        assert job is not None
        await task
        assert await poll(lambda: processes.jobs.output(job.id).head == b"done")
        await processes.jobs.kill(job.id)


async def test_a_program_that_reads_keys_without_the_alternate_screen_may_have_the_terminal_too(
    processes: Processes,
) -> None:
    seen: list[Progress] = []
    script = "stty -echo; printf '\\033[?1h\\033=top'; read x; stty size; echo got $x"
    async with running(processes, shell(script), seen) as task:
        terminal = await terminal_of(processes)
        assert await poll(lambda: any(isinstance(one, TerminalRows) and one.reads_keys for one in seen))
        assert not terminal.wants_screen
        shown = Shown(terminal.lend(REAL))
        await shown.until(lambda content: content.startswith(b"\x1b[?1049h\x1b[H\x1b[2J\x1b[?1h\x1b="))
        shown.lent.type(b"word\r")
        finished = await task
        await shown.task
    assert isinstance(finished, Finished)
    assert text_of(finished.captured) == "top30 100\ngot word"
