"""A command in a terminal: what it shows, what is typed into it, and that nothing of it survives its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.processes import SHAPES, Shape, Watch
from tests.support.waiting import poll
from tools.bash import Caller
from tools.contract import Captured, Command, Finished, JobInfo, Progress
from tools.process.command_terminal import CommandTerminal
from tools.process.start import Processes
from tools.terminal.values import TerminalModes, TerminalRows, TerminalSize

SIZE = TerminalSize(10, 40)
CALLER = Caller("one", "shell_1", "make", SIZE)
PLACE = ("one", "shell_1")
Running = asyncio.Task[Finished | JobInfo]


def shell(script: str) -> Command:
    return Command(("/bin/bash", "-c", script), Path("/tmp"), terminal=True)


@asynccontextmanager
async def running(
    processes: Processes, command: Command, seen: list[Progress] | None = None, caller: Caller = CALLER
) -> AsyncIterator[Running]:
    """A command that a caller awaits in a terminal."""
    report = seen.append if seen is not None else None
    task = asyncio.create_task(processes.jobs.run(command, caller, report))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def terminal_of(processes: Processes) -> CommandTerminal:
    """The terminal, once the command runs."""
    assert await poll(lambda: processes.jobs.terminal(*PLACE) is not None)
    terminal = processes.jobs.terminal(*PLACE)
    assert terminal is not None
    return terminal


async def ended(processes: Processes, script: str, seen: list[Progress] | None = None) -> Finished:
    async with running(processes, shell(script), seen) as task:
        finished = await task
    assert isinstance(finished, Finished)
    return finished


def text_of(captured: Captured) -> str:
    return (captured.head + captured.tail).decode()


def newest(seen: list[Progress]) -> str:
    rows = [one.text for one in seen if isinstance(one, TerminalRows)]
    return rows[-1] if rows else ""


def descriptors() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


async def test_its_output_is_text_with_colours(processes: Processes) -> None:
    finished = await ended(
        processes, "stty size; printf '10%%\\r20%%\\n\\033[31mred\\033[m\\n'; tty >/dev/null; exit 4"
    )
    assert finished.exit_code == 4
    assert text_of(finished.captured) == "10 40\n20%\nred"
    facts = finished.captured.terminal
    assert facts is not None
    assert [(run.row, run.start, run.end, run.look) for run in facts.runs] == [(2, 0, 3, "31")]
    assert finished.captured.lines == 3


async def test_what_it_shows_is_reported_in_place_of_what_was(processes: Processes) -> None:
    seen: list[Progress] = []
    async with running(processes, shell("printf '1%%'; read x; printf '\\r2%%'; read x"), seen):
        terminal = await terminal_of(processes)
        assert await poll(lambda: newest(seen) == "1%")
        terminal.type(b"\n")
        assert await poll(lambda: newest(seen).startswith("1%\n2%"))


async def test_keys_are_typed_and_those_without_an_echo_are_in_no_record(processes: Processes) -> None:
    seen: list[Progress] = []
    script = "read -rp 'name? ' n; read -rsp 'password? ' p; echo; echo \"$n has ${#p}\""
    async with running(processes, shell(script), seen) as task:
        terminal = await terminal_of(processes)
        assert await poll(lambda: newest(seen).endswith("name? "[:-1]))
        terminal.type(b"ann\r")
        assert await poll(lambda: "password?" in newest(seen))
        terminal.type(b"sesame\r")
        finished = await task
    assert isinstance(finished, Finished)
    assert text_of(finished.captured) == "name? ann\npassword?\nann has 6"
    assert not any("sesame" in str(one) for one in seen)


async def test_ctrl_c_reaches_it_and_ctrl_z_stops_nothing(processes: Processes) -> None:
    seen: list[Progress] = []
    script = "trap 'echo caught' INT; echo ready; stty -icanon; dd bs=1 count=1 2>/dev/null | od -An -tx1; read x"
    async with running(processes, shell(script), seen):
        terminal = await terminal_of(processes)
        assert await poll(lambda: "ready" in newest(seen))
        terminal.type(b"\x1a")
        assert await poll(lambda: "1a" in newest(seen))
        terminal.type(b"\x03")
        assert await poll(lambda: "caught" in newest(seen))


async def test_another_size_is_told(processes: Processes) -> None:
    seen: list[Progress] = []
    script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done"
    async with running(processes, shell(script), seen):
        terminal = await terminal_of(processes)
        assert await poll(lambda: "ready" in newest(seen))
        terminal.resize(TerminalSize(20, 66))
        assert await poll(lambda: "20 66" in newest(seen))


async def test_the_modes_that_it_sets_are_known(processes: Processes) -> None:
    async with running(processes, shell("printf '\\033[?1h\\033[?2004h'; read x")):
        terminal = await terminal_of(processes)
        assert await poll(lambda: terminal.modes == TerminalModes(application_keys=True, brackets_pastes=True))
    assert processes.jobs.terminal(*PLACE) is None


async def test_keys_for_a_program_that_does_not_read_are_bounded_and_hold_nothing_up(processes: Processes) -> None:
    seen: list[Progress] = []
    async with running(processes, shell("stty raw -echo; echo ready; sleep 60"), seen) as task:
        terminal = await terminal_of(processes)
        assert await poll(lambda: "ready" in newest(seen))
        for _ in range(300):
            terminal.type(b"x" * 10_000)
        task.cancel()
        await asyncio.wait({task})
    terminal.type(b"x")
    terminal.resize(SIZE)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_a_cancel_kills_the_whole_tree(processes: Processes, watch: Watch, shape: Shape) -> None:
    command = replace(watch.command(shape.script), terminal=True)
    async with running(processes, command) as task:
        assert await poll(lambda: watch.stands(shape.processes))
        task.cancel()
        await asyncio.wait({task})
    assert watch.alive() == set()


async def test_it_goes_on_as_a_job_whose_output_can_be_read(processes: Processes, tmp_path: Path) -> None:
    seen: list[Progress] = []
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with running(processes, shell(f"printf '1%%\\r2%%\\n'; read x <{gate}; echo late"), seen) as task:
        terminal = await terminal_of(processes)
        assert await poll(lambda: newest(seen).startswith("2%"))
        job = processes.jobs.background(*PLACE)
        assert job is not None
        assert await task == job or isinstance(await task, JobInfo)
        assert text_of(processes.jobs.output(job.id)) == "2%"
        assert processes.jobs.terminal(*PLACE) is None
        reported = len(seen)
        gate.write_text("go\n")
        assert await poll(lambda: text_of(processes.jobs.output(job.id)) == "2%\nlate")
        assert len(seen) == reported
        terminal.type(b"nobody reads this")


async def test_a_flood_is_bounded_and_its_text_is_kept_in_a_file(processes: Processes, tmp_path: Path) -> None:
    spill = tmp_path / "whole"
    command = shell("seq 60000 | sed 's/^/\\x1b[32mline\\x1b[m /'")
    command = replace(command, keep_head=1000, keep_tail=1000, spill=spill)
    async with running(processes, command) as task:
        finished = await task
    assert isinstance(finished, Finished)
    assert finished.captured.spill == spill
    assert spill.read_text() == "\n".join(f"line {number}" for number in range(1, 60_001))
    assert len(finished.captured.head) + len(finished.captured.tail) == 2000
    facts = finished.captured.terminal
    assert facts is not None
    assert len(facts.runs) == 20_000
    assert (facts.runs[0].row, facts.runs[-1].row, finished.captured.lines) == (0, 59_999, 60_000)


async def test_a_program_that_cannot_start_leaves_no_descriptor(processes: Processes, tmp_path: Path) -> None:
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        await processes.jobs.run(Command((str(tmp_path / "none"),), tmp_path, terminal=True), CALLER)
    assert len(descriptors() - before) <= 1
