"""The todo list and plans in lines: read, changed, answered by numbers."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, rows, says
from tests.support.loopback import serve
from tests.support.program import program

ROWS, COLUMNS = 200, 200
"""A terminal on which nothing scrolls away or wraps during a test."""
PLAN = "# Bound the delay\n\nRead **retry.py**.\n\n- change it"


async def test_a_list_is_read_out_and_changed_by_numbers(tmp_path: Path) -> None:
    todos = [
        {"content": "Read the code", "status": "completed"},
        {"content": "Run the \x1b[2Jtests", "status": "in_progress", "activeForm": "Running the tests"},
    ]
    async with serve(calls("todo_write", todos=todos), says("Done."), says("Seen.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("go\r")
            await running.shows("Tool todo_write", "1. [x] Read the code", "2. [>] Run the tests", "Assistant: Done.")
            running.type("/todo\r")
            await running.shows("Todo list 1/2")
            running.type("/todo add Write the docs\r")
            await running.shows("Added as item 3: Write the docs")
            running.type("/todo done 2\r")
            await running.shows("Done: Run the tests")
            running.type("/todo drop 9\r")
            await running.shows("Give the number of an item, 1 to 3: /todo drop 1.")
            running.type("on\r")
            await running.shows("Assistant: Seen.")
    said = server.requests[2].body.decode()
    assert "[The user changed the todo list. It is now:" in said
    assert "3. [ ] Write the docs" in said


async def test_a_plan_is_read_out_revised_and_approved(tmp_path: Path) -> None:
    async with serve(
        calls("exit_plan", plan=PLAN), calls("exit_plan", "toolu_2", plan="# Less"), says("On it.")
    ) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/plan\r")
            await running.shows("Plan mode: the agent reads and proposes a plan")
            running.type("go\r")
            await running.shows(
                "A plan waits for your answer.",
                "Heading: Bound the delay",
                "Read retry.py.",
                "End of the plan.",
                "1 or a approve, accept edits; 2 or y approve, ask before each change;",
            )
            running.type("4\r")
            await running.shows("What should be different:")
            running.type("less of it\r")
            await running.shows("Heading: Less")
            running.type("2\r")
            await running.shows("Assistant: On it.")
            running.type("/plan\r")
            await running.shows("Approved plan")
    assert result_text(server.requests[1]).endswith("revise it and call exit_plan again: less of it")
    assert "The permission mode is now ask" in result_text(server.requests[2])
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [("# Less", "ask")]
