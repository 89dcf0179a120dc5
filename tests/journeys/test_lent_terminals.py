"""A `!` line that needs a whole terminal gets the user's own, and leaves it as it was, however that ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.journeys.test_leaving import given_back
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Claude, calls, rows, says
from tests.support.program import CTRL_N, ENTER, ESC, Program, alive, mark, on_screen
from tests.support.waiting import poll

pytestmark = pytest.mark.pty
NOBODY = "http://127.0.0.1:9"
RETURNS = b"\x1d\x1d"
NEEDS = "needs your terminal · Enter gives it yours · Ctrl+] twice returns"
GUEST = """
import os, signal, sys, tty

def draw(*_):
    columns, rows = os.get_terminal_size()
    os.write(1, b"\\x1b[H\\x1b[2Jguest %dx%d %s" % (rows, columns, keys.hex().encode()))

keys = b""
print("before", flush=True)
tty.setraw(0)
signal.signal(signal.SIGWINCH, draw)
os.write(1, b"\\x1b[?1049h\\x1b[?1000h\\x1b[?1003h\\x1b[?25l\\x1b[2;5r")
draw()
while (key := os.read(0, 1)) != b"q":
    if key == b"f":
        os.execlp("yes", "yes", "flood")
    if key == b"d":
        os.kill(os.getpid(), signal.SIGKILL)
    keys += key
    draw()
os.write(1, b"\\x1b[?1000l\\x1b[?1003l\\x1b[?25h\\x1b[r\\x1b[?1049l")
print("after\\r")
"""
"""Draws its size and keys; q ends it properly, f floods, d dies as it is."""


def with_guest(phoenix: Phoenix, guest: str = GUEST) -> Phoenix:
    """A folder where `. ./guest` runs it."""
    (phoenix.cwd / "guest.py").write_text(guest)
    (phoenix.cwd / "guest").write_text(f"{sys.executable} -SE guest.py")
    return phoenix


@asynccontextmanager
async def waiting(folder: Path, script: str = "") -> AsyncGenerator[Program]:
    """A line that waits for the terminal."""
    phoenix = with_guest(with_claude(folder, NOBODY))
    if script:
        (phoenix.cwd / "guest").write_text(script)
    async with on_screen(phoenix, columns=80, rows=24) as running:
        await running.send("!. ./guest", "before", NEEDS)
        yield running


async def lent(running: Program) -> None:
    await running.press(ENTER, "guest 24x80")
    await running.lacks("needs your terminal")


async def test_it_has_every_key_and_the_size_comes_back_for_a_key_and_ends_by_itself(tmp_path: Path) -> None:
    async with waiting(tmp_path) as running:
        await lent(running)
        await running.press(b"\x03\x1a" + ESC, "guest 24x80 031a1b")
        running.resize(100, 30)
        await running.shows("guest 30x100 031a1b")
        await running.press(b"\x1d", "guest 30x100 031a1b1d")
        await running.press(RETURNS, "before", NEEDS, "bash")
        await running.lacks("guest 30x100")
        await running.press(ENTER, "guest 30x100 031a1b1d")
        await running.press("q", "│ before", "│ after", "ready")
        await running.lacks("guest 30x100")
        await running.press("typed", "┃ typed")
    [(text,)] = rows(with_claude(tmp_path, ""), "SELECT output_text FROM tool_calls")
    assert text == "before\nafter\n[exit code 0]"


async def test_other_conversations_go_on_while_it_is_lent(claude: Claude) -> None:
    phoenix, _ = await claude(calls("bash", command="until [ -e gate ]; do sleep 0.02; done"), says("Done."))
    with_guest(phoenix)
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("Work", "▸ bash")
        running.type(CTRL_N)
        await running.ready()
        await running.send("!. ./guest", NEEDS)
        await running.press(ENTER, "guest 30x100")
        (phoenix.cwd / "gate").touch()
        assert await poll(lambda: rows(phoenix, "SELECT 1 FROM messages WHERE text = 'Done.'") == [(1,)])
        assert "guest 30x100" in running.text
        await running.press("q", "│ after", "ready")


@pytest.mark.parametrize("does", ["floods", "floods a slow line", "dies on the alternate screen"])
async def test_the_screen_comes_back_from_a_program_that(tmp_path: Path, does: str) -> None:
    async with waiting(tmp_path) as running:
        await lent(running)
        if "slow" in does:
            running.slow_down()
        running.type(does[0])
        if does.startswith("floods"):
            await running.shows("flood flood flood")
            await running.press(RETURNS, "before", NEEDS, "bash")
            await running.press(ESC, "[stopped by the user after ")
        await running.shows("│ before", "ready")
        await running.lacks("flood")
        assert running.raw.rfind(b"\x1b[?1000h") > running.raw.rfind(b"\x1b[?1000l"), "the mouse is Phoenix's again"
        await running.press("typed", "┃ typed")


STUBBORN = "echo before; (setsid sleep MARK &); trap '' INT HUP TERM; printf '\\033[?1049h\\033[?1000hguest'; "
STUBBORN += "sleep MARK; sleep MARK; sleep MARK"


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "a closed terminal"])
async def test_whatever_ends_phoenix_leaves_no_process_and_gives_the_terminal_back(tmp_path: Path, end: str) -> None:
    marked = mark()
    async with waiting(tmp_path, STUBBORN.replace("MARK", marked)) as running:
        await running.press(ENTER, "guest")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 2, "two sleeping processes")
        if end == "a closed terminal":
            running.hang_up()
        else:
            running.signal(signal.Signals[end])
            await running.exit_code()
            await running.until(lambda: given_back(running) == [], "the terminal as it was")
        assert await poll(lambda: not alive(marked))


async def test_a_phoenix_that_is_stopped_meanwhile_gives_the_terminal_to_the_shell(tmp_path: Path) -> None:
    async with waiting(tmp_path) as running:
        await lent(running)
        running.signal(signal.SIGTSTP)
        await running.until(lambda: given_back(running) == [], "the terminal as it was")
        before = len(running.raw)
        running.signal(signal.SIGCONT)
        await running.until(lambda: b"guest 24x80" in running.raw[before:], "all of it, drawn again")
        await running.press("xq", "│ before", "│ after", "ready")
