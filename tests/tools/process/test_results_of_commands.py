"""Results of finished commands, and that none waits for a key (FAULTS 9-11, 13, 17)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.processes import Watch
from tools.contract import Command, ProcessStarted, Progress
from tools.process.start import Processes
from tools.process.zygote.tree import read_proc

HOME = Path("/")


def bash(script: str, timeout: float | None = None) -> Command:
    return Command(("/bin/bash", "-c", script), HOME, timeout)


async def test_exit_code_and_output_come_back(processes: Processes) -> None:
    finished = await processes.runner.run(bash("echo out; echo err >&2; exit 3"))
    assert (finished.exit_code, finished.signal) == (3, None)
    assert finished.captured.head == b"out\nerr\n"


async def test_a_death_by_signal_is_told_apart_from_an_exit_code(processes: Processes) -> None:
    finished = await processes.runner.run(bash("kill -SEGV $$"))
    assert (finished.exit_code, finished.signal) == (None, 11)


async def test_the_start_is_reported_with_the_kernels_own_start_time(processes: Processes) -> None:
    reports: list[Progress] = []
    finished = await processes.runner.run(bash("cut -d' ' -f22 /proc/$$/stat; echo $$"), reports.append)
    ticks, pid = finished.captured.head.split()
    assert ProcessStarted(int(pid), int(ticks)) in reports


async def test_a_server_left_behind_is_named_and_gone(processes: Processes, watch: Watch) -> None:
    finished = await processes.runner.run(watch.command("nohup sleep 61 >/dev/null 2>&1 & echo done"))
    assert finished.exit_code == 0
    assert finished.captured.head == b"done\n"
    assert finished.leftovers == ("sleep 61",)
    assert watch.alive() == set()


async def test_a_child_that_holds_the_output_does_not_hold_the_result(processes: Processes, watch: Watch) -> None:
    finished = await processes.runner.run(watch.command("sleep 300 & echo hi"))
    assert finished.captured.head == b"hi\n"
    assert finished.duration < 5
    assert watch.alive() == set()


async def test_a_child_may_write_its_last_words_after_the_shell(processes: Processes) -> None:
    finished = await processes.runner.run(bash("(sleep 0.05; echo late) & echo early"))
    assert finished.captured.head == b"early\nlate\n"
    assert finished.leftovers == ()


@pytest.mark.parametrize("script", ["cat", "read x", "python3 -i", "vi", "less", "top", "man ls", "read x </dev/tty"])
async def test_nothing_waits_for_a_key(script: str, processes: Processes) -> None:
    finished = await processes.runner.run(bash(script, timeout=20))
    assert not finished.timed_out


async def test_a_commit_without_a_message_fails_and_says_what_to_do(processes: Processes, tmp_path: Path) -> None:
    script = "git init -q . && git -c user.name=a -c user.email=b commit --allow-empty"
    command = Command(("/bin/bash", "-c", script), tmp_path, timeout=20, environment={"HOME": str(tmp_path)})
    finished = await processes.runner.run(command)
    assert not finished.timed_out
    assert finished.exit_code
    assert b"no editor here" in finished.captured.head


async def test_input_given_is_read_to_its_end(processes: Processes) -> None:
    given = b"\0\xff" * 200_000
    command = Command(("/usr/bin/wc", "-c"), HOME, stdin=given)
    assert (await processes.runner.run(command)).captured.head.strip() == b"400000"


async def test_every_command_starts_in_its_folder(processes: Processes, tmp_path: Path) -> None:
    for script in ("cd /; pwd", "pwd"):
        finished = await processes.runner.run(Command(("/bin/sh", "-c", script), tmp_path))
    assert finished.captured.head.decode().strip() == str(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        Command(("/no/such/program",), HOME),
        Command(("/bin/true",), Path("/no/such/folder")),
        Command(("/bin/echo", "a\0b"), HOME),
        Command(("/bin/echo", "\ud800"), HOME),
        Command(("/etc/passwd",), HOME),
    ],
    ids=["no program", "no folder", "NUL", "lone surrogate", "not executable"],
)
async def test_what_cannot_start_is_an_os_error(command: Command, processes: Processes) -> None:
    with pytest.raises(OSError):
        await processes.runner.run(command)
    assert (await processes.runner.run(bash("echo on"))).captured.head == b"on\n"


async def test_a_long_command_line_arrives_whole(processes: Processes) -> None:
    argv = ("/bin/sh", "-c", 'echo "${#1} ${#2}"', "sh", "x" * 120_000, "y" * 120_000)
    assert (await processes.runner.run(Command(argv, HOME))).captured.head == b"120000 120000\n"


async def test_a_command_is_offered_to_the_memory_killer_before_phoenix(processes: Processes) -> None:
    own = int(read_proc("/proc/self/oom_score_adj"))
    finished = await processes.runner.run(bash("cat /proc/self/oom_score_adj"))
    assert int(finished.captured.head) == min(1000, own + 500)


async def test_a_command_inherits_no_descriptor_and_no_ignored_signal(processes: Processes) -> None:
    finished = await processes.runner.run(bash("ls /proc/$$/fd; grep SigIgn /proc/$$/status"))
    descriptors, _, ignored = finished.captured.head.partition(b"SigIgn:")
    assert set(descriptors.split()) <= {b"0", b"1", b"2", b"255"}
    assert int(ignored, 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0
