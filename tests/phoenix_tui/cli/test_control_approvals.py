"""Questions about calls and plans, answered by a host or by `--permission-prompt-tool`, and rules for later."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.options import read_flags
from phoenix_tui.cli.exits import CommandError
from tests.phoenix_tui.cli.test_control_servers import CONFIG, TOOL, bodies, server_with
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import FLAGS, ControlHost, Frame, hosted
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Loopback, serve
from tests.support.loopback_agents import by_last_message, spawns
from tests.support.sandboxes import needs_full_enforcement

STDIO = ("--permission-prompt-tool", "stdio")
WRITES = calls("write_file", path="a.txt", content="one\n")
RUNS = calls("bash", command="echo one > b.txt")


def allows(**more: Any) -> Callable[[Frame], Frame]:
    def answer(request: Frame) -> Frame:
        return {"behavior": "allow", "updatedInput": request["input"]} | more

    return answer


def denies(message: str, **more: Any) -> Callable[[Frame], Frame]:
    return lambda _: {"behavior": "deny", "message": message} | more


def last_result(server: Loopback) -> str:
    """The tool result that the model read last."""
    asked = json.loads([one.body for one in server.requests if one.method == "POST"][-1])
    return json.dumps(asked["messages"][-1]["content"])


async def test_a_host_allows_a_call_that_it_sees_under_its_own_name(claude: Claude) -> None:
    phoenix, _ = await claude(WRITES, says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=allows()) as host:
        frames = await host.turn("Write it")
    [asked] = host.requests("can_use_tool")
    assert (asked["tool_name"], asked["tool_use_id"], asked["display_name"]) == ("Write", "toolu_1", "Write")
    assert asked["input"]["content"] == "one\n"
    assert [one["type"] for one in asked["permission_suggestions"]] == ["addRules", "setMode"]
    assert (phoenix.cwd / "a.txt").read_text() == "one\n"
    assert frames[-1]["result"] == "Done."
    states = [one["state"] for one in host.frames if "state" in one]
    assert states == ["running", "requires_action", "running", "idle"]


async def test_an_input_that_the_host_changes_is_the_one_that_runs(claude: Claude) -> None:
    def other(request: Frame) -> Frame:
        return {"behavior": "allow", "updatedInput": request["input"] | {"command": "echo two > b.txt"}}

    phoenix, _ = await claude(RUNS, says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=other) as host:
        await host.turn("Run it")
    assert (phoenix.cwd / "b.txt").read_text() == "two\n"
    assert len(host.requests("can_use_tool")) == 1


async def test_a_changed_input_that_cannot_run_is_a_refusal_with_the_reason(claude: Claude) -> None:
    phoenix, server = await claude(RUNS, says("Done."))
    changed = {"behavior": "allow", "updatedInput": {"command": 7}}
    async with hosted(phoenix, *STDIO, can_use_tool=lambda _: changed) as host:
        frames = await host.turn("Run it")
    assert "cannot be used" in last_result(server)
    assert not (phoenix.cwd / "b.txt").exists()
    assert frames[-1]["result"] == "Done."


async def test_a_changed_input_is_decided_about_like_any_other(claude: Claude) -> None:
    def own(request: Frame) -> Frame:
        field = "file_path" if "file_path" in request["input"] else "path"
        return {"behavior": "allow", "updatedInput": request["input"] | {field: str(secret)}}

    phoenix, server = await claude(WRITES, says("Done."))
    secret = phoenix.home / "config.toml"
    async with hosted(phoenix, *STDIO, can_use_tool=own) as host:
        await host.turn("Write it")
    assert "belongs to Phoenix itself" in last_result(server)
    assert not secret.exists()


async def test_the_reason_of_a_no_is_what_the_model_reads(claude: Claude) -> None:
    phoenix, server = await claude(RUNS, says("I see."))
    async with hosted(phoenix, *STDIO, can_use_tool=denies("not on a Friday")) as host:
        frames = await host.turn("Run it")
    assert "not on a Friday" in last_result(server)
    assert not (phoenix.cwd / "b.txt").exists()
    assert [one["tool_name"] for one in frames[-1]["permission_denials"]] == ["Bash"]
    assert (frames[-1]["subtype"], frames[-1]["result"]) == ("success", "I see.")


async def test_a_no_that_interrupts_ends_the_run(claude: Claude) -> None:
    phoenix, server = await claude(RUNS, says("never"))
    async with hosted(phoenix, *STDIO, can_use_tool=denies("stop", interrupt=True)) as host:
        frames = await host.turn("Run it")
    assert (frames[-1]["subtype"], frames[-1]["terminal_reason"]) == ("error_during_execution", "aborted_tools")
    assert len([one for one in server.requests if one.method == "POST"]) == 1


async def test_a_no_to_a_sub_agent_that_interrupts_ends_the_run_that_waits_for_it(tmp_path: Path) -> None:
    answers = by_last_message({"Touch it": RUNS, "Begin": spawns("Touch it")})
    flags = (*STDIO, "--allowedTools", "Agent")
    async with serve(answers) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        host.answers["can_use_tool"] = denies("stop", interrupt=True)
        frames = await host.turn("Begin")
    assert (frames[-1]["subtype"], frames[-1]["terminal_reason"]) == ("error_during_execution", "aborted_tools")
    assert len([one for one in server.requests if one.method == "POST"]) == 2
    [asked] = host.requests("can_use_tool")
    assert asked["agent_id"]


async def test_rules_of_an_answer_hold_for_the_next_calls(claude: Claude) -> None:
    rule = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}], "destination": "session"}
    again = calls("bash", "toolu_2", command="echo two > c.txt")
    phoenix, _ = await claude(RUNS, again, says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=allows(updatedPermissions=[rule])) as host:
        await host.turn("Run both")
    assert (phoenix.cwd / "c.txt").read_text() == "two\n"
    assert len(host.requests("can_use_tool")) == 1


async def test_one_unknown_entry_rejects_all_rules_of_an_answer_and_the_call_runs(claude: Claude) -> None:
    updates = [{"type": "setMode", "mode": "bypassPermissions"}, {"type": "fly"}]
    phoenix, _ = await claude(WRITES, says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=allows(updatedPermissions=updates)) as host:
        await host.turn("Write it")
        second = await host.turn("And now?")
    assert (phoenix.cwd / "a.txt").exists()
    assert second[0]["permissionMode"] == "default"
    assert b"there is no update of type fly" in host.err


async def test_a_mode_of_an_answer_holds_from_then_on(claude: Claude) -> None:
    updates = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    again = calls("write_file", "toolu_2", path="b.txt", content="two\n")
    phoenix, _ = await claude(WRITES, again, says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=allows(updatedPermissions=updates)) as host:
        await host.turn("Write both")
    assert (phoenix.cwd / "b.txt").read_text() == "two\n"
    assert len(host.requests("can_use_tool")) == 1


async def test_an_interruption_withdraws_an_open_question(claude: Claude) -> None:
    phoenix, _ = await claude(RUNS, says("never"))
    async with hosted(phoenix, *STDIO) as host:
        host.say("Run it")
        asked = await host.wait(lambda one: one["type"] == "control_request")
        await host.ask("interrupt")
        withdrawn = await host.wait(lambda one: one["type"] == "control_cancel_request")
        result = await host.wait(lambda one: one["type"] == "result")
        late = {"subtype": "success", "request_id": asked["request_id"], "response": {"behavior": "allow"}}
        host.send({"type": "control_response", "response": late}, {"type": "control_response", "response": late})
        more = await host.turn("Still there?")
    assert withdrawn["request_id"] == asked["request_id"]
    assert result["terminal_reason"] == "aborted_tools"
    assert more[-1]["subtype"] == "success"
    assert not (phoenix.cwd / "b.txt").exists()


async def test_end_of_input_refuses_a_question_that_is_open(claude: Claude) -> None:
    phoenix, server = await claude(RUNS, says("I see."))
    async with hosted(phoenix, *STDIO) as host:
        host.say("Run it")
        await host.wait(lambda one: one["type"] == "control_request")
        code = await host.close()
    assert "closed stdin" in last_result(server)
    assert (host.messages()[-1]["result"], code) == ("I see.", 0)
    assert not (phoenix.cwd / "b.txt").exists()


async def test_without_a_prompt_tool_nobody_is_asked(tmp_path: Path) -> None:
    for flags in ((), (*STDIO, "--permission-mode", "dontAsk")):
        async with serve(RUNS, says("I see.")) as server:
            phoenix = with_claude(tmp_path, server.url)
            async with hosted(phoenix, *flags, can_use_tool=allows()) as host:
                await host.turn("Run it")
        assert host.requests("can_use_tool") == []
        assert not (phoenix.cwd / "b.txt").exists()


async def _ran(phoenix: Phoenix, *flags: str) -> ControlHost:
    async with hosted(phoenix, *flags, can_use_tool=denies("no")) as host:
        await host.turn("Go")
    return host


async def test_tools_that_flags_allow_run_without_a_question_and_those_they_deny_never(claude: Claude) -> None:
    phoenix, _ = await claude(RUNS, says("Done."))
    host = await _ran(phoenix, *STDIO, "--allowedTools", "Read,Bash")
    assert ((phoenix.cwd / "b.txt").exists(), host.requests("can_use_tool")) == (True, [])
    (phoenix.cwd / "b.txt").unlink()
    phoenix, _ = await claude(RUNS, says("Done."))
    host = await _ran(phoenix, "--permission-mode", "bypassPermissions", "--disallowedTools", "Bash(echo:*) WebFetch")
    init = host.messages()[0]
    assert not (phoenix.cwd / "b.txt").exists()
    assert ("Bash" in init["tools"], "WebFetch" in init["tools"]) == (True, False)


async def test_tools_are_limited_to_those_that_the_host_names(tmp_path: Path) -> None:
    for given, expected in (("Read,Glob", {"Read", "Glob"}), ("", set[str]())):
        async with serve(says("Done.")) as server:
            host = await _ran(with_claude(tmp_path, server.url), "--tools", given)
        assert set(host.messages()[0]["tools"]) == expected


async def test_an_input_too_large_for_a_line_can_be_allowed_and_runs_whole(claude: Claude) -> None:
    content = "x" * 1_500_000
    phoenix, _ = await claude(calls("write_file", path="a.txt", content=content), says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=allows()) as host:
        frames = await host.turn("Write it")
    assert (phoenix.cwd / "a.txt").read_text() == content
    assert frames[-1]["result"] == "Done."


async def test_questions_to_the_user_are_answered_by_the_host(tmp_path: Path) -> None:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    asks = {"questions": [{"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}]}

    def answer(request: Frame) -> Frame:
        return {"behavior": "allow", "updatedInput": request["input"] | {"answers": {"Which colour?": "Blue"}}}

    for reply, words in ((answer, '="Blue'), (allows(), "gave no answers")):
        async with serve(calls("AskUserQuestion", **asks), says("Done.")) as server:
            async with hosted(with_claude(tmp_path, server.url), *STDIO, can_use_tool=reply) as host:
                frames = await host.turn("Ask me")
            read = last_result(server)
        [asked] = host.requests("can_use_tool")
        assert (asked["tool_name"], asked["input"]["questions"][0]["question"]) == ("AskUserQuestion", "Which colour?")
        assert words in read.replace("\\", "")
        assert frames[-1]["result"] == "Done."


async def test_the_question_about_changed_files_is_one_that_a_host_can_show_and_answer(tmp_path: Path) -> None:
    await needs_full_enforcement()

    def keep(request: Frame) -> Frame:
        [asked] = request["input"]["questions"]
        return {"behavior": "allow", "updatedInput": request["input"] | {"answers": {asked["question"]: "Keep"}}}

    for name, reply, left in (("keep", keep, "x\n"), ("allow", allows(), None), ("deny", denies("no"), None)):
        folder = tmp_path / name
        folder.mkdir()
        async with serve(calls("bash", command="echo x > AGENTS.md"), says("Done.")) as server:
            phoenix = with_claude(folder, server.url, PHOENIX_SANDBOX="")
            async with hosted(phoenix, *STDIO, can_use_tool=reply) as host:
                await host.turn("Run it")
        [asked] = host.requests("can_use_tool")
        [question] = asked["input"]["questions"]
        assert asked["tool_name"] == "AskUserQuestion"
        assert "changed AGENTS.md" in question["question"]
        assert [one["label"] for one in question["options"]] == ["Keep", "Take back"]
        written = phoenix.cwd / "AGENTS.md"
        assert (written.read_text() if written.exists() else None) == left


async def test_what_a_command_made_of_files_that_were_there_is_kept_or_taken_back_as_the_host_says(
    tmp_path: Path,
) -> None:
    await needs_full_enforcement()
    command = "echo evil >> AGENTS.md; chmod 755 AGENTS.md; rm CLAUDE.md; echo fine > notes"

    def choose(label: str) -> Callable[[Frame], Frame]:
        def reply(request: Frame) -> Frame:
            [asked] = request["input"]["questions"]
            return {"behavior": "allow", "updatedInput": request["input"] | {"answers": {asked["question"]: label}}}

        return reply

    kept = {"AGENTS.md": (b"mine\nevil\n", 0o755), "notes": (b"fine\n", 0o644)}
    taken = {"AGENTS.md": (b"mine\n", 0o644), "CLAUDE.md": (b"too\n", 0o644), "notes": (b"fine\n", 0o644)}
    for label, left, words in (("Keep", kept, "the user kept the changes"), ("Take back", taken, "taken back")):
        folder = tmp_path / label
        folder.mkdir()
        async with serve(calls("bash", command=command), says("Done.")) as server:
            phoenix = with_claude(folder, server.url, PHOENIX_SANDBOX="")
            for name, text in (("AGENTS.md", "mine\n"), ("CLAUDE.md", "too\n")):
                (phoenix.cwd / name).write_text(text)
                (phoenix.cwd / name).chmod(0o644)
            async with hosted(phoenix, *STDIO, can_use_tool=choose(label)) as host:
                frames = await host.turn("Run it")
            assert words in last_result(server)
        assert [one["tool_name"] for one in host.requests("can_use_tool")] == ["AskUserQuestion"]
        assert frames[-1]["result"] == "Done."
        found = {one.name: (one.read_bytes(), one.stat().st_mode & 0o777) for one in phoenix.cwd.iterdir()}
        assert found == left


APPROVE = {"name": "approve", "description": "Decides", "inputSchema": {"type": "object"}}
ASKS_TOOL = ("--permission-prompt-tool", "mcp__calc__approve")
RUNS_ECHO = calls("bash", command="echo one > made.txt")


def told(text: str, **more: Any) -> Callable[[Frame], Frame]:
    return lambda _: {"content": [{"type": "text", "text": text}]} | more


async def test_a_tool_allows_a_call_with_another_input_and_no_model_is_offered_it(claude: Claude) -> None:
    asked: list[Frame] = []

    def allows(args: Frame) -> Frame:
        asked.append(args)
        verdict = {"behavior": "allow", "updatedInput": {"command": "echo two > made.txt"}}
        return {"content": [{"type": "text", "text": json.dumps(verdict)}]}

    phoenix, server = await claude(RUNS_ECHO, says("Done."))
    answer = server_with(allows, (TOOL, APPROVE))
    async with hosted(phoenix, *CONFIG, *ASKS_TOOL, mcp_message=answer) as host:
        frames = await host.turn("Go")
    offered = [one["name"] for one in bodies(server)[0]["tools"]]
    assert asked == [{"tool_name": "Bash", "input": {"command": "echo one > made.txt"}, "tool_use_id": "toolu_1"}]
    assert (phoenix.cwd / "made.txt").read_text() == "two\n"
    assert [name for name in offered if name.startswith("mcp__")] == ["mcp__calc__add"]
    assert [name for name in frames[0]["tools"] if name.startswith("mcp__")] == ["mcp__calc__add"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (told(json.dumps({"behavior": "deny", "message": "not on a Friday"})), "not on a Friday"),
        (told(json.dumps({"result": json.dumps({"behavior": "deny", "message": "wrapped no"})})), "wrapped no"),
        (told(json.dumps({"result": 7})), "gave no JSON with behavior allow or deny"),
        (told("yes, go on"), "gave no JSON with behavior allow or deny"),
        (told("[]"), "gave no JSON with behavior allow or deny"),
        (told("[" * 100_000), "gave no JSON with behavior allow or deny"),
        (told("out of order", isError=True), "failed: out of order"),
    ],
    ids=["no", "wrapped", "a number", "words", "a list", "deep", "an error"],
)
async def test_whatever_is_not_a_yes_denies_with_its_reason(claude: Claude, answer: Any, words: str) -> None:
    phoenix, server = await claude(RUNS_ECHO, says("I see."))
    async with hosted(phoenix, *CONFIG, *ASKS_TOOL, mcp_message=server_with(answer, (APPROVE,))) as host:
        frames = await host.turn("Go")
    assert words in json.dumps(bodies(server)[-1]["messages"])
    assert not (phoenix.cwd / "made.txt").exists()
    assert (frames[-1]["result"], len(frames[-1]["permission_denials"])) == ("I see.", 1)


async def test_a_tool_that_is_not_there_refuses_the_turn_and_names_those_that_are(tmp_path: Path) -> None:
    async with serve(says("never")) as server:
        answer = server_with(told("{}"))
        async with hosted(with_claude(tmp_path, server.url), *CONFIG, *ASKS_TOOL, mcp_message=answer) as host:
            frames = await host.turn("Go")
        assert bodies(server) == []
    [error] = frames[-1]["errors"]
    assert error == "There is no tool mcp__calc__approve for --permission-prompt-tool: there are mcp__calc__add."


async def test_a_denied_server_is_not_offered_either(tmp_path: Path) -> None:
    flags = (*CONFIG, "--disallowedTools", "mcp__calc")
    async with serve(says("Hello.")) as server:
        answer = server_with(told("{}"))
        async with hosted(with_claude(tmp_path, server.url), *flags, mcp_message=answer) as host:
            await host.turn("Go")
        assert not [one for one in bodies(server)[0]["tools"] if one["name"].startswith("mcp__")]


def test_another_value_is_a_wrong_usage() -> None:
    with pytest.raises(CommandError, match="needs stdio, or the tool of an MCP server"):
        read_flags([*FLAGS, "--permission-prompt-tool", "Bash"])


PLANNING = (*STDIO, "--permission-mode", "plan")
PLAN = calls("exit_plan", plan="# Plan\n1. Write")
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
        calls("bash", f"t{place}", command=commands[place])
        if place in commands
        else calls("write_file", f"t{place}", path="a.txt", content=str(place))
        for place in range(5)
    ]
    given = iter([[rules("addRules", "allow", "Bash")], [rules("replaceRules", "allow", "Write")], []])
    flags = (*STDIO, "--allowedTools", "Bash(ls)")
    async with serve(*steps, says("Done.")) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        host.answers["can_use_tool"] = lambda request: yes(updatedPermissions=next(given))(request)
        await host.turn("Go")
    assert [one["tool_name"] for one in host.requests("can_use_tool")] == ["Bash", "Write", "Bash"]


async def test_removing_a_rule_that_allows_keeps_the_one_that_denies(claude: Claude) -> None:
    updates = [rules("addRules", "deny", "Write"), rules("removeRules", "allow", "Write")]
    writes = calls("write_file", "t2", path="a.txt", content="one")
    phoenix, _ = await claude(calls("bash", command="true"), writes, says("Done."))
    async with hosted(phoenix, *STDIO, can_use_tool=yes(updatedPermissions=updates)) as host:
        await host.turn("Go")
    assert [one["tool_name"] for one in host.requests("can_use_tool")] == ["Bash"]
    assert not (phoenix.cwd / "a.txt").exists()
