"""The sandbox through `bwrap`, for systems that allow namespaces to it alone; needs the program."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import LimitedRunner, limited
from tools.contract import Command, Sandbox, SandboxMode
from tools.process.plan import BUBBLEWRAP
from tools.process.start import Processes, ProcessSettings, start_processes

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A folder that is not below temp; its parent is outside the sandbox."""
    with folder_outside_temp() as folder:
        inner = folder / "workspace"
        inner.mkdir()
        yield inner


@pytest.fixture(params=[SandboxMode.WORKSPACE, SandboxMode.READ_ONLY])
async def processes(request: pytest.FixtureRequest) -> AsyncIterator[Processes]:
    started = limited(await start_processes(ProcessSettings()), Sandbox(request.param, network=False))
    try:
        if not (await started.probe()).guards_files:
            pytest.skip("no namespaces on this machine")
        started.planner.sandbox = BUBBLEWRAP
        yield started
    finally:
        await started.close()


async def output(processes: Processes, workspace: Path, script: str) -> bytes:
    finished = await processes.runner.run(Command(("/bin/bash", "-c", script), workspace, timeout=20))
    return finished.captured.head


async def test_only_the_workspace_is_written_and_only_in_workspace_mode(processes: Processes, workspace: Path) -> None:
    script = (
        f"echo a > inside; echo b > {workspace.parent}/no; echo c > /dev/shm/phx-no; echo d > /dev/null && echo read"
    )
    said = await output(processes, workspace, script)
    assert isinstance(processes.runner, LimitedRunner)
    writable = processes.runner.limits.mode is SandboxMode.WORKSPACE
    assert (workspace / "inside").exists() is writable
    assert not (workspace.parent / "no").exists()
    assert said.endswith(b"read\n")


async def test_a_command_cannot_undo_its_mounts(processes: Processes, workspace: Path) -> None:
    remount = "mount -o remount,rw / ; unshare -Urm sh -c 'mount -o remount,bind,rw /'"
    await output(processes, workspace, f"{remount}; echo x > {workspace.parent}/no")
    assert not (workspace.parent / "no").exists()


async def test_a_command_sees_and_signals_only_its_own_and_reaches_no_network(
    processes: Processes, workspace: Path
) -> None:
    script = f"kill -0 {os.getpid()} 2>/dev/null && echo seen; ls /sys/class/net; cat /proc/net/dev | wc -l"
    said = await output(processes, workspace, script)
    assert b"seen" not in said
    assert said.split()[-1] == b"3", "two head lines and the loopback device"
