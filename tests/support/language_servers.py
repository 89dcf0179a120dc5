"""Edit checks with scripted servers over real processes; no sandbox where a test allows its folder."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support import scripted_language_server
from tests.support.processes import start_plain
from tools.contract import UNCONFINED, Enforcement, Sandbox
from tools.displays import EditCheck
from tools.lsp.checker import CheckerSettings, LanguageServerChecks
from tools.lsp.definitions import LanguageServer
from tools.lsp.problems import CheckPlace, EditedText
from tools.lsp.running import IDLE, ProgramStarter, RunningLanguageServer, StartPlan
from tools.process.start import Processes

SCRIPT: Final = str(Path(scripted_language_server.__file__).resolve())
PYTHON: Final = str(Path(sys.executable).resolve())
CONVERSATION: Final = "one"
CLEAN: Final = "fine = 1\n"
WRONG: Final = "fine = 1\nthis is wrong\n"
LONG: Final = 20.0
"""Seconds for what is sure to come, far above what it takes."""


def scripted(mode: str, **changes: Any) -> LanguageServer:
    """The scripted server in a mode."""
    given = {"name": "scripted", "command": (PYTHON, "-S", SCRIPT, mode), "languages": {"*.py": "python"}}
    return LanguageServer(**{**given, "timeout": LONG, **changes})


@dataclass
class OneServer:
    """One running server, and the folder it works in."""

    server: RunningLanguageServer
    folder: Path
    late: list[EditCheck] = field(default_factory=list[EditCheck])
    texts: dict[str, str] = field(default_factory=dict[str, str])

    async def edit(self, text: str, name: str = "a.py") -> EditCheck:
        """Write a file and check it."""
        path, before = self.folder / name, self.texts.get(name)
        path.write_text(text)
        self.texts[name] = text
        return await self.server.check(EditedText(path, name, before or "", text, before is None, CONVERSATION))


@asynccontextmanager
async def one_server(
    folder: Path, server: LanguageServer, environment: Mapping[str, str] | None = None, idle: float = IDLE
) -> AsyncGenerator[OneServer]:
    """A server that is ended after the test."""
    processes = await start_plain()
    late: list[EditCheck] = []
    plan = StartPlan(server, server.command, folder, UNCONFINED, environment or {})
    running = RunningLanguageServer(plan, processes.services, lambda _, check: late.append(check), idle)
    try:
        yield OneServer(running, folder, late)
    finally:
        await running.end(0)
        await processes.close()


@dataclass
class Answers:
    """Allowed folders in memory."""

    allowed: set[Path] = field(default_factory=set[Path])

    def is_allowed(self, folder: Path) -> bool:
        return folder in self.allowed

    def answer(self, folder: Path, *, allowed: bool) -> None:
        (self.allowed.add if allowed else self.allowed.discard)(folder)


@dataclass
class Checks:
    """Edit checks of one folder."""

    checker: LanguageServerChecks
    processes: Processes
    folder: Path
    answers: Answers
    conversation: str = CONVERSATION
    sandbox: Sandbox = UNCONFINED

    @property
    def place(self) -> CheckPlace:
        return CheckPlace(self.conversation, self.folder, self.sandbox)

    async def edit(self, text: str, name: str = "a.py") -> Sequence[EditCheck]:
        """Write a file as a tool would, with a check around it."""
        path = self.folder / name
        begun = await self.checker.begin(self.place, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return () if begun is None else await self.checker.finish(begun, name)


@asynccontextmanager
async def checks_in(
    folder: Path,
    *servers: LanguageServer,
    allowed: bool = True,
    enforcement: Enforcement | None = None,
    environment: Mapping[str, str] | None = None,
    programs: Callable[[Processes], ProgramStarter] = lambda processes: processes.services,
    **settings: Any,
) -> AsyncGenerator[Checks]:
    """Checks by `servers`, with waits that a busy machine keeps; `enforcement` None: as it is here."""
    processes = await start_plain()
    answers = Answers({folder} if allowed else set())

    async def enforced() -> Enforcement:
        return enforcement if enforcement is not None else await processes.enforcement()

    chosen = CheckerSettings(servers, **{"warm_wait": LONG, "cold_wait": LONG, **settings})
    checker = LanguageServerChecks(chosen, lambda: programs(processes), enforced, answers, environment or {})
    try:
        yield Checks(checker, processes, folder, answers)
    finally:
        await checker.close()
        await processes.close()
