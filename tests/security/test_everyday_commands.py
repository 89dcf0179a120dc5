"""Safe by default (docs/everyday-commands.md): everyday commands run unasked in the default sandbox, or ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.everyday import COMMANDS, Everyday
from tools.contract import Access, Command, Sandbox, SandboxMode
from tools.process.start import Processes, ProcessSettings, start_processes

SLOW = frozenset({"cargo", "cmake", "go", "javac", "mypy", "pip", "uv", "npm"})
"""Programs that take seconds; the benchmark family `everyday` runs them."""
UNASKED = Sandbox(SandboxMode.WORKSPACE, network=False)
LIMIT = 60.0
QUICK = [
    one
    for one in COMMANDS
    if one.access is Access.CONFINED and one.available and one.program not in SLOW and "venv" not in one.command
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes() -> AsyncIterator[Processes]:
    started = await start_processes(ProcessSettings())
    if not (await started.probe()).sandbox:
        pytest.skip("no sandbox on this system")
    yield started
    await started.close()


@pytest.mark.parametrize("one", QUICK, ids=lambda one: one.command[:40])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_everyday_command_works_without_a_question(
    one: Everyday, processes: Processes, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    one.project(project)
    command = Command(("/bin/bash", "-c", one.command), project, timeout=LIMIT, sandbox=UNASKED)
    ended = await processes.runner.run(command)
    assert ended.exit_code == 0, (ended.captured.head + ended.captured.tail).decode()


def test_ninety_commands_and_more_are_in_the_table() -> None:
    assert len(COMMANDS) >= 90
    assert len({one.command for one in COMMANDS}) == len(COMMANDS)
    assert {one.access for one in COMMANDS} == set(Access)
