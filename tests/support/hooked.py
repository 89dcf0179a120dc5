"""An engine with hooks in real files, run by real processes; the user's own are in `config`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.executor.engine_settings import EngineSettings
from engine.extensions.hooks.file_hooks import FileHooks
from engine.machine.messages import TextBlock
from engine.ports.extensions import HookEvent, HookReply
from engine.updates import MessageSaved, Noticed, ToolEnded
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.wiring.hooks import HookFiles
from tests.support.engine import EngineHarness, StubTool, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.clock import SYSTEM_CLOCK
from tools.contract import Tool
from tools.process.start import Processes, ProcessSettings, start_processes

PYTHON = "#!/usr/bin/env python3\nimport json, os, sys\ngiven = json.load(sys.stdin)\n"


@dataclass
class Hooked:
    """The engine, its hooks and their files."""

    harness: EngineHarness
    hooks: FileHooks
    sources: ProjectSources
    processes: Processes
    home: Path

    @property
    def project(self) -> Path:
        """Folder of the conversations."""
        return self.harness.cwd

    def results(self) -> list[str]:
        """Results of tools so far, as the model reads them."""
        return [ended.result.text for ended in self.harness.seen(ToolEnded)]

    def rows(self) -> list[str]:
        """Quiet rows of the transcript so far."""
        return [
            block.text
            for saved in self.harness.seen(MessageSaved)
            if saved.message.role.value == "system"
            for block in saved.message.blocks
            if isinstance(block, TextBlock)
        ]

    def notices(self) -> list[str]:
        """Passing notices so far."""
        return [noticed.text for noticed in self.harness.seen(Noticed)]


def script(path: Path, text: str) -> str:
    """Write an executable script; gives its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def write_hooks(path: Path, **events: Any) -> None:
    """Write a hook file: for each event a command, or groups as they stand in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {
        name: [{"hooks": [{"type": "command", "command": given}]}] if isinstance(given, str) else given
        for name, given in events.items()
    }
    path.write_text(json.dumps({"hooks": table}))


def group(command: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    """A group with one command."""
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}


def bash(command: str) -> Reply:
    """A reply that runs a command."""
    return Reply((ScriptedCall("bash", json.dumps({"command": command})),))


def says(text: str) -> Reply:
    """A reply in words."""
    return Reply((Text(text),))


@asynccontextmanager
async def hooked_engine(
    home: Path,
    *replies: Reply,
    tool: StubTool | None = None,
    off: str = "",
    confined: bool = False,
    hidden: tuple[Path, ...] = (),
    settings: EngineSettings | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncGenerator[Hooked]:
    """An engine whose model gives `replies`; `hidden`: folders that Phoenix keeps from sandboxes."""
    processes = await start_processes(ProcessSettings(hidden=hidden))
    sources = ProjectSources(home / "config", home / "home", TrustFile(home / "trust.json"))
    hooks = FileHooks(HookFiles(sources, off, neutral=home / "neutral"), processes.services, SYSTEM_CLOCK)
    try:
        async with engine_harness(
            home,
            *replies,
            tool=tool,
            settings=settings,
            tools=tools,
            hooks=(hooks,),
            probe=processes if confined else None,
        ) as harness:
            yield Hooked(harness, hooks, sources, processes, home)
    finally:
        await processes.close()


class Unwatched:
    """Follows no hook."""

    def hook_started(self, hook_id: str, event: HookEvent, name: str, status: str = "") -> None:
        """Ignore it."""

    def hook_ended(self, hook_id: str, reply: HookReply | None) -> None:
        """Ignore it."""
