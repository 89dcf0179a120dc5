"""`phoenix -p` with MCP servers: configuration, tools in the request, calls, failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ports.mcp import ServerState
from engine.records import build_unstored_record
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.wiring.headless import start_servers
from tests.support.cli import Phoenix, with_claude
from tests.support.fake_mcp import FakeServers, a_server
from tests.support.journeys import calls, says
from tests.support.loopback import Loopback, serve
from tests.support.mcp_helper import ROOT
from tests.support.mcp_phoenix import SERVER, servers_json, write_servers
from tools.contract import SandboxMode

AUTO = ("--permission-mode", "auto")


def names(request: Any) -> list[str]:
    """Tools of servers in a request."""
    return [tool["name"] for tool in request.json["tools"] if tool["name"].startswith("mcp__")]


def result(server: Loopback) -> dict[str, Any]:
    """The tool result that the model was sent."""
    messages: Any = server.requests[1].json["messages"]
    found = [block for block in messages[-1]["content"] if block["type"] == "tool_result"]
    return dict(found[0])


def text_of(block: dict[str, Any]) -> str:
    content = block["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


async def test_a_model_calls_a_tool_of_a_server_on_the_command_line(tmp_path: Path) -> None:
    async with serve(calls("mcp__kinds__echo", text="hello there"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", *AUTO, "--mcp-config", servers_json(kinds=SERVER), "Go")
    assert (ran.code, ran.out.strip()) == (0, "Done."), ran.err
    offered = names(server.requests[0])
    assert "mcp__kinds__dotted_name_and_more" in offered
    assert offered == sorted(offered)
    assert text_of(result(server)) == "hello there"
    system = json.dumps(server.requests[0].json["system"])
    assert "Use with care." in system
    assert "not by the user" in system


async def test_the_keys_of_phoenix_do_not_reach_a_server(tmp_path: Path) -> None:
    definition = {**SERVER, "env": {"PYTHONPATH": str(ROOT), "GIVEN": "${FROM_USER:-x}"}}
    async with serve(calls("mcp__kinds__env"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url, MY_TOKEN="t")
        ran = await phoenix.run("-p", *AUTO, "--mcp-config", servers_json(kinds=definition), "Go")
    assert ran.code == 0, ran.err
    variables = text_of(result(server)).split()
    assert "GIVEN" in variables
    assert not {"ANTHROPIC_API_KEY", "MY_TOKEN", "PHOENIX_HOME"} & set(variables)


async def test_servers_of_a_project_wait_for_trust_and_then_work(tmp_path: Path) -> None:
    async with serve(says("No."), calls("mcp__kinds__echo", text="hi"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write_servers(phoenix.cwd, kinds=SERVER)
        first = await phoenix.run("-p", *AUTO, "Go")
        second = await phoenix.run("-p", *AUTO, "--trust", "Go")
    assert (first.code, second.code) == (0, 0), second.err
    assert "1 server left out" in first.err
    assert names(server.requests[0]) == []
    assert "mcp__kinds__echo" in names(server.requests[1])


async def test_a_servers_failure_is_named_and_fails_no_run_unless_it_is_required(tmp_path: Path) -> None:
    config = '[mcp.gone]\ncommand = "/no/such/program"\n'
    async with serve(says("Done."), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        file = phoenix.home / "config.toml"
        file.write_text(config)
        ran = await phoenix.run("-p", "Go")
        file.write_text(f"{config}required = true\n")
        required = await phoenix.run("-p", "Go")
    assert ran.code == 0, ran.err
    assert "MCP server 'gone' is left out: it cannot be started" in ran.err
    assert required.code == 1
    assert "MCP server 'gone' is required and failed" in required.err


async def test_stream_json_names_servers_with_their_status(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        given = servers_json(kinds=SERVER, bad={"type": "tcp"}, off=SERVER | {"enabled": False})
        ran = await phoenix.run("-p", "--output-format", "stream-json", "--mcp-config", given, "Go")
    init = ran.lines[0]
    assert init["mcp_servers"] == [
        {"name": "bad", "status": "failed", "source": "--mcp-config"},
        {"name": "kinds", "status": "connected", "source": "--mcp-config"},
        {"name": "off", "status": "disabled", "source": "--mcp-config"},
    ]
    assert "mcp__kinds__echo" in init["tools"]


async def test_a_wrong_mcp_config_is_a_usage_error_with_its_line(tmp_path: Path) -> None:
    async with serve() as server:
        phoenix: Phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "--mcp-config", '{"mcpServers": {"a": 1,}}', "Go")
        gone = await phoenix.run("-p", "--mcp-config", "nowhere.json", "Go")
    assert (ran.code, gone.code) == (2, 2)
    assert "--mcp-config is not valid JSON: line 1" in ran.err
    assert "nowhere.json cannot be read" in gone.err


async def test_strict_leaves_all_other_servers_out(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.home / "config.toml").write_text('[mcp.gone]\ncommand = "/no/such/program"\nrequired = true\n')
        given = servers_json(one=SERVER)
        ran = await phoenix.run("-p", "--strict-mcp-config", "--mcp-config", given, "Go")
    assert ran.code == 0, ran.err
    assert "mcp__one__echo" in names(server.requests[0])


async def test_a_second_run_offers_the_known_tools_and_the_cache_is_private(tmp_path: Path) -> None:
    given = ("--mcp-config", servers_json(kinds=SERVER))
    async with serve(says("Done."), calls("mcp__kinds__weather"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        await phoenix.run("-p", *AUTO, *given, "Go")
        ran = await phoenix.run("-p", *AUTO, *given, "Go")
        first, second = names(server.requests[0]), names(server.requests[1])
        messages: Any = server.requests[2].json["messages"]
    assert ran.code == 0, ran.err
    assert first == second
    assert (phoenix.home / "mcp_cache.json").stat().st_mode & 0o777 == 0o600
    assert '{\\"degrees\\":21.5}' in json.dumps(messages)


async def test_a_run_fails_where_a_required_server_is_still_connecting(tmp_path: Path) -> None:
    slow = replace(a_server("files", ServerState.CONNECTING), is_required=True, tools=())
    servers: Any = FakeServers(replace(slow, state=ServerState.WAITING))
    servers.settled = [slow]
    record = build_unstored_record(tmp_path, SandboxMode.OFF, required=False)
    with pytest.raises(CommandError, match="'files', which is required, is still connecting after 30 s; `phoenix mcp"):
        await start_servers(servers, record)
