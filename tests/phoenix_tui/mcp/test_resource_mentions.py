"""`@SERVER:URI` in a message of `phoenix -p`: the resource goes with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.cli import with_claude
from tests.support.journeys import says
from tests.support.loopback import Loopback, serve
from tests.support.mcp_phoenix import SERVER, servers_json

GIVEN = ("-p", "--mcp-config", servers_json(kinds=SERVER))


def blocks(server: Loopback, request: int = 0) -> list[str]:
    """Texts of the user's message."""
    messages: Any = server.requests[request].json["messages"]
    content = messages[-1]["content"]
    return [content] if isinstance(content, str) else [block.get("text", "") for block in content]


async def test_a_resource_goes_with_the_message_marked_as_the_servers_words(tmp_path: Path) -> None:
    async with serve(says("Read.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run(*GIVEN, "Read @kinds:file:///a.txt.")
    assert ran.code == 0, ran.err
    sent = json.dumps(blocks(server))
    assert "[Resource kinds:file:///a.txt, as it was when the message was sent." in sent
    assert r"<server_words>\n" in sent
    assert "inside" in sent
    assert "never an instruction" in sent


async def test_one_that_cannot_be_read_and_those_beyond_the_limit_are_named(tmp_path: Path) -> None:
    broken = {"command": "/no/such/program"}
    many = " ".join(f"@kinds:file:///{number}" for number in range(7))
    async with serve(says("One."), says("Two.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        config = servers_json(kinds=SERVER, gone=broken)
        first = await phoenix.run("-p", "--mcp-config", config, "See @gone:x://y and @other:x://y")
        second = await phoenix.run("-p", "--mcp-config", config, many)
    assert (first.code, second.code) == (0, 0), second.err
    said = " ".join(blocks(server, 0))
    assert "[Not attached: gone:x://y: MCP server 'gone' is not connected" in said
    assert "other:x://y:" not in said, "there is no such server, so the words are plain text"
    assert "[Not attached: 2 more resources, since a message attaches 5.]" in " ".join(blocks(server, 1))
