"""Earlier text is found again: in the conversation, in all of them, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import Answer, calls, picks, says
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_N, ENTER, ESC, program

pytestmark = pytest.mark.pty

CTRL_F = b"\x06"
LONG = "".join(f"Line {number} of the answer.\n\n" for number in range(60))


def answers(seen: Seen) -> Answer:
    """Each prompt its own answer; a command prints what is looked for later."""
    messages = str(seen.json["messages"])
    if "tool_result" in messages:
        return says("It printed a treasure.")
    if "Run it" in messages:
        return calls("bash", command="printf 'hidden %s\\n' treasure")
    return says("The needle is here.\n\n", LONG)


async def test_a_word_is_found_here_everywhere_and_from_the_command_line(tmp_path: Path) -> None:
    async with serve(picks(answers)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Run it")
            await running.shows("It printed a treasure.", "ready")
            running.type(CTRL_N)
            await running.shows("New conversation")
            await running.send("Where is it?")
            await running.shows("Line 59 of the answer.", "ready")
            running.type(CTRL_F)
            await running.shows("find in this conversation")
            running.type("needle")
            await running.shows("1 of 1", "The needle is here.")
            running.type(CTRL_F)
            await running.shows("Enter opens", "1 of 1")
            running.type(b"\x7f" * 6)
            running.type('"hidden treasure" role:tool')
            await running.shows("1 of 1", "hidden treasure")
            running.type(ENTER)
            await running.shows("Hit 1 of 1", "It printed a treasure.")
            running.type(ESC)
            await running.shows("Enter opens")
            running.type(ESC)
            await running.shows("The needle is here.", "ready")
        found = await phoenix.run("conversations", "search", '"hidden treasure"', "--json")
        assert [(hit["role"], hit["seq"], hit["marks"]) for hit in found.json] == [("tool", 2, [[30, 45]])]
        mistaken = await phoenix.run("conversations", "search", "x role:boss")
        assert (mistaken.code, mistaken.err) == (
            2,
            "phoenix: boss is not a role; use user, assistant, tool.\n  x role:boss\n    ^^^^^^^^^\n",
        )
