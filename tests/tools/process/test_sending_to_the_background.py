"""Background jobs: an awaited command becomes one once and whole; readable, and gone with their conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import Watch, start_plain, watching
from tests.support.waiting import poll, poll_blocking
from tools.bash import Caller
from tools.contract import Command, Finished, JobInfo, OutputChunk, Progress
from tools.process.jobs import Awaited
from tools.process.start import Processes

CALLER = Caller("one", "call-1", "make")
Running = asyncio.Task[Finished | JobInfo]


@asynccontextmanager
async def awaited(processes: Processes, command: Command, seen: list[Progress] | None = None) -> AsyncIterator[Running]:
    """A command that a caller awaits."""
    task = asyncio.create_task(processes.jobs.run(command, CALLER, seen.append if seen is not None else None))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def awaited_by(processes: Processes) -> dict[tuple[str, str], Awaited]:
    """Awaited commands; there is no other sign of the moment from which a command can be sent."""
    return processes.jobs._awaited


async def waits(processes: Processes, watch: Watch, count: int = 1) -> None:
    """Wait until the tree is complete and a caller waits for it."""
    assert await poll(lambda: awaited_by(processes) and (not count or watch.stands(count)))


async def test_its_caller_is_answered_at_once_and_it_runs_on(processes: Processes, watch: Watch) -> None:
    script = f"echo first; while [ ! -e {watch.folder}/go ]; do sleep 0.01; done; echo second; rm {watch.folder}/go"
    seen: list[Progress] = []
    async with awaited(processes, watch.command(script), seen) as task:
        assert await poll(lambda: OutputChunk("first\n") in seen and awaited_by(processes))
        job = processes.jobs.background("one", "call-1")
        assert job is not None
        answer = await task
        assert isinstance(answer, JobInfo)
        assert (answer.id, answer.command, answer.running) == (job.id, "make", True)
        told = list(seen)
        (watch.folder / "go").touch()
        assert await poll(lambda: not processes.jobs.jobs("one")[0].running)
        assert processes.jobs.output(job.id).head == b"first\nsecond\n"
        assert processes.jobs.jobs("one")[0].exit_code == 0
        assert seen == told, "whoever was told waits for it no longer"


async def test_a_second_time_there_is_nothing_to_send(processes: Processes, watch: Watch) -> None:
    async with awaited(processes, watch.command("sleep 60")) as task:
        await waits(processes, watch)
        assert processes.jobs.background("one", "call-1") is not None
        assert processes.jobs.background("one", "call-1") is None
        await task
        assert processes.jobs.background("one", "call-1") is None
        assert len(processes.jobs.jobs("one")) == 1


async def test_only_the_call_that_is_meant_is_sent(processes: Processes, watch: Watch) -> None:
    async with awaited(processes, watch.command("sleep 60")) as task:
        await waits(processes, watch)
        assert processes.jobs.background("one", "call-2") is None
        assert processes.jobs.background("two", "call-1") is None
        assert not task.done()


async def test_stopping_the_call_right_behind_leaves_the_job(processes: Processes, watch: Watch) -> None:
    async with awaited(processes, watch.command("sleep 60")) as task:
        await waits(processes, watch)
        job = processes.jobs.background("one", "call-1")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert job is not None
        assert [one.running for one in processes.jobs.jobs("one")] == [True]
        assert watch.alive()
        await processes.jobs.kill(job.id)
        assert watch.alive() == set()


async def test_it_has_no_time_limit_any_more(processes: Processes, watch: Watch) -> None:
    limit = 0.3
    async with awaited(processes, watch.command("sleep 60", limit)) as task:
        await waits(processes, watch)
        assert processes.jobs.background("one", "call-1") is not None
        await task
        assert await poll(lambda: processes.jobs.jobs("one")[0].elapsed > 2 * limit)
        assert processes.jobs.jobs("one")[0].running


async def test_sent_in_the_moment_its_time_is_up_it_runs_on(processes: Processes, watch: Watch) -> None:
    async with awaited(processes, watch.command("sleep 60", 2.0)) as task:
        await waits(processes, watch)
        execution = awaited_by(processes)["one", "call-1"].running.execution
        assert poll_blocking(lambda: execution.elapsed > 2.0), "the limit passes and the key comes in one turn"
        job = processes.jobs.background("one", "call-1")
        assert job is not None
        answer = await task
        assert isinstance(answer, JobInfo)
        assert (answer.id, answer.running) == (job.id, True)
        assert watch.alive()


async def test_what_has_ended_by_its_time_limit_cannot_be_sent(processes: Processes, watch: Watch) -> None:
    async with awaited(processes, watch.command("sleep 60", 0.2)) as task:
        answer = await task
        assert isinstance(answer, Finished)
        assert answer.timed_out
        assert processes.jobs.background("one", "call-1") is None
        assert processes.jobs.jobs("one") == ()


async def test_whose_program_has_ended_stays_a_call(processes: Processes, watch: Watch) -> None:
    """The remaining processes have a moment for last output: none of that could continue."""
    async with awaited(processes, watch.command("setsid sleep 60 & exit 3")) as task:
        await waits(processes, watch, 0)
        execution = awaited_by(processes)["one", "call-1"].running.execution
        assert await poll(lambda: execution.account.status is not None)
        assert processes.jobs.background("one", "call-1") is None
        answer = await task
        assert isinstance(answer, Finished)
        assert (answer.exit_code, answer.leftovers) == (3, ("sleep 60",))
        assert watch.alive() == set()


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233])
async def test_sent_as_it_ends_it_is_a_job_or_a_result_and_never_both(processes: Processes, turns: int) -> None:
    with watching() as watch:
        go = watch.folder / "go"
        async with awaited(processes, watch.command(f"until [ -e {go} ]; do :; done; rm {go}; exit 4")) as task:
            await waits(processes, watch)
            go.touch()
            for _ in range(turns):
                await asyncio.sleep(0)
            job = processes.jobs.background("one", "call-1")
            answer = await task
            assert isinstance(answer, JobInfo) == (job is not None)
            if isinstance(answer, Finished):
                assert (answer.exit_code, processes.jobs.jobs("one")) == (4, ())
            else:
                assert await poll(lambda: not processes.jobs.jobs("one")[0].running)
                assert processes.jobs.jobs("one")[0].exit_code == 4
            assert watch.alive() == set()


async def test_its_whole_tree_goes_with_the_conversation(processes: Processes, watch: Watch) -> None:
    async with awaited(processes, watch.command("sleep 60 & setsid sleep 60 & sleep 60; :")) as task:
        await waits(processes, watch, 4)
        assert processes.jobs.background("one", "call-1") is not None
        await task
        await processes.jobs.end_all("one")
        assert watch.alive() == set()
        assert processes.jobs.jobs("one") == ()


async def test_its_whole_tree_goes_when_phoenix_closes(watch: Watch) -> None:
    processes = await start_plain()
    async with awaited(processes, watch.command("setsid sleep 60 & sleep 60; :")) as task:
        await waits(processes, watch, 3)
        assert processes.jobs.background("one", "call-1") is not None
        await task
        await processes.close()
        assert watch.alive() == set()


async def test_who_watches_is_told_of_each_begin_and_end(processes: Processes, watch: Watch) -> None:
    told: list[tuple[str, list[bool]]] = []

    def note(conversation_id: str) -> None:
        told.append((conversation_id, [job.running for job in processes.jobs.jobs(conversation_id)]))

    leave = processes.jobs.watch(note)
    async with awaited(processes, watch.command("sleep 60")) as task:
        await waits(processes, watch)
        job = processes.jobs.background("one", "call-1")
        assert job is not None
        await task
        await processes.jobs.kill(job.id)
    await processes.jobs.start(Command(("/bin/true",), Path("/")), "two", "true")
    assert await poll(lambda: not processes.jobs.jobs("two")[0].running)
    assert told == [("one", [True]), ("one", [False]), ("two", [True]), ("two", [False])]
    leave()
    await processes.jobs.start(Command(("/bin/true",), Path("/")), "two", "true")
    assert len(told) == 4


async def test_a_job_runs_on_is_listed_and_can_be_read(processes: Processes, watch: Watch) -> None:
    started = await processes.jobs.start(watch.command("echo listening; sleep 60"), "one", "serve")
    assert started.running
    assert await poll(lambda: processes.jobs.output(started.id).head == b"listening\n")
    (listed,) = processes.jobs.jobs("one")
    assert (listed.id, listed.command, listed.running, listed.exit_code) == (started.id, "serve", True, None)
    assert processes.jobs.jobs("two") == ()


async def test_a_killed_job_takes_its_tree_and_keeps_its_output(processes: Processes, watch: Watch) -> None:
    started = await processes.jobs.start(watch.command("echo up; setsid sleep 60 & sleep 60"), "one", "serve")
    assert await poll(lambda: processes.jobs.output(started.id).head == b"up\n")
    killed = await processes.jobs.kill(started.id)
    assert not killed.running
    assert watch.alive() == set()
    assert processes.jobs.output(started.id).head == b"up\n"


async def test_a_job_that_ends_by_itself_says_how(processes: Processes) -> None:
    started = await processes.jobs.start(Command(("/bin/sh", "-c", "echo x; exit 4"), Path("/")), "one", "build")
    assert await poll(lambda: not processes.jobs.jobs("one")[0].running)
    (listed,) = processes.jobs.jobs("one")
    assert listed.exit_code == 4
    assert processes.jobs.output(started.id).head == b"x\n"


async def test_a_jobs_children_end_with_it(processes: Processes, watch: Watch) -> None:
    await processes.jobs.start(watch.command("setsid sleep 60 & disown"), "one", "start server")
    assert await poll(lambda: not processes.jobs.jobs("one")[0].running)
    assert watch.alive() == set()


async def test_a_conversation_takes_its_jobs_and_no_others(processes: Processes) -> None:
    with watching() as going, watching() as staying:
        await processes.jobs.start(going.command("sleep 60"), "going", "a")
        kept = await processes.jobs.start(staying.command("sleep 60"), "staying", "b")
        assert await poll(lambda: going.stands() and staying.stands())
        await processes.jobs.end_all("going")
        assert going.alive() == set()
        assert processes.jobs.jobs("going") == ()
        assert [job.id for job in processes.jobs.jobs("staying")] == [kept.id]
        assert len(staying.alive()) == 1


async def test_jobs_end_when_phoenix_closes(watch: Watch) -> None:
    processes = await start_plain()
    await processes.jobs.start(watch.command("setsid sleep 60 & sleep 60"), "one", "serve")
    assert await poll(partial(watch.stands, 2))
    await processes.close()
    assert watch.alive() == set()


async def test_an_unknown_job_is_a_key_error(processes: Processes) -> None:
    with pytest.raises(KeyError):
        processes.jobs.output("job-99")
    with pytest.raises(KeyError):
        await processes.jobs.kill("job-99")


async def test_a_job_that_cannot_start_is_an_os_error_and_not_listed(processes: Processes) -> None:
    with pytest.raises(OSError):
        await processes.jobs.start(Command(("/no/such",), Path("/")), "one", "x")
    assert processes.jobs.jobs("one") == ()
