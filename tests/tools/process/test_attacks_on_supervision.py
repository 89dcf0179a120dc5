"""Phoenix killed, its helpers killed or stopped: nothing survives, and the next command runs (FAULTS 8, 14)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import ROOT, SHAPES, Shape, Watch, phoenix, start_plain
from tests.support.waiting import poll, poll_blocking
from tools.contract import Command
from tools.process.start import Processes
from tools.process.zygote.tree import children, read_proc

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
