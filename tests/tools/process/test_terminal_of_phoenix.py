"""The user's terminal: out of reach for commands, given back when Phoenix dies (FAULTS 12, 82, 3.4)."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.waiting import poll_blocking
from tools.process.zygote.terminal import RESET, describe, restore

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
