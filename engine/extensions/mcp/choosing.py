"""Lasting choices of the user about servers, kept in a thread."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec import Struct

from engine.ports.mcp import ServerDefinitions
from engine.records import ConversationRecord
from tools.sandbox_mode import SandboxMode


class Choosing(Struct, frozen=True):
    """Implements `engine.ports.mcp.LastingChoices`."""

    definitions: ServerDefinitions

    async def switch(self, record: ConversationRecord, name: str, *, on: bool) -> None:
        """Switch a server off for good, or on again. Raises Unchosen."""
        await asyncio.to_thread(partial(self.definitions.switch, record.cwd, name, on=on))

    async def choose_sandbox(self, record: ConversationRecord, name: str, mode: SandboxMode | None) -> None:
        """Run a server in another sandbox than its definition says, None: in that. Raises Unchosen."""
        await asyncio.to_thread(self.definitions.choose_sandbox, record.cwd, name, mode)

    async def allow_secrets(self, record: ConversationRecord, name: str) -> None:
        """Let a project's server have the secrets that it names. Raises Unchosen."""
        await asyncio.to_thread(self.definitions.allow_secrets, record.cwd, name)
