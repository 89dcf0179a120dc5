"""SECURITY D1, S7: TERM, HUP and the keys that leave end Phoenix whatever its loop and threads do."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.bounded import bounded
from tests.support.busy_child import BUSY, HELD, SECONDS
from tests.support.cli import Phoenix, ended, with_claude
from tests.support.journeys import calls, rows, says
from tests.support.loopback import serve
from tests.support.program import CTRL_C, CTRL_Q, Program, alive, family, gone, mark, program
from tests.support.stuck_child import STANDING
from tests.support.waiting import poll

pytestmark = pytest.mark.pty
CHILD = "tests.support.stuck_child"
CTRL_G = b"\x07"
WINS_WITHIN = 30.0
"""Seconds; 2 are promised, on a machine with nothing else to do. Without the watch it never ends."""
PRESS_EVERY = 0.3
TYPED, MORE = "half a sentence", " and more"


def stuck(folder: Path, how: str, url: str = "", **extra: str) -> Phoenix:
    """Phoenix whose loop SIGUSR1 stops."""
    one = with_claude(folder, url or "http://127.0.0.1:9")
    return Phoenix(one.home, one.cwd, {**one.extra, "STUCK": how, "PHOENIX_PERMISSION_MODE": "auto", **extra})


async def stand(running: Program, home: Path) -> None:
    """Stop the loop."""
    running.signal(signal.SIGUSR1)
    await running.until(lambda: any(home.rglob(STANDING)), "a loop that stands")


def given_back(running: Program) -> bool:
    """The settings, the main screen and the cursor."""
    raw = bytes(running.raw)
    left = raw.rfind(b"\x1b[?1049l") > raw.rfind(b"\x1b[?1049h")
    return running.terminal_is_back and left and raw.rfind(b"\x1b[?25h") > raw.rfind(b"\x1b[?25l")


def drafts(phoenix: Phoenix) -> str:
    """Stored drafts."""
    with suppress(sqlite3.OperationalError):  # the database is only being made
        return str(rows(phoenix, "SELECT draft FROM conversations"))
    return ""


async def write(running: Program, phoenix: Phoenix) -> None:
    """Write a draft of which the end is not stored yet."""
    await running.ready()
    running.type(TYPED)
    await running.until(lambda: TYPED in drafts(phoenix), "the draft in the database")
    running.type(MORE)
    await running.shows(TYPED + MORE)


@pytest.mark.parametrize(
    ("how", "number", "code"),
    [
        ("python", signal.SIGTERM, 128 + signal.SIGTERM),
        ("lock", signal.SIGHUP, 128 + signal.SIGHUP),
        ("regex", signal.SIGTERM, -signal.SIGKILL),
    ],
)
async def test_a_loop_that_stands_is_ended_with_all_that_it_runs(
    tmp_path: Path, how: str, number: signal.Signals, code: int
) -> None:
    marked = mark()
    async with serve(calls("bash", command=f"sleep {marked}"), says("Late.")) as server:
        phoenix = stuck(tmp_path, how, server.url)
        async with program(phoenix, module=CHILD) as running:
            with bounded(running.pid, seconds=90):
                await running.ready()
                await running.send("Sleep")
                await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the command")
                running.type(TYPED)
                await running.until(lambda: TYPED in drafts(phoenix), "the draft in the database")
                children = family(running.pid)
                await stand(running, tmp_path)
                running.signal(number)
                assert await running.exit_code(WINS_WITHIN) == code
                await running.until(lambda: given_back(running), "the terminal")
                await running.until(lambda: not alive(marked) and gone(children), "the end of every process")
                if code > 0:  # a killed one cannot report it
                    await running.shows(f"Did not react to signal {int(number)}")
    if code > 0:
        (told,) = [line for line in log_of(tmp_path) if "killed by signal" in line["message"]]
        assert "stuck_child.py" in told["message"]
    assert TYPED in drafts(phoenix)


@pytest.mark.parametrize(("how", "code"), [("python", 128 + signal.SIGTERM), ("regex", -signal.SIGKILL)])
async def test_a_script_whose_loop_stands_is_ended_with_all_that_it_runs(tmp_path: Path, how: str, code: int) -> None:
    marked = mark()
    async with serve(calls("bash", command=f"sleep {marked}"), says("Late.")) as server:
        process = await stuck(tmp_path, how, server.url).start("-p", "Sleep", module=CHILD)
        with bounded(process.pid, seconds=90):
            assert await poll(lambda: alive(f"sleep\0{marked}"))
            children = family(process.pid)
            process.send_signal(signal.SIGUSR1)
            assert await poll(lambda: any(tmp_path.rglob(STANDING)))
            process.send_signal(signal.SIGTERM)
            ran = await ended(process)
            assert await poll(lambda: not alive(marked) and gone(children))
    assert ran.code == code
    assert ("Did not react to signal 15" in ran.err) is (code > 0)
    assert "Traceback" not in ran.err


async def test_ctrl_c_again_and_again_ends_a_loop_that_stands(tmp_path: Path) -> None:
    async with program(stuck(tmp_path, "python"), module=CHILD) as running:
        with bounded(running.pid, seconds=90):
            await running.ready()
            await stand(running, tmp_path)
            pressed: list[float] = []

            def press() -> bool:
                if not pressed or time.monotonic() - pressed[-1] > PRESS_EVERY:
                    pressed.append(time.monotonic())
                    running.type(CTRL_C)
                return not running.process.isalive()

            await running.until(press, "the end of the program")
            assert await running.exit_code() == 128 + signal.SIGTERM
            await running.until(lambda: given_back(running), "the terminal, given back")


async def test_a_loop_that_listens_outlives_ctrl_c_and_ends_although_its_terminal_takes_nothing(tmp_path: Path) -> None:
    phoenix = Phoenix(tmp_path, tmp_path)
    async with program(phoenix) as running:
        await running.ready()
        for letter in "abcd":
            running.type(letter)
            await running.shows(letter)
            running.type(CTRL_C)
            await running.lacks(f"┃ {letter}")
        await write(running, phoenix)
        with stopped_output(running):
            for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
                running.signal(number)
            await running.until(lambda: not running.process.isalive(), "the end", WINS_WITHIN)
        assert await running.exit_code() in {128 + signal.SIGHUP, 128 + signal.SIGTERM}
        assert running.terminal_is_back
    assert TYPED + MORE in drafts(phoenix)


async def test_lines_end_although_their_terminal_takes_nothing(tmp_path: Path) -> None:
    async with program(Phoenix(tmp_path, tmp_path), "--screen-reader") as running:
        await running.shows("You:")
        with stopped_output(running):
            running.type("/help\r")
            running.signal(signal.SIGTERM)
            await running.until(lambda: not running.process.isalive(), "the end", WINS_WITHIN)
        assert await running.exit_code() == 128 + signal.SIGTERM
        assert running.terminal_is_back


@pytest.mark.parametrize("waits", [True, False])
async def test_a_signal_to_a_stopped_program_ends_it_when_it_goes_on(tmp_path: Path, waits: bool) -> None:
    """Sent at once, both may come before Phoenix has stopped itself: the zygote lets it go on then."""
    phoenix = Phoenix(tmp_path, tmp_path)
    async with program(phoenix) as running:
        await write(running, phoenix)
        running.signal(signal.SIGTSTP)
        if waits:
            await running.until(lambda: state_of(running.pid) == "T", "a program that is stopped")
            await running.until(lambda: given_back(running), "the terminal, given back")
        running.signal(signal.SIGTERM)
        running.signal(signal.SIGCONT)
        assert await running.exit_code(WINS_WITHIN) == 128 + signal.SIGTERM
        await running.until(lambda: given_back(running), "the terminal, given back")
    assert TYPED + MORE in drafts(phoenix)


async def test_a_program_that_stops_itself_behind_a_signal_goes_on_and_ends(tmp_path: Path) -> None:
    phoenix = Phoenix(tmp_path, tmp_path)
    async with program(phoenix, module="tests.support.signalled_in_stop") as running:
        await write(running, phoenix)
        running.signal(signal.SIGTSTP)
        assert await running.exit_code(WINS_WITHIN) == 128 + signal.SIGTERM
        await running.until(lambda: given_back(running), "the terminal, given back")
    assert TYPED + MORE in drafts(phoenix)


async def test_a_stopped_program_whose_terminal_goes_ends(tmp_path: Path) -> None:
    phoenix = Phoenix(tmp_path, tmp_path)
    async with program(phoenix) as running:
        await write(running, phoenix)
        everyone = {running.pid, *family(running.pid)}
        running.signal(signal.SIGTSTP)
        await running.until(lambda: state_of(running.pid) == "T", "a program that is stopped")
        running.hang_up()
        assert await poll(lambda: gone(everyone))
    assert TYPED + MORE in drafts(phoenix)


async def test_a_program_that_must_ignore_hang_ups_does_and_ends_once_it_cannot_read(tmp_path: Path) -> None:
    phoenix = Phoenix(tmp_path, tmp_path)
    async with program(phoenix, module="tests.support.no_hang_up") as running:
        await running.ready()
        running.signal(signal.SIGHUP)
        await write(running, phoenix)
        everyone = {running.pid, *family(running.pid)}
        running.hang_up()
        assert await poll(lambda: gone(everyone))
    assert TYPED + MORE in drafts(phoenix)


@pytest.mark.parametrize(("stands", "deaf"), [(False, False), (False, True), (True, False)])
async def test_an_editor_ends_with_phoenix_and_what_it_saved_is_the_draft(
    tmp_path: Path, stands: bool, deaf: bool
) -> None:
    marked = mark()
    editor = tmp_path / "editor"
    trap = "trap '' HUP; " if deaf else ""
    editor.write_text(f'#!/bin/sh\n{trap}printf "words that were saved" > "$1"\nexec sleep {marked}\n')
    editor.chmod(0o755)
    phoenix = stuck(tmp_path, "python", EDITOR=str(editor))
    async with program(phoenix, module=CHILD) as running:
        with bounded(running.pid, seconds=90):
            await running.ready()
            running.type(TYPED)
            await running.until(lambda: TYPED in drafts(phoenix), "the draft in the database")
            running.type(CTRL_G)
            await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the editor")
            if stands:
                await stand(running, tmp_path)
            running.signal(signal.SIGTERM)
            assert await running.exit_code(WINS_WITHIN) == 128 + signal.SIGTERM
            await running.until(lambda: not alive(marked), "the end of the editor")
            await running.until(lambda: given_back(running), "the terminal, given back")
    assert (TYPED if stands else "words that were saved") in drafts(phoenix)


def state_of(pid: int) -> str:
    """The letter of the system for what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def stopped_output(running: Program) -> Generator[None]:
    """The terminal takes nothing that the program writes, as after Ctrl+S."""
    terminal = os.open(Path(f"/proc/{running.pid}/fd/0").readlink(), os.O_RDWR | os.O_NOCTTY)
    termios.tcflow(terminal, termios.TCOOFF)
    try:
        yield
    finally:
        termios.tcflow(terminal, termios.TCOON)
        os.close(terminal)


def log_of(home: Path) -> list[dict[str, str]]:
    """The lines of the log."""
    return [json.loads(line) for path in home.rglob("phoenix.jsonl") for line in path.read_text("utf-8").splitlines()]


CTRL_U = b"\x15"
WITHIN = SECONDS * 2 / 3
"""Seconds; a second or two is usual. Whoever waits for the thread needs all of its minute."""
LEAVES: dict[str, tuple[Callable[[Program], None], int]] = {
    "ctrl+q": (lambda running: running.type(CTRL_Q), 0),
    "/quit": (lambda running: running.type(CTRL_U + b"/quit\r"), 0),
    "term": (lambda running: running.signal(signal.SIGTERM), 128 + signal.SIGTERM),
}


@pytest.mark.parametrize("busy", ["thread", "database"])
@pytest.mark.parametrize("way", LEAVES)
async def test_phoenix_ends_at_once_while_a_thread_works(tmp_path: Path, way: str, busy: str) -> None:
    leave, code = LEAVES[way]
    phoenix = Phoenix(tmp_path, tmp_path, {BUSY: busy})
    async with program(phoenix, module="tests.support.busy_child") as running:
        with bounded(running.pid, seconds=90):
            await running.ready()
            running.type(TYPED)
            await running.until(lambda: TYPED in drafts(phoenix), "the draft in the database")
            running.signal(signal.SIGUSR1)
            await running.until(lambda: any(tmp_path.rglob(HELD)), "a thread that works")
            leave(running)
            assert await running.exit_code(WITHIN) == code
            assert running.terminal_is_back
    assert "Did not" not in running.words
    assert rows(phoenix, "PRAGMA integrity_check") == [("ok",)]
    assert (TYPED in drafts(phoenix)) is (way != "/quit")


def test_a_loop_gives_work_under_way_a_moment_and_leaves_the_rest(tmp_path: Path) -> None:
    short, never = tmp_path / "short", tmp_path / "never"
    program = f"""
import asyncio, time
from pathlib import Path
from phoenix_tui.lifecycle.threads import leave_busy_threads, run_loop

def short():
    time.sleep(0.2)
    Path({str(short)!r}).touch()

def long():
    time.sleep({SECONDS})
    Path({str(never)!r}).touch()

async def main():
    answers = await asyncio.gather(*(asyncio.to_thread(pow, 2, number) for number in range(200)))
    assert answers == [2**number for number in range(200)]
    for work in (short, long):
        asyncio.get_running_loop().run_in_executor(None, work)
    return 7

code = run_loop(main())
print("over", flush=True)
leave_busy_threads(code)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WITHIN, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "over\n", "")
    assert short.exists()
    assert not never.exists()
