"""Commands: environment (FAULTS 3.6), results (FAULTS 9-11, 13, 17), output (FAULTS 26, 46-48), failed starts."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.processes import Watch, start_plain
from tests.support.waiting import poll
from tools.contract import Command, OutputChunk, ProcessStarted, Progress, Sandbox, SandboxMode
from tools.process.environment import scrub_environment
from tools.process.output import REPORT_INTERVAL, HeadAndTail, LiveText, Spill
from tools.process.plan import Planner
from tools.process.scratch import Scratch
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.zygote import wire
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


SECRETS = {
    "ANTHROPIC_API_KEY": "planted-1",
    "OPENAI_API_KEY": "planted-2",
    "GITHUB_TOKEN": "planted-3",
    "AWS_SECRET_ACCESS_KEY": "planted-4",
    "AWS_PROFILE": "planted-5",
    "MY_INNOCENT_NAME": "planted-6",
    "LC_PASSWORD": "planted-7",
    "HTTPS_PROXY": "http://user:planted-8@proxy:3128",
    "PHOENIX_HOME": "planted-9",
}


async def test_no_planted_secret_reaches_a_command() -> None:
    settings = ProcessSettings(environment={"PATH": "/usr/bin:/bin", **SECRETS})
    processes = await start_processes(settings)
    script = "env; cat /proc/self/environ /proc/$PPID/environ"
    finished = await processes.runner.run(Command(("/bin/sh", "-c", script), Path("/")))
    await processes.close()
    assert b"PATH=/usr/bin:/bin" in finished.captured.head
    assert b"planted-" not in finished.captured.head


def test_a_developers_settings_stay() -> None:
    mine = {"PATH": "/bin", "VIRTUAL_ENV": "/v", "GOPATH": "/go", "LC_ALL": "C", "JAVA_HOME": "/j", "TZ": "UTC"}
    assert mine.items() <= scrub_environment(mine).items()


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_left_out_by_its_name_or_its_form(name: str) -> None:
    assert name not in scrub_environment(SECRETS)


def test_programs_are_told_that_nobody_watches() -> None:
    told = scrub_environment({"TERM": "xterm-kitty", "CI": "1", "PAGER": "less", "EDITOR": "vim"})
    assert (told["TERM"], told["PAGER"], told["GIT_PAGER"], told["GIT_TERMINAL_PROMPT"]) == ("dumb", "cat", "cat", "0")
    assert "CI" not in told
    assert "vim" not in told["EDITOR"]


async def test_a_command_may_bring_its_own_settings() -> None:
    processes = await start_processes(ProcessSettings(environment={"PATH": "/bin", "LANG": "C"}))
    command = Command(("/bin/sh", "-c", "echo $LANG"), Path("/"), environment={"LANG": "de_DE"})
    finished = await processes.runner.run(command)
    await processes.close()
    assert finished.captured.head == b"de_DE\n"


ECHO = Command(("/bin/echo", "on"), Path("/"))


@pytest.fixture
def outside() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        yield folder


async def test_a_zygote_that_could_not_be_replaced_once_is_replaced_later(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = await start_plain()
    try:
        os.kill(processes.link.pid, signal.SIGKILL)
        with monkeypatch.context() as broken:
            broken.setattr(sys, "executable", "/dev/null/python")
            with pytest.raises(OSError, match=r"Not a directory|does not stay alive"):
                await processes.runner.run(ECHO)
        assert (await processes.runner.run(ECHO)).captured.head == b"on\n"
    finally:
        await processes.close()


@pytest.mark.parametrize("steps", [0, 2, 4, 8])
async def test_a_command_given_up_while_it_is_planned_leaves_no_placeholder(outside: Path, steps: int) -> None:
    workspace = outside / "workspace"
    workspace.mkdir()
    planner = Planner({})
    planner.sandbox = wire.NAMESPACE
    command = Command(("/bin/true",), workspace, sandbox=Sandbox(SandboxMode.WORKSPACE))
    planning = asyncio.create_task(planner.plan(command))
    for _ in range(steps):
        await asyncio.sleep(0)
    planning.cancel()
    await asyncio.wait({planning})
    if not planning.cancelled():
        await planner.release(planning.result())
    await asyncio.get_running_loop().shutdown_default_executor()  # no thread is busy
    assert list(workspace.iterdir()) == []
    planner.close()


def test_private_folders_that_could_not_be_made_are_lent_to_nobody() -> None:
    scratch = Scratch()
    first = scratch.lease("one")
    scratch.give_back(first)
    first.temporary.rmdir()
    first.temporary.write_text("in the way", "ascii")
    with pytest.raises(OSError, match="exists"):
        scratch.lease("one")
    first.temporary.unlink()
    assert scratch.lease("one") == first, "the same place is free"
    scratch.close()


def texts(reports: list[Progress]) -> list[str]:
    return [each.text for each in reports if isinstance(each, OutputChunk)]


def test_head_and_tail_are_kept_and_the_rest_is_counted() -> None:
    kept = HeadAndTail(4, 3)
    for chunk in (b"ab", b"cdef", b"ghi"):
        kept.feed(chunk)
    captured = kept.capture()
    assert (captured.head, captured.tail, captured.dropped) == (b"abcd", b"ghi", 2)


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [((), 0), ((b"a",), 1), ((b"a\n", b""), 1), ((b"a\nb",), 2), ((b"a\n" * 9, b"b\n" * 9, b"c"), 19), ((b"\n\n",), 2)],
)
def test_lines_are_counted_in_what_is_dropped_too(chunks: tuple[bytes, ...], lines: int) -> None:
    kept = HeadAndTail(4, 3)
    for chunk in chunks:
        kept.feed(chunk)
    assert kept.capture().lines == lines


def test_short_output_is_all_head() -> None:
    kept = HeadAndTail(4, 3)
    kept.feed(b"abc")
    assert kept.capture().head == b"abc"
    assert kept.capture().dropped == 0


def test_invalid_bytes_are_spelt_out_and_split_characters_joined() -> None:
    live = LiveText()
    live.feed(b"\xffa\xc3")
    first = live.take()
    live.feed(b"\xa4\n")
    assert (first, live.take(final=True)) == ("\\xffa", "ä\n")


def test_an_escape_sequence_is_cleaned_in_one_piece() -> None:
    live = LiveText()
    live.feed(b"red \x1b[3")
    first = live.take()
    live.feed(b"1mtext")
    assert (first, live.take(final=True)) == ("red ", "text")


def test_a_flood_between_two_reports_is_cut_and_counted() -> None:
    live = LiveText()
    for _ in range(100):
        live.feed(b"0123456789" * 1000)
    text = live.take()
    assert len(text) < 70_000
    assert text.startswith("\n[9")


async def test_a_huge_line_costs_no_memory_and_is_counted(processes: Processes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = Command(("/bin/sh", "-c", "head -c 200000000 /dev/zero | tr '\\0' x"), HOME, timeout=60)
    finished = await processes.runner.run(command, list[Progress]().append)
    captured = finished.captured
    assert len(captured.head) + len(captured.tail) + captured.dropped == 200_000_000
    assert len(captured.head) == command.keep_head
    assert len(captured.tail) == command.keep_tail
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


async def test_yes_neither_floods_the_reports_nor_holds_the_loop(processes: Processes, watch: Watch) -> None:
    reports: list[Progress] = []
    task = asyncio.create_task(processes.runner.run(watch.command("exec yes"), reports.append))
    assert await poll(watch.stands)
    began = time.monotonic()
    assert await poll(lambda: len(texts(reports)) >= 10)  # the loop runs during the flood
    assert len(texts(reports)) <= (time.monotonic() - began) / REPORT_INTERVAL + 2
    assert max(len(text) for text in texts(reports)) < 70_000
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()


async def test_the_first_output_is_reported_before_the_command_ends(processes: Processes, watch: Watch) -> None:
    reports: list[Progress] = []
    task = asyncio.create_task(processes.runner.run(watch.command("echo first; sleep 60"), reports.append))
    assert await poll(lambda: texts(reports) == ["first\n"])
    task.cancel()
    await asyncio.wait({task})


async def test_all_output_goes_to_the_file_once_it_is_long(processes: Processes, tmp_path: Path) -> None:
    spill = tmp_path / "new" / "output.txt"
    command = Command(("/usr/bin/seq", "100000"), HOME, keep_head=100, keep_tail=100, spill=spill)
    captured = (await processes.runner.run(command)).captured
    assert captured.spill == spill
    assert spill.read_bytes() == b"".join(b"%d\n" % number for number in range(1, 100_001))
    assert spill.stat().st_mode & 0o777 == 0o600


async def test_short_output_makes_no_file(processes: Processes, tmp_path: Path) -> None:
    spill = tmp_path / "output.txt"
    captured = (await processes.runner.run(Command(("/bin/echo", "hi"), HOME, spill=spill))).captured
    assert captured.spill is None
    assert not spill.exists()


async def test_a_full_disk_ends_the_file_and_not_the_command(processes: Processes, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    spill = tmp_path / "output.txt"
    command = Command(("/usr/bin/seq", "100000"), HOME, keep_head=100, keep_tail=100, spill=spill)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        finished = await processes.runner.run(command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert finished.exit_code == 0
    assert finished.captured.spill is None
    assert finished.captured.dropped > 0
    assert not spill.exists()


def test_a_runaway_file_says_where_it_was_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.process.output.SPILL_LIMIT", 10)
    spill = Spill(tmp_path / "output.txt", threshold=4)
    for _ in range(5):
        spill.write(b"abcd")
    spill.close()
    text = (tmp_path / "output.txt").read_text("ascii")
    assert text == "abcdabcdab\n[Phoenix stopped writing here: 10 more bytes came]\n"
