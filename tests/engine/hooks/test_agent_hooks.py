"""Hooks and sub-agents: who is asked about their calls, and who hears of their beginnings and ends."""

from __future__ import annotations

import json
from pathlib import Path

from engine.executor.event_hooks import MOST_TIMES, SAYS
from engine.machine.messages import TextBlock
from phoenix_tui.wiring.hooks import write_transcripts
from tests.support.engine import until
from tests.support.hooked import PYTHON, Hooked, group, hooked_engine, script, write_hooks
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
        conversation = await hooked.harness.run("begin")
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
        await hooked.harness.run("begin")
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
        hooked.hooks.transcripts = write_transcripts(tmp_path / "transcripts", hooked.harness.store)
        conversation = await hooked.harness.run("begin")
        await until(seen.exists)
    found = json.loads(seen.read_text())
    own, parents = [json.loads(line) for line in found["own"].splitlines()], found["parents"]
    assert {line["sessionId"] for line in own} == {found["agent_id"]}
    assert "TASK look" in found["own"]
    assert {json.loads(line)["sessionId"] for line in parents.splitlines()} == {conversation.id}
    assert not list((tmp_path / "transcripts").iterdir())


TASK = "TASK look"


def spawns(**more: object) -> Reply:
    task = {"task": TASK, **more}
    return Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [task]})),), when="begin")


def submits(text: str) -> Reply:
    return Reply((ScriptedCall("submit_result", json.dumps({"result": text})),), when=TASK)


async def result_of_run(hooked: Hooked) -> str:
    """Results that the parent got."""
    await hooked.harness.run("begin")
    return "\n".join(hooked.results())


async def texts_of(hooked: Hooked, agent_id: str) -> list[str]:
    """Texts in the messages of a sub-agent."""
    rows = await hooked.harness.store.messages(agent_id)
    return [block.text for row in rows for block in row.blocks if isinstance(block, TextBlock)]


def once(folder: Path, block: str) -> str:
    """A hook that blocks the first time, and keeps its inputs."""
    return script(
        folder / "once.py",
        PYTHON
        + f"""
with open({str(folder / "seen")!r}, "a") as seen:
    seen.write(json.dumps(given) + "\\n")
if not given["stop_hook_active"]:
    {block}
""",
    )


async def test_a_hook_lets_a_sub_agent_go_on_with_its_reason(tmp_path: Path) -> None:
    block = 'print("look again", file=sys.stderr); sys.exit(2)'
    write_hooks(tmp_path / "config" / "hooks.json", SubagentStop=[group(once(tmp_path, block), "general")])
    async with hooked_engine(tmp_path, spawns(), submits("first"), submits("second"), DONE) as hooked:
        results = await result_of_run(hooked)
        assert ("second" in results, "first" in results) == (True, False)
        first, second = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
        assert f"{SAYS} once.py: look again" in await texts_of(hooked, first["agent_id"])
    assert (first["last_assistant_message"], first["stop_hook_active"]) == ("first", False)
    assert (second["last_assistant_message"], second["stop_hook_active"]) == ("second", True)
    assert (first["hook_event_name"], first["agent_type"]) == ("SubagentStop", "general")


async def test_a_decision_in_json_does_the_same(tmp_path: Path) -> None:
    block = 'print(json.dumps({"decision": "block", "reason": "again"}))'
    write_hooks(tmp_path / "config" / "hooks.json", SubagentStop=once(tmp_path, block))
    async with hooked_engine(tmp_path, spawns(), submits("first"), submits("second"), DONE) as hooked:
        assert "second" in await result_of_run(hooked)


async def test_it_goes_on_eight_times_in_a_row_at_most(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", SubagentStop="echo more >&2; exit 2")
    replies = [submits(f"result {number}") for number in range(MOST_TIMES + 1)]
    async with hooked_engine(tmp_path, spawns(), *replies, DONE) as hooked:
        assert f"result {MOST_TIMES}" in await result_of_run(hooked)


async def test_at_the_last_model_call_the_result_counts(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", SubagentStop="echo more >&2; exit 2")
    async with hooked_engine(tmp_path, spawns(max_turns=1), submits("the only one"), DONE) as hooked:
        assert "the only one" in await result_of_run(hooked)


async def test_the_end_of_one_that_fails_is_told_once_and_holds_nothing_up(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    fails = Reply((ScriptedCall("submit_error", '{"error": "no way"}'),), when=TASK)
    write_hooks(tmp_path / "config" / "hooks.json", SubagentStop=f"echo x >> {seen}; exit 2")
    async with hooked_engine(tmp_path, spawns(), fails, DONE) as hooked:
        assert "no way" in await result_of_run(hooked)
        await until(seen.exists)
    assert seen.read_text() == "x\n"


async def test_calls_that_start_sub_agents_have_hooks_behind_their_results(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    command = f'cat >> {seen}; echo \'{{"decision": "block", "reason": "too short"}}\''
    write_hooks(tmp_path / "config" / "hooks.json", PostToolUse=[group(command, "Agent")])
    async with hooked_engine(tmp_path, spawns(), submits("found it"), DONE, Reply((Text("more"),))) as hooked:
        await result_of_run(hooked)
        told = repr(hooked.harness.provider.requests[-1].messages)
        await hooked.harness.run("and on")
    (given,) = map(json.loads, seen.read_text().splitlines())
    assert (given["hook_event_name"], given["tool_name"]) == ("PostToolUse", "Agent")
    assert "found it" in given["tool_response"]["content"][0]["text"]
    assert given["duration_ms"] >= 0
    assert "[A hook objects: " in told
    assert "too short]" in told
