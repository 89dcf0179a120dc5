"""Time at which a parent learns of a background sub-agent's end: never in the middle of other work, and never late."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.machine.messages import Origin
from engine.machine.states import Compacting, Idle
from engine.ports import Committed, Move, StorageError
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.fates import words
from tests.support.gates import Gates
from tests.support.scripted_provider import Pause, Reply, Script, ScriptedCall, ScriptedProvider, Text

BACKGROUND = json.dumps({"task_description": "look", "initial_prompt": "TASK one"})
AGENT, SUMMARY = 1.0, 2.0
"""The pauses that the two wait in."""
REPLIES = (
    Reply((Pause(SUMMARY), Text("the plan is kept")), when="Write the summary now."),
    *(Reply((Text("word " * 200),), when="[go]") for _ in range(3)),
    Reply((Text("I see."),), when="[SYSTEM]"),
    Reply((Text("Started."),), when=" started"),
    Reply((Pause(AGENT), ScriptedCall("submit_result", '{"result": "found"}')), when="TASK one"),
    Reply((ScriptedCall("spawn_task", BACKGROUND),), when="begin"),
)


async def told(harness: EngineHarness, parent_id: str) -> list[str]:
    """Text behind the end of the sub-agent in its parent."""
    messages = await harness.store.messages(parent_id)
    places = [place for place, one in enumerate(messages) if one.origin is Origin.COMPLETION]
    return [words(one.blocks) for one in messages[places[0] + 1 :]] if places else []


@asynccontextmanager
async def one_back_while_compacting(home: Path) -> AsyncIterator[tuple[EngineHarness, Conversation, SubAgents, Gates]]:
    """The user has the window summarized, and meanwhile the sub-agent has ended."""
    gates = Gates()
    provider = ScriptedProvider({"main": Script(REPLIES)}, gates.wait)
    async with engine_harness(home, provider=provider) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.conversation()
        for text in ("[go] 1", "[go] 2", "[go] 3", "begin"):
            await parent.say(text)
            await parent.wait_idle()
        await parent.context.compact()
        gates[AGENT].set()
        await sub_agents.wait_finished(parent.id)
        assert (isinstance(parent.state, Compacting), sub_agents.results(parent.id)) == (True, 1)
        yield harness, parent, sub_agents, gates


async def test_what_comes_back_while_the_user_has_the_window_summarized_is_read_behind_it(tmp_path: Path) -> None:
    async with one_back_while_compacting(tmp_path) as (harness, parent, sub_agents, gates):
        gates[SUMMARY].set()
        await until(lambda: sub_agents.results(parent.id) == 0)
        await parent.wait_idle()
        assert await told(harness, parent.id) == ["I see."]


async def test_one_whose_end_could_not_be_stored_wakes_its_parent_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = Gates()
    provider = ScriptedProvider({"main": Script(REPLIES)}, gates.wait)
    async with engine_harness(tmp_path, provider=provider) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        commit, failures = harness.store.commit, [StorageError("The disk is full.")]

        async def once_full(move: Move) -> Committed:
            if move.conversation_id != parent.id and failures:
                raise failures.pop()
            return await commit(move)

        monkeypatch.setattr(harness.store, "commit", once_full)
        gates[AGENT].set()
        await sub_agents.wait_finished(parent.id)
        await parent.wait_idle()
        assert failures == []
        assert await told(harness, parent.id) == ["I see."]
        (row,) = await harness.store.agents.rows(parent.id)
        assert (row.outcome and row.outcome.reason, row.state.gen) == ("interrupted", 4)  # the call of it, too


async def test_after_esc_it_waits_for_the_user(tmp_path: Path) -> None:
    async with one_back_while_compacting(tmp_path) as (harness, parent, sub_agents, _):
        parent.cancel()
        await parent.wait_idle()
        await sub_agents.wait_finished(parent.id)
        assert (isinstance(parent.state, Idle), sub_agents.results(parent.id)) == (True, 1)
        await parent.say("and now")
        await parent.wait_idle()
        assert await told(harness, parent.id) == ["I see."]
