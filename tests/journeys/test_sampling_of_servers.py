"""An MCP server has a model answer it: after a yes on the screen, counted, and never without a user."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls, result_text, rows, says
from tests.support.loopback import serve
from tests.support.mcp_phoenix import SERVER
from tests.support.program import program

AUTO = ("--permission-mode", "auto")
CHEAP = {"PHOENIX_CHEAP_MODEL": "anthropic/claude-haiku-5-5"}


async def with_server(folder: Path, url: str) -> Phoenix:
    """A Phoenix that knows the tools of a server that may sample."""
    phoenix = with_claude(folder, url, **CHEAP)
    added = await phoenix.run("mcp", "add-json", "kinds", json.dumps(SERVER | {"sampling": "ask"}))
    shown = await phoenix.run("mcp", "test", "--json")
    assert (added.code, shown.code) == (0, 0), added.err + shown.err
    assert shown.json[0]["sampling"] == "ask"
    return phoenix


async def test_a_yes_on_the_screen_lets_the_cheap_model_answer_and_cost_names_it(tmp_path: Path) -> None:
    answers = calls("mcp__kinds__sample", text="Name a colour."), says("Blue."), says("It is blue.")
    async with serve(*answers) as server:
        phoenix = await with_server(tmp_path, server.url)
        async with program(phoenix, *AUTO) as running:
            await running.shows("ready")
            running.type("My password is swordfish.\r")
            await running.shows("MCP server kinds asks you", "at most 10 tokens", "Name a colour.")
            await running.shows("Esc puts")
            running.type("1")
            await running.shows("It is blue.")
            running.type("/cost\r")
            await running.shows("MCP sampling: 1 call")
        asked = server.requests[1].json
        stored = rows(phoenix, "SELECT purpose, input_tokens, output_tokens FROM model_calls ORDER BY rowid")
        totals = json.loads(rows(phoenix, "SELECT totals_json FROM conversations")[0][0])
    assert (asked["model"], asked["max_tokens"]) == ("claude-haiku-5-5", 10)
    assert "swordfish" not in json.dumps(asked)
    assert '"text":"Blue."' in result_text(server.requests[2])
    assert stored == [("reply", 10, 5), ("sampling", 10, 5), ("reply", 10, 5)]
    assert (totals["input_tokens"], totals["output_tokens"]) == (30, 15)


async def test_without_a_user_the_server_is_not_told_that_it_may_sample(tmp_path: Path) -> None:
    async with serve(calls("mcp__kinds__sample"), says("Done.")) as server:
        phoenix = await with_server(tmp_path, server.url)
        ran = await phoenix.run("-p", *AUTO, "go")
    assert ran.code == 0, ran.err
    assert "Sampling not supported" in result_text(server.requests[1])
