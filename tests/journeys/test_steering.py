"""Steering in a real terminal and in lines: the running turn reads the message behind its tool results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import program

pytestmark = pytest.mark.pty
ALT_I = b"\x1bi"
WAITS = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo done"


def end_of(seen: Seen) -> list[str]:
    """Types and texts of the last message of a request."""
    messages: Any = seen.json["messages"]
    assert messages[-1]["role"] == "user"
    return [block.get("text", block["type"]) for block in messages[-1]["content"]]


@pytest.mark.parametrize("lines", [False, True])
async def test_a_steered_message_is_read_with_the_results_of_the_running_command(tmp_path: Path, lines: bool) -> None:
    async with serve(calls("bash", command=WAITS), says("With tabs, then.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        work = tmp_path / "work"
        flags = ("--permission-mode", "auto", "--sandbox", "off", *(("--screen-reader",) if lines else ()))
        async with program(phoenix, *flags, rows=40, columns=120) as running:
            if lines:
                await running.shows("You:")
                running.type("go\r")
            else:
                await running.ready()
                await running.send("go")
            await running.until(lambda: (work / "started").exists())
            if lines:
                running.type("/steer use tabs\r")
                await running.shows("read with the next tool result")
            else:
                running.type("use tabs")
                await running.shows("use tabs")
                running.type(ALT_I)
                await running.shows("with the next tool result")
            (work / "go").touch()
            await running.shows("With tabs, then.")
            await running.lacks("with the next tool result" if not lines else "\x00")
    results, words, note, *_ = end_of(server.requests[1])
    assert (results, words) == ("tool_result", "use tabs")
    assert note.startswith("[The user wrote this message while you were working.")
    assert rows(phoenix, "SELECT count(*) FROM queued_messages") == [(0,)]
    assert rows(phoenix, "SELECT count(DISTINCT turn_id) FROM messages") == [(1,)]
