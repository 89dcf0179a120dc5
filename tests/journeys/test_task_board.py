"""Requests become tasks on the board; the user reads and corrects them, and goes back to the messages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import rows
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import Event, recording, refuse, start, stop, text, tool
from tests.support.program import ENTER, ESC, program

pytestmark = pytest.mark.pty
F3 = b"\x1bOR"
DOWN = b"\x1b[B"
MANY_LINES = "\n\n".join(f"Line {number}." for number in range(60))
TASKS = "SELECT ord, status, json_extract(data_json, '$.task_description') FROM tracked_tasks ORDER BY ord"


async def answers(talk: Talk) -> None:
    """Answer a message at length; as the task agent, make a task of every message of the user."""
    if await refuse(talk):
        return
    body = talk.seen.json
    parts: list[Event | list[Event]] = [text(0, f"Answer to it.\n\n{MANY_LINES}"), stop()]
    if "insert_task" in json.dumps(body.get("tools", [])):
        before, _, current = json.dumps(body["messages"]).rpartition("## Current Messages")
        there = len(re.findall(r"Task \d+: .*? \(Status", before))
        asked = re.findall(r"<message id=(\d+)>User: (.*?)</message>", current)
        calls: list[tuple[str, dict[str, object]]] = []
        for order, (seq, words) in enumerate(asked, start=there + 1):
            calls.append(("insert_task", {"after_task_order": order - 1, "task_description": words}))
            calls.append(("append_messages_to_task", {"task_order": order, "message_ids": [int(seq), int(seq) + 1]}))
        calls.append(("finish", {}))
        parts = [*(tool(n, name, json.dumps(given), tool_id=f"t{n}") for n, (name, given) in enumerate(calls))]
        parts.append(stop("tool_use"))
    await talk.begin()
    await talk.send(*recording(start(), *parts))
    await talk.end()


async def test_requests_become_tasks_while_one_looks_and_lead_back_to_their_messages(tmp_path: Path) -> None:
    async with serve(answers) as server:
        phoenix = with_claude(tmp_path, server.url, PHOENIX_TASK_TRACKING="on")
        async with program(phoenix, rows=30, columns=100) as running:
            await running.ready()
            await running.send("find the slow query")
            await running.shows("Line 59.", "○ ready")
            await running.send("then write release notes")
            await running.until(lambda: "then write release notes" in running.text and "Line 59." in running.text)
            await running.until(lambda: rows(phoenix, "SELECT count(*) FROM messages") == [(4,)])
            running.type(F3)
            await running.shows("Tasks", "tracking on")
            running.type("f")
            await running.shows("1  find the slow query", "2  then write release notes", "tracked 4")
            running.type(DOWN + b"s")
            await running.shows("Status of task 2")
            running.type(DOWN + ENTER)
            await running.shows("Task 2 is done.")
            running.type("k")
            running.type(ENTER)
            await running.shows("Task 1", "#1  you: find the slow query")
            running.type(ENTER)
            await running.lacks("Milestones")
            await running.until(lambda: "find the slow query" in running.text and "Line 0." in running.text)
            await running.lacks("Line 59.")
            running.type(F3)
            await running.shows("done     2  then write release notes")
            running.type(ESC)
            await running.lacks("tracked 4")
        assert rows(phoenix, TASKS) == [
            (1, "running", "find the slow query"),
            (2, "success", "then write release notes"),
        ]
