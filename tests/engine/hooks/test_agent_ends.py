"""SubagentStop: a hook lets a sub-agent go on, as Stop does for a conversation."""

from __future__ import annotations

import json
from pathlib import Path

from engine.executor.event_hooks import MOST_TIMES, SAYS
from engine.machine.messages import TextBlock
from tests.support.engine import until
from tests.support.hooked import PYTHON, Hooked, group, hooked_engine, script, write_hooks
from tests.support.scripted_provider import Reply, ScriptedCall, Text

TASK = "TASK look"
DONE = Reply((Text("done"),))


def spawns(**more: object) -> Reply:
    task = {"task": TASK, **more}
    return Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [task]})),), when="begin")


def submits(text: str) -> Reply:
    return Reply((ScriptedCall("submit_result", json.dumps({"result": text})),), when=TASK)


async def result_of_run(hooked: Hooked) -> str:
    """Results that the parent got."""
    conversation = await hooked.harness.conversation()
    await conversation.say("begin")
    await conversation.wait_idle()
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
        conversation = await hooked.harness.conversation()
        await conversation.say("and on")
        await conversation.wait_idle()
    (given,) = map(json.loads, seen.read_text().splitlines())
    assert (given["hook_event_name"], given["tool_name"]) == ("PostToolUse", "Agent")
    assert "found it" in given["tool_response"]["content"][0]["text"]
    assert given["duration_ms"] >= 0
    assert "[A hook objects: " in told
    assert "too short]" in told
