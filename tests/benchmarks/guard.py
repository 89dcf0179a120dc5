"""Looks at a workspace around sandboxed commands, beside the same commands without a look."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row, median, spread
from tools.contract import Command, ProgramEnded, Progress, Sandbox, SandboxMode
from tools.process.plan import CommandPlan
from tools.process.start import Processes, ProcessSettings, start_processes

CONFINED: Final = Sandbox(SandboxMode.WORKSPACE, network=False)
SIZES: Final = (1_000, 60_000)
LATEST_ROW: Final = 60
"""ms from the end of a command to its row, whatever the size of the folder; without a look it is the same."""


def guard(bench: Bench) -> Iterator[Row]:
    """Milliseconds of `true` in a sandbox: without a look, and with one at a small and at a large workspace."""
    yield from asyncio.run(_measure(bench))


async def _measure(bench: Bench) -> list[Row]:
    processes = await start_processes(ProcessSettings())
    rows: list[Row] = []
    try:
        await processes.probe()
        sandbox = processes.planner.sandbox or ""
        for size in SIZES:
            folder = Path(tempfile.mkdtemp(prefix="phoenix-guard-", dir=Path.home()))
            try:
                await asyncio.to_thread(_fill, folder, size)
                command = Command(("/bin/true",), folder, timeout=60, sandbox=CONFINED)
                first = await _whole(processes, command)
                rounds = bench.rounds(20, 8)
                floor = [await _floor(processes, command, sandbox) for _ in range(rounds)]
                timed = [await _timed(processes, command) for _ in range(rounds)]
                whole, shown = [one[0] for one in timed], [one[1] for one in timed]
                rows.append(Row(f"`true`, {size} folders, no look, p50", median(floor), "ms", spread(floor)))
                rows.append(Row(f"`true`, {size} folders, first look, once", first, "ms"))
                rows.append(Row(f"`true`, {size} folders, looked at, p50", median(whole), "ms", spread(whole)))
                row = Row(f"`true`, {size} folders, until its row, p50", median(shown), "ms", spread(shown))
                rows.append(row.at_most(median(floor) + LATEST_ROW))
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    finally:
        await processes.close()
    return rows


def _fill(folder: Path, size: int) -> None:
    for number in range(size // 100):
        for inner in range(99):
            (folder / f"a{number}" / f"b{inner}").mkdir(parents=True, exist_ok=True)


async def _whole(processes: Processes, command: Command) -> float:
    began = time.perf_counter()
    await processes.runner.run(command)
    return (time.perf_counter() - began) * 1000


async def _timed(processes: Processes, command: Command) -> tuple[float, float]:
    """Milliseconds until the result, and until the row shows the end."""
    shown: list[float] = []

    def report(progress: Progress) -> None:
        if isinstance(progress, ProgramEnded):
            shown.append(time.perf_counter())

    began = time.perf_counter()
    await processes.runner.run(command, report)
    ended = time.perf_counter()
    return (ended - began) * 1000, ((shown[0] if shown else ended) - began) * 1000


async def _floor(processes: Processes, command: Command, sandbox: str) -> float:
    began = time.perf_counter()
    plan: CommandPlan = await processes.planner.plan_confined(command, sandbox, CONFINED, is_watched=False)
    running = await processes._supervision.start_planned(command, plan)
    await processes._supervision.see_through(running, 60, asyncio.Event())
    return (time.perf_counter() - began) * 1000
