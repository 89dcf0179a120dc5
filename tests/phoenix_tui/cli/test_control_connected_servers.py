"""MCP servers that Phoenix connects to for a host: named, reported, switched off, set anew, and required."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.phoenix_tui.cli.test_control_servers import CONFIG, adds, server_with
from tests.support.cli import with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import says
from tests.support.mcp_phoenix import SERVER, servers_json

BROKEN = {"command": "/no/such/program"}


def given(**servers: Any) -> tuple[str, str]:
    return "--mcp-config", servers_json(**servers)


async def statuses(host: ControlHost) -> dict[str, str]:
    answer = await host.ask("mcp_status")
    servers: list[Frame] = answer["response"]["mcpServers"]
    return {one["name"]: one["status"] for one in servers}


async def test_connected_servers_stand_in_the_init_frame_beside_those_of_the_host(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        flags = (*CONFIG, *given(kinds=SERVER, broken=BROKEN))
        async with hosted(phoenix, *flags, mcp_message=server_with(adds)) as host:
            init = (await host.turn("Hi"))[0]
            status = await host.ask("mcp_status")
    assert [(one["name"], one["status"]) for one in init["mcp_servers"]] == [
        ("calc", "connected"),
        ("broken", "failed"),
        ("kinds", "connected"),
    ]
    assert {"mcp__calc__add", "mcp__kinds__echo"} <= set(init["tools"])
    broken = next(one for one in status["response"]["mcpServers"] if one["name"] == "broken")
    kinds = next(one for one in status["response"]["mcpServers"] if one["name"] == "kinds")
    assert (broken["scope"], broken["config"], bool(broken["error"])) == (
        "dynamic",
        {"type": "stdio", "command": "/no/such/program"},
        True,
    )
    assert "echo" in [tool["name"] for tool in kinds["tools"]]
    assert b"MCP server 'broken' is left out" in bytes(host.err)


async def test_a_connected_server_is_switched_off_and_on_again(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *given(kinds=SERVER)) as host:
            await host.turn("Hi")
            off = await host.ask("mcp_toggle", serverName="kinds", enabled=False)
            without, seen = await statuses(host), (await host.turn("Hi"))[0]
            on = await host.ask("mcp_toggle", serverName="kinds", enabled=True)
            again = await host.ask("mcp_reconnect", serverName="kinds")
            after = await statuses(host)
            nothing = [
                (await host.ask(subtype, serverName="other", enabled=True))["error"]
                for subtype in ("mcp_toggle", "mcp_reconnect")
            ]
    assert (off["subtype"], without, on["subtype"], again["subtype"], after) == (
        "success",
        {"kinds": "disabled"},
        "success",
        "success",
        {"kinds": "connected"},
    )
    assert not [name for name in seen["tools"] if name.startswith("mcp__kinds__")]
    assert nothing == ["There is no server other."] * 2


async def test_a_host_sets_its_servers_anew(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *CONFIG, mcp_message=server_with(adds)) as host:
            await host.turn("Hi")
            calc: Frame = {"type": "sdk", "name": "calc"}
            more = await host.ask("mcp_set_servers", servers={"calc": calc, "kinds": SERVER, "broken": BROKEN})
            init = (await host.turn("Hi"))[0]
            fewer = await host.ask("mcp_set_servers", servers={})
            after = await statuses(host)
    told = more["response"]
    assert (told["added"], told["removed"], list(told["errors"])) == (["broken", "kinds"], [], ["broken"])
    assert {"mcp__calc__add", "mcp__kinds__echo"} <= set(init["tools"])
    assert (fewer["response"], after) == ({"added": [], "removed": ["broken", "calc", "kinds"], "errors": {}}, {})


async def test_servers_that_are_no_objects_are_refused_or_named(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        no_object = await host.ask("mcp_set_servers", servers=[1])
        too_many = await host.ask("mcp_set_servers", servers={str(number): {} for number in range(65)})
        odd = await host.ask("mcp_set_servers", servers={"a": 7, "b": {"type": "carrier pigeon"}})
    assert no_object["error"] == too_many["error"] == "The request needs servers, an object of at most 64."
    assert sorted(odd["response"]["errors"]) == ["a", "b"]


async def test_a_required_server_that_fails_lets_no_turn_begin(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *given(broken=BROKEN | {"required": True})) as host:
            result = (await host.turn("Hi"))[-1]
            code = await host.close()
        assert server.requests == []
    assert (result["is_error"], code) == (True, 1)
    assert "MCP server 'broken' is required and failed" in json.dumps(result)
