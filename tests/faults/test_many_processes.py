"""Several Phoenixes on one database: no message lost, no lock shown (FAULTS 73, 77)."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.cli import Ran, with_claude
from tests.support.journeys import Answer, calls, picks, results, rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import alive, mark
from tests.support.waiting import poll

PROCESSES = 3
RUNS = 2


async def test_three_processes_at_once_lose_nothing_and_show_no_lock(tmp_path: Path) -> None:
    def choose(seen: Seen) -> Answer:
        return says("Done.") if results(seen) else calls("bash", command="echo out")

    async with serve(picks(choose)) as server:
        phoenix = with_claude(tmp_path, server.url)

        async def worker(number: int) -> list[Ran]:
            first = await phoenix.run("-p", "--permission-mode", "auto", "-n", f"talk {number}", f"ask {number} 0")
            again = [
                await phoenix.run("-p", "-r", f"talk {number}", "--permission-mode", "auto", f"ask {number} {turn}")
                for turn in range(1, RUNS)
            ]
            return [first, *again]

        ran = [one for worked in await asyncio.gather(*map(worker, range(PROCESSES))) for one in worked]
    assert [(one.code, one.out) for one in ran] == [(0, "Done.\n")] * (PROCESSES * RUNS)
    assert not any("lock" in one.err.lower() for one in ran)
    assert rows(phoenix, "select count(*) from conversations") == [(PROCESSES,)]
    assert rows(phoenix, "select count(*), count(distinct id) from messages") == [(PROCESSES * RUNS * 4,) * 2]
    with closing(sqlite3.connect(phoenix.home / "phoenix.db")) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


async def test_a_start_leaves_alone_what_another_process_runs(tmp_path: Path) -> None:
    marked = mark()

    def choose(seen: Seen) -> Answer:
        return calls("bash", command=f"sleep {marked}") if "slowly" in str(seen.json["messages"]) else says("Quick.")

    async with serve(picks(choose)) as server:
        phoenix = with_claude(tmp_path, server.url)
        slow = await phoenix.start("-p", "--permission-mode", "auto", "slowly")
        try:
            assert await poll(lambda: alive(f"sleep\0{marked}"))
            assert (await phoenix.run("-p", "quickly")).out == "Quick.\n"
            assert alive(f"sleep\0{marked}")
            assert slow.returncode is None
        finally:
            slow.send_signal(signal.SIGKILL)
            await slow.communicate()
        assert await poll(lambda: not alive(marked))
        taken_over = await phoenix.run("-p", "-c", "--permission-mode", "auto", "quickly")
        assert taken_over.code == 0
