"""Sub-agents in lines: who begins, who asks, how each ends, and what can be done with them."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.loopback import serve
from tests.support.loopback_agents import begins, by_last_message, calls, never_ends, says, spawns, submits
from tests.support.program import ESC, program

ROWS = 200
"""Rows of a terminal on which nothing scrolls away during a test."""


async def test_sub_agents_are_said_as_they_begin_ask_and_end(tmp_path: Path) -> None:
    answers = by_last_message({
        "Sub-agent results": says("Both are back."),
        "made by the first": submits("It is \x1b]0;owned\x07made."),
        "TASK one": calls("bash", {"command": "echo made by the first"}),
        "TASK two": submits("second"),
        "go": spawns("TASK one", "TASK two"),
    })
    async with (
        serve(answers) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("go\r")
        await running.shows("Permission needed: tool spawn_agents asks.", "Answer:")
        running.type("y\r")
        await running.shows(
            "2 sub-agents started: TASK one; TASK two. /agents lists them.",
            "Permission needed: tool bash asks, for TASK one (sub-agent of go).",
            "It would run: echo made by the first",
        )
        running.type("y\r")
        await running.shows(
            "Sub-agent done: TASK one", "Sub-agent done: TASK two", "Assistant: Both are back.", "Ready"
        )
        running.type("/agents\r")
        await running.shows("2 sub-agents:", "1. TASK one, general, done, turn 2 of 20")
        running.type("1\r")
        await running.shows("TASK one:", "1. Read what it did", "2. Send it a hint")
        running.type("1\r")
        await running.shows("You: TASK one", "Ended: done. It is made.")
        assert b"owned" not in running.raw
        running.type("/cost\r")
        await running.shows("itself,", "TASK two (general)", "replies: 2 calls")


async def test_one_that_goes_on_behind_a_conversation_at_rest_is_stopped_by_number_or_by_esc(tmp_path: Path) -> None:
    answers = by_last_message({
        "started": says("It works in the background."),
        "TASK one": never_ends,
        "go": begins("TASK one"),
    })
    async with (
        serve(answers) as server,
        program(
            with_claude(tmp_path, server.url), "--screen-reader", "--permission-mode", "auto", rows=ROWS
        ) as running,
    ):
        await running.shows("You:")
        running.type("go\r")
        await running.shows("1 sub-agent started: TASK one.", "It works in the background.", "Ready")
        running.type("/agents\r")
        await running.shows("1. TASK one, general, thinks")
        running.type("1\r")
        await running.shows("3. Stop it")
        running.type("3\r")
        await running.shows("1 sub-agent stopped; their results are kept.", "Sub-agent stopped: TASK one")
        running.type("go\r")
        await running.until(lambda: running.words.count("1 sub-agent started") == 2, "a second one")
        running.type(ESC)
        await running.until(lambda: running.words.count("Sub-agent stopped: TASK one") == 2, "stopped by Esc")
