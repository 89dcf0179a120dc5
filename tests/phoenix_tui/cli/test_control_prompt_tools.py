"""`--permission-prompt-tool mcp__SERVER__TOOL`: a tool of an MCP server answers questions about calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.flags import control_flags
from phoenix_tui.cli.exits import CommandError
from tests.phoenix_tui.cli.test_control_servers import CONFIG, TOOL, bodies, server_with
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS, Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says

APPROVE = {"name": "approve", "description": "Decides", "inputSchema": {"type": "object"}}
ASKS_TOOL = ("--permission-prompt-tool", "mcp__calc__approve")
RUNS = calls("bash", {"command": "echo one > made.txt"})


def told(text: str, **more: Any) -> Callable[[Frame], Frame]:
    return lambda _: {"content": [{"type": "text", "text": text}]} | more


async def test_a_tool_allows_a_call_with_another_input_and_no_model_is_offered_it(tmp_path: Path) -> None:
    asked: list[Frame] = []

    def allows(args: Frame) -> Frame:
        asked.append(args)
        verdict = {"behavior": "allow", "updatedInput": {"command": "echo two > made.txt"}}
        return {"content": [{"type": "text", "text": json.dumps(verdict)}]}

    async with serve(RUNS, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        answer = server_with(allows, (TOOL, APPROVE))
        async with hosted(phoenix, *CONFIG, *ASKS_TOOL, mcp_message=answer) as host:
            frames = await host.turn("Go")
        offered = [one["name"] for one in bodies(server)[0]["tools"]]
    assert asked == [{"tool_name": "Bash", "input": {"command": "echo one > made.txt"}, "tool_use_id": "toolu_1"}]
    assert (phoenix.cwd / "made.txt").read_text() == "two\n"
    assert [name for name in offered if name.startswith("mcp__")] == ["mcp__calc__add"]
    assert [name for name in frames[0]["tools"] if name.startswith("mcp__")] == ["mcp__calc__add"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (told(json.dumps({"behavior": "deny", "message": "not on a Friday"})), "not on a Friday"),
        (told(json.dumps({"result": json.dumps({"behavior": "deny", "message": "wrapped no"})})), "wrapped no"),
        (told(json.dumps({"result": 7})), "gave no JSON with behavior allow or deny"),
        (told("yes, go on"), "gave no JSON with behavior allow or deny"),
        (told("[]"), "gave no JSON with behavior allow or deny"),
        (told("[" * 100_000), "gave no JSON with behavior allow or deny"),
        (told("out of order", isError=True), "failed: out of order"),
    ],
    ids=["no", "wrapped", "a number", "words", "a list", "deep", "an error"],
)
async def test_whatever_is_not_a_yes_denies_with_its_reason(tmp_path: Path, answer: Any, words: str) -> None:
    async with serve(RUNS, says("I see.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *CONFIG, *ASKS_TOOL, mcp_message=server_with(answer, (APPROVE,))) as host:
            frames = await host.turn("Go")
        assert words in json.dumps(bodies(server)[-1]["messages"])
    assert not (phoenix.cwd / "made.txt").exists()
    assert (frames[-1]["result"], len(frames[-1]["permission_denials"])) == ("I see.", 1)


async def test_a_tool_that_is_not_there_refuses_the_turn_and_names_those_that_are(tmp_path: Path) -> None:
    async with serve(says("never")) as server:
        answer = server_with(told("{}"))
        async with hosted(with_claude(tmp_path, server.url), *CONFIG, *ASKS_TOOL, mcp_message=answer) as host:
            frames = await host.turn("Go")
        assert bodies(server) == []
    [error] = frames[-1]["errors"]
    assert error == "There is no tool mcp__calc__approve for --permission-prompt-tool: there are mcp__calc__add."


async def test_a_denied_server_is_not_offered_either(tmp_path: Path) -> None:
    flags = (*CONFIG, "--disallowedTools", "mcp__calc")
    async with serve(says("Hello.")) as server:
        answer = server_with(told("{}"))
        async with hosted(with_claude(tmp_path, server.url), *flags, mcp_message=answer) as host:
            await host.turn("Go")
        assert not [one for one in bodies(server)[0]["tools"] if one["name"].startswith("mcp__")]


def test_another_value_is_a_wrong_usage() -> None:
    with pytest.raises(CommandError, match="needs stdio, or the tool of an MCP server"):
        control_flags([*FLAGS, "--permission-prompt-tool", "Bash"])
