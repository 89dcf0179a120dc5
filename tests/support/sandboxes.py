"""Commands in a sandbox for tests: `async with sandbox(...) as box`, then `await box.sh("script")`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tools.bash import Caller
from tools.contract import UNCONFINED, Command, Enforcement, Finished, Report, Sandbox, SandboxMode
from tools.process.plan import BUBBLEWRAP
from tools.process.sandbox import bubblewrap
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.supervision import SupervisedRunner
from tools.process.zygote import landlock, wire

CONFINED = Sandbox(SandboxMode.WORKSPACE, network=False)


class Box(Struct, frozen=True):
    """A running process control whose commands are confined."""

    processes: Processes
    folder: Path

    async def sh(
        self, script: str, folder: Path | None = None, conversation: str = "one", limits: Sandbox = CONFINED
    ) -> str:
        """The output of a shell script, errors included."""
        command = Command(("/bin/bash", "-c", script), folder or self.folder, timeout=60, sandbox=limits)
        ended = await self.processes.jobs.run(command, Caller(conversation, "call", script))
        assert isinstance(ended, Finished)
        return (ended.captured.head + ended.captured.tail).decode("utf-8", "replace")


class LimitedRunner(SupervisedRunner):
    """Runs each command that brings no limits under those of a test."""

    def __init__(self, inner: SupervisedRunner, limits: Sandbox) -> None:
        super().__init__(inner._supervision)
        self.limits = limits

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        limits = self.limits if command.sandbox is UNCONFINED else command.sandbox
        return await super().run(replace(command, sandbox=limits), report)


def limited(processes: Processes, limits: Sandbox) -> Processes:
    """The same processes, whose runner has limits."""
    processes.runner = LimitedRunner(processes.runner, limits)
    return processes


@contextlib.asynccontextmanager
async def sandbox(
    folder: Path,
    mechanism: str = wire.NAMESPACE,
    hidden: tuple[Path, ...] = (),
    journals: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> AsyncIterator[Box]:
    """Process control with this mechanism; skips the test where there is none."""
    settings = ProcessSettings(hidden=hidden, journals=journals, environment=dict(environment))
    processes = await start_processes(settings)
    try:
        support = await processes.probe()
        if mechanism == wire.LANDLOCK:
            usable = landlock.abi() > 0
        else:
            usable = support.guards_files and (mechanism != BUBBLEWRAP or bool(bubblewrap()))
        if not usable:
            pytest.skip("this mechanism is not to be had here")
        processes.planner.sandbox = mechanism
        yield Box(processes, folder)
    finally:
        await processes.close()


@contextlib.contextmanager
def home(folder: Path) -> Iterator[Path]:
    """Makes `folder` the home folder of this process for a while."""
    before = os.environ.get("HOME", "")
    os.environ["HOME"] = str(folder)
    try:
        yield folder
    finally:
        os.environ["HOME"] = before


async def needs_full_enforcement() -> None:
    """Skip the test where this system cannot enforce files and network of a sandbox."""
    processes = await start_processes(ProcessSettings())
    try:
        enforcement = await processes.enforcement()
    finally:
        await processes.close()
    if enforcement is not Enforcement.FULL:
        pytest.skip("files and network of a sandbox cannot be enforced here")
