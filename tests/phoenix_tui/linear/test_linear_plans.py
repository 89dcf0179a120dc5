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


async def test_a_plan_is_changed_by_the_line_and_approved_as_it_is_then(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN), says("On it.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(
            phoenix, "--screen-reader", "--permission-mode", "plan", rows=ROWS, columns=COLUMNS
        ) as lines:
            await lines.shows("You:")
            lines.type("/plan edit\r")
            await lines.shows("No plan waits for an answer here.")
            lines.type("go\r")
            await lines.shows("5 or n not now, stay in plan mode; 6 or e edit the plan first.")
            lines.type("6\r")
            await lines.shows(
                "The plan in 5 lines:", "2. (empty)", "3. Read **retry.py**.", "Line 1 to 6, all, or Enter"
            )
            lines.type("9\r")
            await lines.until(lambda: lines.words.count("Type the number of a line to change it") == 2)
            lines.type("3\r")
            await lines.shows("Line 3: Read **retry.py**.")
            lines.type("\x7f and delay.py.\r")
            await lines.shows("Line 3 is changed.")
            lines.type("4\r")
            await lines.shows("Line 4:")
            lines.type("\r")
            await lines.shows("Line 1 to 6, all")
            lines.type("2\r\r")  # empty already: nothing to change
            lines.type("6\r- test it\n- say so\r")
            await lines.shows("The plan in 7 lines:", "6. - test it", "7. - say so")
            lines.type("\r")
            await lines.shows("You changed the plan; your answer counts for this text.", "Read retry.py and delay.py.")
            await lines.until(lambda: lines.words.count("6 or e edit the plan first.") == 2)
            lines.type("2\r")
            await lines.shows("Assistant: On it.")
    changed = "# Bound the delay\n\nRead **retry.py** and delay.py.\n\n- change it\n- test it\n- say so"
    assert changed in result_text(server.requests[1])
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [(changed, "ask")]


async def test_a_plan_is_written_anew_and_nothing_in_it_is_taken_for_an_answer(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN), says("On it.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", "--permission-mode", "plan", rows=24, columns=80) as lines:
            await lines.shows("You:")
            lines.type("go\r")
            await lines.shows("6 or e edit the plan first.")
            lines.type("/plan edit\r")
            await lines.shows("Enter when done:")
            lines.type("all\r# Mine\r\ra\r/end of it\r")
            await lines.shows("Plan line:")
            lines.paste("y\nn\x1b[2J\n/end")
            lines.type("\r/END\r/end\r")
            await lines.shows("The plan has 8 lines.")
            lines.type("\r")
            await lines.shows("You changed the plan")
            await lines.shows("6 or e edit the plan first.")
            lines.type("a\r")
            await lines.shows("Assistant: On it.")
    mine = "# Mine\n\na\n/end of it\ny\nn[2J\n/end\n/END"
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [(mine, "accept-edits")]


async def test_esc_and_impossible_plans_leave_the_plan_as_it_was(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan="# One"), says("On it.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(
            phoenix, "--screen-reader", "--permission-mode", "plan", rows=ROWS, columns=COLUMNS
        ) as lines:
            await lines.shows("You:")
            lines.type("go\r")
            await lines.shows("6 or e edit the plan first.")
            lines.type("e\r1\r")
            await lines.shows("Line 1: # One")
            lines.type("\x15\r\r")
            await lines.shows("The plan is empty: write what you will do, step by step.")
            lines.type("all\r")
            await lines.shows("Plan line:")
            lines.paste("x" * 40_000)
            lines.type("\r/end\r\r")
            await lines.shows("The plan has 40,000 bytes; at most 32,768 are taken: leave out details.")
            lines.type("\x1b")
            await lines.shows("The plan is unchanged.", "Answer:")
            lines.type("1\r")
            await lines.shows("Assistant: On it.")
    assert rows(phoenix, "SELECT plan_text FROM conversations") == [("# One",)]


async def test_a_plan_that_another_process_ends_meanwhile_takes_no_change(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(
            phoenix, "--screen-reader", "--permission-mode", "plan", rows=ROWS, columns=COLUMNS
        ) as lines:
            await lines.shows("You:")
            lines.type("go\r")
            await lines.shows("6 or e edit the plan first.")
            lines.type("e\r1\r")
            await lines.shows("Line 1: # Bound the delay")
            [(run_id,)] = rows(phoenix, "SELECT id FROM runs")
            assert (await phoenix.run("runs", "cancel", run_id)).code == 0
            lines.type("s\r\r")
            await lines.shows("The plan no longer waits for an answer.")
    assert rows(phoenix, "SELECT plan_text FROM conversations") == [("",)]
    assert len(server.requests) == 1


async def test_the_lines_of_a_pipe_change_a_plan(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN), says("On it.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        given = b"go\ne\nall\n# Mine\n\n- a\x1b[2J\n/end\n1\n# Piped\n\na\n"
        ran = await phoenix.run("--screen-reader", "--permission-mode", "plan", stdin=given)
        assert (ran.code, "\x1b[2J" in ran.out) == (0, False)
        assert "Assistant: On it." in ran.out
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [("# Piped\n\n- a", "accept-edits")]
