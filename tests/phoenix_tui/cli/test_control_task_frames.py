"""Frames about sub-agents: counted calls, and an agent that works once more."""

from __future__ import annotations

from msgspec.structs import replace

from engine.machine.messages import ToolCall
from engine.machine.states import AgentOutcome, AgentStatus, Idle
from engine.updates import AgentView, ToolStarted
from phoenix_tui.cli.control.task_frames import TaskFrames

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
