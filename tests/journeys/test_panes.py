"""Three conversations in one screen, two of them asking: live, answered from the queue, back after a restart."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import Answer, calls, picks, rows, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_N, ENTER, Program, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
ALT_A, ALT_RIGHT = b"\x1ba", b"\x1b[1;3C"
COLUMNS, ROWS = 160, 32
TAKES = "1 y once 2 s this conversation: only this exact command"
"""Row of answers once they are taken: before, a dot replaces each letter."""


def talks(seen: Seen) -> Answer:
    """Each conversation's own reply, chosen by its first words and by what it has got so far."""
    said = json.dumps(seen.json["messages"])
    if "tool_result" in said:
        return says("Refused, so I stop." if "denied" in said else "The command is done.")
    if "alpha" in said:
        return calls("bash", "toolu_a", command="echo from-alpha > alpha.txt")
    if "beta" in said:
        return calls("bash", "toolu_b", command="echo from-beta > beta.txt")
    if "gamma" in said:
        return starts_to_say("Gamma writes on ", "and on and stays.")
    return says("A title")


async def three(running: Program) -> None:
    """Two that ask and one that writes, side by side; the dock is with gamma."""
    await running.ready()
    for words, seen in (("alpha go", "bash asks"), ("beta go", "bash asks"), ("gamma go", "stays.")):
        await running.send(words)
        await running.shows(f"┃ {words}", seen)
        if words != "gamma go":
            running.type(CTRL_N)
            await running.shows("New conversation")
    for words in ("alpha go", "beta go"):
        running.type(f"/split {words}")
        await running.shows(f"/split {words}")
        running.type(ENTER)
        await running.shows(f"│ ◆ {words}")
        await running.lacks("/split")
        running.type(ALT_RIGHT if words == "beta go" else b"")
    await running.shows("bash asks echo from-alpha > alpha.txt", "bash asks echo from-beta > beta.txt", "stays.")


async def test_two_of_three_panes_ask_and_are_answered_from_the_queue_while_the_third_writes_on(tmp_path: Path) -> None:
    async with serve(picks(talks)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, columns=COLUMNS, rows=ROWS) as running:
            await three(running)
            running.type(ALT_A)
            await running.shows("2 approvals wait", TAKES.format("alpha"))
            running.type("y")
            await running.shows("1 approval waits", TAKES.format("beta"))
            await running.until((phoenix.cwd / "alpha.txt").is_file, "the file of the allowed command")
            running.type("r")
            await running.shows("No, because …")
            running.type("not now\r")
            await running.shows("The command is done.", "Refused, so I stop.", "stays.")
            await running.lacks("approval waits")
            running.signal(signal.SIGKILL)
            await running.exit_code()
        assert not (phoenix.cwd / "beta.txt").exists()
        assert rows(phoenix, "select status, output_text from tool_calls order by tool_use_id") == [
            ("success", "[no output]\n[exit code 0]"),
            ("error", "User denied permission to run bash: not now"),
        ]
        async with program(phoenix, columns=COLUMNS, rows=ROWS) as running:
            await running.ready()
            await typing_guard()
            running.type(ENTER)  # what a crash left open is offered, never opened by itself
            await running.shows("interrupted, Enter resumes")
