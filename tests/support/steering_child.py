"""A process that steers a running turn and kills itself at one of its transactions.

usage: python -m tests.support.steering_child HOME NUMBER before|after
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from engine.executor.engine_settings import EngineSettings
from engine.records import Delivery
from tests.support.engine import StubTool, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text

QUIET = EngineSettings(auto_title=False, turn_summaries=False)


def killing(call: Callable[..., Awaitable[Any]], counted: list[int], at: int, *, before: bool) -> Any:
    """The same call, with the end of this process before or after the transaction with this number."""

    async def counting(*args: Any, **named: Any) -> Any:
        counted[0] += 1
        now = counted[0] == at
        if now and before:
            os.kill(os.getpid(), signal.SIGKILL)
        done = await call(*args, **named)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return counting


async def main(home: Path, at: int, *, before: bool) -> None:
    tool = StubTool(release=asyncio.Event())
    calls = Reply((ScriptedCall("bash", '{"command": "one"}', "t1"),))
    async with engine_harness(home, calls, Reply((Text("Done."),)), tool=tool, settings=QUIET) as harness:
        conversation = await harness.conversation()
        await conversation.say("go")
        await tool.started.wait()
        counted = [0]
        for owner, name in ((harness.store, "commit"), (harness.store.queue, "keep_queue")):
            setattr(owner, name, killing(getattr(owner, name), counted, at, before=before))
        await conversation.queue.add("use tabs", delivery=Delivery.TOOL)
        assert tool.release is not None
        tool.release.set()
        await conversation.wait_idle()
    sys.stdout.write("ended\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), before=sys.argv[3] == "before"))
