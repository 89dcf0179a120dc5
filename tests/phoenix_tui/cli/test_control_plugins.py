"""`--plugin-dir`: commands, skills, hooks and servers of a folder that the host names, under its name, for one run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.records import PermissionMode
from phoenix_tui.cli.control.plugin_agents import MOST_AGENTS, agents_of
from phoenix_tui.config.sources.kinds import Plugin
from phoenix_tui.config.sources.plugins import find_plugin
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.extended_folder import write
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tests.support.mcp_phoenix import SERVER, servers_json

RUNS = calls("bash", {"command": "echo one"})


def plugin(folder: Path, name: str = "tools") -> Path:
    """A plugin with one of each; its hook leaves a file beside itself."""
    root = folder / "my plugin"
    write(root / ".claude-plugin/plugin.json", json.dumps({"name": name}))
    write(root / "commands/check.md", "Check all of it: $ARGUMENTS\n")
    write(root / "skills/web/SKILL.md", "---\ndescription: Browses.\n---\nBrowse.\n")
    write(root / "run.sh", 'touch "$(dirname "$0")/hook_ran"\n')
    hook = {"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}/run.sh"'}
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}))
    write(root / ".mcp.json", servers_json(kinds=SERVER))
    return root


@pytest.mark.parametrize("sources", [(), ("--setting-sources=",)])
async def test_files_of_a_plugin_count_under_its_name(tmp_path: Path, sources: tuple[str, ...]) -> None:
    root = plugin(tmp_path)
    async with serve(RUNS, says("Done."), says("Checked.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, "--plugin-dir", "../my plugin", "--allowedTools", "Bash", *sources) as host:
            init = (await host.turn("Go"))[0]
            checked = (await host.turn("/tools:check now"))[-1]
        sent = json.dumps(bodies(server)[-1]["messages"][-1])
    assert init["plugins"] == [{"name": "tools", "path": str(root)}]
    assert "plugin_errors" not in init
    assert {"tools:check", "tools:web"} <= set(init["slash_commands"])
    assert init["skills"] == ["tools:web"]
    assert [(one["name"], one["status"]) for one in init["mcp_servers"]] == [("plugin:tools:kinds", "connected")]
    assert "mcp__plugin_tools_kinds__echo" in init["tools"]
    assert (root / "hook_ran").exists()
    assert ("Check all of it: now" in sent, checked["result"]) == (True, "Checked.")


async def test_a_plugin_is_forgotten_with_its_run(tmp_path: Path) -> None:
    root = plugin(tmp_path)
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, "--plugin-dir", str(root)) as host:
            await host.turn("Hi")
        async with hosted(phoenix) as host:
            init = (await host.turn("Hi"))[0]
    assert (init["plugins"], init["slash_commands"], init["mcp_servers"]) == ([], [], [])


async def test_folders_that_are_no_plugins_are_named(tmp_path: Path) -> None:
    root = plugin(tmp_path)
    write(tmp_path / "broken/.claude-plugin/plugin.json", "{")
    flags = [f"--plugin-dir={folder}" for folder in (root, root, tmp_path / "gone", tmp_path / "broken")]
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *flags) as host:
            init = (await host.turn("Hi"))[0]
    messages = [one["message"] for one in init["plugin_errors"]]
    assert messages[:2] == ["there is a plugin tools already", "there is no such folder"]
    assert messages[2].startswith(".claude-plugin/plugin.json is no JSON")
    err = bytes(host.err).decode()
    assert (err.count("is not used:"), "Traceback" in err) == (3, False)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a$(touch x)", "its path has quotes or other signs of a shell"),
        ("a b", "its name may have letters, digits, '-', '_' and '.' only, at most 64"),
    ],
)
def test_names_that_would_mean_something_else_are_refused(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=why.replace(".", "[.]")):
        find_plugin(name, tmp_path)


@pytest.mark.parametrize("manifest", ['{"name": 7}', "[]", '{"name": "../x"}', "[" * 100_000, '{"name": ""}'])
def test_odd_manifests_are_refused(tmp_path: Path, manifest: str) -> None:
    write(tmp_path / "p" / ".claude-plugin/plugin.json", manifest)
    with pytest.raises(ValueError, match=r"plugin\.json|its name"):
        find_plugin("p", tmp_path)


def test_a_manifest_that_is_a_pipe_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "p" / ".claude-plugin").mkdir(parents=True)
    os.mkfifo(tmp_path / "p" / ".claude-plugin/plugin.json")
    assert find_plugin("p", tmp_path).name == "p"


AGENT = """---
name: reviewer
description: Reviews: finds mistakes
tools: Read, Grep
model: haiku
permissionMode: bypassPermissions
maxTurns: 7
---
Review what ${CLAUDE_PLUGIN_ROOT} says.
"""


async def test_an_agent_of_a_plugin_works_under_its_name(tmp_path: Path) -> None:
    write(tmp_path / "tools/agents/first.md", AGENT)
    spawns = calls("spawn_agents", {"tasks": [{"task": "Look.", "profile": "tools:reviewer"}]})
    async with serve(spawns, says("Found."), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, "--plugin-dir", str(tmp_path / "tools"), "--allowedTools", "Agent") as host:
            answer = (await host.ask("initialize"))["response"]
            init = (await host.turn("Go"))[0]
        first, child, *_ = bodies(server)
    [known] = [one for one in answer["agents"] if one["name"] == "tools:reviewer"]
    assert known["description"] == "Reviews: finds mistakes"
    assert "tools:reviewer" in init["agents"]
    assert "tools:reviewer" in json.dumps(first["tools"])
    assert f"Review what {tmp_path / 'tools'} says." in json.dumps(child["system"])
    assert {one["name"] for one in child["tools"]} >= {"read_file", "search"}
    assert "bash" not in {one["name"] for one in child["tools"]}


def test_an_agent_of_a_plugin_narrows_permissions_alone(tmp_path: Path) -> None:
    write(tmp_path / "tools/agents/first.md", AGENT)
    [profile] = agents_of(Plugin("tools", tmp_path / "tools")).profiles
    assert (profile.name, profile.tools, profile.max_turns) == (
        "tools:reviewer",
        ("read_file", "read_image", "search"),
        7,
    )
    assert profile.mode_under(PermissionMode.ASK) is PermissionMode.ASK
    assert profile.limits_under(5, 60.0) == (5, 60.0)


def test_agents_that_cannot_be_used_are_named_and_the_others_stay(tmp_path: Path) -> None:
    agents = tmp_path / "tools/agents"
    for name, text in {
        "a.md": AGENT,
        "b.md": AGENT,
        "c.md": "---\nname: two words\n---\nx",
        "d.md": "---\nname: [\n",
        "e.md": "x" * 300_000,
        "f.md": "no front matter",
        ".hidden.md": "x",
        "g.txt": "x",
    }.items():
        write(agents / name, text)
    (agents / "h.md").write_bytes(b"\xff\xfe")
    os.mkfifo(agents / "i.md")
    (agents / "j.md").mkdir()
    found = agents_of(Plugin("tools", tmp_path / "tools"))
    assert [one.name for one in found.profiles] == ["tools:reviewer", "tools:f"]
    assert [(Path(path).name, why.partition(" ")[0]) for path, why in found.errors] == [
        ("b.md", "there"),
        ("c.md", "line"),
        ("d.md", "line"),
        ("e.md", "it"),
        ("h.md", "it"),
        ("i.md", "it"),
        ("j.md", "it"),
    ]


def test_too_many_agents_of_a_plugin_are_cut_with_one_sentence(tmp_path: Path) -> None:
    for number in range(MOST_AGENTS + 5):
        write(tmp_path / f"tools/agents/{number:04}.md", "x")
    found = agents_of(Plugin("tools", tmp_path / "tools"))
    assert (len(found.profiles), len(found.errors)) == (MOST_AGENTS, 1)
