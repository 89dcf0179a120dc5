"""`phoenix tasks`: the board of a conversation as people and scripts read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in
from tests.support.stored_boards import store_task

HOSTILE = "delete \x1b]0;evil\x07the \x1b[2Jcache \u202egnp"


async def talk(phoenix: Phoenix) -> str:
    ran = await phoenix.run("-p", "--output-format", "json", "-n", "Retry", "hello")
    return str(ran.json["session_id"])


@pytest.fixture
def phoenix(tmp_path: Path) -> Phoenix:
    return phoenix_in(tmp_path)


def fill(phoenix: Phoenix, conversation_id: str) -> None:
    """Two tasks and a planning section, the first task with both messages."""
    database = phoenix.home / "phoenix.db"
    first = {
        "task_description": "fix the retry test",
        "progresses": ["read it", "found the socket"],
        "user_preferences": ["The user wants short answers."],
    }
    store_task(database, conversation_id, 1, "success", first, [1, 2])
    store_task(database, conversation_id, 2, "failed", {"task_description": HOSTILE, "progresses": [HOSTILE]})
    store_task(database, conversation_id, 0, "pending", {"user_preferences": ["The user prefers tabs."]})


async def test_a_board_is_printed_in_order_with_the_last_milestones_and_the_planning_section(phoenix: Phoenix) -> None:
    known = await talk(phoenix)
    fill(phoenix, known)
    ran = await phoenix.run("tasks", "Retry")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0] == "Tasks: tracked 2 · tracking off"
    assert lines[1].startswith("1. done: fix the retry test (")
    assert lines[2:4] == ["   - found the socket", "   prefers: The user wants short answers."]
    assert lines[4].startswith("2. failed: delete the cache gnp (")
    assert lines[5:] == ["   - delete the cache gnp", "Planning: 1 preference", "   prefers: The user prefers tabs."]


async def test_scripts_read_everything_as_json_and_nothing_in_it_drives_a_terminal(phoenix: Phoenix) -> None:
    known = await talk(phoenix)
    fill(phoenix, known)
    ran = await phoenix.run("tasks", known[:8], "--json")
    assert not [sign for sign in ran.out if sign in "\x1b\x07\x9b\u202e"]
    shown = ran.json
    assert (shown["session_id"], shown["tracking"], shown["tracking_by"]) == (known, False, "setting")
    assert shown["messages"] == {
        "success": 2,
        "running": 0,
        "pending": 0,
        "failed": 0,
        "disabled": 0,
        "before_tracking": 0,
    }
    first, second = shown["tasks"]
    assert first == {
        "order": 1,
        "id": "stored-1",
        "status": "success",
        "description": "fix the retry test",
        "progress": ["read it", "found the socket"],
        "preferences": ["The user wants short answers."],
        "messages": [1, 2],
        "created_at": "2026-11-16T10:00:01.000Z",
        "updated_at": "2026-11-16T10:00:01.000Z",
    }
    assert (second["order"], second["status"], second["messages"]) == (2, "failed", [])
    assert (shown["planning"]["id"], shown["planning"]["preferences"]) == ("stored-0", ["The user prefers tabs."])


async def test_a_board_without_tasks_and_a_conversation_that_is_not_there_are_said(phoenix: Phoenix) -> None:
    await talk(phoenix)
    ran = await phoenix.run("tasks", "Retry")
    assert (ran.code, "Tracking is off, so no tasks are found." in ran.out) == (0, True)
    tracked = Phoenix(phoenix.home, phoenix.cwd, {"PHOENIX_TASK_TRACKING": "on"})
    assert "No tasks yet. Messages are tracked 8 s after the last one" in (await tracked.run("tasks", "Retry")).out
    gone = await phoenix.run("tasks", "nowhere")
    assert (gone.code, gone.err) == (
        2,
        "phoenix: No conversation matches 'nowhere'; `phoenix conversations list` shows them.\n",
    )
    assert (await phoenix.run("tasks")).code == 2
