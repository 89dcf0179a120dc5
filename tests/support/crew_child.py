"""A process whose agents reach a stage and that is killed there: by itself, or after a line on stdout.

usage: python -m tests.support.crew_child HOME STAGE (a number: it kills itself after so many moves of "parallel")
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.machine.states import AwaitingLlm, AwaitingSubagents, Cancelling, ToolExecuting
from engine.ports import Committed, Move
from engine.updates import StateChanged, Update
from tests.support.crash_child import say
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tools.contract import JsonObject, ToolContext, ToolOutput


def spawns(*tasks: str, strategy: str = "parallel") -> Reply:
    """A call of spawn_agents with another behind it."""
    order = {"tasks": [{"task": task} for task in tasks], "strategy": strategy}
    return Reply(
        (ScriptedCall("spawn_agents", json.dumps(order), "t1"), ScriptedCall("bash", '{"command": "ls"}', "t2")),
        when="begin",
    )


def submits(when: str, result: str) -> Reply:
    """A result handed in."""
    return Reply((ScriptedCall("submit_result", json.dumps({"result": result})),), when=when)


def begins(task: str) -> ScriptedCall:
    """A call of spawn_task."""
    return ScriptedCall("spawn_task", json.dumps({"task_description": task, "initial_prompt": task}))


FIRST = submits("TASK one", "first")
LOOKS = Reply((Text("I looked at a."), ScriptedCall("bash", '{"command": "sleep"}')), when="TASK three")
WRITES = Reply((Text("half"), Hang()), when="TASK two")
REPLIES = {
    "parallel": (spawns("TASK one", "TASK two", "TASK three", "TASK four"), FIRST, WRITES, LOOKS),
    "sequential": (spawns("TASK one", "TASK three", "TASK two", strategy="sequential"), LOOKS, FIRST),
    "background": (
        Reply((begins("TASK one"), begins("TASK three")), when="begin"),
        Reply((Text("I see."),), when="[SYSTEM]"),
        Reply((Text("Both work."),), when=" started"),
        FIRST,
        LOOKS,
    ),
    "all ended": (spawns("TASK one"), FIRST, Reply((Hang(),), when="Sub-agent results")),
    "cancelling": (spawns("TASK one", "TASK three"), FIRST, LOOKS),
}
STAGES = tuple(REPLIES)


class Sleeps(StubTool):
    """`sleep` never ends and takes no cancel."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        if args.get("command") != "sleep":
            return ToolOutput("listed")
        self.started.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


def die() -> None:
    """Kill this process, like `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_cancelling(update: Update) -> None:
    if isinstance(update, StateChanged) and isinstance(update.state, Cancelling):
        die()


async def reach(harness: EngineHarness, stage: str, parent: Conversation) -> None:
    """Wait until all agents have reached the stage."""

    def one_has_ended() -> bool:
        return isinstance(parent.state, AwaitingSubagents) and len(parent.state.outcomes) == 1

    match stage:
        case "parallel":
            await until(lambda: one_has_ended() and len(harness.provider.requests) == 4, 20.0)
            await harness.tool.started.wait()
        case "background":
            await until(lambda: any("[SYSTEM]" in str(r.messages) for r in harness.provider.requests), 20.0)
            await harness.tool.started.wait()
            await parent.wait_idle()
        case "all ended":
            await until(lambda: isinstance(parent.state, AwaitingLlm) and parent.state.run.iteration == 2, 20.0)
        case _:
            await until(one_has_ended, 20.0)
            await harness.tool.started.wait()
            await until(lambda: any(isinstance(one.state, ToolExecuting) for one in harness.engine.live()), 20.0)


def die_after(harness: EngineHarness, moves: int) -> None:
    commit, done = harness.store.commit, 0

    async def counted(move: Move) -> Committed:
        nonlocal done
        committed = await commit(move)
        done += 1
        if done == moves:
            die()
        return committed

    harness.store.commit = counted  # type: ignore[assignment, method-assign] # dies where told, else the real one


async def main(home: Path, stage: str) -> None:
    replies = REPLIES.get(stage, REPLIES["parallel"])
    async with engine_harness(home, *replies, tool=Sleeps(), settings=EngineSettings(max_agents=2)) as harness:
        parent = await harness.conversation()
        if stage.isdigit():
            die_after(harness, int(stage))
        await parent.say("begin")
        await reach(harness, stage if stage in STAGES else "parallel", parent)
        say(stage)
        if stage == "cancelling":
            await parent.subscribe(die_cancelling)
            parent.cancel()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
