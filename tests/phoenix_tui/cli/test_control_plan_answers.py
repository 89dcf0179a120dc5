"""A host's answers to plans, and answers that replace or remove the rules of earlier ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says

STDIO = ("--permission-prompt-tool", "stdio")
PLANNING = (*STDIO, "--permission-mode", "plan")
PLAN = calls("exit_plan", {"plan": "# Plan\n1. Write"})
SESSION = {"destination": "session"}


def mode(name: str) -> dict[str, Any]:
    return {"type": "setMode", "mode": name} | SESSION


def rules(kind: str, behavior: str, *names: str) -> dict[str, Any]:
    return {"type": kind, "behavior": behavior, "rules": [{"toolName": name} for name in names]} | SESSION


def yes(**more: Any) -> Callable[[Frame], Frame]:
    return lambda request: {"behavior": "allow", "updatedInput": request["input"]} | more


@pytest.mark.parametrize(
    ("updates", "after"),
    [
        ([], "default"),
        ([mode("acceptEdits")], "acceptEdits"),
        ([mode("bypassPermissions")], "bypassPermissions"),
        ([mode("acceptEdits"), {"type": "fly"}], "default"),
    ],
    ids=["none", "edits", "all", "rejected"],
)
async def test_a_plan_is_accepted_with_the_mode_that_the_host_sets(tmp_path: Path, updates: Any, after: str) -> None:
    async with serve(PLAN, says("Done.")) as server, hosted(with_claude(tmp_path, server.url), *PLANNING) as host:
        host.answers["can_use_tool"] = yes(updatedPermissions=updates)
        frames = await host.turn("Plan it")
        second = await host.turn("Which mode?")
    [asked] = host.requests("can_use_tool")
    assert asked["requires_user_interaction"] is True
    told = [one["permissionMode"] for one in frames if one.get("subtype") == "status"]
    assert (told[-1], second[0]["permissionMode"]) == (after, after)


async def test_a_plan_that_the_host_changed_is_the_one_that_holds(tmp_path: Path) -> None:
    async with serve(PLAN, says("Done.")) as server:
        async with hosted(with_claude(tmp_path, server.url), *PLANNING) as host:
            host.answers["can_use_tool"] = yes(updatedInput={"plan": "# Shorter"})
            await host.turn("Plan it")
        assert "The user changed it; this is what holds:\\n\\n# Shorter" in json.dumps(bodies(server)[-1]["messages"])


async def test_a_changed_plan_that_is_none_is_sent_back_with_the_reason(tmp_path: Path) -> None:
    async with serve(PLAN, says("Done.")) as server:
        async with hosted(with_claude(tmp_path, server.url), *PLANNING) as host:
            host.answers["can_use_tool"] = yes(updatedInput={"plan": " "})
            await host.turn("Plan it")
            second = await host.turn("Which mode?")
        assert "The plan is empty" in json.dumps(bodies(server)[1]["messages"])
    assert second[0]["permissionMode"] == "plan"


async def test_rules_of_an_answer_replace_those_of_earlier_ones_and_not_those_of_flags(tmp_path: Path) -> None:
    commands = {0: "true", 2: "true", 4: "ls"}
    steps = [
        calls("bash", {"command": commands[place]}, f"t{place}")
        if place in commands
        else calls("write_file", {"path": "a.txt", "content": str(place)}, f"t{place}")
        for place in range(5)
    ]
    given = iter([[rules("addRules", "allow", "Bash")], [rules("replaceRules", "allow", "Write")], []])
    flags = (*STDIO, "--allowedTools", "Bash(ls)")
    async with serve(*steps, says("Done.")) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        host.answers["can_use_tool"] = lambda request: yes(updatedPermissions=next(given))(request)
        await host.turn("Go")
    assert [one["tool_name"] for one in host.requests("can_use_tool")] == ["Bash", "Write", "Bash"]


async def test_removing_a_rule_that_allows_keeps_the_one_that_denies(tmp_path: Path) -> None:
    updates = [rules("addRules", "deny", "Write"), rules("removeRules", "allow", "Write")]
    writes = calls("write_file", {"path": "a.txt", "content": "one"}, "t2")
    async with serve(calls("bash", {"command": "true"}), writes, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *STDIO, can_use_tool=yes(updatedPermissions=updates)) as host:
            await host.turn("Go")
    assert [one["tool_name"] for one in host.requests("can_use_tool")] == ["Bash"]
    assert not (phoenix.cwd / "a.txt").exists()
