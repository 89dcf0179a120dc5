"""Callbacks of a host as hooks: before and after calls, before a prompt, and at the end of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.loopback import Loopback, serve
from tests.support.loopback_agents import calls, says

RUNS = calls("bash", {"command": "echo one > b.txt; echo done"})
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
