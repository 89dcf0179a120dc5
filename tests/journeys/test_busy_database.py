"""A database that another program keeps for long: seen waiting, ended by Esc, Ctrl+C and the timeout, in a sentence."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cli import Phoenix, ended, with_claude
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import program

WAITS = "Waiting for the database, which another program is using."


@contextmanager
def held(phoenix: Phoenix) -> Iterator[sqlite3.Connection]:
    """The database, locked until the end, or until the transaction is ended."""
    other = sqlite3.connect(phoenix.home / "phoenix.db", isolation_level=None, timeout=30)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield other
    finally:
        other.close()


async def said(process: asyncio.subprocess.Process) -> str:
    """The next line of stderr."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        return (await process.stderr.readline()).decode()


async def test_a_headless_run_says_what_it_waits_for_and_goes_on(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        assert (await phoenix.run("-p", "hi")).code == 0
        with held(phoenix) as other:
            process = await phoenix.start("-p", "hi again")
            assert (await said(process)).startswith(WAITS)
            other.execute("ROLLBACK")
            ran = await ended(process)
        assert (ran.code, ran.out) == (0, "Hello.\n")
        assert WAITS not in ran.err, "once is enough"


async def test_a_signal_ends_a_headless_run_that_waits(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        await phoenix.run("-p", "hi")
        with held(phoenix):
            process = await phoenix.start("-p", "hi again")
            await said(process)
            process.send_signal(signal.SIGTERM)
            ran = await ended(process)
        assert ran.code in {143, -signal.SIGTERM}
        assert "Traceback" not in ran.err


async def test_the_timeout_ends_a_headless_run_that_waits_in_a_sentence(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        await phoenix.run("-p", "hi")
        with held(phoenix):
            ran = await phoenix.run("-p", "hi again", "--timeout", "3")
        assert ran.code == 75
        assert ran.err.splitlines()[-1] == (
            f"phoenix: Another program is using the database {phoenix.home / 'phoenix.db'}; try again in a moment."
        )
        assert "Traceback" not in ran.err


async def test_a_message_is_seen_waiting_and_esc_gives_it_back(tmp_path: Path) -> None:
    async with (
        serve(says("Hello."), says("And again.")) as server,
        program(with_claude(tmp_path, server.url)) as running,
    ):
        await running.ready()
        await running.send("one")
        await running.shows("Hello.", "ready")
        phoenix = with_claude(tmp_path, server.url)
        with held(phoenix):
            running.type("two\r")
            await running.shows("waiting for the database", "Esc cancels")
            running.type("\x1b")
            await running.shows("is using the database")
        await running.lacks("waiting for the database")
        assert len(server.requests) == 1
        await running.until(lambda: "┃ two" in running.text, "the text is back where it was written")
        running.type("\r")
        await running.shows("And again.")


async def test_a_sub_command_says_what_it_waits_for(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        await phoenix.run("-p", "hi")
        with held(phoenix) as other:
            process = await phoenix.start("conversations", "list")
            assert (await said(process)).startswith(WAITS)
            other.execute("ROLLBACK")
            ran = await ended(process)
        assert ran.code == 0
        assert "hi" in ran.out
