"""bash says how every command ended and loses no output; jobs belong to their conversation; names of branches."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.git_repositories import empty_repository, git
from tests.support.tools import MemoryJobs, ScriptedRunner, context_in, use, use_with
from tools.bash import Bash, JobKill, JobOutput
from tools.contract import (
    Captured,
    Command,
    Finished,
    OutputChunk,
    PlainDisplay,
    ProcessRunner,
    Progress,
    Report,
    TerminalDisplay,
    ToolInputError,
)
from tools.files.location import spills_of
from tools.git.repository import branch_of, has_repository


def bash(folder: Path, runner: ProcessRunner | None = None, jobs: MemoryJobs | None = None) -> Bash:
    return Bash(jobs or MemoryJobs(runner), folder / "spill")


async def test_the_exit_code_is_always_stated(tmp_path: Path) -> None:
    good = await use(bash(tmp_path), tmp_path, command="echo hi")
    assert (good.text, good.is_error) == ("hi\n[exit code 0]", False)
    bad = await use(bash(tmp_path), tmp_path, command="echo oops >&2; exit 3")
    assert (bad.text, bad.is_error) == ("oops\n[exit code 3]", True)
    assert bad.display == TerminalDisplay("oops\n", 3)


async def test_silence_is_said(tmp_path: Path) -> None:
    assert (await use(bash(tmp_path), tmp_path, command="true")).text == "[no output]\n[exit code 0]"


async def test_it_runs_in_the_working_directory(tmp_path: Path) -> None:
    assert (await use(bash(tmp_path), tmp_path, command="pwd")).text == f"{tmp_path}\n[exit code 0]"


@pytest.mark.parametrize("sign", ["a", "ä"])
async def test_a_command_longer_than_a_word_of_the_system_runs_as_it_is_written(tmp_path: Path, sign: str) -> None:
    written = f"cat > written <<'END'\n{sign * 200_000}$1\nEND\necho $# \"$1\" $0; (exit 7)"
    assert (await use(bash(tmp_path), tmp_path, command=written)).text == "0  bash\n[exit code 7]"
    assert (tmp_path / "written").read_text() == f"{sign * 200_000}$1\n"


async def test_a_command_that_no_shell_could_take_is_refused_with_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ToolInputError, match="more than 400,000: write a long text with write_file"):
        await use(bash(tmp_path), tmp_path, command=f": {'a' * 400_000}")


async def test_a_missing_working_directory_is_an_answer(tmp_path: Path) -> None:
    output = await use(bash(tmp_path), tmp_path / "gone", command="true")
    assert output.is_error
    assert output.text == f"The command could not be started. {tmp_path}/gone does not exist."


async def test_the_time_limit_is_said(tmp_path: Path) -> None:
    output = await use(bash(tmp_path), tmp_path, command="sleep 60", timeout=1)
    assert (output.text, output.is_error) == ("[no output]\n[timed out after 1 s]", True)
    assert output.display == TerminalDisplay("", None, timed_out=True)


async def test_processes_left_behind_are_named(tmp_path: Path) -> None:
    finished = Finished(0, None, Captured(b"up\n"), 0.1, leftovers=("sleep", "no\x1b[2Jde"), survivors=(77,))
    output = await use(bash(tmp_path, ScriptedRunner(finished)), tmp_path, command="./serve &")
    assert output.text == (
        "up\n[exit code 0]\n[2 background processes ended: sleep, node]\n[still alive, cannot be ended: pid 77]"
    )
    assert output.display == TerminalDisplay("up\n", 0, ended=("sleep", "node"))


async def test_a_signal_is_named(tmp_path: Path) -> None:
    output = await use(bash(tmp_path), tmp_path, command="kill -KILL $$")
    assert (output.text, output.is_error) == ("[no output]\n[ended by SIGKILL]", True)


async def test_nul_escapes_and_broken_utf8_are_harmless(tmp_path: Path) -> None:
    command = r"printf 'a\0b \377\xed\xa0\x80 \033]52;c;cm0=\a\033[31mred\033[0m\n10%%\r99%%\n'"
    output = await use(bash(tmp_path), tmp_path, command=command)
    assert output.text == "ab \\xff\\xed\\xa0\\x80 red\n99%\n[exit code 0]"
    output.text.encode("utf-8")


async def test_long_output_keeps_both_ends_and_the_whole_in_a_file(tmp_path: Path) -> None:
    output = await use(bash(tmp_path), tmp_path, command="seq 1 40000")
    (spill,) = spills_of(tmp_path / "spill", tmp_path).iterdir()
    whole = "".join(f"{number}\n" for number in range(1, 40001))
    assert spill.read_text() == whole
    left_out = len(whole) - 8192
    assert output.text == (
        f"{whole[:4096]}\n[… {left_out:,} of {len(whole):,} bytes left out; the output is kept in {spill}]\n"
        f"{whole[-4096:].rstrip()}\n[exit code 0]"
    )
    assert output.truncated
    assert isinstance(output.display, TerminalDisplay)
    assert output.display.lines == 40_000


async def test_output_up_to_the_limit_is_whole(tmp_path: Path) -> None:
    output = await use(bash(tmp_path), tmp_path, command="head -c 131072 /dev/zero | tr '\\0' x")
    assert output.text == "x" * 131072 + "\n[exit code 0]"
    assert not output.truncated


async def test_a_hostile_call_id_names_no_file_outside_the_spill_folder(tmp_path: Path) -> None:
    runner = ScriptedRunner(Finished(0, None, Captured(b""), 0.0))
    context = context_in(tmp_path, conversation="../../x")
    await bash(tmp_path, runner).run({"command": "true"}, context)
    spill = runner.commands[0].spill
    assert spill is not None
    assert spill.parent == spills_of(tmp_path / "spill", tmp_path)


@pytest.mark.parametrize(
    ("args", "seconds"),
    [({}, 30.0), ({"slow": True}, 900.0), ({"timeout": 5}, 5.0), ({"slow": True, "timeout": 5}, 5.0)],
)
async def test_the_time_limit_is_the_one_asked_for(tmp_path: Path, args: dict[str, object], seconds: float) -> None:
    runner = ScriptedRunner(Finished(0, None, Captured(b""), 0.0))
    await use_with(bash(tmp_path, runner), tmp_path, {"command": "true", **args})
    assert runner.commands[0].timeout == seconds


async def test_a_background_command_becomes_a_job(tmp_path: Path) -> None:
    jobs = MemoryJobs()
    output = await use(bash(tmp_path, jobs=jobs), tmp_path, command="npm start", background=True)
    assert output.text == "Started background job job1. Read it with job_output, end it with job_kill."
    assert jobs.commands["job1"].timeout is None
    assert jobs.listed["job1"].command == "npm start"


async def test_a_command_sent_to_the_background_says_what_it_printed_and_where_the_rest_is(tmp_path: Path) -> None:
    jobs = MemoryJobs()
    jobs.becomes = await jobs.start(Command(("x",), tmp_path), "one", "make")
    jobs.becomes = replace(jobs.becomes, elapsed=12.4)
    silent = await use(bash(tmp_path, jobs=jobs), tmp_path, command="make")
    where = (
        "[sent to the background by the user after 12 s: it runs on as job job1. "
        "Read it with job_output, end it with job_kill.]"
    )
    assert (silent.text, silent.is_error) == (f"[no output yet]\n{where}", False)
    jobs.printed["job1"] = Captured(b"half \x1b[31mdone\n")
    output = await use(bash(tmp_path, jobs=jobs), tmp_path, command="make")
    assert output.text == f"half done\n{where}"
    assert output.display == TerminalDisplay("half done\n", None, job="job1")


async def test_the_request_shows_the_whole_command(tmp_path: Path) -> None:
    command = "echo one\necho two\t" + "x" * 5000
    request = await bash(tmp_path).request({"command": command}, tmp_path)
    assert request.preview == PlainDisplay(command)
    assert request.command == command
    assert request.summary.startswith("echo one↵echo two␉xxx")


@pytest.mark.parametrize("command", ["git add -A", "git add . && git commit", "cd x; git add --all"])
async def test_blind_staging_gets_a_hint(tmp_path: Path, command: str) -> None:
    runner = ScriptedRunner(Finished(0, None, Captured(b""), 0.0))
    assert "[hint: this stages every change" in (await use(bash(tmp_path, runner), tmp_path, command=command)).text


@pytest.mark.parametrize("command", ["git add ./src", "git add a.py", "git push --force-with-lease", "echo add -A"])
async def test_careful_commands_get_none(tmp_path: Path, command: str) -> None:
    runner = ScriptedRunner(Finished(0, None, Captured(b""), 0.0))
    assert "[hint" not in (await use(bash(tmp_path, runner), tmp_path, command=command)).text


async def test_progress_goes_to_the_context_and_cancellation_reaches_the_runner(tmp_path: Path) -> None:
    class Waiting:
        """A runner that never ends."""

        def __init__(self) -> None:
            self.started = asyncio.Event()
            self.cancelled = False

        async def run(self, command: Command, report: Report | None = None) -> Finished:
            """Report once, then wait."""
            assert report is not None
            report(OutputChunk("hello"))
            self.started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            raise AssertionError

    runner, seen = Waiting(), list[Progress]()
    running = asyncio.create_task(
        bash(tmp_path, runner).run({"command": "sleep 9"}, context_in(tmp_path, report=seen.append))
    )
    await runner.started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert runner.cancelled
    assert seen == [OutputChunk("hello")]


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


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def repository(folder: Path, head: bytes) -> Path:
    empty_repository(folder)
    (folder / ".git" / "HEAD").write_bytes(head)
    (folder / "src").mkdir()
    return folder / "src"


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        (b"ref: refs/heads/main\n", "main"),
        (b"ref: refs/heads/fix/retry\n", "fix/retry"),
        (b"ref: refs/remotes/origin/main\n", "refs/remotes/origin/main"),
        (f"{COMMIT}\n".encode(), "0123456"),
        (b"ref:\n", ""),
        (b"no reference\n", ""),
        (b"\xff\xfe", ""),
    ],
)
def test_the_branch_stands_in_head(tmp_path: Path, head: bytes, branch: str) -> None:
    assert branch_of(repository(tmp_path, head)) == branch


def test_a_working_tree_of_its_own_has_its_own_branch(tmp_path: Path) -> None:
    repository(tmp_path, b"ref: refs/heads/main\n")
    own = tmp_path / ".git" / "worktrees" / "other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    (own / "commondir").write_text("../..\n")
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / ".git").write_text(f"gitdir: {own}\n")
    assert branch_of(beside) == "other"


def test_outside_a_repository_and_behind_a_pipe_there_is_none(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    empty_repository(tmp_path)
    (tmp_path / ".git" / "HEAD").unlink()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""


def test_a_git_folder_counts_where_git_itself_takes_it(tmp_path: Path) -> None:
    """Each shape is asked about of git itself, too."""
    pointed = empty_repository(tmp_path / "pointed")
    own = empty_repository(tmp_path / "own") / ".git"
    shapes = {"pointed": True, "own": True}
    for name in ("empty", "no-head", "no-refs", "no-objects", "odd-head", "linked-head"):
        empty_repository(tmp_path / name)
        shapes[name] = name == "linked-head"
    for path in ("empty/.git/HEAD", "no-head/.git/HEAD", "linked-head/.git/HEAD"):
        (tmp_path / path).unlink()
    for path in ("empty/.git/refs", "empty/.git/objects", "no-refs/.git/refs", "no-objects/.git/objects"):
        (tmp_path / path).rmdir()
    (tmp_path / "odd-head" / ".git" / "HEAD").write_text("main\n", "ascii")
    (tmp_path / "linked-head" / ".git" / "HEAD").symlink_to("refs/heads/none-yet")
    pointers = {"file": f"gitdir: {own}", "relative": "gitdir: ../own/.git", "nowhere": "gitdir: ../gone", "words": "x"}
    for name, text in pointers.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text(f"{text}\n", "ascii")
        shapes[name] = name in {"file", "relative"}
    assert {name: has_repository(tmp_path / name) for name in shapes} == shapes
    assert {name: git_takes(tmp_path / name) for name in shapes} == shapes
    assert has_repository(pointed) and not has_repository(tmp_path)


def git_takes(folder: Path) -> bool:
    try:
        return git(folder, "rev-parse", "--show-toplevel") == str(folder)
    except subprocess.CalledProcessError:
        return False
