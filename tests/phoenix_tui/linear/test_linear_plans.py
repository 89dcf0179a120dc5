"""The todo list, plans, the task board and traces in lines: read, changed, answered by numbers."""

from __future__ import annotations

import json
from pathlib import Path

from phoenix_tui.features.tasks import NOTHING_WAITS
from tests.support.cli import Phoenix, phoenix_in
from tests.support.journeys import Claude, calls, result_text, rows, says
from tests.support.loopback import Talk
from tests.support.loopback_anthropic import recording, refuse, start, stop, text, tool
from tests.support.program import in_lines, program
from tests.support.stored_boards import store_task, stored_tasks

PLAN = "# Bound the delay\n\nRead **retry.py**.\n\n- change it"


async def test_a_list_is_read_out_and_changed_by_numbers(claude: Claude) -> None:
    todos = [
        {"content": "Read the code", "status": "completed"},
        {"content": "Run the \x1b[2Jtests", "status": "in_progress", "activeForm": "Running the tests"},
    ]
    phoenix, server = await claude(calls("todo_write", todos=todos), says("Done."), says("Seen."))
    async with in_lines(phoenix, columns=200) as running:
        running.type("go\r")
        await running.shows("Tool todo_write", "1. [x] Read the code", "2. [>] Run the tests", "Assistant: Done.")
        await running.press("/todo\r", "Todo list:", "1. [x] Read the code", "2. [>] Run the tests")
        await running.press("2\r", "Run the tests:", "1. Done")
        await running.press("\r", "You:")
        await running.press("/todo add Write the docs\r", "Added as item 3: Write the docs")
        await running.press("/todo done 2\r", "Done: Run the tests")
        await running.press("/todo drop 9\r", "Give the number of an item, 1 to 3: /todo drop 1.")
        await running.press("on\r", "Assistant: Seen.")
    said = server.requests[2].body.decode()
    assert "[The user changed the todo list. It is now:" in said
    assert "3. [ ] Write the docs" in said


async def test_a_plan_is_read_out_revised_and_approved(claude: Claude) -> None:
    phoenix, server = await claude(
        calls("exit_plan", plan=PLAN), calls("exit_plan", "toolu_2", plan="# Less"), says("On it.")
    )
    async with in_lines(phoenix, columns=200) as running:
        await running.press("/plan\r", "1. Plan: ", "2. Todo list: ", "3. Task board: ")
        await running.press("1\r", "in plan mode the agent only reads", "1. Begin plan mode")
        await running.press("1\r", "Mode plan")
        running.type("go\r")
        await running.shows(
            "A plan waits for your answer.",
            "Heading: Bound the delay",
            "Read retry.py.",
            "End of the plan.",
            "Carry out this plan?",
            "1 or y: Yes, and ask before each change",
            "3 or a: Yes, and accept edits",
        )
        await running.press("5\r", "What should be different:")
        await running.press("less of it\r", "Heading: Less")
        await running.press("1\r", "Assistant: On it.")
        await running.press("/plan plan\r", "Approved plan")
    assert result_text(server.requests[1]).endswith("revise it and call exit_plan again: less of it")
    assert "The permission mode is now ask" in result_text(server.requests[2])
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [("# Less", "ask")]


async def test_a_plan_is_changed_by_the_line_and_approved_as_it_is_then(claude: Claude) -> None:
    phoenix, server = await claude(calls("exit_plan", plan=PLAN), says("On it."))
    async with in_lines(phoenix, "--permission-mode", "plan", columns=200) as lines:
        await lines.press("/plan edit\r", "No plan waits for an answer here.")
        await lines.press("go\r", "4 or n: No, stay in plan mode")
        await lines.press(
            "6\r", "The plan in 5 lines:", "2. (empty)", "3. Read **retry.py**.", "Line 1 to 6, all, or Enter"
        )
        lines.type("9\r")
        await lines.until(lambda: lines.words.count("Type the number of a line to change it") == 2)
        await lines.press("3\r", "Line 3: Read **retry.py**.")
        await lines.press("\x7f and delay.py.\r", "Line 3 is changed.")
        await lines.press("4\r", "Line 4:")
        await lines.press("\r", "Line 1 to 6, all")
        lines.type("2\r\r")  # empty already: nothing to change
        await lines.press("6\r- test it\n- say so\r", "The plan in 7 lines:", "6. - test it", "7. - say so")
        lines.type("\r")
        await lines.shows("You changed the plan; your answer counts for this text.", "Read retry.py and delay.py.")
        await lines.until(lambda: lines.words.count("6 or e: Edit the plan first") == 2)
        await lines.press("1\r", "Assistant: On it.")
    changed = "# Bound the delay\n\nRead **retry.py** and delay.py.\n\n- change it\n- test it\n- say so"
    assert changed in result_text(server.requests[1])
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [(changed, "ask")]


async def test_a_plan_is_written_anew_and_nothing_in_it_is_taken_for_an_answer(claude: Claude) -> None:
    phoenix, _ = await claude(calls("exit_plan", plan=PLAN), says("On it."))
    async with program(phoenix, "--screen-reader", "--permission-mode", "plan", rows=24, columns=80) as lines:
        await lines.shows("You:")
        await lines.press("go\r", "6 or e: Edit the plan first")
        await lines.press("/plan edit\r", "Enter when done:")
        await lines.press("all\r# Mine\r\ra\r/end of it\r", "Plan line:")
        lines.paste("y\nn\x1b[2J\n/end")
        await lines.press("\r/END\r/end\r", "The plan has 8 lines.")
        await lines.press("\r", "You changed the plan")
        await lines.shows("6 or e: Edit the plan first")
        await lines.press("a\r", "Assistant: On it.")
    mine = "# Mine\n\na\n/end of it\ny\nn[2J\n/end\n/END"
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [(mine, "accept-edits")]


async def test_esc_and_impossible_plans_leave_the_plan_as_it_was(claude: Claude) -> None:
    phoenix, _ = await claude(calls("exit_plan", plan="# One"), says("On it."))
    async with in_lines(phoenix, "--permission-mode", "plan", columns=200) as lines:
        await lines.press("go\r", "6 or e: Edit the plan first")
        await lines.press("e\r1\r", "Line 1: # One")
        await lines.press("\x15\r\r", "The plan is empty: write what you will do, step by step.")
        await lines.press("all\r", "Plan line:")
        lines.paste("x" * 40_000)
        await lines.press("\r/end\r\r", "The plan has 40,000 bytes; at most 32,768 are taken: leave out details.")
        await lines.press("\x1b", "The plan is unchanged.", "Answer:")
        await lines.press("1\r", "Assistant: On it.")
    assert rows(phoenix, "SELECT plan_text FROM conversations") == [("# One",)]


async def test_a_plan_that_another_process_ends_meanwhile_takes_no_change(claude: Claude) -> None:
    phoenix, server = await claude(calls("exit_plan", plan=PLAN))
    async with in_lines(phoenix, "--permission-mode", "plan", columns=200) as lines:
        await lines.press("go\r", "6 or e: Edit the plan first")
        await lines.press("e\r1\r", "Line 1: # Bound the delay")
        [(run_id,)] = rows(phoenix, "SELECT id FROM runs")
        assert (await phoenix.run("runs", "cancel", run_id)).code == 0
        await lines.press("s\r\r", "The plan no longer waits for an answer.")
    assert rows(phoenix, "SELECT plan_text FROM conversations") == [("",)]
    assert len(server.requests) == 1


async def test_the_lines_of_a_pipe_change_a_plan(claude: Claude) -> None:
    phoenix, _ = await claude(calls("exit_plan", plan=PLAN), says("On it."))
    given = b"go\ne\nall\n# Mine\n\n- a\x1b[2J\n/end\n1\n# Piped\n\na\n"
    ran = await phoenix.run("--screen-reader", "--permission-mode", "plan", stdin=given)
    assert (ran.code, "\x1b[2J" in ran.out) == (0, False)
    assert "Assistant: On it." in ran.out
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [("# Piped\n\n- a", "accept-edits")]


RECORDED = (
    tool(0, "insert_task", json.dumps({"after_task_order": 0, "task_description": "fix the retry test"}), tool_id="t0"),
    tool(
        1,
        "append_messages_to_task",
        json.dumps({"task_order": 1, "message_ids": [1, 2], "progress": "it was fixed"}),
        tool_id="t1",
    ),
    tool(2, "finish", "{}", tool_id="t2"),
    stop("tool_use"),
)
"""Reply of the task agent."""


async def with_board(folder: Path) -> Phoenix:
    """A conversation with two tasks, the first with both messages."""
    phoenix = phoenix_in(folder)
    known = (await phoenix.run("-p", "--output-format", "json", "-n", "Retry", "hello")).json["session_id"]
    database = phoenix.home / "phoenix.db"
    first = {"task_description": "fix the retry test", "progresses": ["read it", "found \x1b[2Jthe socket"]}
    store_task(database, known, 1, "running", first, [1])
    store_task(database, known, 2, "pending", {"task_description": "write notes"})
    return phoenix


async def test_a_board_is_read_and_changed_by_commands(tmp_path: Path) -> None:
    phoenix = await with_board(tmp_path)
    database = phoenix.home / "phoenix.db"
    async with in_lines(phoenix, "-r", "Retry", columns=200) as running:
        running.type("/tasks\r")
        await running.shows("Tasks: tracked 1 · ", "1. running: fix the retry test", "2. pending: write notes")
        running.type("/tasks 1\r")
        await running.shows("Task 1: fix the retry test", "Milestones:", "- found the socket", "#1 you: hello")
        await running.press("/tasks none\r", "Messages without a task:", "#2 agent: ")
        await running.press("/tasks newest\r", "2. pending: write notes")
        await running.press("/tasks 1 done\r", "Task 1 is done.")
        await running.press("/tasks 2 edit write short notes\r", "The text of task 2 is changed.")
        assert stored_tasks(database) == [(1, "success", "fix the retry test"), (2, "pending", "write short notes")]
        running.type("/tasks 1 delete\r")
        await running.shows("Delete task 1, “fix the retry test”? Its messages stay, without a task.", "2. delete")
        await running.press("2\r", "Task 1 is deleted; /tasks undo restores it.")
        assert stored_tasks(database) == [(1, "pending", "write short notes")]
        await running.press("/tasks undo\r", "Task 1 is on the board again: fix the retry test")
        assert stored_tasks(database) == [(1, "success", "fix the retry test"), (2, "pending", "write short notes")]
        running.type("/tasks undo\r")
        await running.shows("There is nothing to undo: no task of this conversation was deleted since Phoenix began.")
        running.type("/tasks 1 delete\r")
        await running.until(lambda: running.text.count("2. delete") == 2)
        running.type("2\r")
        await running.until(lambda: running.text.count("Task 1 is deleted;") == 2)
        await running.press("/tasks 7\r", "There is no task 7; the board has task 1 only.")
        await running.press("/tasks one\r", "Give the number of a task, and behind it nothing, done, pending")


async def test_tracking_is_switched_by_commands(tmp_path: Path) -> None:
    phoenix = await with_board(tmp_path)
    async with in_lines(phoenix, "-r", "Retry", columns=200) as running:
        await running.press("/track off\r", "Tracking is off for this conversation; its tasks stay.")
        await running.press("/track\r", "Tasks: tracked 1 · tracking off")
        await running.press("/track on\r", "Tracking is on for this conversation: a model reads its messages")
        await running.press("/track perhaps\r", "Give on, off or now; without a word /track shows how it is.")
    assert (await phoenix.run("tasks", "Retry", "--json")).json["tracking"] is True


async def test_the_todo_list_of_the_agent_is_printed_above_the_board(tmp_path: Path) -> None:
    phoenix = await with_board(tmp_path)
    async with in_lines(phoenix, "-r", "Retry", columns=200) as running:
        for words in ("add read the code", "add fix it", "done 1"):
            running.type(f"/todo {words}\r")
        await running.shows("Done: read the code")
        running.type("/tasks\r")
        await running.shows("Todo list of the agent 1/2:", "1. [x] read the code", "2. [ ] fix it", "Tasks: tracked 1")
        assert running.text.rindex("Todo list of the agent") < running.text.rindex("Tasks: tracked 1")


async def answers(talk: Talk) -> None:
    """Answer a message; as the task agent, record both messages as one task."""
    if await refuse(talk):
        return
    tools = talk.seen.json.get("tools", [])
    is_agent = "insert_task" in json.dumps(tools)
    parts = RECORDED if is_agent else (text(0, "It is done."), stop())
    await talk.begin()
    await talk.send(*recording(start(), *parts))
    await talk.end()


async def test_messages_of_a_real_conversation_become_a_task_that_lines_and_scripts_read(claude: Claude) -> None:
    phoenix, _ = await claude(answers, PHOENIX_TASK_TRACKING="on")
    async with in_lines(phoenix, columns=200) as running:
        await running.press("/tasks\r", "There are no tasks yet: nothing was sent in this conversation.")
        await running.press("fix the retry test\r", "It is done.")
        running.type("/track now\r")
        tracked = ("2 messages tracked. Tracking on · tracked 2.", NOTHING_WAITS)  # it may have begun by itself
        await running.until(lambda: any(words in running.text for words in tracked))
        await running.press("/tasks\r", "1. running: fix the retry test", "   - it was fixed")
        await running.press("/tasks 1\r", "#1 you: fix the retry test", "#2 agent: It is done.")
        await running.press("/tasks none\r", "Every message belongs to a task.")
        await running.press("/track now\r", "No messages wait for tracking.")
    [task] = (await phoenix.run("tasks", "fix-the-retry-test", "--json")).json["tasks"]
    assert (task["status"], task["description"], task["messages"]) == ("running", "fix the retry test", [1, 2])


async def test_the_newest_run_is_read_out(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_PERMISSION_MODE="auto")
    async with in_lines(phoenix, columns=400) as running:
        await running.press("/trace\r", "There are no runs to trace yet.")
        await running.press("run `echo built`\r", "demo/guide: rules, no model.")
        running.type("/trace\r")
        await running.shows("success · ", "2 model calls, 1 tool call", "llm guide: ok, ", "tool bash: success, ")
