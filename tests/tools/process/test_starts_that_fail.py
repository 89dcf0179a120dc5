"""Commands that could not be started, or were given up meanwhile, hold nothing and block no other."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.processes import start_plain
from tools.contract import Command, Sandbox, SandboxMode
from tools.process.plan import Planner
from tools.process.scratch import Scratch
from tools.process.zygote import wire

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
