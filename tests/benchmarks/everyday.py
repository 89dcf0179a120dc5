"""Everyday commands under the default sandbox beside the same commands without one; writes the table of the docs."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row
from tests.support.everyday import COMMANDS, Everyday
from tools.command_access import command_access
from tools.contract import UNCONFINED, Access, Command, Finished, Sandbox, SandboxMode
from tools.process.start import Processes, ProcessSettings, start_processes

LIMIT: Final = 60.0
SERVER_LIMIT: Final = 1.0
TABLE: Final = Path(__file__).parents[2] / "docs" / "everyday-commands.md"
HEAD: Final = """# Everyday commands under the default sandbox

Written by `make bench ARGS="everyday"`; `tests/security/test_everyday_commands.py` holds it. Each command ran twice
in a project made for it: without a sandbox, and as a new conversation in mode `ask` would run it. "Runs" means without
a question, in the workspace sandbox, without network. "Asks" means that the reason stands in the question; the exit
code is then that of the command after a yes: in the sandbox with network, or outside it.

| command | in a new conversation | exit without sandbox | exit in Phoenix | |
|---|---|---|---|---|
"""
WORDS: Final = {Access.CONFINED: "runs", Access.NETWORK: "asks: {}", Access.OUTSIDE: "asks: {}"}


class Outcome(Struct, frozen=True):
    """A command and how it ended, without a sandbox and as Phoenix runs it."""

    everyday: Everyday
    free: Finished
    confined: Finished

    @property
    def same(self) -> bool:
        """True where the sandbox changed nothing about how it ended."""
        return (self.free.exit_code, self.free.timed_out) == (self.confined.exit_code, self.confined.timed_out)


def everyday(bench: Bench) -> Iterator[Row]:
    """Run all commands whose program is installed; a broken one is over the budget."""
    outcomes = asyncio.run(measure([one for one in COMMANDS if one.available]))
    if not bench.quick:
        TABLE.write_text(HEAD + "".join(map(_line, outcomes)) + _missing(), "utf-8")
    yield Row("everyday commands fewer than 90", max(0, 90 - len(outcomes)), "").at_most(0)
    yield Row("everyday commands that the default sandbox breaks", sum(not one.same for one in outcomes), "").at_most(0)
    asked = sum(one.everyday.access is not Access.CONFINED for one in outcomes)
    yield Row("everyday commands that ask", asked, "")


async def measure(commands: list[Everyday]) -> list[Outcome]:
    """Run each twice, in fresh projects."""
    processes = await start_processes(ProcessSettings())
    try:
        await processes.probe()
        return [await _outcome(processes, one) for one in commands]
    finally:
        await processes.close()


async def _outcome(processes: Processes, one: Everyday) -> Outcome:
    free = await _run(processes, one, UNCONFINED)
    if one.access is Access.OUTSIDE:
        return Outcome(one, free, await _run(processes, one, UNCONFINED))
    sandbox = Sandbox(SandboxMode.WORKSPACE, network=one.access is Access.NETWORK)
    return Outcome(one, free, await _run(processes, one, sandbox))


async def _run(processes: Processes, one: Everyday, sandbox: Sandbox) -> Finished:
    folder = Path(tempfile.mkdtemp(prefix="phoenix-everyday-", dir=Path.home()))
    project = folder / "project"
    project.mkdir()
    try:
        await asyncio.to_thread(one.project, project)
        serves = "stays" in one.note
        bash = shutil.which("bash") or "/bin/bash"
        limit = SERVER_LIMIT if serves else LIMIT
        command = Command((bash, "-c", one.command), project, timeout=limit, sandbox=sandbox)
        return await processes.runner.run(command)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _line(outcome: Outcome) -> str:
    one = outcome.everyday
    words = WORDS[one.access].format(command_access(one.command)[1])
    note = "; ".join(filter(None, (one.note, "" if outcome.same else "**differs**")))
    command = one.command if len(one.command) < 90 else one.command[:87] + "…"
    shown = command.replace("|", "\\|")
    return f"| `{shown}` | {words} | {_exit(outcome.free)} | {_exit(outcome.confined)} | {note} |\n"


def _exit(ended: Finished) -> str:
    return "stopped" if ended.timed_out else str(ended.exit_code)


def _missing() -> str:
    names = sorted({one.program for one in COMMANDS if not one.available})
    where = f"{os.uname().sysname} {os.uname().release}"
    return f"\nMeasured on {where}. Not installed there: {', '.join(names) or 'none'}.\n"
