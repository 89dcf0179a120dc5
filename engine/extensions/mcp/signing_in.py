"""One sign-in of the user to a server over HTTP: from the address for the browser to the stored tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct

from engine.extensions.mcp.connection import ServerConnection
from engine.extensions.mcp.helper_link import RequestFailed
from engine.ports.mcp import ServerState, SignInAddress
from engine.records import ConversationRecord
from tools.clean import clean_line
from tools.mcp_host.addresses import host_of, is_plain_address
from tools.mcp_host.protocol import NOTHING, Auth, AuthUrl
from tools.mcp_tool import ServerGone

PATIENCE: Final = 60.0
"""Seconds until the address is known: the authorization server is asked who it is, and knows Phoenix from then on."""
LONGEST_PASTE: Final = 16_000
NOT_NEEDED: Final = "MCP server '{name}' is connected: there is nothing to sign in to."
GONE: Final = "There is no such MCP server in use here; /mcp lists all."
LOCAL: Final = "MCP server '{name}' runs on this machine: there is nothing to sign in to."
NO_ADDRESS: Final = "MCP server '{name}' gave no address to sign in at within {seconds:.0f} s."
BAD_ADDRESS: Final = "MCP server '{name}' names an address that no browser should open."


class ConversationServers(Protocol):
    """The servers of conversations."""

    async def looked_at(self, record: ConversationRecord) -> Sequence[ServerConnection]:
        """Servers of the definitions as they are now; nothing is started."""
        ...


class SignIns(Struct, frozen=True):
    """Implements `engine.ports.mcp.SignIns`."""

    servers: ConversationServers

    async def begin(self, record: ConversationRecord, name: str) -> SignInAddress | str:
        """Begin a sign-in, or give a sentence why there is none."""
        server = await self._named(record, name)
        return await _begin(server) if server is not None else GONE

    async def paste(self, record: ConversationRecord, name: str, url: str) -> str:
        """Take the address that the browser was sent to; a sentence where it is not the right one."""
        server = await self._named(record, name)
        if server is None:
            return GONE
        try:
            await _tell(server, Auth(id=0, server=server.key, action="paste", url=url.strip()[:LONGEST_PASTE]))
        except ServerGone as error:
            return str(error)
        return ""

    async def forget(self, record: ConversationRecord, name: str) -> str:
        """Delete the tokens of a server and end its connection; a sentence where there are none to delete."""
        server = await self._named(record, name)
        if server is None or server.definition.transport == "stdio":
            return GONE if server is None else LOCAL.format(name=clean_line(server.name))
        with suppress(ServerGone):  # unknown to the helper, where it was never connected
            await _tell(server, Auth(id=0, server=server.key, action="forget"))
        await server.access.store(NOTHING)
        await server.end(0.5)
        return ""

    async def _named(self, record: ConversationRecord, name: str) -> ServerConnection | None:
        return next((one for one in await self.servers.looked_at(record) if one.name == name), None)


async def _begin(server: ServerConnection) -> SignInAddress | str:
    name = clean_line(server.name)
    if server.definition.transport == "stdio":
        return LOCAL.format(name=name)
    await asyncio.shield(server.start())
    if server.state is ServerState.CONNECTED:
        return NOT_NEEDED.format(name=name)
    if server.state is not ServerState.NEEDS_AUTH:
        return f"MCP server '{name}' is not connected: {server.text or 'no answer'}."
    found = await _address(server)
    if isinstance(found, str):
        return f"{found.rstrip('.')}."
    if not is_plain_address(found.url):
        return BAD_ADDRESS.format(name=name)
    return SignInAddress(found.url, host_of(found.url), clean_line(found.callback))


async def _address(server: ServerConnection) -> AuthUrl | str:
    coming: asyncio.Future[AuthUrl | str] = asyncio.get_running_loop().create_future()
    server.access.coming, server.access.signing = coming, True
    try:
        async with asyncio.timeout(PATIENCE):
            await _tell(server, Auth(id=0, server=server.key, action="start"))
            return await coming
    except ServerGone as error:
        return str(error)
    except TimeoutError:
        return NO_ADDRESS.format(name=clean_line(server.name), seconds=PATIENCE)
    finally:
        server.access.coming = None


async def _tell(server: ServerConnection, request: Auth) -> None:
    """Send the helper a request about signing in. Raises ServerGone."""
    try:
        await (await server.helpers.link()).ask(request, bool)
    except RequestFailed as error:
        raise ServerGone(server.sentence(error.failure)) from error
