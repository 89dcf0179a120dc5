"""Parts of a transcript: cells of agents, replies without text, messages that cannot be drawn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widgets import Static, TextArea

from engine.codec import decode_display, display_text
from engine.machine import agent_texts
from engine.machine.messages import TextBlock, ToolResult, ToolStatus, ToolUseBlock
from engine.machine.states import AgentOutcome, AgentStatus, AgentTask
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.commands.messages import answer
from phoenix_tui.linear.transcript import LinearTranscript, message_text
from phoenix_tui.markdown.stream import MarkdownStream
from phoenix_tui.text.agent_text import first_line
from phoenix_tui.widgets.bases import Still
from phoenix_tui.widgets.blocks.rows import ToolView, display_of, duration_text, summary_of
from phoenix_tui.widgets.blocks.speech import UNDRAWABLE
from phoenix_tui.widgets.blocks.tool_row import agents_of, completion_words, tool_block
from phoenix_tui.widgets.transcript import drawing
from phoenix_tui.widgets.transcript.painted_rows import window_for
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.stack import Heights
from phoenix_tui.widgets.transcript.view import Frames
from tests.support.clocks import SteppedClock
from tests.support.screens import TranscriptApp, answered, call_record, said, snapshot
from tests.support.waiting import PATIENCE, poll
from tools.contract import Display


@given(st.integers(1, 1_500), st.lists(st.tuples(st.integers(0, 1_499), st.integers(0, 9)), max_size=40))
def test_heights_find_what_a_plain_sum_finds(count: int, changes: list[tuple[int, int]]) -> None:
    heights, plain = Heights(count, 4), [4] * count
    for slot, height in changes:
        if slot < count:
            heights.set(slot, height)
            plain[slot] = height
    heights.append(3)
    plain.append(3)
    assert heights.total == sum(plain)
    row = sum(plain) // 2
    slot, inside = heights.find(row)
    assert heights.top(slot) + inside == row == sum(plain[:slot]) + inside
    assert inside < plain[slot]


async def test_the_first_change_is_drawn_at_once_and_the_next_ones_together() -> None:
    clock, drawn = SteppedClock(), asyncio.Event()
    count = 0

    def draw() -> None:
        nonlocal count
        count += 1
        drawn.set()

    frames = Frames(draw, clock)
    frames.request()
    assert count == 1
    drawn.clear()
    for _ in range(50):
        frames.request()
    assert count == 1
    assert frames.waiting
    await asyncio.wait_for(drawn.wait(), PATIENCE)
    assert count == 2


async def test_a_costly_frame_makes_the_next_one_wait_longer() -> None:
    clock = SteppedClock()
    frames = Frames(lambda: setattr(clock, "seconds", clock.seconds + 0.02), clock)
    frames.request()
    clock.seconds += 0.1
    frames.request()
    assert frames.waiting
    frames.stop()
    clock.seconds += 0.1
    frames.request()
    assert not frames.waiting


@given(st.sets(st.integers(0, 3_000), min_size=1), st.integers(1, 3_000))
def test_a_window_covers_the_newest_missing_message_and_stays_in_bounds(missing: set[int], count: int) -> None:
    window = window_for(missing, count)
    wanted = [slot for slot in missing if slot < count]
    assert (window is None) == (not wanted)
    if window is not None:
        before, limit = window
        assert before - limit <= max(wanted) + 1 < before
        assert 1 <= limit <= 128


def test_a_call_is_named_by_what_it_does() -> None:
    assert summary_of('{"description":"x","command":"make  test\\n-j2"}') == "make  test↵-j2"
    assert summary_of('{"limit":3,"path":"a.py"}') == "a.py"
    assert summary_of("not json") == "not json"
    assert summary_of("[1]") == "[1]"
    assert summary_of("") == ""


def test_durations_are_short() -> None:
    assert [duration_text(s) for s in (0.04, 9.94, 9.96, 59.4, 65, 3_725)] == [
        "0.0s",
        "9.9s",
        "10s",
        "59s",
        "1m 05s",
        "1h 02m",
    ]


class StillStatic(Still, Static):
    """A label that hardly changes."""


class StillArea(Still, TextArea):
    """An editor that hardly changes."""


class StillApp(App[None]):
    """Both, one above the other."""

    def compose(self) -> ComposeResult:
        yield StillStatic("one", id="label")
        yield StillArea("text")


async def test_an_unchanged_widget_hands_out_the_same_rows() -> None:
    app = StillApp()
    async with app.run_test(size=(40, 10)) as pilot:
        label = app.query_one(StillStatic)
        crop = Region(0, 0, 40, 1)
        first = label.render_lines(crop)
        assert label.render_lines(crop) is first
        label.update("two")
        await pilot.pause()
        assert label.render_lines(crop)[0].text.startswith("two")
        app.theme = "textual-light"
        await pilot.pause()
        assert label.render_lines(crop) is not first


async def test_a_still_editor_is_styled_and_echoes_keys() -> None:
    app = StillApp()
    async with app.run_test(size=(40, 10)) as pilot:
        app.query_one(StillArea).focus()
        await pilot.press("x")
        area = app.query_one(StillArea)
        assert "xtext" in "".join(row.text for row in area.render_lines(Region(0, 0, *area.size)))


SILENT = replace(answered(2, TextBlock("NO_REPLY")), silent=True)


@pytest.mark.parametrize(("level", "shown"), [(logging.DEBUG, True), (logging.WARNING, False)])
async def test_the_screen_shows_it_with_a_detailed_log_alone(level: int, shown: bool) -> None:
    root = logging.getLogger()
    before = root.level
    root.setLevel(level)
    try:
        app = TranscriptApp()
        async with app.run_test(size=(90, 20)):
            app.view.show(snapshot([said(1, "ping"), SILENT, said(3, "and on")]))
            assert await poll(lambda: "and on" in "\n".join(app.shown()))
            text = "\n".join(app.shown())
            assert ("(silent)" in text) is shown
            assert "NO_REPLY" not in text
            assert app.view.canvas.model.last_answer() == ""
    finally:
        root.setLevel(before)


def test_lines_read_none_of_it_aloud() -> None:
    lines = LinearTranscript()
    assert lines.follow(TextArrived("NO_REPLY")) == []
    assert lines.follow(MessageSaved(SILENT)) == []
    assert lines.follow(TextArrived("Hello\n")) == ["Assistant: Hello"]
    assert message_text(SILENT) == ""


def test_it_is_no_answer_to_copy() -> None:
    assert answer(SILENT) == ""


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


NOTE = f"  · {UNDRAWABLE}"


class FaultyTranscript(TranscriptApp):
    """A transcript whose faults are contained, and counted."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Exception] = []

    def goes_on_after(self, error: Exception, *, is_left_out: bool = False) -> bool:
        self.faults.append(error)
        return is_left_out


def fail_for(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, word: str) -> None:
    real = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        if word in repr(arguments):
            raise RuntimeError("planted")
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, failing)


def rows(app: TranscriptApp) -> list[str]:
    return [row for row in app.shown() if row]


async def test_an_answer_that_cannot_be_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, MarkdownStream, "begin", "cursed")
    app = FaultyTranscript()
    async with app.run_test(size=(60, 22)) as pilot:
        app.view.show(
            snapshot([said(1, "why?"), answered(2, "A **cursed** word."), said(3, "and?"), answered(4, "**So**.")])
        )
        wanted = ["┃ why?", NOTE, "answer:", "  A **cursed** word.", "┃ and?", "  So."]
        assert await poll(lambda: rows(app) == wanted), rows(app)
        for width in (50, 40, 60):
            await pilot.resize_terminal(width, 22)
        app.view.action_view("details")
        await pilot.pause()
        assert rows(app) == wanted
        assert len(app.faults) == 1


async def test_an_answer_under_way_that_cannot_be_laid_out_and_the_next_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail_for(monkeypatch, MarkdownStream, "add", "cursed")
    fail_for(monkeypatch, MarkdownStream, "begin", "cursed")
    app = FaultyTranscript()
    async with app.run_test(size=(60, 22)):
        app.view.show(snapshot([said(1, "why?")]))
        for piece in ("A **cursed** ", "word."):
            app.view.apply(TextArrived(piece))
        wanted = ["┃ why?", NOTE, "answer:", "  A **cursed** word."]
        assert await poll(lambda: rows(app) == wanted), rows(app)
        app.view.apply(MessageSaved(answered(2, "A **cursed** word.")))
        app.view.apply(MessageSaved(said(3, "and?")))
        app.view.apply(TextArrived("**So**."))
        assert await poll(lambda: rows(app) == [*wanted, "┃ and?", "  So."]), rows(app)
        assert len(app.faults) == 1


async def test_a_call_that_cannot_be_drawn_has_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, drawing, "tool_block", "cursed")
    app = FaultyTranscript()
    call = ToolUseBlock("t1", "bash", '{"command":"echo cursed"}')
    async with app.run_test(size=(60, 22)):
        app.view.show(snapshot([answered(1, call)], [call_record("t1", "bash", call.input_json, ToolStatus.SUCCESS)]))
        wanted = [NOTE, "answer:", '  bash {"command":"echo cursed"}']
        assert await poll(lambda: rows(app)[:3] == wanted), rows(app)
        assert len(app.faults) == 1


async def test_a_row_that_cannot_be_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, Painter, "strip", "'smudged")
    app = FaultyTranscript()
    async with app.run_test(size=(60, 22)):
        app.view.show(snapshot([said(1, "why?"), answered(2, "A **smudged** word.")]))
        wanted = ["┃ why?", NOTE, "answer:", "  A **smudged** word."]
        assert await poll(lambda: rows(app) == wanted), rows(app)
        assert len(app.faults) == 1
