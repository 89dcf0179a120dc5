"""Agents in `.claude/agents`, in runs of the real program: named to the model, spawned by their names, narrowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.extended_folder import write
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says

REVIEWER = """---
name: reviewer
description: Finds mistakes
tools: Read, Grep
model: haiku
permissionMode: bypassPermissions
---
Review like an owl.
"""
SPAWNS = calls("Task", {"description": "Look", "prompt": "Look at it.", "subagent_type": "reviewer"})


def told(body: Any) -> str:
    """Kinds of agents that a request names."""
    return json.dumps([tool for tool in body["tools"] if tool["name"] == "spawn_agents"])


async def test_an_agent_of_a_trusted_project_works_under_its_name(tmp_path: Path) -> None:
    async with serve(SPAWNS, says("Found."), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.cwd / ".claude/agents/deep/a.md", REVIEWER)
        write(phoenix.home / ".claude/agents/mine.md", "---\ndescription: The user's own\n---\nWork.\n")
        ran = await phoenix.run("-p", "Go", "--trust", "--allowed-tools", "spawn_agents", "--output-format", "json")
        first, child, *_, last = bodies(server)
    assert (ran.code, ran.json["result"]) == (0, "Done.")
    assert "Also:\\nreviewer: Finds mistakes\\nmine: The user's own" in told(first)
    assert "Review like an owl." in json.dumps(child["system"])
    assert child["model"] == "claude-haiku-5-5"
    assert {"read_file", "search"} <= {one["name"] for one in child["tools"]}
    assert "bash" not in {one["name"] for one in child["tools"]}
    assert told(last) == told(first), "the cached beginning of the request stays"


async def test_an_agent_of_a_project_without_trust_is_neither_named_nor_found(tmp_path: Path) -> None:
    async with serve(SPAWNS, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
        ran = await phoenix.run("-p", "Go", "--allowed-tools", "spawn_agents")
        first, second = bodies(server)
    assert "reviewer" not in json.dumps(first)
    assert "There is no profile 'reviewer'" in json.dumps(second["messages"][-1])
    assert "1 agent" in ran.err


@pytest.mark.parametrize(
    ("sources", "names"), [("user,project", {"reviewer", "mine"}), ("project", {"reviewer"}), ("user", {"mine"})]
)
async def test_a_host_says_whose_agents_count(tmp_path: Path, sources: str, names: set[str]) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
        write(phoenix.home / ".claude/agents/mine.md", "Work.\n")
        async with hosted(phoenix, f"--setting-sources={sources}") as host:
            agents = {"mine": {"description": "The host's", "prompt": "x"}} if "user" in sources else {}
            answer = (await host.ask("initialize", agents=agents))["response"]
            init = (await host.turn("Go"))[0]
        [body] = bodies(server)
    known = {one["name"]: one["description"] for one in answer["agents"]}
    assert names == {"reviewer", "mine"} & known.keys() == {"reviewer", "mine"} & set(init["agents"])
    assert names == {name for name in ("reviewer", "mine") if name in told(body)}
    assert known.get("mine", "The host's") == "The host's", "a name of the host's wins"
    assert init["agents"].count("mine") == len(names & {"mine"})


async def test_a_file_that_changes_during_the_run_is_used_no_more(tmp_path: Path) -> None:
    async with serve(says("Hi."), SPAWNS, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        path = write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
        async with hosted(phoenix, "--setting-sources=project", "--allowedTools", "Agent") as host:
            await host.turn("Hi")
            path.write_text(REVIEWER.replace("owl", "wolf"))
            await host.turn("Go")
        first, second, third = bodies(server)
    assert ("reviewer" in told(first), "reviewer" in told(second)) == (True, False)
    assert "There is no profile 'reviewer'" in json.dumps(third["messages"][-1])


async def test_a_run_takes_an_agent_as_its_profile_by_flag_and_by_setting(tmp_path: Path) -> None:
    async with serve(says("Hi."), says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
        write(phoenix.home / ".claude/agents/mine.md", "---\nmaxTurns: 3\n---\nWork like a bee.\n")
        write(phoenix.home / "config.toml", 'profile = "mine"\n')
        waiting = await phoenix.run("-p", "Go", "--profile", "reviewer")
        flag = await phoenix.run("-p", "Go", "--profile", "reviewer", "--trust", "--permission-mode", "ask")
        setting = await phoenix.run("-p", "Go")
        shown = await phoenix.run("-p", "Go", "--profile", "nope")
        first, second = bodies(server)
    assert (flag.code, setting.code) == (0, 0), flag.err + setting.err
    assert (waiting.code, shown.code) == (2, 2)
    assert waiting.err.startswith("phoenix: There is no profile 'reviewer' for ")
    assert shown.err.strip().endswith("Known are general, explore, code, review, research, reviewer, mine.")
    assert ("Review like an owl." in json.dumps(first["system"]), first["model"]) == (True, "claude-haiku-5-5")
    assert "bash" not in {one["name"] for one in first["tools"]}
    assert "Work like a bee." in json.dumps(second["system"])


async def test_the_skills_of_an_agent_are_in_its_prompt_but_for_those_it_may_not_load(tmp_path: Path) -> None:
    async with serve(SPAWNS, says("Found."), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        skills = "skills:\n  - owls\n  - gone\n  - by-hand\n  - shell\n---"
        write(phoenix.cwd / ".claude/agents/a.md", REVIEWER.replace("---\nReview", f"{skills}\nReview"))
        write(phoenix.cwd / ".claude/skills/owls/SKILL.md", "---\ndescription: Owls\n---\nOwls see $0 at night.")
        write(phoenix.cwd / ".claude/skills/by-hand/SKILL.md", "---\ndisable-model-invocation: true\n---\nBy hand.")
        write(phoenix.cwd / ".claude/skills/shell/SKILL.md", "Run !`echo ran`.")
        await phoenix.run("-p", "Go", "--trust", "--allowed-tools", "spawn_agents")
        first, child, *_ = bodies(server)
    system = json.dumps(child["system"])
    assert "# Skills of this agent" in system
    assert "Owls see $0 at night." in system
    assert str(phoenix.cwd / ".claude/skills/owls") in system
    assert [text for text in ("By hand.", "echo ran", "# Skills\\n") if text in system] == []
    assert "Owls see" not in json.dumps(first["system"])
