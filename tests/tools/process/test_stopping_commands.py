"""Ends of whole trees: by Esc (FAULTS 1-5, 15-18), by the death of Phoenix or of its helpers (FAULTS 8, 14)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import ROOT, SHAPES, Shape, Watch, descriptors_open, marked, phoenix, start_plain, watching
from tests.support.waiting import PATIENCE, poll, poll_blocking
from tools.contract import Command, OutputChunk, ProcessesEnded, Progress
from tools.process.link import spawn_zygote
from tools.process.start import Processes
from tools.process.zygote import wire
from tools.process.zygote.supervisor import CROWD
from tools.process.zygote.tree import children, read_proc

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


async def test_a_stop_names_its_processes_with_the_ports_they_held(processes: Processes, watch: Watch) -> None:
    server = (
        'import socket, time\nheld = socket.create_server(("127.0.0.1", 0))\n'
        "print(held.getsockname()[1], flush=True)\ntime.sleep(60)"
    )
    reports: list[Progress] = []
    command = watch.command(f"sleep 60 & {sys.executable} -S -c '{server}'")
    task = asyncio.create_task(processes.runner.run(command, reports.append))
    assert await poll(lambda: any(isinstance(one, OutputChunk) for one in reports))
    (port,) = {one.text.strip() for one in reports if isinstance(one, OutputChunk)}
    began = asyncio.get_running_loop().time()
    task.cancel()
    await asyncio.wait({task})
    assert asyncio.get_running_loop().time() - began < LATENCY_LIMIT
    ended = reports[-1]
    assert isinstance(ended, ProcessesEnded)
    assert len(ended.named) == ended.count
    assert any(re.fullmatch(r"sleep \d+", one) for one in ended.named), ended.named
    assert any(re.fullmatch(rf"python\S* \d+ \(port {port}\)", one) for one in ended.named), ended.named


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
        assert (last.survivors, len(last.named)) == ((undead,), 3)
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


ECHO = Command(("/bin/echo", "on"), Path("/"))


def supervisor_of(pids: set[int]) -> int:
    """The parent of the topmost process of a tree."""
    parents = {int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1]) for pid in pids}
    (parent,) = parents - pids
    return parent


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_killing_phoenix_with_sigkill_ends_every_shape(shape: Shape, watch: Watch) -> None:
    with phoenix(watch, shape.script) as running:
        assert poll_blocking(partial(watch.stands, shape.processes))
        running.kill()
        watch.emptied_at(limit=5)
        assert watch.alive() == set()


async def test_a_command_that_kills_its_supervisor_gains_nothing(processes: Processes, watch: Watch) -> None:
    task = asyncio.create_task(processes.runner.run(watch.command("setsid sleep 60 & sleep 60")))
    assert await poll(partial(watch.stands, 2))
    os.kill(supervisor_of(watch.alive()), signal.SIGKILL)
    finished = await task
    assert finished.exit_code is None
    assert watch.alive() == set()
    assert (await processes.runner.run(ECHO)).captured.head == b"on\n"


async def test_a_stopped_supervisor_does_not_save_its_tree(processes: Processes, watch: Watch) -> None:
    task = asyncio.create_task(processes.runner.run(watch.command("setsid sleep 60 & sleep 60")))
    assert await poll(partial(watch.stands, 2))
    os.kill(supervisor_of(watch.alive()), signal.SIGSTOP)
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()


async def test_a_dead_zygote_is_replaced(watch: Watch) -> None:
    processes = await start_plain()
    task = asyncio.create_task(processes.runner.run(watch.command("sleep 60")))
    assert await poll(watch.stands)
    supervisor = supervisor_of(watch.alive())
    zygotes = [pid for pid in children(os.getpid()) if supervisor in children(pid)]
    os.kill(zygotes[0], signal.SIGKILL)
    assert (await processes.runner.run(ECHO)).captured.head == b"on\n"
    assert len(watch.alive()) == 1
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()
    await processes.close()


def zygotes() -> set[int]:
    return {pid for pid in children(os.getpid()) if read_proc(f"/proc/{pid}/comm") == b"phoenix-zygote\n"}


async def test_a_stopped_zygote_ends_with_phoenix() -> None:
    others = zygotes()
    processes = await start_plain()
    await processes.runner.run(ECHO)
    (zygote,) = zygotes() - others
    os.kill(zygote, signal.SIGSTOP)
    await processes.close()
    assert zygotes() == others


async def test_commands_that_lose_the_zygote_together_all_run() -> None:
    others = zygotes()
    processes = await start_plain()
    await processes.runner.run(ECHO)
    for zygote in zygotes() - others:
        os.kill(zygote, signal.SIGSTOP)
    outcomes = await asyncio.gather(*(processes.runner.run(ECHO) for _ in range(5)))
    assert [outcome.captured.head for outcome in outcomes] == [b"on\n"] * 5
    await processes.close()


@pytest.mark.parametrize("together", ["zygote first", "supervisor first"])
def test_orphans_of_both_helpers_are_found_by_phoenix(together: str, watch: Watch) -> None:
    with phoenix(watch, "setsid sleep 60 & sleep 60", hardened=True) as running:
        assert poll_blocking(partial(watch.stands, 2))
        supervisor = supervisor_of(watch.alive())
        (zygote,) = (pid for pid in children(running.pid) if supervisor in children(pid))
        pids = [zygote, supervisor] if together == "zygote first" else [supervisor, zygote]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # the end of the first may be that of the second
                os.kill(pid, signal.SIGKILL)
        watch.emptied_at(limit=5)
        assert watch.alive() == set()
        assert running.stdout is not None
        assert b"finished" in running.stdout.read()


def test_phoenix_and_its_helpers_do_not_look_like_python(watch: Watch) -> None:
    with phoenix(watch, "sleep 60", hardened=True) as running:
        assert poll_blocking(watch.stands)
        supervisor = supervisor_of(watch.alive())
        for pid in (running.pid, supervisor, *children(running.pid)):
            name = Path(f"/proc/{pid}/comm").read_text("utf-8") + Path(f"/proc/{pid}/cmdline").read_text("utf-8")
            assert "python" not in name
            assert "phoenix" in name


@pytest.mark.skipif(os.geteuid() != 0, reason="for an ordinary user the guard would cost sudo")
async def test_a_command_cannot_signal_everyone_nor_phoenix(processes: Processes) -> None:
    script = f"kill -0 -1 || kill -0 {os.getpid()} || kill -0 $PPID || (sleep 9 & kill $! && echo own)"
    finished = await processes.runner.run(Command(("/bin/bash", "-c", script), Path("/")))
    assert finished.captured.head.count(b"not permitted") == 3
    assert finished.captured.head.endswith(b"own\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second uid to look from")
@pytest.mark.parametrize("file", ["environ", "maps", "fd/0"])
def test_phoenix_memory_is_closed_to_commands_of_the_same_user_and_shows_no_key(file: str) -> None:
    script = (
        "import os, sys; from tools.process.hardening import harden; from tools.process.zygote import kernel\n"
        "os.setuid(65534); kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # which setuid takes away\n"
        f"child = f'cat /proc/{{os.getpid()}}/{file} < /dev/null && echo opened'\n"
        "harden(debuggable=sys.argv[1] == 'open'); os.system(child)"
    )
    shown: dict[str, bool] = {}
    for way in ("open", "closed"):
        command = ["/bin/sh", "-c", f'exec {sys.executable} -B -c "$0" {way}', script]
        environment = {"PHX_PLANTED": "planted-key", "PYTHONPATH": str(ROOT), "PATH": os.defpath}
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=ROOT
        )
        assert b"planted-key" not in done.stdout
        shown[way] = done.stdout.endswith(b"opened\n")
    assert shown == {"open": True, "closed": False}


def test_the_zygote_ends_with_the_link_though_a_thread_still_listens() -> None:
    link = spawn_zygote()
    pid = link.pid
    listens = threading.Thread(target=link.wait_for_signal, args=(PATIENCE,), daemon=True)
    listens.start()
    assert poll_blocking(lambda: _sleeps(listens))
    link.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _sleeps(thread: threading.Thread) -> bool:
    """Tell whether the thread waits for something, here for a word of the zygote."""
    return Path(f"/proc/self/task/{thread.native_id}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "S"


SCRIPT = """
import ctypes, sys, threading
from tools.process.hardening import harden
harden()
kept = []
threads = [threading.Thread(target=lambda: kept.append(bytearray(200_000))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone tells")
def test_all_threads_of_phoenix_share_one_heap() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.count("<heap nr=") == 1


BLANKS = """
import os, subprocess
from tools.process.hardening import harden
harden()
shown = open("/proc/self/environ", "rb").read().split(b"\\0")
print(*sorted(entry.decode() for entry in shown if entry.startswith((b"PLANTED_API_KEY=", b"PLAIN=", b"LC_PLAIN="))))
told = subprocess.run(["printenv", "PLANTED_API_KEY"], capture_output=True, text=True)
print(os.environ["PLANTED_API_KEY"], told.stdout)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is of Linux")
def test_a_key_is_blank_where_the_system_shows_the_environment_and_as_it_was_to_phoenix() -> None:
    environment = {**os.environ, "PLANTED_API_KEY": "sk-1234", "PLAIN": "words", "LC_PLAIN": "C"}
    done = subprocess.run([sys.executable, "-c", BLANKS], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["LC_PLAIN=C", "PLAIN=*****", "PLANTED_API_KEY=*******", "sk-1234", "sk-1234"]
