"""Signing in to an MCP server of the conversation in view, for both front ends."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import EngineError
from engine.ports.mcp import McpServers, ServerState, SignInAddress
from engine.records import ConversationRecord
from phoenix_tui.features.front_end import FrontEnd
from tools.clean import clean_line

NONE: Final = "MCP servers are not available here."
PASTED: Final = "The address was taken; Phoenix connects."


async def begin(front: FrontEnd, name: str) -> SignInAddress:
    """The address to open in a browser.

    Raises:
        EngineError: there is none; the sentence says why.
    """
    servers, record = await _of(front)
    found = await servers.sign_ins.begin(record, name)
    if isinstance(found, str):
        raise EngineError(found)
    return found


async def paste(front: FrontEnd, name: str, url: str) -> str:
    """Take the address that the browser was sent to; returns the outcome."""
    servers, record = await _of(front)
    return await servers.sign_ins.paste(record, name, url) or PASTED


async def sign_out(front: FrontEnd, name: str) -> str:
    """Delete the tokens of a server; returns the outcome."""
    servers, record = await _of(front)
    return await servers.sign_ins.forget(record, name) or f"Signed out of {clean_line(name)}; its tokens are deleted."


async def is_signed_in(front: FrontEnd, name: str) -> bool:
    """True once the server is connected."""
    servers, record = await _of(front)
    return any(one.name == name and one.state is ServerState.CONNECTED for one in await servers.views(record))


def sign_in_lines(name: str, address: SignInAddress) -> list[str]:
    """Words about a sign-in, with nothing of the address left out."""
    return [
        f"Sign in to {clean_line(name)} at {address.host}",
        "Open this address in a browser, and go on only if this host is the right one:",
        address.url,
        "Where the browser runs on another machine, paste the address here that it is sent to at the end.",
    ]


async def _of(front: FrontEnd) -> tuple[McpServers, ConversationRecord]:
    servers = front.services.mcp
    if servers is None:
        raise EngineError(NONE)
    return servers, (await front.current()).record
