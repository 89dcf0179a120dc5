"""Prompts of MCP servers as `/mcp__SERVER__PROMPT` in `phoenix -p`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import says
from tests.support.loopback import Loopback, serve
from tests.support.mcp_phoenix import SERVER, servers_json

GIVEN = ("-p", "--mcp-config", servers_json(kinds=SERVER))


def sent(server: Loopback) -> str:
    """The user's message of the first request, as JSON."""
    messages: Any = server.requests[0].json["messages"]
    return json.dumps(messages[-1], ensure_ascii=False)


async def refusal(phoenix: Phoenix, text: str) -> str:
    ran = await phoenix.run(*GIVEN, text)
    assert ran.code != 0
    return ran.err


async def test_a_prompt_goes_with_the_typed_words_marked_as_the_servers(tmp_path: Path) -> None:
    async with serve(says("Hello!")) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run(*GIVEN, "/mcp__kinds__greet very warm")
    assert (ran.code, ran.out.strip()) == (0, "Hello!"), ran.err
    message = sent(server)
    assert "/mcp__kinds__greet very warm" in message
    assert "[The user calls the prompt greet of the MCP server kinds. The server wrote it:]" in message
    assert r"<server_words>\nGreet in a very warm tone\n</server_words>" in message


async def test_a_prompt_without_its_argument_or_its_server_is_not_sent(tmp_path: Path) -> None:
    async with serve() as server:
        phoenix = with_claude(tmp_path, server.url)
        missing = await refusal(phoenix, "/mcp__kinds__greet")
        unknown = await refusal(phoenix, "/mcp__kinds__nothing at all")
    assert "/mcp__kinds__greet needs tone; type it as /mcp__kinds__greet TONE." in missing
    assert "no MCP server here has the prompt /mcp__kinds__nothing" in unknown
    assert server.requests == []
