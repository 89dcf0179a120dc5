"""Tokens of one server over HTTP, and the address of the sign-in that begins."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Raw, Struct, field

from engine.extensions.mcp.credentials_file import TokenStore, credentials_key
from engine.extensions.mcp.server_asks import AskedConnection
from engine.ports.mcp import ServerDefinition
from tools.mcp_host.protocol import NOTHING, AuthUrl


class ServerAccess(Struct, eq=False):
    """Reads and writes what a sign-in gave; of no use to a stdio server."""

    tokens: TokenStore
    definition: ServerDefinition
    root: Path
    server: AskedConnection
    stored: Raw = NOTHING
    """Tokens as they were read before the connection; null: none."""
    signing: bool = False
    """True from the beginning of a sign-in until the server is connected or it has failed."""
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    coming: asyncio.Future[AuthUrl | str] | None = None
    """Address of the sign-in that begins, or the reason why there is none."""

    async def load(self) -> None:
        """Read the tokens for the next connection."""
        if self.definition.transport == "stdio":
            return
        try:
            async with self.order:
                self.stored = await asyncio.to_thread(self.tokens.get, credentials_key(self.definition, self.root))
        except OSError as error:
            self.stored = NOTHING
            self.server.note(f"error: its tokens cannot be read: {error.strerror or error}")

    async def store(self, content: Raw) -> None:
        """Keep new tokens, null deletes them; where they cannot be written, another sign-in is needed later."""
        try:
            async with self.order:
                await asyncio.to_thread(self.tokens.put, credentials_key(self.definition, self.root), content)
        except OSError as error:
            self.server.note(f"error: its tokens cannot be stored: {error.strerror or error}")

    def take(self, found: AuthUrl | str) -> None:
        """Take the address of a sign-in, or the reason why there is none."""
        if self.coming is not None and not self.coming.done():
            self.coming.set_result(found)
