"""Background jobs are read and ended by their own conversation only."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.support.tools import MemoryJobs, use
from tools.bash import JobKill, JobOutput
from tools.contract import Captured, Command, TerminalDisplay


async def test_output_shows_state_and_text(tmp_path: Path) -> None:
    board = MemoryJobs()
    job = await board.start(Command(("x",), tmp_path), "one", "x")
    assert (await use(JobOutput(board), tmp_path, job_id=job.id)).text == "[no output yet]\n[running for 0 s]"
    board.printed[job.id] = Captured(b"ready\x1b[0m\n")
    board.listed[job.id] = replace(job, running=False, exit_code=2)
    output = await use(JobOutput(board), tmp_path, job_id=job.id)
    assert (output.text, output.display) == ("ready\n[exit code 2]", TerminalDisplay("ready\n", 2))


async def test_a_job_that_its_sandbox_refused_something_says_so_once_it_ended(tmp_path: Path) -> None:
    board = MemoryJobs()
    job = await board.start(Command(("x",), tmp_path), "one", "x")
    board.printed[job.id] = Captured(b"cat: /x: No such file or directory\n", refused="/x is hidden")
    for one, says in ((job, False), (replace(job, running=False, exit_code=1), True)):
        board.listed[job.id] = one
        output = await use(JobOutput(board), tmp_path, job_id=job.id)
        assert output.text.count("[sandbox: /x is hidden; the agent can ask for more") == says


async def test_another_conversations_job_does_not_exist(tmp_path: Path) -> None:
    board = MemoryJobs()
    job = await board.start(Command(("x",), tmp_path), "other", "x")
    for tool in (JobOutput(board), JobKill(board)):
        output = await use(tool, tmp_path, job_id=job.id)
        assert (output.text, output.is_error) == ("This conversation has no job job1; it has none.", True)
    assert board.listed[job.id].running


async def test_an_unknown_id_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    board = MemoryJobs()
    await board.start(Command(("x",), tmp_path), "one", "x")
    output = await use(JobOutput(board), tmp_path, job_id="job9")
    assert output.text == "This conversation has no job job9; its jobs are: job1."


async def test_kill_ends_a_job_once(tmp_path: Path) -> None:
    board = MemoryJobs()
    job = await board.start(Command(("x",), tmp_path), "one", "x")
    assert (await use(JobKill(board), tmp_path, job_id=job.id)).text == (
        "Job job1 is ended, with everything it had started."
    )
    assert not board.listed[job.id].running
    assert (await use(JobKill(board), tmp_path, job_id=job.id)).text == (
        "Job job1 had ended already. [ended by a signal]"
    )
