"""Requests about the window, files and sub-agents, and runs that a host resumes at a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.options import add_settings, read_flags
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.claude_settings import whole_rule
from tests.phoenix_tui.cli.test_control_servers import CONFIG, adds, bodies, server_with
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import FLAGS, Frame, hosted
from tests.support.git_repositories import empty_repository
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_agents import by_last_message, never_ends, submits
from tests.support.loopback_anthropic import refuses

EDITS = ("--permission-mode", "acceptEdits")


async def test_the_window_is_reported_in_shares(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        await host.turn("Hi")
        usage = (await host.ask("get_context_usage"))["response"]
    assert sum(one["tokens"] for one in usage["categories"]) == pytest.approx(usage["totalTokens"], rel=0.05)
    assert (usage["model"], usage["maxTokens"] > 100_000) == ("claude-sonnet-5-5", True)
    assert 0 < usage["autoCompactThreshold"] < usage["maxTokens"]


async def test_the_window_names_instruction_files_tools_of_servers_and_agents(claude: Claude, tmp_path: Path) -> None:
    agents = {"reviewer": {"description": "Reviews changes", "prompt": "You review."}}
    phoenix, _ = await claude(says("Hello."))
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


async def test_files_go_back_to_before_a_message_and_the_conversation_stays(claude: Claude) -> None:
    writes = calls("write_file", path="a.txt", content="two\n")
    reads = calls("read_file", "toolu_0", path="a.txt")
    phoenix, _ = await claude(reads, writes, says("Done."), says("Still here."))
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
    spawns = calls("spawn_agents", "toolu_spawn", **task)
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


async def test_skills_and_command_files_are_named_and_called(claude: Claude) -> None:
    phoenix, server = await claude(says("Checked."))
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
    begins = calls("spawn_task", "toolu_b", task_description="Watch", initial_prompt="WATCH IT")
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


async def test_a_text_that_the_host_composed_calls_nothing(claude: Claude) -> None:
    phoenix, server = await claude(says("Read."))
    (phoenix.home / "commands").mkdir()
    (phoenix.home / "commands" / "check.md").write_text("Look twice.\n")
    async with hosted(phoenix) as host:
        await host.turn("/check the door", client_composed=True)
    [asked] = [one.body.decode() for one in server.requests if one.method == "POST"]
    assert "/check the door" in asked
    assert "Look twice" not in asked


RUNS = calls("bash", command="echo hello")
ALLOWED = ("--allowedTools", "Bash")


async def spoken(phoenix: Phoenix) -> list[Frame]:
    """Three turns; the frames of the replies."""
    async with hosted(phoenix, *ALLOWED) as host:
        for text in ("first", "second", "third"):
            await host.turn(text)
    return [one for one in host.messages() if one["type"] == "assistant"]


def words(server: Loopback) -> str:
    return json.dumps(bodies(server)[-1]["messages"])


async def test_a_resumed_conversation_goes_on_behind_a_message(claude: Claude) -> None:
    phoenix, server = await claude(says("One."), says("Two."), says("Three."), says("Other."))
    replies = await spoken(phoenix)
    session, second = replies[0]["session_id"], replies[1]["uuid"]
    async with hosted(phoenix, f"--resume={session}", f"--resume-session-at={second}") as host:
        result = (await host.turn("instead"))[-1]
    sent = words(server)
    async with hosted(phoenix, f"--resume={session}") as host:
        await host.turn("as before")
    whole = words(server)
    assert [word in sent for word in ("Two.", "third", "Three.", "instead")] == [True, False, False, True]
    assert result["session_id"] != session
    assert [word in whole for word in ("Two.", "third", "Three.", "instead")] == [True, True, True, False]


async def test_the_results_of_a_replys_calls_are_kept_with_it(claude: Claude) -> None:
    phoenix, server = await claude(RUNS, says("Ran."), says("Two."), says("Three."), says("Other."))
    replies = await spoken(phoenix)
    call = replies[0]
    async with hosted(phoenix, "--resume", call["session_id"], "--resume-session-at", call["uuid"]) as host:
        await host.turn("instead")
    sent = words(server)
    assert [word in sent for word in ("tool_result", "hello", "Ran.", "instead")] == [True, True, False, True]


async def test_only_one_turn_is_dropped_where_the_host_says_so(claude: Claude) -> None:
    phoenix, _ = await claude(says("One."), says("Two."), says("Three."), says("Other."))
    first, second, _ = await spoken(phoenix)
    flags = ("--resume", first["session_id"], "--resume-drops-turn", "a1")
    refused = await phoenix.run(*FLAGS, *flags, "--resume-session-at", first["uuid"], stdin=b"")
    async with hosted(phoenix, *flags, "--resume-session-at", second["uuid"]) as host:
        result = (await host.turn("instead"))[-1]
    assert (refused.code, "More than the turn" in refused.err) == (2, True)
    assert result["result"] == "Other."


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--resume-session-at", "x"), "--resume-session-at needs --resume with the conversation."),
        (("--resume-drops-turn", "x"), "--resume-drops-turn needs --resume-session-at."),
    ],
)
async def test_places_need_a_conversation(tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    ran = await with_claude(tmp_path, "http://127.0.0.1:9").run(*FLAGS, *flags, stdin=b"")
    assert (ran.code, sentence in ran.err) == (2, True)


async def test_an_unknown_message_is_refused_in_clean_words(claude: Claude) -> None:
    phoenix, _ = await claude(says("One."))
    async with hosted(phoenix) as host:
        session = (await host.turn("first"))[-1]["session_id"]
    ran = await phoenix.run(*FLAGS, "--resume", session, "--resume-session-at", "not\x1b[31m there", stdin=b"")
    assert ran.code == 2
    assert "There is no message not" in ran.err
    assert "\x1b" not in ran.err


def overloaded_unless(model: str, answer: Answer) -> Answer:
    """Error 529 for all models but one."""

    async def reply(talk: Talk) -> None:
        is_right = json.loads(talk.seen.body)["model"] == model
        await (answer if is_right else refuses(529, "overloaded_error", "Overloaded"))(talk)

    return reply


@pytest.mark.slow
async def test_another_model_answers_a_turn_whose_own_is_overloaded(claude: Claude) -> None:
    phoenix, server = await claude(overloaded_unless("claude-haiku-5-5", says("From haiku.")))
    async with hosted(phoenix, "--fallback-model", "haiku") as host:
        frames = await host.turn("Hi")
        await host.wait(lambda one: one.get("state") == "idle")  # its own model is back then
        usage = await host.ask("get_context_usage")
    asked = [body["model"] for body in bodies(server)]
    assert (asked, frames[-1]["result"]) == (
        [*["claude-sonnet-5-5"] * 4, "claude-haiku-5-5"],
        "From haiku.",
    )
    assert (frames[-1]["subtype"], frames[-1]["is_error"]) == ("success", False)
    assert usage["response"]["model"] == "claude-sonnet-5-5"
    assert b"answers this turn" in bytes(host.err)


@pytest.mark.slow
async def test_both_models_may_fail(claude: Claude) -> None:
    phoenix, server = await claude(refuses(529, "overloaded_error", "Overloaded"))
    async with hosted(phoenix, "--fallback-model", "haiku") as host:
        result = (await host.turn("Hi"))[-1]
    assert (result["is_error"], result["terminal_reason"]) == (True, "api_error")
    assert len(bodies(server)) == 8
