"""Choices of a host about a server inside it: tools that always ask or are hidden, and the time for a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.server_policies import NO_POLICY, ServerPolicy, policy_of
from tests.phoenix_tui.cli.test_control_servers import ADDS, ALLOWED, TOOL, adds, bodies, server_with
from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import says

FLAGS = (*ALLOWED, "--permission-mode", "bypassPermissions", "--permission-prompt-tool", "stdio")
REMOVE = TOOL | {"name": "remove"}
TOOLS = [
    {"name": "add", "permission_policy": "always_ask"},
    {"name": "remove", "permission_policy": "always_deny"},
]


def yes(request: Frame) -> Frame:
    return {"behavior": "allow", "updatedInput": request["input"]}


async def test_a_tool_asks_against_mode_and_rules_another_is_hidden_and_calls_have_their_time(tmp_path: Path) -> None:
    answers = server_with(adds, (TOOL, REMOVE))
    silent = False

    def server_of_host(request: Frame) -> Any:
        return None if silent and request["message"]["method"] == "tools/call" else answers(request)

    async with serve(ADDS, says("Five."), ADDS, says("None.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *FLAGS, mcp_message=server_of_host, can_use_tool=yes) as host:
            policy = {"calc": {"timeout": 1_000, "tools": TOOLS}, "other": {"tools": TOOLS}}
            await host.ask("initialize", sdkMcpServers=["calc"], sdkMcpServerConfigs=policy)
            init = (await host.turn("Add"))[0]
            silent = True
            await host.turn("Add")
        _, first, _, second = bodies(server)
    assert [one for one in init["tools"] if one.startswith("mcp__")] == ["mcp__calc__add"]
    [asked, _] = host.requests("can_use_tool")
    assert (asked["tool_name"], asked["permission_suggestions"]) == ("mcp__calc__add", [])
    assert asked["decision_reason"] == "the host wants to be asked about each call of this tool"
    assert "sum 5" in json.dumps(first["messages"][-1])
    assert "no answer within 1 s" in json.dumps(second["messages"][-1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, NO_POLICY),
        ({"timeout": 999, "tools": {}}, NO_POLICY),
        ({"timeout": True, "tools": [7, {"name": 7}, {"name": "a", "permission_policy": ["always_ask"]}]}, NO_POLICY),
        ({"timeout": 2_500, "tools": [{"name": "a", "permission_policy": "always_allow"}]}, ServerPolicy(2.5)),
    ],
)
def test_choices_of_another_shape_are_left_out(value: Any, expected: ServerPolicy) -> None:
    assert policy_of(value) == expected
