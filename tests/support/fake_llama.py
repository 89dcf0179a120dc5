"""A program host whose programs are loopback servers of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.providers.local.server import GIBIBYTE, Resources, ServerEnded

PLENTY = Resources(8 * GIBIBYTE, 4, 0.5)


@dataclass(slots=True)
class FakeProgram:
    """Prints a ready line with `url`, or ends as prescribed."""

    url: str
    ended: ServerEnded | None = None
    running: bool = True
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def line(self, mark: str) -> str:
        """The url once `ready` is set."""
        await self.ready.wait()
        if self.ended is not None:
            self.running = False
            raise self.ended
        return self.url

    async def stop(self) -> None:
        """Be gone."""
        self.running = False
        self.stopped.set()


@dataclass(slots=True)
class FakeHost:
    """Hands out programs and remembers what they were started with."""

    url: str = ""
    ended: ServerEnded | None = None
    at_once: bool = True
    programs: list[FakeProgram] = field(default_factory=list[FakeProgram])
    configs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    argvs: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    started: asyncio.Event = field(default_factory=asyncio.Event)
    found: Resources = PLENTY

    def resources(self) -> Resources:
        """Resources given by the test."""
        return self.found

    async def start(self, argv: tuple[str, ...], environment: Mapping[str, str], stdin: bytes) -> FakeProgram:
        """The next program."""
        self.argvs.append(argv)
        self.configs.append(json.loads(stdin))
        program = FakeProgram(self.url, self.ended)
        if self.at_once:
            program.ready.set()
        self.programs.append(program)
        self.started.set()
        return program
