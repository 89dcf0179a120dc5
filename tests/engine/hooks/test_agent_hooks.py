"""Hooks and sub-agents: who is asked about their calls, and who hears of their beginnings and ends."""

from __future__ import annotations

import json
from pathlib import Path

from phoenix_tui.wiring.hooks import TranscriptFiles
from tests.support.engine import until
from tests.support.hooked import PYTHON, group, hooked_engine, script, write_hooks
from tests.support.scripted_provider import Reply, ScriptedCall, Text

SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK look"}]})),), when="begin")
CALLS = Reply((ScriptedCall("bash", '{"command": "ls"}'),), when="TASK look")
SUBMITS = Reply((ScriptedCall("submit_result", '{"result": "found it"}'),), when="TASK look")
DONE = Reply((Text("done"),))


async def test_hooks_know_the_agent_of_a_call_and_its_beginning_and_end(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    log = f"cat >> {seen}"
    write_hooks(
        tmp_path / "config" / "hooks.json",
        SubagentStart=[group(log, "general")],
        PreToolUse=[group(log, "Bash|Agent")],
        SubagentStop=[group(log)],
    )
    async with hooked_engine(tmp_path, SPAWNS, CALLS, SUBMITS, DONE) as hooked:
        conversation = await hooked.harness.conversation()
        await conversation.say("begin")
        await conversation.wait_idle()
        await until(lambda: seen.exists() and seen.read_text().count("\n") == 4)
    found = {
        line["hook_event_name"] + line.get("tool_name", ""): line
        for line in map(json.loads, seen.read_text().splitlines())
    }
    assert set(found) == {"PreToolUseAgent", "SubagentStart", "PreToolUseBash", "SubagentStop"}
    assert "agent_id" not in found["PreToolUseAgent"]
    agent = found["SubagentStart"]["agent_id"]
    assert (found["PreToolUseBash"]["agent_id"], found["PreToolUseBash"]["agent_type"]) == (agent, "general")
    assert {line["session_id"] for line in found.values()} == {conversation.id}
    assert found["SubagentStop"]["last_assistant_message"] == "found it"


async def test_a_guard_holds_for_sub_agents_too(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[group("echo no >&2; exit 2", "Bash")])
    async with hooked_engine(tmp_path, SPAWNS, CALLS, SUBMITS, DONE) as hooked:
        conversation = await hooked.harness.conversation()
        await conversation.say("begin")
        await conversation.wait_idle()
        assert hooked.harness.tool.calls == []


async def test_the_end_of_an_agent_has_its_own_transcript_beside_that_of_its_conversation(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    copies = script(
        tmp_path / "copy.py",
        PYTHON
        + f"""
given["own"] = open(given["agent_transcript_path"]).read()
given["parents"] = open(given["transcript_path"]).read()
open({str(seen)!r} + ".new", "w").write(json.dumps(given))
os.rename({str(seen)!r} + ".new", {str(seen)!r})
""",
    )
    write_hooks(tmp_path / "config" / "hooks.json", SubagentStop=copies)
    async with hooked_engine(tmp_path, SPAWNS, CALLS, SUBMITS, DONE) as hooked:
        hooked.hooks.transcripts = TranscriptFiles(tmp_path / "transcripts", hooked.harness.store)
        conversation = await hooked.harness.conversation()
        await conversation.say("begin")
        await conversation.wait_idle()
        await until(seen.exists)
    found = json.loads(seen.read_text())
    own, parents = [json.loads(line) for line in found["own"].splitlines()], found["parents"]
    assert {line["sessionId"] for line in own} == {found["agent_id"]}
    assert "TASK look" in found["own"]
    assert {json.loads(line)["sessionId"] for line in parents.splitlines()} == {conversation.id}
    assert not list((tmp_path / "transcripts").iterdir())
