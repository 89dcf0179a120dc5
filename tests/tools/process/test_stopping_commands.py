"""Esc ends the whole tree, whatever its shape (FAULTS 1-5, 15-18)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import SHAPES, Shape, Watch, marked, start_plain, watching
from tests.support.waiting import PATIENCE, poll
from tools.contract import Command, ProcessesEnded, Progress
from tools.process.start import Processes
from tools.process.zygote import wire
from tools.process.zygote.supervisor import CROWD

FREEZER = Path("/sys/fs/cgroup/freezer")
LATENCY_LIMIT = 1.0
"""Ten times the goal: a test on a busy machine proves the tree is empty, `make bench` proves how fast."""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_cancelling_leaves_no_process_of_any_shape(shape: Shape, processes: Processes, watch: Watch) -> None:
    reports: list[Progress] = []
    task = asyncio.create_task(processes.runner.run(watch.command(shape.script), reports.append))
    assert await poll(partial(watch.stands, shape.processes))
    began = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert watch.alive() == set()
    assert asyncio.get_running_loop().time() - began < LATENCY_LIMIT
    ended = reports[-1]
    assert isinstance(ended, ProcessesEnded)
    assert ended.survivors == ()
    assert ended.count >= shape.processes - 3


@pytest.mark.parametrize("leaving", ["os.getpid()", "os.setsid()"], ids=["one session", "a session each"])
async def test_a_fork_bomb_that_spins_is_gone_in_time(leaving: str, processes: Processes, watch: Watch) -> None:
    bomb = (
        "import os, time\nend = time.monotonic() + 20\ndepth = 0\n"
        f"while depth < 5:\n    depth += 1\n    if os.fork() == 0: {leaving}\n"
        "while time.monotonic() < end: pass"
    )
    task = asyncio.create_task(processes.runner.run(watch.command(f"exec {sys.executable} -S -c '{bomb}'")))
    assert await poll(partial(watch.stands, 32))
    began = asyncio.get_running_loop().time()
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()
    assert asyncio.get_running_loop().time() - began < 2 * LATENCY_LIMIT


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no second processor to leave")
@pytest.mark.parametrize("count", [CROWD + 8, 8])
async def test_a_crowd_leaves_one_processor_to_phoenix_and_a_few_do_not(
    count: int, processes: Processes, watch: Watch
) -> None:
    usable = os.sched_getaffinity(0)
    wanted = usable - {min(usable)} if count > CROWD else usable
    script = f"for _ in $(seq {count}); do setsid sleep 60 & done; echo up >ready; wait"
    task = asyncio.create_task(processes.runner.run(watch.command(script)))
    assert await poll(lambda: (watch.folder / "ready").exists())
    # The first look comes after half a second; a few processes are unchanged after it, too.
    assert await poll(lambda: processor_sets(watch) == {frozenset(wanted)})
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()
    (watch.folder / "ready").unlink()


async def test_a_crowd_on_the_only_processor_rests_in_turns_and_ends_while_it_rests(
    processes: Processes, watch: Watch
) -> None:
    os.sched_setaffinity(processes.link.pid, {min(os.sched_getaffinity(0))})
    script = f"for _ in $(seq {CROWD + 8}); do setsid sleep 60 & done; echo up >ready; wait"
    task = asyncio.create_task(processes.runner.run(watch.command(script)))
    assert await poll(lambda: (watch.folder / "ready").exists())
    for letters in ({"T"}, {"S"}, {"T"}):
        assert await poll(lambda: states(watch) == letters)  # noqa: B023 - at once
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()
    (watch.folder / "ready").unlink()


def states(watch: Watch) -> set[str]:
    """State letters of the living processes of a tree."""
    found: set[str] = set()
    for pid in watch.alive():
        with contextlib.suppress(OSError):
            found.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
    return found


def processor_sets(watch: Watch) -> set[frozenset[int]]:
    """The processors that the living processes of a tree may use."""
    found: set[frozenset[int]] = set()
    for pid in watch.alive():
        with contextlib.suppress(ProcessLookupError):
            found.add(frozenset(os.sched_getaffinity(pid)))
    return found


@pytest.mark.skipif(not os.access(FREEZER, os.W_OK), reason="needs the freezer to make a process that cannot die")
async def test_a_process_that_cannot_die_is_reported_and_killed_later(processes: Processes, watch: Watch) -> None:
    group = FREEZER / watch.mark
    group.mkdir()
    reports: list[Progress] = []
    try:
        command = watch.command("sleep 60 & sleep 60")
        task = asyncio.create_task(processes.runner.run(command, reports.append))
        assert await poll(partial(watch.stands, 3))
        undead = max(watch.alive())
        (group / "cgroup.procs").write_text(str(undead), "ascii")
        (group / "freezer.state").write_text("FROZEN", "ascii")
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)
        assert task.cancelled()
        last = reports[-1]
        assert isinstance(last, ProcessesEnded)
        assert last == ProcessesEnded(last.count, (undead,))
        assert watch.alive() == {undead}
    finally:
        (group / "freezer.state").write_text("THAWED", "ascii")
    assert await poll(lambda: not watch.alive())
    assert await poll(lambda: not (group / "cgroup.procs").read_text("ascii"))
    group.rmdir()


async def test_a_stopped_tree_can_be_cancelled(processes: Processes, watch: Watch) -> None:
    task = asyncio.create_task(processes.runner.run(watch.command("sleep 60 & kill -STOP $$; wait")))
    assert await poll(partial(watch.stands, 2))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert watch.alive() == set()


async def test_a_timeout_ends_the_tree_and_keeps_what_was_printed(processes: Processes, watch: Watch) -> None:
    finished = await processes.runner.run(watch.command("echo early; setsid sleep 60 & sleep 60", timeout=1.5))
    assert finished.timed_out
    assert finished.captured.head == b"early\n"
    assert watch.alive() == set()


async def test_cancelling_one_of_many_leaves_the_others(processes: Processes) -> None:
    with watching() as doomed, watching() as spared:
        tasks = [asyncio.create_task(processes.runner.run(each.command("sleep 60"))) for each in (doomed, spared)]
        assert await poll(lambda: doomed.stands() and spared.stands())
        tasks[0].cancel()
        await asyncio.wait({tasks[0]})
        assert doomed.alive() == set()
        assert len(spared.alive()) == 1
        tasks[1].cancel()
        await asyncio.wait({tasks[1]})


async def test_ten_commands_cancelled_together_all_end(processes: Processes) -> None:
    with watching() as watch:
        command = Command(("/bin/bash", "-c", "setsid sleep 60 & wait"), Path("/"), environment=watch.environment)
        tasks = {asyncio.create_task(processes.runner.run(command)) for _ in range(10)}
        assert await poll(lambda: len(watch.alive()) >= 20)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert watch.alive() == set()


def descriptors_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_cancel_at_any_moment_gives_one_outcome_and_leaves_nothing(processes: Processes, watch: Watch) -> None:
    chance = random.Random(20260)
    command = Command(("/bin/sh", "-c", "echo a; echo b"), Path("/"), environment=watch.environment)
    descriptors = descriptors_open()
    outcomes = {"finished": 0, "cancelled": 0}
    for _ in range(150):
        task = asyncio.create_task(processes.runner.run(command))
        asyncio.get_running_loop().call_later(chance.uniform(0, 0.008), task.cancel)
        await asyncio.wait({task})
        if task.cancelled():
            outcomes["cancelled"] += 1
        else:
            assert task.result().captured.head == b"a\nb\n"
            outcomes["finished"] += 1
    assert outcomes["cancelled"] > 0
    assert marked(watch.mark) == set()
    assert descriptors_open() <= descriptors + 1


async def test_a_second_cancel_does_not_cut_the_first_short(processes: Processes, watch: Watch) -> None:
    task = asyncio.create_task(processes.runner.run(watch.command("for i in $(seq 30); do sleep 60 & done; wait")))
    assert await poll(partial(watch.stands, 31))
    task.cancel()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert watch.alive() == set()


async def test_without_a_subreaper_the_ordinary_shapes_end_too() -> None:
    processes = await start_plain(wire.SCAN)
    try:
        for shape in SHAPES[:4]:
            with watching() as watch:
                task = asyncio.create_task(processes.runner.run(watch.command(shape.script)))
                assert await poll(partial(watch.stands, shape.processes))
                task.cancel()
                await asyncio.wait({task})
                assert watch.alive() == set()
    finally:
        await processes.close()
