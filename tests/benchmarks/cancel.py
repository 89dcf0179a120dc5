"""Esc at any time: streams, commands, bombs, trees of processes, services and deaths."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.benchmarks.program import Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, median, percentile, spread
from tests.support.processes import SHAPES, measure_cancel, measure_death, watching
from tests.support.service_host import shell
from tools.contract import UNCONFINED, Sandbox, SandboxMode
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.zygote.tree import freeze, read_proc
from tools.services import ServiceCommand

CODEX_CLOSE: Final = 2.3
"""ms, codex: peer table, "Esc in a mid-stream hang -> connection closed"; claude takes 54."""
VIBE_DEAD: Final = 14.0
"""ms, vibe3: peer table, "Esc in `sleep & sleep; wait` -> all dead"; codex leaks, claude takes 75."""
KITTY_ESC: Final = "\x1b[27u"
BOMB: Final = """import os, time
end = time.monotonic() + 60
for _ in range(8):
    if os.fork() == 0: os.setsid()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "{ready}"), "a") as ready: ready.write("x")
while time.monotonic() < end: pass
"""
BOMB_SIZE: Final = 256
LOOKED_AT: Final = 2.0
"""Seconds in which the supervisor has looked at a large tree."""
ESC_DELAY: Final = 40
"""ms that a lone ESC byte waits for more of a sequence."""


def esc_stream(bench: Bench) -> Iterator[Row]:
    """Esc while the model says nothing more: the connection must go."""
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        for name, key, limit in (("a lone ESC byte", "\x1b", 60), ("kitty's Esc", KITTY_ESC, 25)):
            times = [_close(program, key) for _ in range(bench.rounds(20, 6))]
            row = Row(f"Esc -> connection closed, {name}, p50", median(times), "ms", spread(times))
            yield row.beside("codex", CODEX_CLOSE).at_most(limit)


def esc_command(bench: Bench) -> Iterator[Row]:
    """Esc in the real program while a command with children runs."""
    times: list[float] = []
    leaks = 0
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for _ in range(bench.rounds(30, 5)):
            with watching() as watch:
                program.say(f"[[bash:exec 9>{watch.fifo}; echo >&9; sleep 61 & setsid sleep 62 & wait]]")
                deadline = time.monotonic() + 10
                while not watch.stands(0) and time.monotonic() < deadline:
                    program.terminal.drain(0.02)
                pressed = time.perf_counter()
                program.terminal.write("\x1b")
                try:
                    times.append((watch.emptied_at(5) - pressed) * 1000)
                except TimeoutError:
                    leaks += 1
            program.terminal.settle(0.4)
    row = Row("Esc in the real program -> tree empty, p50", median(times), "ms", spread(times))
    yield row.beside("vibe3", VIBE_DEAD)
    row = Row("Esc in the real program -> tree empty, p99", percentile(times, 0.99), "ms")
    yield row.at_most(100 + ESC_DELAY, f"100 + {ESC_DELAY} ESCDELAY")
    yield Row("Esc in the real program: trees left", leaks, "").at_most(0)


def bombs(bench: Bench) -> Iterator[Row]:
    """The real program while 256 processes spin, each in a session of its own: a key, then Esc."""
    rounds = bench.rounds(5, 2)
    floor = median([_plain_walk(bench.folder / f"floor-{number}") for number in range(rounds)])
    for sandbox in ("off", "workspace"):
        drawn: list[float] = []
        gone: list[float] = []
        settings = {"PHOENIX_SANDBOX": sandbox}
        with serving() as model, running(model, fresh_home(bench.folder), settings=settings) as program:
            for number in range(rounds):
                script = _bomb(program.home / "work" / f"bomb-{number}")
                program.say(f"[[bash:{sys.executable} -S {script.name}]]")
                while not _stands(script):
                    program.terminal.drain(0.05)
                time.sleep(LOOKED_AT)
                pressed = time.perf_counter()
                program.terminal.write(f"q{number}q")
                program.terminal.wait(rf"q{number}q")
                drawn.append((time.perf_counter() - pressed) * 1000)
                pressed = time.perf_counter()
                program.terminal.write("\x1b")
                while _spinning(script):
                    program.terminal.drain(0.01)
                gone.append((time.perf_counter() - pressed) * 1000)
                program.terminal.settle(0.4)
        yield Row(f"a key beside {BOMB_SIZE} sessions, sandbox {sandbox}, p50", median(drawn), "ms", spread(drawn))
        row = Row(f"Esc -> {BOMB_SIZE} sessions gone, sandbox {sandbox}, p50", median(gone), "ms", spread(gone))
        yield row.beside("plain walk", floor).at_most(2_000)


def _bomb(path: Path) -> Path:
    path.write_text(BOMB.format(ready=path.with_suffix(".ready").name), "utf-8")
    return path


def _stands(script: Path) -> bool:
    ready = script.with_suffix(".ready")
    return ready.exists() and ready.stat().st_size >= BOMB_SIZE


def _spinning(script: Path) -> list[int]:
    """Processes of a bomb."""
    name = script.name.encode()
    return [
        int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and name in read_proc(f"{one}/cmdline")
    ]


def _plain_walk(script: Path) -> float:
    """Milliseconds in which a walk that stops whatever it sees, then kills it, empties the same tree."""
    _bomb(script)
    pid = os.posix_spawn(sys.executable, [sys.executable, "-S", str(script)], {"HOME": str(script.parent)}, setsid=True)
    while not _stands(script):
        time.sleep(0.05)
    time.sleep(LOOKED_AT)
    began = time.perf_counter()
    for one in (pid, *freeze(pid)):
        os.kill(one, signal.SIGKILL)
    while _spinning(script):
        time.sleep(0.01)
    took = (time.perf_counter() - began) * 1000
    os.waitpid(pid, 0)
    return took


def trees(bench: Bench) -> Iterator[Row]:
    """Cancel each shape of process tree through the process control itself."""
    rounds = bench.rounds(200, 10)
    for shape in SHAPES:
        figures = asyncio.run(measure_cancel(shape, rounds))
        yield Row(f"cancel -> tree empty, {shape.name}, p50", figures.median, "ms", spread(figures.milliseconds))
        yield Row(f"cancel -> tree empty, {shape.name}, p99", figures.percentile(0.99), "ms").at_most(100)
        yield Row(f"cancel, {shape.name}: processes left", figures.survivors, "", f"{rounds} rounds").at_most(0)


def deaths(bench: Bench) -> Iterator[Row]:
    """Kill Phoenix with SIGKILL: its commands go too."""
    rounds = bench.rounds(20, 2)
    for shape in SHAPES:
        figures = measure_death(shape, rounds)
        note = spread(figures.milliseconds)
        yield Row(f"kill -9 of Phoenix -> tree empty, {shape.name}, p50", figures.median, "ms", note)
        yield Row(f"kill -9 of Phoenix, {shape.name}: processes left", figures.survivors, "").at_most(0)


def _close(program: Program, key: str) -> float:
    asked = program.asked(program.say("[[hang:30]]"))
    program.terminal.wait(rf"STARTMARK-{asked.number}\b")
    program.terminal.drain(0.4)
    pressed = time.monotonic()
    program.terminal.write(key)
    closed = program.model.wait("closed", number=asked.number, seconds=5)
    program.terminal.settle(0.4)
    return (closed.at - pressed) * 1000


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
