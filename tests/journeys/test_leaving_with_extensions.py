"""A server and a hook that start hard process trees: Esc, quit, a closed terminal and SIGKILL leave nothing of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.mcp_helper import ROOT
from tests.support.mcp_hubs import KINDS
from tests.support.processes import SHAPES, Watch, watching
from tests.support.program import CTRL_Q, ESC, Program, program
from tests.support.waiting import poll

pytestmark = pytest.mark.pty
TREES: Final = "\n".join(f"( {shape.script}\n) </dev/null >/dev/null 2>&1 &" for shape in SHAPES)
COUNT: Final = sum(shape.processes for shape in SHAPES)
SERVER_NAME: Final = "trees"


def configured(phoenix: Phoenix, server: Watch, hook: Watch) -> Phoenix:
    """Write a server and a hook of the user: both start all trees, and the hook then waits."""
    start = server.command(f"{TREES}\nPYTHONPATH={ROOT} exec {' '.join(KINDS)}")
    argv = ["/usr/bin/env", *(f"{name}={value}" for name, value in start.environment.items()), *start.argv]
    phoenix.home.mkdir(parents=True, exist_ok=True)
    with (phoenix.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(f"\n[mcp.{SERVER_NAME}]\ncommand = {json.dumps(argv[0])}\nargs = {json.dumps(argv[1:])}\n")
    run = hook.command(f"{TREES}\nwait")
    inner = ["/usr/bin/env", *(f"{name}={value}" for name, value in run.environment.items()), *run.argv]
    entry = {"type": "command", "command": inner[0], "args": inner[1:]}
    hooks = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}}
    (phoenix.home / "hooks.json").write_text(json.dumps(hooks), encoding="utf-8")
    return phoenix


async def both_stand(running: Program, server: Watch, hook: Watch) -> None:
    """Ask for a command, and wait until every process of both trees runs."""
    await running.ready()
    await running.send("Run it")
    await running.until(lambda: server.stands(COUNT + 1), "all trees of the server")
    await running.until(lambda: hook.stands(COUNT + 1), "all trees of the hook")


async def test_esc_ends_every_tree_of_a_hook_and_the_server_goes_on(tmp_path: Path) -> None:
    echo = calls(f"mcp__{SERVER_NAME}__echo", text="still here")
    with watching() as server, watching() as hook:
        async with serve(calls("bash", command="echo never"), echo, says("Good.")) as model:
            phoenix = configured(with_claude(tmp_path, model.url), server, hook)
            async with program(phoenix, "--permission-mode", "auto") as running:
                await both_stand(running, server, hook)
                running.type(ESC)
                await running.until(lambda: not hook.alive(), "the end of the hook")
                await running.shows("stopped by you")
                await running.until(lambda: server.stands(COUNT + 1), "all trees of the server, still")
                await running.until((phoenix.home / "mcp_cache.json").exists, "the tools of the server")
                await running.send("Are you there?")
                await running.shows("Good.")
                assert result_text(model.requests[-1]) == "still here"
        assert await poll(lambda: not server.alive())


def quits(running: Program) -> None:
    running.type(CTRL_Q + b"y")


def is_killed(running: Program) -> None:
    os.kill(running.pid, signal.SIGKILL)


ENDS: Final[dict[str, Callable[[Program], None]]] = {
    "quit": quits,
    "a closed terminal": lambda running: running.hang_up(),
    "SIGKILL": is_killed,
}


@pytest.mark.parametrize("end", ENDS)
async def test_no_process_of_a_server_or_a_hook_outlives_phoenix(end: str, tmp_path: Path) -> None:
    with watching() as server, watching() as hook:
        async with serve(calls("bash", command="echo never"), says("Good.")) as model:
            phoenix = configured(with_claude(tmp_path, model.url), server, hook)
            async with program(phoenix, "--permission-mode", "auto") as running:
                await both_stand(running, server, hook)
                ENDS[end](running)
                await running.until(lambda: not (server.alive() | hook.alive()), "the end of every tree")
