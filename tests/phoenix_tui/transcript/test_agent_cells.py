"""The call that put sub-agents to work, once they are back."""

from __future__ import annotations

import pytest

from engine.machine import agent_texts
from engine.machine.messages import ToolStatus
from engine.machine.states import AgentOutcome, AgentStatus, AgentTask
from phoenix_tui.agent_words import first_line
from phoenix_tui.widgets.blocks.agent_cell import Back, agents_of, came_back, completion_words
from phoenix_tui.widgets.blocks.tool_row import tool_lines
from phoenix_tui.widgets.blocks.tool_view import ToolView, summary_of

TASKS = (AgentTask("a1", "find tests"), AgentTask("a2", "read — the [docs]"), AgentTask("a3", "check"))
GOOD = AgentOutcome("a1", AgentStatus.SUCCESS, "7 files named\n\n## 2. what to do next\nand more")
PARTIAL = AgentOutcome("a2", AgentStatus.TIMEOUT, "half of it", "timed out")
LOST = AgentOutcome("a3", AgentStatus.CANCELLED, "", "cancelled")


def cell(text: str, status: ToolStatus = ToolStatus.SUCCESS, name: str = "spawn_agents") -> ToolView:
    return ToolView("c", name, "3 sub-agents", status, text=text, duration=58.0)


def drawn(view: ToolView, *, is_open: bool = False, width: int = 70) -> list[str]:
    return [line.text.rstrip() for line in tool_lines(view, width, is_open=is_open)]


def test_each_has_a_row_with_the_first_line_of_its_result_or_the_reason() -> None:
    assert drawn(cell(agent_texts.aggregate(TASKS, (GOOD, PARTIAL, LOST)))) == [
        "  ◇ spawn_agents  1 of 3 sub-agents succeeded                      58s",
        "    ✓ find tests         7 files named",
        "    ✗ read — the [docs]  timed out (partial kept)",
        "    ✗ check              cancelled",
    ]


def test_opened_it_shows_all_that_the_model_read() -> None:
    lines = drawn(cell(agent_texts.aggregate(TASKS[:1], (GOOD,))), is_open=True)
    assert lines[0].startswith("  ✓ spawn_agents  1 sub-agent succeeded")
    assert "  │ 7 files named" in lines


@pytest.mark.parametrize("first", ["", "Cancelled by user\n\n"])
def test_ids_and_results_are_read_from_the_text_of_the_aggregate(first: str) -> None:
    view = cell(first + agent_texts.aggregate(TASKS[1:], (PARTIAL,), "interrupted"), ToolStatus.ERROR)
    assert came_back(view) == [
        Back("a2", "read — the [docs]", "timed out", "half of it"),
        Back("a3", "check", "interrupted", ""),
    ]
    assert agents_of(view) == ["a2", "a3"]


@pytest.mark.parametrize(
    ("view", "ids"),
    [
        (cell("a9 started", name="spawn_task"), ["a9"]),
        (cell("spawn_task: There is no task t9.", ToolStatus.ERROR, "spawn_task"), []),
        (cell("spawn_agents: tasks must be a list", ToolStatus.ERROR), []),
        (cell("a9 started", name="bash"), []),
        (cell("Sub-agent results (1 of 1 succeeded):\n\n## 1. x — success [a1]", name="bash"), []),
    ],
)
def test_other_results_name_those_that_were_started_or_none(view: ToolView, ids: list[str]) -> None:
    assert list(agents_of(view)) == ids


def test_a_completion_is_told_by_its_first_line_or_its_reason() -> None:
    good = agent_texts.completion("a1", AgentOutcome("a1", AgentStatus.SUCCESS, "All green\nmore"), 1, 2)
    bad = agent_texts.completion("a1", AgentOutcome("a1", AgentStatus.FAILURE, "half", "no result submitted"), 1, 2)
    assert [completion_words(text) for text in (good, bad, "hello")] == [
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
