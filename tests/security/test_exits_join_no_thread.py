"""SECURITY S7: TERM and the keys that leave waited for a thread that worked, as long as it took."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.bounded import bounded
from tests.support.busy_child import BUSY, HELD, SECONDS
from tests.support.cli import Phoenix
from tests.support.journeys import rows
from tests.support.program import CTRL_Q, Program, program

pytestmark = pytest.mark.pty
CTRL_U = b"\x15"
TYPED = "half a sentence"
WITHIN = SECONDS * 2 / 3
"""Seconds; a second or two is usual. Whoever waits for the thread needs all of its minute."""
LEAVES: dict[str, tuple[Callable[[Program], None], int]] = {
    "ctrl+q": (lambda running: running.type(CTRL_Q), 0),
    "/quit": (lambda running: running.type(CTRL_U + b"/quit\r"), 0),
    "term": (lambda running: running.signal(signal.SIGTERM), 128 + signal.SIGTERM),
}


def drafts(phoenix: Phoenix) -> str:
    """Stored drafts."""
    with suppress(sqlite3.OperationalError):  # the database is only being made
        return str(rows(phoenix, "SELECT draft FROM conversations"))
    return ""


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
