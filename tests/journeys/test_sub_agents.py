"""Two sub-agents in a real terminal: one asks through its parent, one is looked at and stopped; both after a kill."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import Answer, calls, picks, rows, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import ENTER, ESC, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
ALT_N, ALT_P, ALT_S, ALT_U = b"\x1bn", b"\x1bp", b"\x1bs", b"\x1bu"
TASKS = [{"task": "TASK make a file"}, {"task": "TASK read the docs"}]


def talks(seen: Seen) -> Answer:
    """Answer chosen by the asking conversation, its first message and its results so far."""
    said: Any = seen.json["messages"]
    messages, first = json.dumps(said), json.dumps(said[0])
    if "TASK make" in first:
        if "tool_result" in messages:
            return calls("submit_result", "toolu_s", result="The file is made.\nIt is empty.")
        return calls("bash", "toolu_b", command="touch made.txt")
    if "TASK read" in first:
        return starts_to_say("I read on ", "and on.")
    if "begin" in first:
        return says("One did it, one was stopped.") if "tool_result" in messages else calls("spawn_agents", tasks=TASKS)
    return says("A title")


async def test_they_are_seen_answered_entered_stopped_alone_and_listed_after_a_kill(tmp_path: Path) -> None:
    async with serve(picks(talks)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "ask", columns=120, rows=40) as running:
            await running.ready()
            await running.send("begin")
            await running.shows("wants to start sub-agents")
            await typing_guard()
            running.type("y")
            await running.shows(
                "sub-agents 0/2 done", "TASK make a file (sub-agent of begin) wants to run a command", "asks you"
            )
            await typing_guard()
            running.type("y")
            await running.shows("✓ TASK make a file", "sub-agents 1/2 done", "Esc stops 1 sub-agent")
            assert (phoenix.cwd / "made.txt").is_file()
            running.type(ALT_P)
            await running.shows("TASK read the docs (sub-agent of begin) 2 of 2", "and on.", "Esc stops this sub-agent")
            running.type(ALT_N)
            await running.shows("TASK make a file (sub-agent of begin) 1 of 2", "Esc returns to its parent")
            running.type(ALT_N)
            await running.shows("2 of 2", "and on.")
            running.type(ESC)
            await running.shows("Esc returns to its parent")
            running.type(ALT_U)
            await running.shows("◇ spawn_agents 1 of 2 sub-agents succeeded", "One did it, one was stopped.")
            await running.shows("■ TASK read the docs cancelled", "ready")
            running.signal(signal.SIGKILL)
            await running.exit_code()
        assert rows(phoenix, "select result_status, result_text from conversations where kind = 'subagent'") == [
            ("success", "The file is made.\nIt is empty."),
            ("cancelled", ""),
        ]
        async with program(phoenix, "-c", columns=120, rows=40) as running:
            await running.shows("One did it, one was stopped.", "ready")
            running.type(ALT_S)
            await running.shows("2 sub-agents Enter opens", "› ✓ TASK make a file", "■ TASK read the docs cancelled")
            running.type(ENTER)
            await running.shows("TASK make a file (sub-agent of begin) 1 of 2", "submit_result")
