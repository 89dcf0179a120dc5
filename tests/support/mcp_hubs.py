"""A hub of MCP servers with real processes, and definitions that the test sets."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.extensions.mcp.connection import McpLimits
from engine.extensions.mcp.hub import HubFolders, HubSettings, McpHub
from engine.ports.mcp import FolderServers, ServerDefinition, ServerOrigin, ServerView
from engine.records import ConversationRecord
from phoenix_tui.wiring.installation import RandomIds
from tests.support.forks import fork_helpers, load_helper, shim_command
from tests.support.mcp_helper import ROOT
from tests.support.processes import start_plain
from tests.support.screens import conversation
from tools.contract import JsonObject, SandboxMode, ToolContext, ToolOutput
from tools.images.decoder import ImageDecoder

KINDS = (sys.executable, "-m", "tests.support.mcp_kinds")
FORKED_KINDS = shim_command(KINDS[-1])


class Kept:
    """Loaded tools by conversation, as they are stored."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[str, ...]] = {}

    async def keep(self, conversation_id: str, names: tuple[str, ...]) -> None:
        """Store them."""
        self.names[conversation_id] = names


class Definitions:
    """Definitions that the test sets."""

    def __init__(self, root: Path, *servers: ServerDefinition) -> None:
        self.root, self.servers = root, list(servers)
        self.trusted = False

    def is_quick(self, folder: Path) -> bool:
        return False

    def look(self, folder: Path) -> FolderServers:
        """All of them, for every folder."""
        return FolderServers(self.root, tuple(self.servers), trusted=self.trusted)

    def switch(self, folder: Path, name: str, *, on: bool) -> None:
        """Keep nothing."""

    def choose_sandbox(self, folder: Path, name: str, mode: SandboxMode | None) -> None:
        """Keep nothing."""

    def allow_secrets(self, folder: Path, name: str) -> None:
        """Keep nothing."""


def stdio(name: str = "kinds", command: tuple[str, ...] = FORKED_KINDS, **more: Any) -> ServerDefinition:
    """A stdio server, by default the one of all kinds of results."""
    environment = {"PYTHONPATH": str(ROOT), **more.pop("environment", {})}
    digest = f"{name} {command} {sorted(environment.items())}"
    made = ServerDefinition(
        name=name,
        origin=ServerOrigin.USER,
        source="config.toml",
        command=command,
        environment=environment,
        digest=digest,
        identity=digest,
    )
    return replace(made, **more)


class Hub:
    """A hub and one conversation."""

    def __init__(self, hub: McpHub, definitions: Definitions, kept: Kept, record: ConversationRecord) -> None:
        self.hub, self.definitions, self.kept, self.record = hub, definitions, kept, record
        self.said: list[str] = []

    async def view(self, name: str = "kinds") -> ServerView:
        """One server as front ends see it."""
        return next(one for one in await self.hub.views(self.record) if one.name == name)

    async def call(
        self, name: str, args: JsonObject | None = None, record: ConversationRecord | None = None
    ) -> ToolOutput:
        """The result of a tool that the model is offered."""
        tool = self.hub.tools(record or self.record)[name]

        def report(progress: Any) -> None:
            self.said.append(progress.text)

        context = ToolContext(self.record.id, "c1", self.record.cwd, outside_allowed=True, report=report)
        return await tool.run(args or {}, context)

    def names(self, record: ConversationRecord | None = None) -> list[str]:
        """Tools that a model is offered, without those for resources."""
        return [
            name for name in self.hub.tools(record or self.record) if not name.endswith(("_resource", "_resources"))
        ]

    def another(self) -> ConversationRecord:
        """A further conversation of the same folder."""
        return replace(self.record, id=RandomIds().new())


@asynccontextmanager
async def hub_in(
    folder: Path,
    *servers: ServerDefinition,
    linger: float = 60.0,
    wait: float = 10.0,
    limits: McpLimits | None = None,
    anew: bool = False,
) -> AsyncIterator[Hub]:
    """A hub in a folder of the test; its helper is a fork, or with `anew` a new interpreter."""
    fork_helpers(anew=anew)
    if not anew:
        load_helper()
    (work := folder / "work").mkdir(exist_ok=True)
    processes = await start_plain()
    definitions = Definitions(work, *servers)
    folders = HubFolders(
        *(folder / name for name in ("mcp", "mcp_cache.json", "outputs", "mcp_tokens.json", "servers", "neutral"))
    )
    kept = Kept()
    settings = HubSettings(first_wait=wait, linger=linger, limits=limits or McpLimits())
    images = ImageDecoder(processes.runner)
    hub = McpHub(definitions, processes.services, images, processes.enforcement, folders, settings, kept.keep)
    try:
        yield Hub(hub, definitions, kept, replace(conversation(), cwd=work, sandbox=SandboxMode.OFF))
    finally:
        await hub.close()
        await processes.close()


async def host(folder: Path, command: tuple[str, ...]) -> None:
    """Connect to a server that starts a tree, say so, and go on until the process is killed."""
    async with hub_in(folder, stdio("tree", command), anew=True) as one:
        await one.hub.prepare(one.record)
        sys.stdout.write("connected\n" if one.hub.tools(one.record) else "failed\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(host(Path(sys.argv[1]), tuple(sys.argv[2:])))
