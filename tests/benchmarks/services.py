"""Services and one-shot programs: how soon they run, what a message costs, and what a flood on stderr takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row, median, spread
from tests.support.service_host import shell
from tools.contract import UNCONFINED, Sandbox, SandboxMode
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.services import ServiceCommand

START_LIMIT: Final = 15
"""ms that the start of a hook may take (docs/decisions/services.md)."""
FLOOD: Final = 100 << 20
SANDBOXES: Final = (("no sandbox", UNCONFINED), ("workspace sandbox", Sandbox(SandboxMode.WORKSPACE)))


def services(bench: Bench) -> Iterator[Row]:
    """Times of services through the process control itself."""
    yield from asyncio.run(_rows(bench))


async def _rows(bench: Bench) -> list[Row]:
    processes = await start_processes(ProcessSettings())
    try:
        await processes.probe()
        rows: list[Row] = []
        for name, sandbox in SANDBOXES:
            rounds = bench.rounds(60, 15)
            opened = [await _opening(processes, bench.folder, sandbox) for _ in range(rounds)]
            rows.append(Row(f"a service runs, {name}, p50", median(opened), "ms", spread(opened)).at_most(START_LIMIT))
            ran = [await _program(processes, bench.folder, sandbox) for _ in range(rounds)]
            rows.append(Row(f"/bin/true as a one-shot program, {name}, p50", median(ran), "ms", spread(ran)))
        rows.append(Row("one JSON line there and back", await _round_trip(processes, bench.rounds(5000, 500)), "us"))
        rows.append(Row("100 MB on stderr", await _flood(processes), "ms"))
        return rows
    finally:
        await processes.close()


async def _opening(processes: Processes, folder: Path, sandbox: Sandbox) -> float:
    began = time.perf_counter()
    service = await processes.services.open(ServiceCommand(("/bin/cat",), folder, sandbox=sandbox, owner="bench"))
    took = (time.perf_counter() - began) * 1000
    await service.end()
    return took


async def _program(processes: Processes, folder: Path, sandbox: Sandbox) -> float:
    began = time.perf_counter()
    await processes.services.run_program(ServiceCommand(("/bin/true",), folder, sandbox=sandbox, owner="bench"), b"{}")
    return (time.perf_counter() - began) * 1000


async def _round_trip(processes: Processes, rounds: int) -> float:
    async with await processes.services.open(ServiceCommand(("/bin/cat",), Path("/"))) as service:
        channel = service.channel()
        began = time.perf_counter()
        for number in range(rounds):
            await channel.write_object({"id": number})
            await channel.read_object()
        return (time.perf_counter() - began) / rounds * 1e6


async def _flood(processes: Processes) -> float:
    began = time.perf_counter()
    async with await processes.services.open(shell(f"head -c {FLOOD} /dev/zero >&2; echo")) as service:
        await service.channel().read_line()
        return (time.perf_counter() - began) * 1000
