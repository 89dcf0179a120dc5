"""An MCP server asks the user while its tool runs: on the screen, in lines, and without anybody there."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.mcp_phoenix import SERVER
from tests.support.program import ESC, program

AUTO = ("--permission-mode", "auto")


async def with_server(folder: Path, url: str) -> Phoenix:
    """A Phoenix that knows the tools of a server, so that the first request has them."""
    phoenix = with_claude(folder, url)
    added = await phoenix.run("mcp", "add-json", "kinds", json.dumps(SERVER))
    tried = await phoenix.run("mcp", "test")
    assert (added.code, tried.code) == (0, 0), added.err + tried.err
    return phoenix


async def test_own_words_on_the_screen_reach_the_server_and_esc_cancels(tmp_path: Path) -> None:
    answers = calls("mcp__kinds__form"), says("Hello Ada."), calls("mcp__kinds__form", "toolu_2"), says("Bye.")
    async with serve(*answers) as server:
        phoenix = await with_server(tmp_path, server.url)
        async with program(phoenix, *AUTO) as running:
            await running.shows("ready")
            running.type("go\r")
            await running.shows("MCP server kinds asks you", "Your name?", "Give it no passwords", "own words")
            await running.shows("Esc puts")
            running.type("o")
            await running.shows("Enter takes your words")
            running.type("Ada\r")
            await running.shows("Hello Ada.", "○ ready")
            running.type("again\r")
            await running.shows("Esc puts")
            running.type(ESC)
            await running.shows("Bye.")
    assert result_text(server.requests[1]) == "accept {'name': 'Ada'}"
    assert result_text(server.requests[3]) == "cancel None"


async def test_lines_ask_and_take_the_answer(tmp_path: Path) -> None:
    async with serve(calls("mcp__kinds__form"), says("Hello.")) as server:
        phoenix = await with_server(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", *AUTO, rows=200, columns=200) as running:
            await running.shows("You:")
            running.type("go\r")
            await running.shows("MCP server kinds asks you.", "Your name?", "1. Leave it out")
            running.type("Ada\r")
            await running.shows("Assistant: Hello.")
    assert result_text(server.requests[1]) == "accept {'name': 'Ada'}"


async def test_without_a_user_the_server_is_not_kept_waiting(tmp_path: Path) -> None:
    async with serve(calls("mcp__kinds__form"), says("Done.")) as server:
        phoenix = await with_server(tmp_path, server.url)
        ran = await phoenix.run("-p", *AUTO, "go")
    assert ran.code == 0, ran.err
    assert "elicitation" in result_text(server.requests[1]).lower()
