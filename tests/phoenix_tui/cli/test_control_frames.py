"""Frames about sub-agents, and `tool_use_result` of a host's `user` frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.machine.messages import ToolCall, ToolResult, ToolStatus
from engine.machine.states import AgentOutcome, AgentStatus, Idle
from engine.updates import AgentView, ToolEnded, ToolStarted
from phoenix_tui.cli.control.reporter import MOST_HELD, TaskFrames, ToolUseResults
from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tools.contract import JsonObject, JsonValue

VIEW = AgentView(
    id="a",
    task="Look",
    profile="general",
    model="anthropic/x",
    background=False,
    state=Idle(0),
    waits=False,
    activity="",
    turn=1,
    max_turns=20,
    started=100.0,
    ended=0.0,
    timeout=300.0,
    tokens=0,
    cost_usd=0.0,
    last_output=102.5,
    call_id="toolu_1",
)
CALL = ToolStarted(ToolCall("c", "read_file", "{}"), None)


def test_progress_is_told_where_calls_or_tokens_have_changed() -> None:
    frames = TaskFrames()
    assert [one["subtype"] for one in frames.of([VIEW])] == ["task_started"]
    assert list(frames.of([VIEW])) == []
    frames.note("a", CALL)
    frames.note("another", CALL)
    [progress] = frames.of([VIEW])
    assert progress["usage"] == {"total_tokens": 0, "tool_uses": 1, "duration_ms": 2_500}
    assert (progress["last_tool_name"], progress["tool_use_id"]) == ("Read", "toolu_1")
    assert [one["subtype"] for one in frames.of([replace(VIEW, tokens=7)])] == ["task_progress"]


def test_an_agent_that_works_once_more_is_a_task_once_more() -> None:
    frames = TaskFrames()
    list(frames.of([VIEW]))
    frames.note("a", CALL)
    ended = replace(VIEW, outcome=AgentOutcome("a", AgentStatus.CANCELLED), ended=103.0)
    updated, notified = frames.of([ended])
    assert updated["patch"] == {"status": "killed", "end_time": 103_000}
    assert (notified["status"], notified["summary"]) == ("stopped", "Look")
    assert list(frames.of([ended])) == []
    assert [one["subtype"] for one in frames.of([VIEW])] == ["task_started"]
    [updated, notified] = frames.of([ended])
    assert notified["usage"] == {"total_tokens": 0, "tool_uses": 0, "duration_ms": 3_000}


async def test_results_of_calls_have_the_form_of_their_tool(tmp_path: Path) -> None:
    steps = (
        calls("bash", {"command": "echo hi"}, "t0"),
        calls("write_file", {"path": "a.txt", "content": "one\ntwo\n"}, "t1"),
        calls("patch", {"path": "a.txt", "edits": [{"op": "replace", "old": "two", "new": "2"}]}, "t2"),
        calls("read_file", {"path": "a.txt"}, "t3"),
        calls("read_file", {"path": "none.txt"}, "t4"),
        calls("list_files", {"path": "."}, "t5"),
    )
    async with serve(*steps, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, "--permission-mode", "bypassPermissions") as host:
            frames = await host.turn("Go")
    found: list[Any] = [one.get("tool_use_result") for one in frames if one["type"] == "user"]
    ran, wrote, edited, read, failed, listed = found
    path = str(phoenix.cwd / "a.txt")
    assert ran == {"stdout": "hi\n", "stderr": "", "interrupted": False, "isImage": False}
    assert wrote == {"type": "create", "filePath": path, "content": "one\ntwo\n"}
    assert (edited["filePath"], edited["oldString"], edited["newString"]) == (path, "two", "2")
    assert edited["structuredPatch"][0]["lines"] == [" one", "-two", "+2"]
    assert (read["file"]["content"], read["file"]["totalLines"]) == ("one\n2", 2)
    assert (failed, listed) == ("Error: none.txt does not exist.", None)


def line(*ids: str) -> JsonObject:
    blocks: list[JsonValue] = [{"type": "tool_result", "tool_use_id": one} for one in ids]
    return {"type": "user", "message": {"role": "user", "content": blocks}}


def results(*ids: str) -> ToolUseResults:
    """Results of commands."""
    found = ToolUseResults(Path("/work"))
    for one in ids:
        found.follow(ToolStarted(ToolCall(one, "bash", json.dumps({"command": "true"})), None))
        found.follow(ToolEnded(ToolResult(one, "out", ToolStatus.SUCCESS), 0.0))
    return found


def test_several_results_in_one_frame_have_none_and_what_waits_is_bounded() -> None:
    assert results("a", "b").add_result(line("a", "b")) == line("a", "b")
    assert results("a").add_result(line("b")) == line("b")
    ids = [str(number) for number in range(MOST_HELD + 50)]
    many = results(*ids)
    assert "tool_use_result" in many.add_result(line("0"))
    assert "tool_use_result" not in many.add_result(line("0")), "told once"
    assert "tool_use_result" not in many.add_result(line(ids[-1]))


def test_an_input_or_a_display_that_cannot_be_read_harms_nothing() -> None:
    found = ToolUseResults(Path("/work"))
    found.follow(ToolStarted(ToolCall("a", "bash", "{"), None))
    found.follow(ToolEnded(ToolResult("a", "out", ToolStatus.SUCCESS), 0.0))
    found.follow(ToolStarted(ToolCall("b", "bash", '{"command":"true"}'), None))
    found.follow(ToolEnded(ToolResult("b", "out", ToolStatus.SUCCESS, display_json="{nonsense"), 0.0))
    assert found.add_result(line("a")) == line("a")
    assert found.add_result(line("b"))["tool_use_result"] == {
        "stdout": "out",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
    }
