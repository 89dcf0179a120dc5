"""Requests about the window, files and sub-agents, agents of the host, and settings that it gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.options import add_settings, read_flags
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.claude_settings import whole_rule
from tests.phoenix_tui.cli.test_control_servers import CONFIG, adds, server_with
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS, hosted
from tests.support.git_repositories import empty_repository
from tests.support.loopback import serve
from tests.support.loopback_agents import by_last_message, calls, never_ends, says, submits

EDITS = ("--permission-mode", "acceptEdits")


async def test_the_window_is_reported_in_shares(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        await host.turn("Hi")
        usage = (await host.ask("get_context_usage"))["response"]
    assert sum(one["tokens"] for one in usage["categories"]) == pytest.approx(usage["totalTokens"], rel=0.05)
    assert (usage["model"], usage["maxTokens"] > 100_000) == ("claude-sonnet-5-5", True)
    assert 0 < usage["autoCompactThreshold"] < usage["maxTokens"]


async def test_the_window_names_instruction_files_tools_of_servers_and_agents(tmp_path: Path) -> None:
    agents = {"reviewer": {"description": "Reviews changes", "prompt": "You review."}}
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "CLAUDE.md").write_text("Be brief.")
        empty_repository(tmp_path)
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / "CLAUDE.md").write_text("Be exact. @more.md")
        (tmp_path / "more.md").write_text("Be kind.")
        flags = ("--setting-sources", "project", *CONFIG)
        async with hosted(phoenix, *flags, mcp_message=server_with(adds)) as host:
            await host.ask("initialize", agents=agents)
            await host.turn("Hi")
            usage = (await host.ask("get_context_usage"))["response"]
    paths = (tmp_path / "CLAUDE.md", tmp_path / "more.md", phoenix.cwd / "CLAUDE.md")
    assert [(one["path"], one["type"]) for one in usage["memoryFiles"]] == [(str(one), "Project") for one in paths]
    assert [(one["name"], one["serverName"], one["tokens"] > 0) for one in usage["mcpTools"]] == [
        ("mcp__calc__add", "calc", True)
    ]
    assert [(one["agentType"], one["tokens"] > 0) for one in usage["agents"]] == [("reviewer", True)]


async def test_files_go_back_to_before_a_message_and_the_conversation_stays(tmp_path: Path) -> None:
    writes = calls("write_file", {"path": "a.txt", "content": "two\n"})
    reads = calls("read_file", {"path": "a.txt"}, "toolu_0")
    async with serve(reads, writes, says("Done."), says("Still here.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "a.txt").write_text("one\n")
        async with hosted(phoenix, *EDITS) as host:
            frames = await host.turn("Write it", uuid="u-1")
            written = (phoenix.cwd / "a.txt").read_text()
            answer = await host.ask("rewind_files", user_message_id="u-1")
            unknown = await host.ask("rewind_files", user_message_id="u-2")
            more = await host.turn("And now?")
    assert (written, (phoenix.cwd / "a.txt").read_text()) == ("two\n", "one\n")
    assert answer["response"] == {"canRewind": True}
    assert "No file checkpoint found" in unknown["error"]
    assert more[0]["session_id"] == frames[0]["session_id"]


async def test_an_agent_of_the_host_works_under_the_call_that_began_it(tmp_path: Path) -> None:
    task = {"tasks": [{"task": "Look at it", "profile": "reviewer"}]}
    spawns = calls("spawn_agents", task, "toolu_spawn")
    answers = by_last_message({"Fine.": says("It is fine."), "Look at it": submits("Fine."), "Review this": spawns})
    agents = {"reviewer": {"description": "Reviews", "prompt": "You review.", "tools": ["Read"], "model": "haiku"}}
    flags = ("--permission-mode", "bypassPermissions")
    async with serve(answers) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        begun = await host.ask("initialize", hooks=None, agents=agents)
        frames = await host.turn("Review this")
    bodies = [json.loads(one.body) for one in server.requests if one.method == "POST"]
    listed = {one["name"]: one["description"] for one in begun["response"]["agents"]}
    assert listed["reviewer"]
    assert all(listed.values())
    assert "reviewer" in frames[0]["agents"]
    told = [one for one in frames if str(one.get("subtype")).startswith("task_")]
    assert [one["subtype"] for one in (told[0], *told[-2:])] == ["task_started", "task_updated", "task_notification"]
    assert {one["subtype"] for one in told[1:-2]} == {"task_progress"}
    assert {one["tool_use_id"] for one in told} == {"toolu_spawn"}
    assert (told[-2]["patch"]["status"], told[-1]["status"]) == ("completed", "completed")
    assert told[-1]["usage"]["total_tokens"] == told[1]["usage"]["total_tokens"] > 0
    [own] = [one for one in bodies if "You review." in json.dumps(one["system"])]
    assert own["model"] == "claude-haiku-5-5"
    assert {one["name"] for one in own["tools"]} >= {"read_file", "submit_result"}
    assert "bash" not in {one["name"] for one in own["tools"]}
    assert frames[-1]["result"] == "It is fine."


async def test_skills_and_command_files_are_named_and_called(tmp_path: Path) -> None:
    async with serve(says("Checked.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        commands = phoenix.home / "commands"
        commands.mkdir()
        (commands / "check.md").write_text("---\ndescription: Check it\n---\nLook twice at $ARGUMENTS.\n")
        async with hosted(phoenix) as host:
            begun = await host.ask("initialize", hooks=None)
            frames = await host.turn("/check the door")
    [asked] = [one.body.decode() for one in server.requests if one.method == "POST"]
    assert [(one["name"], one["description"]) for one in begun["response"]["commands"]] == [("check", "Check it")]
    assert frames[0]["slash_commands"] == ["check"]
    assert "Look twice at the door." in asked


@pytest.mark.parametrize("agents", [[], {"": {}}, {"a": 7}, {"x" * 101: {}}])
async def test_agents_that_are_none_refuse_the_handshake(tmp_path: Path, agents: Any) -> None:
    async with serve() as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = await host.ask("initialize", hooks=None, agents=agents)
    assert answer["subtype"] == "error"


async def test_a_background_agent_keeps_the_session_running_and_can_be_stopped(tmp_path: Path) -> None:
    begins = calls("spawn_task", {"task_description": "Watch", "initial_prompt": "WATCH IT"}, "toolu_b")
    answers = by_last_message({"toolu_b": says("It watches."), "WATCH IT": never_ends, "Start": begins})
    flags = ("--permission-mode", "bypassPermissions")
    async with serve(answers) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        frames = await host.turn("Start")
        started = await host.wait(lambda one: one.get("subtype") == "task_started")
        states = [one["state"] for one in host.frames if "state" in one]
        unknown = await host.ask("stop_task", task_id="none")
        stopped = await host.ask("stop_task", task_id=started["task_id"])
        ended = await host.wait(lambda one: one.get("subtype") == "task_notification")
        await host.wait(lambda one: one.get("state") == "idle")
        [patched] = [one["patch"] for one in host.frames if one.get("subtype") == "task_updated"]
    assert (patched["status"], patched["end_time"] > 0) == ("killed", True)
    assert frames[-1]["result"] == "It watches."
    assert states == ["running"]
    assert (unknown["error"], stopped["response"]) == ("There is no task none.", {})
    assert (ended["task_id"], ended["status"]) == (started["task_id"], "stopped")


def test_settings_of_the_host_add_rules_a_mode_and_a_model() -> None:
    given = {"permissions": {"allow": ["Read", 7], "deny": ["Bash(rm:*)"], "defaultMode": "plan"}, "model": "opus"}
    flags = add_settings(
        read_flags([*FLAGS, "--settings", json.dumps(given | {"outputStyle": "x", "sandbox": {"enabled": True}})])
    )
    assert (flags.allowed, flags.disallowed) == (("Read",), ("Bash(rm:*)",))
    assert (flags.run.permission_mode, flags.run.model, flags.run.sandbox) == ("plan", "opus", "workspace")
    assert flags.notices == (
        "--settings: permissions.allow has an entry that is no rule.",
        "--settings: without effect here: outputStyle (/profile has such texts).",
    )
    chosen = add_settings(read_flags([*FLAGS, "--model", "haiku", "--settings", json.dumps(given)]))
    assert chosen.run.model == "haiku"
    for wrong in ("{", "/nowhere", '["a"]'):
        with pytest.raises(CommandError, match="--settings needs"):
            add_settings(read_flags([*FLAGS, "--settings", wrong]))


def test_flags_of_hosts_are_taken_and_unknown_ones_named() -> None:
    flags = read_flags([
        *FLAGS,
        "--resume=abc",
        "--effort",
        "xhigh",
        "--some-future",
        "value",
        "--permission-mode",
        "auto",
        "--betas",
        "x",
    ])
    assert (flags.run.resume, flags.run.effort, flags.run.permission_mode) == ("abc", "max", "ask")
    assert flags.run.system_prompt is None
    assert [one.partition(" ")[0] for one in flags.notices] == ["--betas", "--some-future", "--permission-mode"]
    assert read_flags([*FLAGS, "--thinking", "disabled"]).run.effort == "off"
    for wrong in (("--permission-mode", "free"), ("--effort", "huge"), ("--max-turns", "x")):
        with pytest.raises(CommandError):
            read_flags([*FLAGS, *wrong])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Read", "Read(*)"),
        ("mcp__calc", "mcp__calc__*(*)"),
        ("mcp__calc__add", "mcp__calc__add(*)"),
        ("Bash()", "Bash(*)"),
        ("Bash(ls:*)", "Bash(ls:*)"),
    ],
)
def test_a_name_alone_is_a_rule_for_all_its_calls(text: str, rule: str) -> None:
    assert whole_rule(text) == rule


async def test_a_text_that_the_host_composed_calls_nothing(tmp_path: Path) -> None:
    async with serve(says("Read.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.home / "commands").mkdir()
        (phoenix.home / "commands" / "check.md").write_text("Look twice.\n")
        async with hosted(phoenix) as host:
            await host.turn("/check the door", client_composed=True)
    [asked] = [one.body.decode() for one in server.requests if one.method == "POST"]
    assert "/check the door" in asked
    assert "Look twice" not in asked
