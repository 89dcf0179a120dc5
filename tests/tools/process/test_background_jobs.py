"""Background jobs are listed, readable, killable, and gone with their conversation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import Watch, start_plain, watching
from tests.support.waiting import poll
from tools.contract import Command
from tools.process.start import Processes


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
