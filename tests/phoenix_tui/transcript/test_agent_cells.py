"""The call that put sub-agents to work, once they are back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.codec import decode_display, display_text
from engine.machine import agent_texts
from engine.machine.messages import ToolResult, ToolStatus
from engine.machine.states import AgentOutcome, AgentStatus, AgentTask
from phoenix_tui.text.agent_text import first_line
from phoenix_tui.widgets.blocks.rows import ToolView, display_of, summary_of
from phoenix_tui.widgets.blocks.tool_row import agents_of, completion_words, tool_block
from tools.contract import Display

TASKS = (AgentTask("a1", "find tests"), AgentTask("a2", "read — the [docs]"), AgentTask("a3", "check"))
GOOD = AgentOutcome("a1", AgentStatus.SUCCESS, "7 files named\n\n## 2. what to do next — success [a9]", "", 5, 58.0)
PARTIAL = AgentOutcome("a2", AgentStatus.TIMEOUT, "half of it", "timed out", 1, 300.0)


def cell(
    text: str, status: ToolStatus = ToolStatus.SUCCESS, name: str = "spawn_agents", display: Display | None = None
) -> ToolView:
    return ToolView("c", name, "3 sub-agents", status, text=text, display=display, duration=58.0)


def back(*outcomes: AgentOutcome, tasks: Sequence[AgentTask] = TASKS) -> ToolView:
    """A call whose sub-agents are back; who has no outcome was stopped."""
    ends = agent_texts.ends(tasks, outcomes, agent_texts.CANCELLED)
    text = agent_texts.aggregate(tasks, outcomes, agent_texts.CANCELLED)
    return cell(text, display=display_of(ToolResult("c", text, ToolStatus.SUCCESS, agents=ends)))


def drawn(view: ToolView, *, is_open: bool = False, width: int = 70) -> list[str]:
    block = tool_block(view, width, is_open=is_open)
    return [line.text.rstrip() for line in (*block.lines, *block.rows)]


def test_each_has_a_row_with_the_first_line_of_its_result_or_the_reason_and_what_it_used() -> None:
    assert drawn(back(GOOD, PARTIAL), width=72) == [
        "  ◇ spawn_agents  1 of 3 sub-agents succeeded                        58s",
        "    ✓ find tests         7 files named                     5 turns · 58s",
        "    ✗ read — the [docs]  timed out (partial kept)        1 turn · 5m 00s",
        "    ■ check              cancelled",
    ]


def test_a_name_takes_what_the_words_beside_it_leave() -> None:
    tasks = (AgentTask("a1", "find every test of the retry loop"),)
    assert drawn(back(tasks=tasks), width=60)[1] == "    ■ find every test of the retry loop  cancelled"


def test_with_little_room_there_are_the_words_alone() -> None:
    assert drawn(back(GOOD, tasks=TASKS[:1]), width=40)[1] == "    ✓ find tests  7 files named"


def test_opened_it_shows_all_that_the_model_read() -> None:
    lines = drawn(back(GOOD, tasks=TASKS[:1]), is_open=True)
    assert lines[0].startswith("  ✓ spawn_agents  1 sub-agent succeeded")
    assert "  │ 7 files named" in lines


def test_what_came_back_is_no_matter_of_what_an_agent_writes() -> None:
    assert agents_of(back(GOOD, PARTIAL)) == ["a1", "a2", "a3"]


@pytest.mark.parametrize(
    ("view", "ids"),
    [
        (cell("a9 started", name="spawn_task"), ["a9"]),
        (cell("spawn_task: There is no task t9.", ToolStatus.ERROR, "spawn_task"), []),
        (cell("spawn_agents: tasks must be a list", ToolStatus.ERROR), []),
        (cell("a9 started", name="bash"), []),
        (cell("Sub-agent results (1 of 1 succeeded):\n\n## 1. x — success [a1]"), []),
    ],
)
def test_other_results_name_those_that_were_started_or_none(view: ToolView, ids: list[str]) -> None:
    assert list(agents_of(view)) == ids


def test_a_display_of_sub_agents_is_read_back_as_it_was_stored() -> None:
    result = ToolResult("c", "", ToolStatus.SUCCESS, agents=agent_texts.ends(TASKS, (GOOD, PARTIAL), "cancelled"))
    assert decode_display(display_text(result)) == display_of(result)


def test_a_completion_is_told_by_its_first_line_or_its_reason() -> None:
    good = agent_texts.completion("a1", AgentOutcome("a1", AgentStatus.SUCCESS, "All green\nmore"), 1, 2)
    bad = agent_texts.completion("a1", AgentOutcome("a1", AgentStatus.FAILURE, "half", "no result submitted"), 1, 2)
    assert [completion_words(text) for text in (good, bad, f"hello\n{good}")] == [
        "All green",
        "no result submitted (partial kept)",
        "",
    ]


def test_a_stored_call_says_whom_it_put_to_what() -> None:
    assert (
        summary_of('{"tasks": [{"task": "one"}, {"task": "two"}], "strategy": "parallel"}') == "2 sub-agents: one · two"
    )
    assert summary_of('{"tasks": [1, 2, 3]}') == "3 sub-agents"
    assert summary_of('{"task_description": "look", "initial_prompt": "Look at all"}') == "look"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\n## Found **7 files**\n- a", "Found 7 files"),
        ("```python\n__init__ = 2 ** 3\n```", "__init__ = 2 ** 3"),
        ("- > `make test` runs", "make test runs"),
        ("\x1b[31mred\x07", "red"),
        (" \n ", ""),
    ],
)
def test_a_row_says_the_first_words_of_a_result_without_the_marks_of_markdown(text: str, said: str) -> None:
    assert first_line(text) == said
