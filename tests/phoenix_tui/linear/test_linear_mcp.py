"""/mcp in lines, with a real server."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import phoenix_in
from tests.support.mcp_phoenix import SERVER, servers_json
from tests.support.program import program


async def test_servers_are_listed_read_and_connected_again_by_numbers(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    given = servers_json(kinds=SERVER, gone={"command": "/no/such"})
    async with program(phoenix, "--screen-reader", "--mcp-config", given, rows=200, columns=400) as running:
        await running.shows("You:")
        running.type("/mcp\r")
        await running.shows("1. gone, ", "2. kinds, ")
        running.type("1\r")
        await running.shows("1. Show details", "4. End it")
        running.type("2\r")  # the list waits for a start for half a second, to connect again for its outcome
        await running.shows("gone: failed: it cannot be started")
        running.type("/mcp\r2\r2\r")
        await running.shows("kinds: connected.")
        running.type("/mcp\r")
        await running.shows("1. gone, failed, stdio: it cannot be started", "2. kinds, connected, stdio: 25 tools")
        running.type("2\r1\r")
        await running.shows("mcp__kinds__echo", "Use with care.")
        running.type("/mcp\r2\r3\r")
        await running.shows("kinds is off in this conversation")
        running.type("/mcp\r")
        await running.shows("2. kinds, off, stdio: switched off in this conversation")
