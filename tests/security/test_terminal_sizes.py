"""SECURITY D1: no size of the terminal and no storm of sizes makes Phoenix run away; it reads keys and ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.terminal.size import FALLBACK, LEAST, MOST, drawable, forget_nonsense, terminal_size
from tests.support.bounded import bounded
from tests.support.cli import Phoenix
from tests.support.program import program
from tests.support.waiting import rest

SIZES = [(0, 0), (0, 24), (80, 0), (1, 1), (65535, 65535)]
MOST_MEMORY = 200
"""Megabytes; 60 are usual, and a screen of 1,000 x 400 takes 10 more."""
MOST_OUTPUT = 6_000_000
"""Bytes from the start on: the largest screen, drawn a few times."""


@pytest.mark.pty
@pytest.mark.parametrize(
    ("size", "number"),
    [*((size, signal.SIGTERM) for size in SIZES), ((0, 0), signal.SIGHUP)],
    ids=lambda one: one.name if isinstance(one, signal.Signals) else f"{one[0]}x{one[1]}",
)
async def test_a_terminal_of_any_size_is_quiet_reads_keys_and_ends(
    tmp_path: Path, size: tuple[int, int], number: signal.Signals
) -> None:
    columns, rows = size
    async with program(Phoenix(tmp_path, tmp_path), columns=columns, rows=rows) as running:
        with bounded(running.pid, seconds=40) as seen:
            await running.until(lambda: b"\x1b[?1049h" in running.raw, "the screen")
            await rest(lambda: len(running.raw))
            assert len(running.raw) < MOST_OUTPUT
            if number is signal.SIGTERM:
                running.resize(100, 30)  # a later real size is taken
                await running.ready()
                running.type("still here")
                await running.shows("still here")
            assert seen.peak < MOST_MEMORY
            running.signal(number)
            assert await running.exit_code() == 128 + number
            assert running.terminal_is_back


@pytest.mark.pty
async def test_a_storm_of_sizes_costs_little_and_the_last_one_counts(tmp_path: Path) -> None:
    async with program(Phoenix(tmp_path, tmp_path)) as running:
        with bounded(running.pid, seconds=40) as seen:
            await running.ready()
            before, over = len(running.raw), threading.Event()
            sent: list[None] = []

            def storm() -> None:
                while not over.is_set():
                    with contextlib.suppress(OSError):
                        running.process.setwinsize(1 + len(sent) % 40, 1 + len(sent) % 120)
                    os.kill(running.pid, signal.SIGWINCH)
                    sent.append(None)

            thread = threading.Thread(target=storm, daemon=True)
            thread.start()
            running.type("typed in the storm")
            await running.until(lambda: len(sent) > 10_000, "the storm")
            over.set()
            thread.join()
            running.resize(100, 30)
            await running.shows("typed in the storm", "○ ready")
            await rest(lambda: len(running.raw))
            assert len(running.raw) - before < MOST_OUTPUT
            assert seen.peak < MOST_MEMORY
            running.signal(signal.SIGTERM)
            assert await running.exit_code() == 128 + signal.SIGTERM


@pytest.mark.pty
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_end_counts_in_the_midst_of_a_storm(tmp_path: Path, number: signal.Signals) -> None:
    async with program(Phoenix(tmp_path, tmp_path)) as running:
        with bounded(running.pid, seconds=40):
            await running.ready()
            over, sent = threading.Event(), list[None]()

            def storm() -> None:
                while not over.is_set():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(running.pid, signal.SIGWINCH)
                    sent.append(None)

            thread = threading.Thread(target=storm, daemon=True)
            thread.start()
            try:
                await running.until(lambda: len(sent) > 1_000, "the storm")
                running.signal(number)
                assert await running.exit_code() == 128 + number
            finally:
                over.set()
                thread.join()


FLOOD = """
import asyncio, os, signal
from phoenix_tui.lifecycle.stop_signals import handle
heard = []
async def main():
    loop = asyncio.get_running_loop()
    handle(loop, signal.SIGWINCH, lambda: heard.append(1))
    for _ in range(20_000):  # the loop reads none of them meanwhile
        os.kill(os.getpid(), signal.SIGWINCH)
    while not heard:
        await asyncio.sleep(0)
asyncio.run(main())
"""


def test_more_signals_than_the_loop_has_room_for_are_no_warning() -> None:
    """The warning takes a lock that the interrupted code may hold; then every thread stands still."""
    done = subprocess.run([sys.executable, "-c", FLOOD], capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""


@pytest.mark.pty
@pytest.mark.parametrize("said", ["0", "100000"])
async def test_nonsense_in_the_environment_is_not_believed(tmp_path: Path, said: str) -> None:
    phoenix = Phoenix(tmp_path, tmp_path, {"COLUMNS": said, "LINES": said})
    async with program(phoenix, columns=0, rows=0) as running:
        with bounded(running.pid, seconds=40):
            await running.ready()
            await rest(lambda: len(running.raw), still=0.3)
            running.signal(signal.SIGTERM)
            assert await running.exit_code() == 128 + signal.SIGTERM


@given(columns=st.integers(-(2**40), 2**40) | st.text() | st.none() | st.floats(), rows=st.integers() | st.booleans())
def test_whatever_is_told_becomes_a_size_that_can_be_drawn(columns: object, rows: object) -> None:
    drawn = drawable(columns, rows)
    assert all(1 <= one <= most for one, most in zip(drawn, MOST, strict=True))
    assert all(type(one) is int for one in drawn)


@given(columns=st.text(), lines=st.integers(-(10**12), 10**12).map(str))
def test_variables_give_a_size_or_the_fallback(columns: str, lines: str) -> None:
    environment = {"COLUMNS": columns, "LINES": lines}
    answer = terminal_size((), environment)
    assert all(1 <= one <= most for one, most in zip(answer, MOST, strict=True))
    forget_nonsense(environment)
    assert terminal_size((), environment) == answer
    for name, place in (("COLUMNS", 0), ("LINES", 1)):
        assert (name in environment) or answer[place] == FALLBACK[place]


def test_the_least_is_smaller_than_the_fallback_and_that_than_the_most() -> None:
    assert all(least < usual < most for least, usual, most in zip(LEAST, FALLBACK, MOST, strict=True))
