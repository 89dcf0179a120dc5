"""The input of every event, whole, as recorded in `inputs.json`: scripts of other people read these fields."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, cast

from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.ports import ConversationChanges
from engine.ports.hooks import HookEvent
from engine.records import PermissionMode
from tests.support.engine import StubTool, until
from tests.support.hooked import Hooked, bash, group, hooked_engine, says, write_hooks
from tests.support.instructions import FixedInstructions
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import JsonObject, ToolContext, ToolOutput
from tools.files.ledger import ReadLedger
from tools.patch import Patch
from tools.read_file import ReadFile
from tools.write_file import WriteFile

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
    conversation = await hooked.harness.conversation(PermissionMode.ASK)
    await conversation.say("begin")
    await until(lambda: conversation.question is not None and "PermissionRequest" in seen.read_text())
    await until(lambda: "Notification" in seen.read_text())
    assert conversation.question is not None
    await conversation.answer(conversation.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
    await conversation.wait_idle()
    await conversation.change(ConversationChanges(permission_mode=PermissionMode.AUTO))
    await conversation.say("and on")
    await conversation.wait_idle()
    await until(lambda: "SubagentStop" in seen.read_text())
    for number in range(8):
        await conversation.say(f"question {number}")
        await conversation.wait_idle()
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
