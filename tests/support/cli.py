"""The real program in a process of its own, with its own home."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.forks import is_forkable, start_fork
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
LIMIT = 1 << 24
"""Bytes of the longest line of its output."""
DEADLINE = 60.0
"""Seconds one run of the program may take in a test."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True, slots=True)
class Phoenix:
    """One installation and one working directory."""

    home: Path
    cwd: Path
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    anew: bool = False
    """True for a new interpreter in place of a fork."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment without the developer's own keys and settings."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PHOENIX_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "PHOENIX_MODEL": "demo/guide",
            "PHOENIX_AUTO_TITLE": "false",
            "PHOENIX_TURN_SUMMARIES": "false",
            "PHOENIX_TASK_TRACKING": "off",
            # Journeys that expect a question for every command; tests of the default pass PHOENIX_SANDBOX="".
            "PHOENIX_SANDBOX": "off",
            **self.extra,
        }

    async def start(
        self, *arguments: str, stdin: int = asyncio.subprocess.DEVNULL, module: str = "phoenix_tui"
    ) -> asyncio.subprocess.Process:
        """A run that goes on; the caller ends it. `module` is what runs in its place."""
        if stdin < 0 and not self.anew and is_forkable(self.environment, arguments):
            return await start_fork((module, *arguments), self.cwd, self.environment, stdin=stdin, limit=LIMIT)
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            cwd=self.cwd,
            env=self.environment,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LIMIT,
        )

    async def run(self, *arguments: str, stdin: bytes | None = None) -> Ran:
        """A run to its end."""
        pipe = asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE
        process = await self.start(*arguments, stdin=pipe)
        return await ended(process, stdin)


async def ended(process: asyncio.subprocess.Process, stdin: bytes | None = None) -> Ran:
    """The rest of a run."""
    try:
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate(stdin)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


async def end_input(process: asyncio.subprocess.Process) -> None:
    """Close the input of a program, and wait for its end; kill one that does not leave."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def phoenix_in(folder: Path, **extra: str) -> Phoenix:
    """A fresh installation below `folder`."""
    home, cwd = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    cwd.mkdir(exist_ok=True)
    return Phoenix(home, cwd, extra)


def with_claude(folder: Path, url: str, **extra: str) -> Phoenix:
    """A fresh installation whose Anthropic is the loopback server at `url`."""
    given = {"ANTHROPIC_API_KEY": "sk-ant-planted-0123456789", "ANTHROPIC_BASE_URL": url, "PHOENIX_MODEL": ""}
    return phoenix_in(folder, **(given | extra))
