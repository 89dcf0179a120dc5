"""A process that brings a conversation to a stage, says so on stdout, and waits to be killed.

usage: python -m tests.support.crash_child HOME STAGE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engine.machine.states import AwaitingApproval
from engine.records import PermissionMode
from engine.updates import TextArrived, ToolEnded
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.questions import asks
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tools.contract import JsonObject, ToolContext, ToolOutput
from tools.planning import AskUser

TWO_CALLS = Reply((
    Text("I look."),
    ScriptedCall("bash", '{"command": "one"}', "t1"),
    ScriptedCall("bash", '{"command": "two"}', "t2"),
))
STAGES = ("streaming", "first tool", "second tool", "question", "cancelling")


class SecondWaits(StubTool):
    """The first call ends at once, the second never."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        self.release = asyncio.Event() if args.get("command") == "two" else None
        return await StubTool.run(self, args, context)


class Stubborn(StubTool):
    """Takes no cancel: the conversation is kept in `cancelling` until its deadline."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        self.started.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                say("cancelling")


def say(stage: str) -> None:
    sys.stdout.write(stage + "\n")
    sys.stdout.flush()


async def reach(harness: EngineHarness, stage: str) -> None:
    mode = PermissionMode.ASK if stage == "question" else PermissionMode.AUTO
    conversation = await harness.conversation(mode)
    await conversation.say("please look")
    match stage:
        case "streaming":
            await until(lambda: harness.seen(TextArrived))
        case "first tool":
            await harness.tool.started.wait()
        case "second tool":
            await until(lambda: harness.seen(ToolEnded) and len(harness.tool.contexts) == 2)
        case "question" | "ask_user":
            await until(lambda: isinstance(conversation.state, AwaitingApproval))
        case _:
            await harness.tool.started.wait()
            conversation.cancel()
            return
    say(stage)


async def main(home: Path, stage: str) -> None:
    tools = {"first tool": StubTool(release=asyncio.Event()), "second tool": SecondWaits(), "cancelling": Stubborn()}
    replies = {"streaming": Reply((Text("half"), Hang())), "ask_user": asks()}
    reply = replies.get(stage, TWO_CALLS)
    async with engine_harness(home, reply, tool=tools.get(stage), tools=[AskUser()]) as harness:
        await reach(harness, stage)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
