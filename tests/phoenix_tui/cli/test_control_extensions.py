"""Callbacks of a host as hooks, and the folders of `--plugin-dir`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.records import PermissionMode
from phoenix_tui.cli.control.extensions import MOST_IN_PLUGIN, read_agents
from phoenix_tui.config.sources.extension_files import Plugin, find_plugin
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.extended_folder import write
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Loopback, serve
from tests.support.mcp_phoenix import SERVER, servers_json

RUNS = calls("bash", command="echo one > b.txt; echo done")
BYPASS = ("--permission-mode", "bypassPermissions")


def hooks_for(event: str, matcher: str | None = None, **more: Any) -> Frame:
    return {event: [{"matcher": matcher, "hookCallbackIds": ["hook_0"]} | more]}


def verdict(decision: str, reason: str = "", **more: Any) -> Frame:
    own = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": own | more}


def sent(server: Loopback) -> str:
    """The newest message that the model read."""
    bodies = [json.loads(one.body) for one in server.requests if one.method == "POST"]
    return json.dumps(bodies[-1]["messages"][-1]["content"])


async def run(
    folder: Path, hooks: Frame, answer: Callable[[Frame], Frame | None], *flags: str, ends: str = "Done."
) -> tuple[ControlHost, Frame, str, bool]:
    """One turn with hooks: the host, the result, what the model read last, and True if the command ran."""
    async with serve(RUNS, says(ends)) as server:
        phoenix = with_claude(folder, server.url)
        async with hosted(phoenix, *flags, hook_callback=answer) as host:
            begun = await host.ask("initialize", hooks=hooks)
            assert begun["subtype"] == "success", begun
            frames = await host.turn("Go")
        return host, frames[-1], sent(server), (phoenix.cwd / "b.txt").exists()


async def test_a_hook_sees_a_call_in_its_own_names_and_its_no_is_the_result(tmp_path: Path) -> None:
    host, _, read, ran = await run(
        tmp_path, hooks_for("PreToolUse", "Bash"), lambda _: verdict("deny", "not today"), *BYPASS
    )
    [asked] = host.requests("hook_callback")
    given = asked["input"]
    assert (asked["callback_id"], asked["tool_use_id"]) == ("hook_0", "toolu_1")
    assert (given["hook_event_name"], given["tool_name"], given["permission_mode"]) == (
        "PreToolUse",
        "Bash",
        "bypassPermissions",
    )
    assert given["tool_input"]["command"] == "echo one > b.txt; echo done"
    assert "not today" in read
    assert not ran


async def test_a_yes_of_a_hook_takes_the_place_of_the_question(tmp_path: Path) -> None:
    host, _, _, ran = await run(tmp_path, hooks_for("PreToolUse"), lambda _: verdict("allow"))
    assert (ran, host.requests("can_use_tool")) == (True, [])


@pytest.mark.parametrize("flags", [("--disallowedTools", "Bash(echo:*)"), ("--permission-mode", "plan")])
async def test_a_yes_of_a_hook_opens_neither_a_rule_that_denies_nor_a_mode(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    _, _, _, ran = await run(tmp_path, hooks_for("PreToolUse"), lambda _: verdict("allow"), *flags)
    assert not ran


async def test_a_hook_that_asks_makes_a_question_where_none_would_be(tmp_path: Path) -> None:
    _, _, read, ran = await run(tmp_path, hooks_for("PreToolUse"), lambda _: verdict("ask", "sure?"), *BYPASS)
    assert not ran
    assert "cannot ask" in read


async def test_an_input_of_a_hook_is_the_one_that_runs(tmp_path: Path) -> None:
    def other(request: Frame) -> Frame:
        changed = request["input"]["tool_input"] | {"command": "echo changed"}
        return verdict("allow", updatedInput=changed)

    _, _, read, ran = await run(tmp_path, hooks_for("PreToolUse"), other)
    assert not ran
    assert "changed" in read


async def test_a_matcher_that_means_another_tool_is_not_asked(tmp_path: Path) -> None:
    host, _, _, ran = await run(tmp_path, hooks_for("PreToolUse", "Write|Edit"), lambda _: verdict("deny"), *BYPASS)
    assert (ran, host.requests("hook_callback")) == (True, [])


async def test_context_and_reasons_behind_a_call_are_read_by_the_model(tmp_path: Path) -> None:
    answer = {"decision": "block", "reason": "check it", "hookSpecificOutput": {"additionalContext": "it is Friday"}}
    host, _, read, ran = await run(tmp_path, hooks_for("PostToolUse"), lambda _: answer, *BYPASS)
    [asked] = host.requests("hook_callback")
    assert "done" in asked["input"]["tool_response"]["stdout"]
    assert ran
    assert "check it" in read
    assert "it is Friday" in read


async def test_a_hook_can_put_another_text_in_the_place_of_a_result(tmp_path: Path) -> None:
    answer = {"hookSpecificOutput": {"updatedToolOutput": "nothing to see"}}
    _, _, read, _ = await run(tmp_path, hooks_for("PostToolUse"), lambda _: answer, *BYPASS)
    assert "nothing to see" in read


async def test_a_hook_that_ends_the_run_is_named_in_the_result(tmp_path: Path) -> None:
    answer = {"continue": False, "stopReason": "enough"}
    _, result, _, ran = await run(tmp_path, hooks_for("PreToolUse"), lambda _: answer, *BYPASS)
    assert (result["terminal_reason"], result["is_error"], "enough" in result["result"]) == (
        "hook_stopped",
        False,
        True,
    )
    assert not ran


async def test_a_silent_hook_asks_unless_the_host_says_what_a_failure_means(tmp_path: Path) -> None:
    for failure, expected in ((None, False), ("block", False), ("continue", True)):
        more: Any = {"timeout": 0.2} | ({"onFailure": failure} if failure else {})
        folder = tmp_path / str(failure)
        folder.mkdir()
        _, _, _, ran = await run(folder, hooks_for("PreToolUse", **more), lambda _: None, *BYPASS)
        assert ran is expected, failure


def _given(answer: Frame, request: Frame) -> Frame:
    del request
    return answer


async def test_a_prompt_is_refused_or_given_context(tmp_path: Path) -> None:
    refuses: Frame = {"decision": "block", "reason": "no secrets"}
    adds: Frame = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Friday."}}
    for answer, posts in ((refuses, 0), (adds, 1)):
        folder = tmp_path / str(posts)
        folder.mkdir()
        async with serve(says("Hello.")) as server:
            async with hosted(with_claude(folder, server.url), hook_callback=partial(_given, answer)) as host:
                await host.ask("initialize", hooks=hooks_for("UserPromptSubmit"))
                frames = await host.turn("My key is x")
            assert len([one for one in server.requests if one.method == "POST"]) == posts
            if posts:
                assert "It is Friday." in sent(server)
            else:
                assert "no secrets" in frames[-1]["errors"][0]
        assert host.requests("hook_callback")[0]["input"]["prompt"] == "My key is x"


async def test_a_hook_at_the_end_sends_the_model_on_in_the_same_turn(tmp_path: Path) -> None:
    answers = iter([{"decision": "block", "reason": "Say more."}, {}])
    async with serve(says("One."), says("Two.")) as server:
        async with hosted(with_claude(tmp_path, server.url), hook_callback=lambda _: next(answers)) as host:
            await host.ask("initialize", hooks=hooks_for("Stop"))
            frames = await host.turn("Go")
        assert "Say more." in sent(server)
    asked = [one["input"] for one in host.requests("hook_callback")]
    assert [(one["stop_hook_active"], one["last_assistant_message"]) for one in asked] == [
        (False, "One."),
        (True, "Two."),
    ]
    assert (frames[-1]["result"], frames[-1]["num_turns"]) == ("Two.", 2)
    assert [one["type"] for one in frames].count("result") == 1


async def test_hooks_that_always_refuse_the_end_are_not_asked_for_ever(tmp_path: Path) -> None:
    async with serve(says("On.")) as server:
        answer = {"decision": "block", "reason": "more"}
        async with hosted(with_claude(tmp_path, server.url), hook_callback=lambda _: answer) as host:
            await host.ask("initialize", hooks=hooks_for("Stop"))
            frames = await host.turn("Go")
    assert (frames[-1]["subtype"], frames[-1]["num_turns"]) == ("success", 9)


async def test_frames_about_hooks_appear_where_the_host_wants_them(tmp_path: Path) -> None:
    flags = (*BYPASS, "--include-hook-events")
    host, _, _, _ = await run(tmp_path, hooks_for("PreToolUse"), lambda _: {}, *flags)
    told = [one for one in host.messages() if str(one.get("subtype")).startswith("hook_")]
    assert [(one["subtype"], one["hook_name"], one["hook_event"]) for one in told] == [
        ("hook_started", "PreToolUse:Bash", "PreToolUse"),
        ("hook_response", "PreToolUse:Bash", "PreToolUse"),
    ]


@pytest.mark.parametrize("hooks", [[], {"PreToolUse": {}}, {"PreToolUse": [7]}, {"PreToolUse": [{"matcher": "x"}]}])
async def test_hooks_that_are_none_refuse_the_handshake(tmp_path: Path, hooks: Any) -> None:
    async with serve() as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = await host.ask("initialize", hooks=hooks)
    assert answer["subtype"] == "error"


async def test_a_defer_ends_the_turn_with_the_call_in_the_hosts_names(tmp_path: Path) -> None:
    host, result, _, ran = await run(tmp_path, hooks_for("PreToolUse"), lambda _: verdict("defer"), *BYPASS)
    assert (ran, host.requests("can_use_tool")) == (False, [])
    assert (result["subtype"], result["is_error"], result["terminal_reason"]) == ("success", False, "tool_deferred")
    call = result["deferred_tool_use"]
    assert (call["name"], call["input"]["command"]) == ("Bash", "echo one > b.txt; echo done")


RUNS_PLUGIN = calls("bash", command="echo one")


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
async def test_files_of_a_plugin_count_under_its_name(claude: Claude, tmp_path: Path, sources: tuple[str, ...]) -> None:
    root = plugin(tmp_path)
    phoenix, server = await claude(RUNS_PLUGIN, says("Done."), says("Checked."))
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


async def test_a_plugin_is_forgotten_with_its_run(claude: Claude, tmp_path: Path) -> None:
    root = plugin(tmp_path)
    phoenix, _ = await claude(says("Hi."))
    async with hosted(phoenix, "--plugin-dir", str(root)) as host:
        await host.turn("Hi")
    async with hosted(phoenix) as host:
        init = (await host.turn("Hi"))[0]
    assert (init["plugins"], init["slash_commands"], init["mcp_servers"]) == ([], [], [])


async def test_folders_that_are_no_plugins_are_named(tmp_path: Path) -> None:
    root = plugin(tmp_path)
    write(tmp_path / "broken/.claude-plugin/plugin.json", "{")
    flags = [f"--plugin-dir={folder}" for folder in (root, root, tmp_path / "gone", tmp_path / "broken")]
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
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


async def test_an_agent_of_a_plugin_works_under_its_name(claude: Claude, tmp_path: Path) -> None:
    write(tmp_path / "tools/agents/first.md", AGENT)
    spawns = calls("spawn_agents", tasks=[{"task": "Look.", "profile": "tools:reviewer"}])
    phoenix, server = await claude(spawns, says("Found."), says("Done."))
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
    [profile] = read_agents(Plugin("tools", tmp_path / "tools")).profiles
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
    found = read_agents(Plugin("tools", tmp_path / "tools"))
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
    for number in range(MOST_IN_PLUGIN + 5):
        write(tmp_path / f"tools/agents/{number:04}.md", "x")
    found = read_agents(Plugin("tools", tmp_path / "tools"))
    assert (len(found.profiles), len(found.errors)) == (MOST_IN_PLUGIN, 1)
