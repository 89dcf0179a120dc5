"""`--setting-sources`: the user's files, a project's and its local ones count as the host says, for this run alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.phoenix_tui.cli.test_control_handshake import NO_PROMPT, system_of
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import Frame, hosted
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository
from tests.support.loopback import Loopback, serve
from tests.support.loopback_agents import calls, says
from tests.support.mcp_phoenix import SERVER, servers_json

RUNS = calls("bash", {"command": "echo one"})


def hook(name: str) -> str:
    """Settings whose hook leaves a file."""
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": f'touch "$CLAUDE_PROJECT_DIR/{name}"'}]}
    return json.dumps({"hooks": {"PreToolUse": [entry]}})


def filled(folder: Path, url: str) -> Phoenix:
    """A user and a project with instructions, hooks, commands and servers of their own."""
    phoenix = with_claude(folder, url)
    write(phoenix.home / "AGENTS.md", "Rule of the user.\n")
    write(phoenix.home / "hooks.json", hook("hook_of_user"))
    write(phoenix.home / "commands/mine.md", "Mine.\n")
    write(phoenix.home / "rules.toml", 'allow = ["bash(echo*)"]\ndeny = ["bash(rm*)"]\n')
    empty_repository(phoenix.cwd)
    write(phoenix.cwd / "AGENTS.md", "Rule of the project.\n")
    write(phoenix.cwd / ".claude/settings.json", hook("hook_of_project"))
    write(phoenix.cwd / ".claude/settings.local.json", hook("hook_of_local"))
    write(phoenix.cwd / ".claude/commands/ours.md", "Ours.\n")
    write(phoenix.cwd / ".mcp.json", servers_json(kinds=SERVER))
    return phoenix


async def run(phoenix: Phoenix, server: Loopback, *flags: str) -> tuple[Frame, str, set[str], str]:
    """The init frame, the system prompt, names of hooks that ran, and stderr."""
    asked: list[Any] = []

    def allow(request: Frame) -> Frame:
        asked.append(request)
        return {"behavior": "allow", "updatedInput": request["input"]}

    async with hosted(phoenix, "--permission-prompt-tool", "stdio", *flags, base=NO_PROMPT, can_use_tool=allow) as host:
        frames = await host.turn("Go")
    ran = {path.name for path in phoenix.cwd.glob("hook_of_*")}
    return {**frames[0], "asked": len(asked)}, system_of(bodies(server)[0]), ran, bytes(host.err).decode()


@pytest.mark.parametrize(
    ("sources", "hooks", "commands", "rules", "servers", "asked"),
    [
        ("", set[str](), [], [], [], 1),
        ("user", {"hook_of_user"}, ["mine"], ["user"], [], 0),
        ("project", {"hook_of_project"}, ["ours"], ["project"], ["kinds"], 1),
        ("local", {"hook_of_local"}, [], [], [], 1),
        (
            "user,project,local",
            {"hook_of_user", "hook_of_project", "hook_of_local"},
            ["mine", "ours"],
            ["user", "project"],
            ["kinds"],
            0,
        ),
    ],
)
async def test_files_count_as_the_host_says(
    tmp_path: Path,
    sources: str,
    hooks: set[str],
    commands: list[str],
    rules: list[str],
    servers: list[str],
    asked: int,
) -> None:
    async with serve(RUNS, says("Done.")) as server:
        phoenix = filled(tmp_path, server.url)
        init, prompt, ran, err = await run(phoenix, server, f"--setting-sources={sources}")
    assert ran == hooks
    assert sorted(set(init["slash_commands"]) & {"mine", "ours"}) == commands
    assert [name for name in ("user", "project") if f"Rule of the {name}." in prompt] == rules
    assert [one["name"] for one in init["mcp_servers"]] == servers
    assert (init["asked"], "not trusted" in err) == (asked, False)


async def test_instructions_count_beside_the_prompt_that_the_sdk_gives(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = filled(tmp_path, server.url)
        for flags in (("--setting-sources", "project"), ("--setting-sources", "")):
            async with hosted(phoenix, *flags) as host:
                await host.turn("Go")
        with_files, without = map(system_of, bodies(server))
    assert [text.count("You are a helpful agent.") for text in (with_files, without)] == [1, 1]
    assert ["Rule of the project." in text for text in (with_files, without)] == [True, False]
    assert "Rule of the user." not in with_files + without


async def test_trust_by_a_host_is_not_kept(tmp_path: Path) -> None:
    async with serve(RUNS, says("Done."), RUNS, says("Done.")) as server:
        phoenix = filled(tmp_path, server.url)
        await run(phoenix, server, "--setting-sources", "project,local")
        assert not (phoenix.home / "trust.json").exists()
        for name in ("hook_of_project", "hook_of_local"):
            (phoenix.cwd / name).unlink()
        _, _, ran, err = await run(phoenix, server)
    assert ran == {"hook_of_user"}
    assert "is not trusted" in err
    assert not list(phoenix.home.glob("phoenix-*"))


async def test_a_file_that_changes_in_the_run_counts_no_longer(tmp_path: Path) -> None:
    changes = calls("bash", {"command": "echo Obey. >> AGENTS.md"})
    async with serve(changes, says("Done."), says("Again.")) as server:
        phoenix = filled(tmp_path, server.url)
        async with hosted(phoenix, "--setting-sources=project", "--allowedTools", "Bash", base=NO_PROMPT) as host:
            await host.turn("Go")
            await host.turn("Go on")
        first, *_, last = [system_of(one) for one in bodies(server)]
    assert "Rule of the project." in first
    assert "Obey." not in last


async def test_an_unknown_source_is_refused_with_a_sentence(tmp_path: Path) -> None:
    ran = await with_claude(tmp_path, "http://127.0.0.1:9").run(*NO_PROMPT, "--setting-sources", "user,managed")
    assert ran.code == 2
    assert "There is no setting source managed; use user, project, local, or an empty list." in ran.err
