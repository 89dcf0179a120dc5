"""A process that makes runs in one database until it is stopped: `python -m tests.support.event_writer HOME RUNS`.

It says READY first.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.support.crash_child import say
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text

CALL = Reply((Text("I look."), ScriptedCall("bash", '{"command": "ls"}')))
HELLO = Reply((Text("Hello."),))


async def main(home: Path, runs: int) -> None:
    """Make `runs` runs, each with one call."""
    provider = ScriptedProvider({"main": Script((CALL, HELLO) * runs)})
    async with engine_harness(home, provider=provider) as harness:
        conversation = await harness.conversation()
        say("READY")
        for number in range(runs):
            await conversation.say(f"go {number}")
            await conversation.wait_idle()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
