"""The task board in lines: printed, read, changed; tracking switched."""

from __future__ import annotations

import json
from pathlib import Path

from phoenix_tui.features.tasks import NOTHING_WAITS
from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import recording, refuse, start, stop, text, tool
from tests.support.program import program
from tests.support.stored_boards import store_task, stored_tasks

ROWS, COLUMNS = 200, 200
"""Rows and columns of a terminal on which nothing scrolls away or wraps during a test."""

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
    async with program(phoenix, "--screen-reader", "-r", "Retry", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("You:")
        running.type("/tasks\r")
        await running.shows("Tasks: tracked 1 · ", "1. running: fix the retry test", "2. pending: write notes")
        running.type("/tasks 1\r")
        await running.shows("Task 1: fix the retry test", "Milestones:", "- found the socket", "#1 you: hello")
        running.type("/tasks none\r")
        await running.shows("Messages without a task:", "#2 agent: ")
        running.type("/tasks newest\r")
        await running.shows("2. pending: write notes")
        running.type("/tasks 1 done\r")
        await running.shows("Task 1 is done.")
        running.type("/tasks 2 edit write short notes\r")
        await running.shows("The text of task 2 is changed.")
        assert stored_tasks(database) == [(1, "success", "fix the retry test"), (2, "pending", "write short notes")]
        running.type("/tasks 1 delete\r")
        await running.shows("Delete task 1, “fix the retry test”? Its messages stay, without a task.", "2. delete")
        running.type("2\r")
        await running.shows("Task 1 is deleted; /tasks undo restores it.")
        assert stored_tasks(database) == [(1, "pending", "write short notes")]
        running.type("/tasks undo\r")
        await running.shows("Task 1 is on the board again: fix the retry test")
        assert stored_tasks(database) == [(1, "success", "fix the retry test"), (2, "pending", "write short notes")]
        running.type("/tasks undo\r")
        await running.shows("There is nothing to undo: no task of this conversation was deleted since Phoenix began.")
        running.type("/tasks 1 delete\r")
        await running.until(lambda: running.text.count("2. delete") == 2)
        running.type("2\r")
        await running.until(lambda: running.text.count("Task 1 is deleted;") == 2)
        running.type("/tasks 7\r")
        await running.shows("There is no task 7; the board has task 1 only.")
        running.type("/tasks one\r")
        await running.shows("Give the number of a task, and behind it nothing, done, pending")


async def test_tracking_is_switched_by_commands(tmp_path: Path) -> None:
    phoenix = await with_board(tmp_path)
    async with program(phoenix, "--screen-reader", "-r", "Retry", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("You:")
        running.type("/track off\r")
        await running.shows("Tracking is off for this conversation; its tasks stay.")
        running.type("/track\r")
        await running.shows("Tracking off · tracked 1.")
        running.type("/track on\r")
        await running.shows("Tracking is on for this conversation: a model reads its messages")
        running.type("/track perhaps\r")
        await running.shows("Give on, off or now; without a word /track shows how it is.")
    assert (await phoenix.run("tasks", "Retry", "--json")).json["tracking"] is True


async def test_the_todo_list_of_the_agent_is_printed_above_the_board(tmp_path: Path) -> None:
    phoenix = await with_board(tmp_path)
    async with program(phoenix, "--screen-reader", "-r", "Retry", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("You:")
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


async def test_messages_of_a_real_conversation_become_a_task_that_lines_and_scripts_read(tmp_path: Path) -> None:
    async with serve(answers) as server:
        phoenix = with_claude(tmp_path, server.url, PHOENIX_TASK_TRACKING="on")
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/tasks\r")
            await running.shows("There are no tasks yet: nothing was sent in this conversation.")
            running.type("fix the retry test\r")
            await running.shows("It is done.")
            running.type("/track now\r")
            tracked = ("2 messages tracked. Tracking on · tracked 2.", NOTHING_WAITS)  # it may have begun by itself
            await running.until(lambda: any(words in running.text for words in tracked))
            running.type("/tasks\r")
            await running.shows("1. running: fix the retry test", "   - it was fixed")
            running.type("/tasks 1\r")
            await running.shows("#1 you: fix the retry test", "#2 agent: It is done.")
            running.type("/tasks none\r")
            await running.shows("Every message belongs to a task.")
            running.type("/track now\r")
            await running.shows("No messages wait for tracking.")
        [task] = (await phoenix.run("tasks", "fix-the-retry-test", "--json")).json["tasks"]
        assert (task["status"], task["description"], task["messages"]) == ("running", "fix the retry test", [1, 2])
