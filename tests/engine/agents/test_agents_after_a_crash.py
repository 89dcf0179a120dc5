"""`kill -9` with agents done, at work, queued and in the background, then a restart (SPEC STM-10, T-AGG, T-CMP)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.codec import decode_display
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Origin, Role, ToolResultBlock
from engine.machine.states import Completed, Failed, Idle
from engine.records import AgentRow, SpawnMode
from engine.store import StorePaths
from tests.support.crew_child import REPLIES, STAGES, reach
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.fates import unanswered, words
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tests.support.storage import dump
from tools.contract import AgentsDisplay, JsonObject, ToolContext, ToolOutput

INTERRUPTED = "[Tool execution interrupted by restart]"
ROOT = Path(__file__).parents[3]


async def killed_at(home: Path, stage: str) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.crew_child", str(home), stage, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    said = (await child.stdout.readline()).decode().strip()
    assert said == ("" if stage.isdigit() else stage)
    if stage in STAGES and stage != "cancelling":
        child.kill()
    await child.communicate()
    assert child.returncode == -signal.SIGKILL


async def parent_of(harness: EngineHarness) -> str:
    [summary] = await harness.engine.list()
    return summary.id


async def results(harness: EngineHarness, conversation_id: str) -> list[str]:
    messages = await harness.store.messages(conversation_id)
    return [words((block,)) for row in messages for block in row.blocks if isinstance(block, ToolResultBlock)]


def ends(rows: Sequence[AgentRow]) -> list[tuple[str, str, str]]:
    return [(row.facts.task, row.outcome.reason, row.outcome.text) for row in rows if row.outcome is not None]


async def check_rest(harness: EngineHarness) -> None:
    """At rest and valid, nothing sent, nothing run."""
    parent = await harness.engine.open(await parent_of(harness))
    assert isinstance(parent.state, Idle)
    for row in (rows := await harness.store.agents.rows(parent.id)):
        assert isinstance(row.state, Completed | Failed)
        assert row.outcome is not None
    for one in (parent.id, *(row.id for row in rows)):
        assert unanswered(await harness.store.messages(one)) == []
    assert (harness.provider.requests, harness.tool.calls) == ([], [])


async def test_the_call_of_a_killed_parent_has_what_was_found_and_who_was_cut_off(tmp_path: Path) -> None:
    await killed_at(tmp_path, "parallel")
    async with engine_harness(tmp_path) as harness:
        await check_rest(harness)
        one, two, three, four = await harness.store.agents.rows(await parent_of(harness))
        spawned, listed = await results(harness, one.facts.parent_id)
        assert spawned == (
            f"{INTERRUPTED}\n\n"
            "Sub-agent results (1 of 4 succeeded):\n\n"
            f"## 1. TASK one — success [{one.id}]\nfirst\n\n"
            f"## 2. TASK two — failed: interrupted [{two.id}]\n\n"
            f"## 3. TASK three — failed: interrupted [{three.id}]\nI looked at a.\n\n"
            f"## 4. TASK four — failed: interrupted [{four.id}]"
        )
        assert listed == INTERRUPTED
        messages = await harness.store.messages(one.facts.parent_id)
        (call, _) = await harness.store.tool_calls(one.facts.parent_id, [row.id for row in messages])
        shown = decode_display(call.display_json)
        assert isinstance(shown, AgentsDisplay)
        assert [(end.id, end.status, end.text) for end in shown.agents] == [
            (one.id, "success", "first"),
            (two.id, "failure", ""),
            (three.id, "failure", "I looked at a."),
            (four.id, "failure", ""),
        ]


async def test_of_those_in_turn_the_first_has_a_result_and_the_waiting_are_cut_off(tmp_path: Path) -> None:
    await killed_at(tmp_path, "sequential")
    async with engine_harness(tmp_path) as harness:
        await check_rest(harness)
        one, three, two = await harness.store.agents.rows(await parent_of(harness))
        spawned, _ = await results(harness, one.facts.parent_id)
        assert spawned == (
            f"{INTERRUPTED}\n\n"
            "Sub-agent results (1 of 3 succeeded):\n\n"
            f"## 1. TASK one — success [{one.id}]\nfirst\n\n"
            f"## 2. TASK three — failed: interrupted [{three.id}]\nI looked at a.\n\n"
            f"## 3. TASK two — failed: interrupted [{two.id}]"
        )


async def test_what_a_parent_was_told_before_stays_as_it_was(tmp_path: Path) -> None:
    await killed_at(tmp_path, "all ended")
    async with engine_harness(tmp_path) as harness:
        await check_rest(harness)
        (one,) = await harness.store.agents.rows(await parent_of(harness))
        spawned, listed = await results(harness, one.facts.parent_id)
        assert spawned == f"Sub-agent results (1 of 1 succeeded):\n\n## 1. TASK one — success [{one.id}]\nfirst"
        assert listed == "listed"


async def test_a_kill_while_they_are_stopped_keeps_what_was_found(tmp_path: Path) -> None:
    await killed_at(tmp_path, "cancelling")
    async with engine_harness(tmp_path) as harness:
        await check_rest(harness)
        one, three = await harness.store.agents.rows(await parent_of(harness))
        spawned, _ = await results(harness, one.facts.parent_id)
        assert spawned == (
            f"{INTERRUPTED}\n\n"
            "Sub-agent results (1 of 2 succeeded):\n\n"
            f"## 1. TASK one — success [{one.id}]\nfirst\n\n"
            f"## 2. TASK three — failed: interrupted [{three.id}]\nI looked at a."
        )


async def test_a_background_agent_that_was_cut_off_tells_it_without_waking_and_goes_on_when_told(
    tmp_path: Path,
) -> None:
    await killed_at(tmp_path, "background")
    async with engine_harness(tmp_path) as harness:
        await check_rest(harness)
        parent = await harness.engine.open(await parent_of(harness))
        one, three = await harness.store.agents.rows(parent.id)
        assert ends((one, three)) == [("TASK one", "", "first"), ("TASK three", "interrupted", "I looked at a.")]
        assert await harness.store.agents.waiting(parent.id) == 1
        assert harness.engine.sub_agents is not None
        assert [view.id for view in harness.engine.sub_agents.views(parent.id)] == [one.id, three.id]
    call = ScriptedCall("spawn_task", f'{{"task_id": "{three.id}", "message": "go on"}}')
    replies = (
        Reply((Text("All of it, then."),), when="Final response from child:\nall of it"),
        Reply((call,), when="what now"),
        Reply((Text("It goes on."),), when=f"{three.id} started"),
        Reply((ScriptedCall("submit_result", '{"result": "all of it"}'),), when="go on"),
    )
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.engine.open(await parent_of(harness))
        await parent.say("what now")
        await until(lambda: len(harness.provider.requests) == 4)
        await parent.wait_idle()
        told = [m for m in await harness.store.messages(parent.id) if m.origin is Origin.COMPLETION]
        assert [words(message.blocks) for message in told[1:]] == [
            f"[SYSTEM] Child task {three.id} has failed: interrupted.\n"
            "Ran 1 turns with 1 tool iterations.\n"
            f"You can continue the conversation by calling spawn_task with task_id='{three.id}' and a new message.\n"
            "\nPartial output from child:\nI looked at a.",
            f"[SYSTEM] Child task {three.id} has completed successfully.\n"
            "Ran 2 turns with 2 tool iterations.\n"
            f"You can continue the conversation by calling spawn_task with task_id='{three.id}' and a new message.\n"
            "\nFinal response from child:\nall of it",
        ]
        rows = await harness.store.agents.rows(parent.id)
        assert ends(rows) == [("TASK one", "", "first"), ("TASK three", "", "all of it")]
        prompts = [m for m in await harness.store.messages(three.id) if m.origin is Origin.SUBAGENT]
        assert [(words(m.blocks), m.role, m.turn_number) for m in prompts] == [
            ("TASK three", Role.USER, 0),
            ("go on", Role.USER, 1),
        ]
        assert rows[1].facts.mode is SpawnMode.BACKGROUND


@pytest.mark.parametrize("moves", ["2", "3", "5", "6", "7", "8"])
async def test_killed_at_any_move_everybody_comes_to_rest_and_a_second_boot_changes_nothing(
    tmp_path: Path, moves: str
) -> None:
    await killed_at(tmp_path, moves)
    async with engine_harness(tmp_path) as harness:
        await check_rest(harness)
    before = dump(StorePaths.under(tmp_path).database)
    async with engine_harness(tmp_path) as harness:
        assert not any(recovery.changed for recovery in await harness.engine.start())
    assert dump(StorePaths.under(tmp_path).database) == before


def test_every_stage_is_killed() -> None:
    assert set(STAGES) == {"parallel", "sequential", "background", "all ended", "cancelling"}


class Sleeps(StubTool):
    """`sleep` lasts until it is cancelled."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        if args.get("command") == "sleep":
            self.started.set()
            await asyncio.Event().wait()
        return ToolOutput("listed")


async def ended_at(home: Path, stage: str) -> None:
    """The engine ends in order at this stage: by a signal, or with its terminal."""
    settings = EngineSettings(max_agents=2)
    async with engine_harness(home, *REPLIES[stage], tool=Sleeps(), settings=settings) as harness:
        parent = await harness.start("begin")
        await reach(harness, stage, parent)
        await harness.engine.close()


@pytest.mark.parametrize("stage", ["parallel", "sequential", "background", "all ended"])
async def test_an_end_of_phoenix_leaves_of_a_crew_what_a_crash_leaves(tmp_path: Path, stage: str) -> None:
    """At work, queued, not begun, and in the background: each reads as interrupted, not as stopped."""
    killed, ended = tmp_path / "killed", tmp_path / "ended"
    await killed_at(killed, stage)
    await ended_at(ended, stage)
    left: list[object] = []
    for home in (killed, ended):
        async with engine_harness(home) as harness:
            await check_rest(harness)
            parent_id = await parent_of(harness)
            rows = await harness.store.agents.rows(parent_id)
            names = {row.id: row.facts.task for row in rows}
            told = await results(harness, parent_id)
            for agent_id, task in names.items():
                told = [text.replace(agent_id, task) for text in told]
            kinds = [(row.facts.task, row.state.kind) for row in rows if isinstance(row.state, Failed)]
            waiting = await harness.store.agents.waiting(parent_id)
            left.append((told, sorted(ends(rows)), sorted(kinds), waiting))
    assert left[0] == left[1]
