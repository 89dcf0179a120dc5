"""Hooks behind all calls of one reply: their input, what they add, and how they end a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, cast

import pytest

from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import text_in
from engine.machine.states import Idle
from engine.ports import ConversationChanges
from engine.ports.extensions import HookEvent
from engine.records import PermissionMode
from engine.updates import MessageSaved, RunEnded
from tests.support.engine import StubTool, run_turn, until
from tests.support.hooked import PYTHON, Hooked, bash, group, hooked_engine, says, script, write_hooks
from tests.support.instructions import FixedInstructions
from tests.support.scripted_provider import Fail, Reply, ScriptedCall, Text
from tools.contract import JsonObject, ToolContext, ToolOutput
from tools.file_tools import Patch, ReadFile, WriteFile
from tools.files.writing import ReadLedger

TWO = Reply(tuple(ScriptedCall("bash", json.dumps({"command": command})) for command in ("ls", "pwd")))


async def test_they_hear_all_calls_of_a_reply_at_once_with_what_the_model_reads(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    write_hooks(tmp_path / "config" / "hooks.json", PostToolBatch=f"cat >> {seen}")
    async with hooked_engine(tmp_path, TWO, bash("id"), says("done")) as hooked:
        await hooked.harness.run("go")
    first, second = map(json.loads, seen.read_text().splitlines())
    assert first["hook_event_name"] == "PostToolBatch"
    assert [(one["tool_name"], one["tool_input"], one["tool_response"]) for one in first["tool_calls"]] == [
        ("Bash", {"command": "ls"}, "ran ls"),
        ("Bash", {"command": "pwd"}, "ran pwd"),
    ]
    assert all(one["tool_use_id"] for one in first["tool_calls"])
    assert [one["tool_input"]["command"] for one in second["tool_calls"]] == ["id"]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("echo enough >&2; exit 2", "A hook stopped the run: echo: enough"),
        ('echo \'{"decision": "block", "reason": "enough"}\'', "A hook stopped the run: echo: enough"),
        ('echo \'{"continue": false, "stopReason": "enough"}\'', "A hook stopped the run: enough"),
    ],
)
async def test_a_block_ends_the_run_with_all_results_kept(tmp_path: Path, command: str, error: str) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PostToolBatch=command)
    async with hooked_engine(tmp_path, TWO, says("never"), says("on again")) as hooked:
        conversation = await hooked.harness.run("go")
        (ended,) = hooked.harness.seen(RunEnded)
        assert (ended.error_code, ended.error) == ("hook_stopped", error)
        assert isinstance(conversation.state, Idle)
        assert hooked.results() == ["ran ls", "ran pwd"]
        assert ended.error in hooked.rows()
        (tmp_path / "config" / "hooks.json").unlink()
        await run_turn(conversation, "and now")
        assert hooked.harness.seen(RunEnded)[-1].error == ""


async def test_a_text_goes_with_the_next_request_alone(tmp_path: Path) -> None:
    count = tmp_path / "count"
    once = script(
        tmp_path / "once.py",
        PYTHON
        + f"""
import pathlib
count = pathlib.Path({str(count)!r})
count.write_text(count.read_text() + "x" if count.exists() else "x")
if count.read_text() == "x":
    specific = {{"hookEventName": "PostToolBatch", "additionalContext": "mind the gap"}}
    print(json.dumps({{"hookSpecificOutput": specific}}))
""",
    )
    write_hooks(tmp_path / "config" / "hooks.json", PostToolBatch=once)
    async with hooked_engine(tmp_path, bash("ls"), bash("pwd"), says("done")) as hooked:
        await hooked.harness.run("go")
        told = ["[From a hook: mind the gap]" in repr(request.messages) for request in hooked.harness.provider.requests]
        assert told == [False, True, False]
    assert count.read_text() == "xx"


async def test_a_request_that_is_tried_again_asks_them_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    write_hooks(tmp_path / "config" / "hooks.json", PostToolBatch=f"echo x >> {count}")
    broken = Reply((Fail("overloaded", retryable=True),))
    async with hooked_engine(tmp_path, bash("ls"), broken, says("done")) as hooked:
        await hooked.harness.run("go")
        assert "done" in [text_in(saved.message.blocks) for saved in hooked.harness.seen(MessageSaved)]
    assert count.read_text() == "x\n"


async def test_a_sub_agent_fails_where_they_end_its_run(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    guard = f"tee -a {seen} | grep -q agent_id && exit 2; exit 0"
    write_hooks(tmp_path / "config" / "hooks.json", PostToolBatch=[group(guard)])
    spawns = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK look"}]})),), when="begin")
    calls = Reply((ScriptedCall("bash", '{"command": "ls"}'),), when="TASK look")
    async with hooked_engine(tmp_path, spawns, calls, Reply((Text("done"),))) as hooked:
        await hooked.harness.run("begin")
        await until(lambda: seen.exists() and seen.read_text().count("\n") == 2)
        assert "A hook stopped the run" in hooked.results()[-1]
    own, parents = map(json.loads, seen.read_text().splitlines())
    assert (own["tool_calls"][0]["tool_name"], parents["tool_calls"][0]["tool_name"]) == ("Bash", "Agent")
    assert "A hook stopped the run" in parents["tool_calls"][0]["tool_response"]


RECORDED: Final = Path(__file__).with_name("inputs.json")
SETTINGS: Final = EngineSettings(auto_title=False, instructions=FixedInstructions("Be short."))
VOLATILE: Final = ("session_id", "prompt_id", "tool_use_id", "agent_id")
UUID: Final = re.compile(r"\[[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\]")
MATCHERS: Final = {HookEvent.NOTIFICATION: "permission_prompt"}


class Fails(StubTool):
    """A shell in which `false` fails."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        if args["command"] == "false":
            return ToolOutput("exit code 1", is_error=True)
        return await super().run(args, context)


def call(name: str, **args: Any) -> Reply:
    return Reply((ScriptedCall(name, json.dumps(args)),))


def settled(value: Any, project: Path) -> Any:
    """An input with placeholders for what differs between two runs."""
    if isinstance(value, list):
        return [settled(one, project) for one in value]
    if isinstance(value, str):
        return UUID.sub("[<id>]", value.replace(str(project), "/project"))
    if not isinstance(value, dict):
        return value
    found = {name: settled(one, project) for name, one in cast("dict[str, Any]", value).items()}
    found |= {name: f"<{name}>" for name in VOLATILE if found.get(name)}
    return found | ({"duration_ms": 0} if "duration_ms" in found else {})


async def talk(hooked: Hooked, seen: Path) -> None:
    """A conversation in which every event happens."""
    conversation = await hooked.harness.start("begin", PermissionMode.ASK)
    await until(lambda: conversation.question is not None and "PermissionRequest" in seen.read_text())
    await until(lambda: "Notification" in seen.read_text())
    assert conversation.question is not None
    await conversation.answer(conversation.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
    await conversation.wait_idle()
    await conversation.change(ConversationChanges(permission_mode=PermissionMode.AUTO))
    await run_turn(conversation, "and on")
    await until(lambda: "SubagentStop" in seen.read_text())
    for number in range(8):
        await run_turn(conversation, f"question {number}")
    await conversation.context.compact("the plan")
    await conversation.wait_idle()
    await until(lambda: "PostCompact" in seen.read_text())


async def test_every_event_has_the_recorded_fields(tmp_path: Path) -> None:
    seen, project = tmp_path / "seen.jsonl", tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\ntwo\n")
    events = {event.value: [group(f"cat >> {seen}", MATCHERS.get(event, ""))] for event in HookEvent}
    write_hooks(tmp_path / "config" / "hooks.json", **events)
    ledger = ReadLedger()
    replies = (
        bash("ls"),
        says("done"),
        call("read_file", path="a.txt"),
        call("patch", path="a.txt", edits=[{"op": "replace", "old": "two", "new": "three"}]),
        call("write_file", path="b.txt", content="new\n"),
        bash("false"),
        call("spawn_agents", tasks=[{"task": "look"}]),
        call("submit_result", result="found it"),
        *[says("word " * 50) for _ in range(9)],
        Reply((Text("the plan is kept"),), when="Write the summary now."),
    )
    async with hooked_engine(
        tmp_path,
        *replies,
        tool=Fails(),
        tools=(ReadFile(ledger), WriteFile(ledger), Patch(ledger)),
        settings=SETTINGS,
    ) as hooked:
        await talk(hooked, seen)
    found: dict[str, Any] = {}
    for line in seen.read_text().splitlines():
        given = settled(json.loads(line), project)
        found.setdefault(" ".join(filter(None, (given["hook_event_name"], given.get("tool_name", "")))), given)
    assert {name.split()[0] for name in found} == {event.value for event in HookEvent}
    found = dict(sorted(found.items()))
    assert found == json.loads(RECORDED.read_text())
