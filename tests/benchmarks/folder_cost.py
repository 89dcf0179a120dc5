"""`python -m tests.benchmarks.folder_cost FOLDER [SECONDS]`: seconds and bytes of checkpoints in a folder of yours.

Runs the real program there against a model on loopback, in this order: "hello" in mode deny, a first and a second
edit, a command that only reads, a first and a second command that writes; each is a process of its own, all share one
home in a temporary folder. `SECONDS` is how long the model thinks, so that work beside it is seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.support.cli import Phoenix, with_claude
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import recording, start, stop, text, tool

STEPS: Final[tuple[tuple[str, str, str, dict[str, str]], ...]] = (
    ("hello, mode deny", "deny", "", {}),
    ("first edit", "accept-edits", "write_file", {"path": "phoenix-note.txt", "content": "one\n"}),
    ("second edit", "accept-edits", "write_file", {"path": "phoenix-note.txt", "content": "two\n"}),
    ("command that reads", "auto", "bash", {"command": "ls"}),
    ("first command that writes", "auto", "bash", {"command": "echo 1 >> phoenix-note.txt"}),
    ("second command that writes", "auto", "bash", {"command": "echo 2 >> phoenix-note.txt"}),
)


def model(name: str, arguments: dict[str, str], thinks: float) -> Callable[[Talk], Awaitable[None]]:
    """Ask once for the tool, then say so."""
    asked = 0

    async def answer(talk: Talk) -> None:
        nonlocal asked
        asked += 1
        await talk.begin()
        if asked > 1 or not name:
            await asyncio.sleep(thinks)
            await talk.send(*recording(start(), text(0, "Done."), stop()))
        else:
            call = tool(0, name, json.dumps(arguments), tool_id=f"toolu_{time.time_ns()}")
            await talk.send(*recording(start(), call, stop("tool_use")))
        await talk.end()

    return answer


async def measure(folder: Path, home: Path, thinks: float) -> None:
    """Print a row for each step."""
    print("| step | wall s | CPU s | checkpoints MB | added MB |\n|---|---|---|---|---|")
    kept = 0.0
    for name, mode, called, arguments in STEPS:
        async with serve(model(called, arguments, thinks)) as server:
            phoenix: Phoenix = replace(with_claude(home, server.url), cwd=folder)
            before, began = _cpu(), time.monotonic()
            ran = await phoenix.run("-p", name, "--permission-mode", mode)
            wall, cpu = time.monotonic() - began, _cpu() - before
        if ran.code:
            raise SystemExit(f"{name}: exit {ran.code}: {ran.err}")
        now = _bytes(home) / 1e6
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {now:.1f} | {now - kept:.1f} |")
        kept = now


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bytes(home: Path) -> int:
    places = (Path(top, name) for top, _, names in os.walk(home) for name in names if "checkpoints" in top)
    return sum(place.stat().st_blocks * 512 for place in places)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(measure(Path(sys.argv[1]), Path(scratch), float((*sys.argv, "0")[2])))
