"""A service, a one-shot program and a terminal end with their whole tree, whatever its shape and whoever ends them."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import SHAPES, Shape, Watch, descriptors_open, marked, start_plain
from tests.support.service_host import host_of, shell, watched
from tests.support.waiting import poll, poll_blocking
from tools.process.start import Processes
from tools.services import ProgramLimits

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


@EVERY_SHAPE
async def test_ending_a_service_leaves_no_process_of_any_shape(
    shape: Shape, processes: Processes, watch: Watch
) -> None:
    service = await processes.services.open(watched(watch, shape.script))
    assert await poll(partial(watch.stands, shape.processes))
    ended = await service.end(grace=0)
    assert watch.alive() == set()
    assert (ended.exit_code, ended.signal, ended.survivors) == (None, 9, ())


@EVERY_SHAPE
async def test_cancelling_a_program_leaves_no_process_of_any_shape(
    shape: Shape, processes: Processes, watch: Watch
) -> None:
    task = asyncio.create_task(processes.services.run_program(watched(watch, shape.script), b"{}"))
    assert await poll(partial(watch.stands, shape.processes))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert watch.alive() == set()


@EVERY_SHAPE
async def test_ending_a_terminal_leaves_no_process_of_any_shape(
    shape: Shape, processes: Processes, watch: Watch
) -> None:
    terminal = await processes.services.open_terminal(watched(watch, shape.script))
    assert await poll(partial(watch.stands, shape.processes))
    ended = await terminal.end()
    assert watch.alive() == set()
    assert ended.survivors == ()


@EVERY_SHAPE
@pytest.mark.parametrize("form", ["service", "program", "terminal"])
def test_killing_phoenix_with_sigkill_ends_every_form_and_shape(form: str, shape: Shape, watch: Watch) -> None:
    with host_of(watched(watch, shape.script), form) as host:
        assert poll_blocking(partial(watch.stands, shape.processes))
        host.kill()
        watch.emptied_at(limit=5)
        assert watch.alive() == set()


async def test_a_service_that_ends_with_its_input_keeps_its_exit_code(processes: Processes, watch: Watch) -> None:
    service = await processes.services.open(watched(watch, "cat >/dev/null; echo bye >&2; exit 7"))
    ended = await service.end(grace=30)
    assert (ended.exit_code, ended.signal, ended.stderr.tail) == (7, None, b"bye\n")
    assert watch.alive() == set()
    assert (service.stdin, service.stdout, service.closed) == (-1, -1, True)


async def test_a_service_that_ignores_the_end_of_its_input_is_killed_after_the_grace(
    processes: Processes, watch: Watch
) -> None:
    service = await processes.services.open(watched(watch, "cat >/dev/null; trap '' TERM; setsid sleep 60 & wait"))
    ended = await service.end(grace=0.3)
    assert ended.signal == 9
    assert ended.seconds >= 0.3
    assert watch.alive() == set()


async def test_cancelling_an_end_cuts_its_grace_short_and_still_empties_the_tree(
    processes: Processes, watch: Watch
) -> None:
    service = await processes.services.open(watched(watch, "setsid sleep 60 & sleep 60"))
    assert await poll(partial(watch.stands, 2))
    ending = asyncio.create_task(service.end(grace=600))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert watch.alive() == set()
    assert service.closed
    assert (await service.wait_ended()).signal == 9


async def test_leaving_a_block_with_an_error_ends_its_service_at_once(processes: Processes, watch: Watch) -> None:
    with pytest.raises(KeyError):
        async with await processes.services.open(watched(watch, "trap '' TERM; sleep 60")) as service:
            assert await poll(watch.stands)
            raise KeyError
    assert service.closed
    assert watch.alive() == set()


async def test_several_ends_and_waits_give_one_answer(processes: Processes) -> None:
    service = await processes.services.open(shell("read line; exit 3"))
    first, second, third = await asyncio.gather(service.end(), service.wait_ended(), service.end(grace=0.5))
    assert first == second == third == await service.end()
    assert first.exit_code == 3


async def test_what_a_service_left_behind_dies_with_it_and_is_named(processes: Processes, watch: Watch) -> None:
    service = await processes.services.open(watched(watch, "setsid sleep 60 </dev/null >/dev/null 2>&1 & exit 0"))
    ended = await service.wait_ended()
    assert ended.exit_code == 0
    assert ended.leftovers == ("sleep 60",)
    assert watch.alive() == set()
    await service.end()


async def test_closing_process_control_ends_every_form(watch: Watch) -> None:
    processes = await start_plain()
    service = await processes.services.open(watched(watch, "setsid sleep 60 & sleep 60"))
    terminal = await processes.services.open_terminal(watched(watch, "setsid sleep 60 & sleep 60"))
    program = asyncio.create_task(processes.services.run_program(watched(watch, "setsid sleep 60 & sleep 60")))
    assert await poll(lambda: len(watch.alive()) >= 9)
    await processes.close()
    assert watch.alive() == set()
    assert service.closed
    assert terminal.closed
    assert (await program).signal == 9


async def test_what_is_just_starting_as_process_control_closes_does_not_outlive_it(watch: Watch) -> None:
    for turns in range(0, 40, 4):
        processes = await start_plain()
        program = asyncio.create_task(processes.services.run_program(watched(watch, "setsid sleep 60 & sleep 60")))
        for _ in range(turns):
            await asyncio.sleep(0)
        await processes.close()
        assert watch.alive() == set(), turns
        with suppress(OSError):
            assert (await program).signal == 9
        assert watch.alive() == set(), turns


async def test_a_program_at_its_limit_is_ended_and_keeps_what_it_wrote(processes: Processes, watch: Watch) -> None:
    command = watched(watch, "echo early; echo late >&2; setsid sleep 60 & sleep 60")
    result = await processes.services.run_program(command, limits=ProgramLimits(seconds=1.0))
    assert (result.timed_out, result.exit_code) == (True, None)
    assert (result.stdout.head, result.stderr.head) == (b"early\n", b"late\n")
    assert watch.alive() == set()


async def test_hundreds_of_programs_leave_neither_descriptor_nor_process(processes: Processes, watch: Watch) -> None:
    command = shell("read -r line; echo $line; echo e >&2; exit 4", **watch.environment)
    await processes.services.run_program(command)
    before = descriptors_open()
    done = 0
    for _ in range(30):
        results = await asyncio.gather(*(processes.services.run_program(command, b"in\n") for _ in range(10)))
        done += sum((r.exit_code, r.stdout.head, r.stderr.head) == (4, b"in\n", b"e\n") for r in results)
    assert done == 300
    assert descriptors_open() == before
    assert marked(watch.mark) == set()


async def test_services_ended_or_cancelled_at_any_moment_leave_neither_descriptor_nor_process(
    processes: Processes, watch: Watch
) -> None:
    command = shell("echo a; cat", **watch.environment)

    async def use(number: int) -> None:
        if number % 3 == 2:
            await processes.services.run_program(command, b"in")
            return
        program = await (processes.services.open, processes.services.open_terminal)[number % 3](command)
        try:
            await program.wait_ended()
        finally:
            await program.end(grace=0)

    await (await processes.services.open(command)).end()
    before = descriptors_open()
    for number in range(120):
        task = asyncio.create_task(use(number))
        asyncio.get_running_loop().call_later(number // 3 % 13 / 1000, task.cancel)
        await asyncio.wait({task})
    assert descriptors_open() == before
    assert marked(watch.mark) == set()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_a_service_gains_nothing_when_its_supervisor_is_killed_or_stopped(
    number: signal.Signals, processes: Processes, watch: Watch
) -> None:
    service = await processes.services.open(watched(watch, "setsid sleep 60 & sleep 60"))
    assert await poll(partial(watch.stands, 2))
    os.kill(parent_of(service.pid), number)
    ended = await service.end(grace=0)
    assert (ended.exit_code, ended.signal) == (None, None)
    assert watch.alive() == set()


async def test_a_service_outlives_its_zygote_and_the_next_one_starts(watch: Watch) -> None:
    processes = await start_plain()
    service = await processes.services.open(watched(watch, "while read -r line; do echo got $line; done"))
    os.kill(parent_of(parent_of(service.pid)), signal.SIGKILL)
    another = await processes.services.open(shell("echo another"))
    assert await another.channel().read_line() == b"another"
    await service.channel().write_line(b"one")
    assert await service.channel().read_line() == b"got one"
    await another.end()
    assert (await service.end()).exit_code == 0
    assert watch.alive() == set()
    await processes.close()
