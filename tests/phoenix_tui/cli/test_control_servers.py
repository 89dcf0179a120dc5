"""MCP servers inside the host: their tools are offered, asked about, called, switched off, and may fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.loopback import Loopback, serve
from tests.support.loopback_agents import calls, says

CONFIG = (
    "--mcp-config",
    json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}),
)
ALLOWED = ("--allowedTools", "mcp__calc__add")
ADDS = calls("mcp__calc__add", {"a": 2, "b": 3})
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
TOOL = {"name": "add", "description": "Add two numbers", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}


def server_with(result: Any, tools: Any = (TOOL,)) -> Any:
    """The answers of a server with one tool."""

    def answer(request: Frame) -> Frame | None:
        message = request["message"]
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "calc"}},
            "tools/list": {"tools": list(tools)},
            "tools/call": result(message["params"]["arguments"]) if message["method"] == "tools/call" else {},
        }
        given = {"jsonrpc": "2.0", "result": results.get(message["method"], {})}
        return {"mcp_response": given | ({"id": message["id"]} if "id" in message else {})}

    return answer


def adds(args: Frame) -> Frame:
    return {"content": [{"type": "text", "text": f"sum {args['a'] + args['b']}"}]}


def bodies(server: Loopback) -> list[Any]:
    return [json.loads(one.body) for one in server.requests if one.method == "POST"]


async def test_a_tool_of_the_host_is_offered_called_and_its_result_read(tmp_path: Path) -> None:
    async with serve(ADDS, says("Five.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *CONFIG, *ALLOWED, mcp_message=server_with(adds)) as host:
            await host.ask("initialize", hooks=None)
            frames = await host.turn("Add")
            status = await host.ask("mcp_status")
        first, second = bodies(server)
    assert [one["message"]["method"] for one in host.requests("mcp_message")] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert "mcp__calc__add" in frames[0]["tools"]
    assert frames[0]["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    [offered] = [one for one in first["tools"] if one["name"] == "mcp__calc__add"]
    assert (offered["description"], offered["input_schema"]["properties"]["a"]) == (
        "Add two numbers",
        {"type": "number"},
    )
    assert "sum 5" in json.dumps(second["messages"][-1])
    [calc] = status["response"]["mcpServers"]
    assert (calc["status"], calc["tools"][0]["annotations"]["readOnly"]) == ("connected", True)
    assert frames[-1]["result"] == "Five."


async def test_a_tool_of_the_host_needs_permission_like_a_command(tmp_path: Path) -> None:
    async with (
        serve(ADDS, says("I see.")) as server,
        hosted(with_claude(tmp_path, server.url), *CONFIG, mcp_message=server_with(adds)) as host,
    ):
        frames = await host.turn("Add")
    assert [one["message"]["method"] for one in host.requests("mcp_message")].count("tools/call") == 0
    assert [one["tool_name"] for one in frames[-1]["permission_denials"]] == ["mcp__calc__add"]


async def test_a_whole_server_is_allowed_by_its_name(tmp_path: Path) -> None:
    async with serve(ADDS, says("Five.")) as server:
        flags = (*CONFIG, "--allowedTools", "mcp__calc")
        async with hosted(with_claude(tmp_path, server.url), *flags, mcp_message=server_with(adds)) as host:
            frames = await host.turn("Add")
    assert frames[-1]["permission_denials"] == []


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, "no"),
        ({"content": []}, "no output"),
        ({"content": "x"}, "no output"),
        ({"content": [7, {"type": "odd"}, {"type": "image", "data": "!"}]}, "left out"),
        ({"content": [{"type": "text", "text": "y" * 2_000_000}]}, "characters left out"),
    ],
)
async def test_odd_results_are_read_as_far_as_they_go(tmp_path: Path, result: Frame, words: str) -> None:
    async with serve(ADDS, says("I see.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *CONFIG, *ALLOWED, mcp_message=server_with(lambda _: result)) as host:
            frames = await host.turn("Add")
        read = json.dumps(bodies(server)[-1]["messages"][-1])
    assert words in read
    assert len(read) < 200_000
    assert frames[-1]["result"] == "I see."


@pytest.mark.parametrize(
    "tools", [(7,), ({"name": ""},), ({"name": "x" * 200},), ({"name": "s", "inputSchema": {"type": "array"}},)]
)
async def test_tools_that_cannot_be_offered_are_left_out(tmp_path: Path, tools: Any) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *CONFIG, mcp_message=server_with(adds, tools)) as host:
            frames = await host.turn("Hi")
    assert [one for one in frames[0]["tools"] if one.startswith("mcp__")] == []
    assert frames[-1]["result"] == "Hello."


async def test_a_server_that_refuses_is_failed_and_the_turn_goes_on(tmp_path: Path) -> None:
    def refuse(request: Frame) -> Frame:
        error = {"code": -32601, "message": "Server 'calc' not found"}
        return {"mcp_response": {"jsonrpc": "2.0", "id": request["message"].get("id"), "error": error}}

    async with (
        serve(says("Hello.")) as server,
        hosted(with_claude(tmp_path, server.url), *CONFIG, mcp_message=refuse) as host,
    ):
        frames = await host.turn("Hi")
        status = await host.ask("mcp_status")
    assert frames[0]["mcp_servers"][0]["status"] == "failed"
    assert status["response"]["mcpServers"][0]["error"] == "Server 'calc' not found"
    assert frames[-1]["result"] == "Hello."


async def test_a_server_is_switched_off_and_on(tmp_path: Path) -> None:
    async with (
        serve(says("Hello.")) as server,
        hosted(with_claude(tmp_path, server.url), *CONFIG, mcp_message=server_with(adds)) as host,
    ):
        await host.turn("Hi")
        off = await host.ask("mcp_toggle", serverName="calc", enabled=False)
        without = await host.turn("Hi")
        await host.ask("mcp_toggle", serverName="calc", enabled=True)
        again = await host.turn("Hi")
        unknown = await host.ask("mcp_toggle", serverName="none", enabled=True)
    assert off["subtype"] == "success"
    assert ("mcp__calc__add" in without[0]["tools"], "mcp__calc__add" in again[0]["tools"]) == (False, True)
    assert unknown["error"] == "There is no server none."


@pytest.mark.parametrize("config", ["{", '{"mcpServers": []}', "/nowhere/mcp.json"])
async def test_a_wrong_configuration_ends_with_a_sentence(tmp_path: Path, config: str) -> None:
    async with serve() as server, hosted(with_claude(tmp_path, server.url), "--mcp-config", config) as host:
        code = await host.end()
    assert code == 2
    assert b"--mcp-config" in host.err
    assert b"Traceback" not in host.err
