"""`phoenix -p` in plan mode: the plan is the result; and a todo list in its progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.cli import with_claude
from tests.support.journeys import calls, rows, says
from tests.support.loopback import serve

PLAN = "# Bound the delay\n\n1. Read retry.py\n2. Change it"


async def test_the_plan_is_printed_and_nothing_else(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN)) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "--permission-mode", "plan", "Plan it")
        assert (ran.code, ran.out) == (0, f"{PLAN}\n")
        assert "refused" not in ran.err
        assert len(server.requests) == 1
        assert rows(phoenix, "SELECT plan_text, permission_mode, state FROM conversations") == [(PLAN, "plan", "idle")]


async def test_the_result_object_is_a_success_with_the_plan(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN)) as server:
        ran = await with_claude(tmp_path, server.url).run(
            "-p", "--permission-mode", "plan", "--output-format", "json", "Plan it"
        )
    result: dict[str, Any] = ran.json
    assert (ran.code, result["subtype"], result["is_error"]) == (0, "success", False)
    assert result["result"] == PLAN
    assert result["permission_denials"] == []


async def test_a_stream_ends_with_the_plan_as_an_answer(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN)) as server:
        ran = await with_claude(tmp_path, server.url).run(
            "-p", "--permission-mode", "plan", "--output-format", "stream-json", "Plan it"
        )
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines[-1]["result"] == PLAN
    assert [line["type"] for line in lines] == ["system", "assistant", "user", "assistant", "result"]
    assert lines[-2]["message"]["content"] == [{"type": "text", "text": PLAN}]


async def test_a_conversation_goes_on_behind_its_plan(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        await phoenix.run("-p", "--permission-mode", "plan", "Plan it")
        ran = await phoenix.run("-p", "-c", "--permission-mode", "auto", "Do it")
        assert (ran.code, ran.out) == (0, "Done.\n")
        said = json.dumps(server.requests[1].json["messages"])
        assert "The plan was delivered as the result of this run." in said
        assert json.dumps(PLAN)[1:-1] in said


async def test_outside_of_plan_mode_the_tool_is_not_offered(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        await with_claude(tmp_path, server.url).run("-p", "--permission-mode", "auto", "Hi")
    offered: Any = server.requests[0].json["tools"]
    names = [tool["name"] for tool in offered]
    assert "todo_write" in names
    assert "exit_plan" not in names


async def test_progress_says_how_far_the_todo_list_is(tmp_path: Path) -> None:
    todos = [
        {"content": "Read the code", "status": "completed"},
        {"content": "Run the tests", "status": "in_progress", "activeForm": "Running the tests"},
    ]
    async with serve(calls("todo_write", todos=todos), says("Done.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Go")
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert "• todo_write 1/2 Running the tests" in ran.err
