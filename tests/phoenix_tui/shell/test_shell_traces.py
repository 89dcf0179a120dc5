"""/trace: the runs of the conversation, the tree of one, its filter, a span to read, and the way to its message."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from engine.records.traces import SpanStatus, Trace
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.statistics_sheet import TraceSheet
from phoenix_tui.modals.text_sheet import TextSheet
from tests.support.fake_engine import FakeConversation
from tests.support.fake_traces import FakeTraces, some_traces


async def with_tree(shell: Any, *, running: bool = False) -> tuple[FakeConversation, FakeTraces]:
    """A conversation with two runs; the tree of the newer one is open."""
    conversation: FakeConversation = await shell.say("why does make fail?")
    conversation.answer_with("There is no such rule.")
    shell.engine.traces = some_traces(conversation.id, running=running)
    await shell.type("/trace")
    await shell.pilot.press("space", "enter")
    await shell.until(lambda: isinstance(shell.top, PickerSheet) and "why does make fail?" in shell.text)
    await shell.pilot.press("enter")
    await shell.until(lambda: isinstance(shell.top, TraceSheet) and "spawn_agents" in shell.text)
    return conversation, shell.engine.traces


async def test_without_runs_that_is_said(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("/trace")
        await shell.pilot.press("space", "enter")
        await shell.until(lambda: "There are no runs to trace yet." in shell.toasts)


async def test_the_tree_has_time_tokens_and_cost_and_says_what_is_left_out(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await with_tree(shell)
        (row,) = [row for row in shell.text.splitlines() if "llm haiku" in row]
        assert row.split()[-3:] == ["9.0s", "9.2k→340", "$0.02"] or row.rstrip().endswith("9.0 s     9.2k→340  $0.02")
        assert "12 more spans not shown." in shell.text
        assert "success · 42.4 s · 3 model calls, 2 tool calls" in shell.text


async def test_typing_after_the_slash_filters_and_esc_ends_that_first(open_shell: Any) -> None:
    async with open_shell() as shell:
        await with_tree(shell)
        await shell.pilot.press("slash", *"no rule")
        await shell.until(lambda: "1 / 1" in shell.text and "llm sonnet" not in shell.text)
        assert "tool bash" in shell.text
        await shell.pilot.press("escape")
        await shell.until(lambda: "llm sonnet" in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))


async def test_enter_reads_input_and_output_and_comes_back(open_shell: Any) -> None:
    async with open_shell() as shell:
        await with_tree(shell)
        await shell.pilot.press("down", "down", "enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet) and "make all" in shell.text)
        await shell.pilot.press("q")
        await shell.until(lambda: isinstance(shell.top, TraceSheet))
        await shell.pilot.press("up", "enter")
        await shell.until(lambda: "trace_verbose = true" in shell.text)


async def test_m_goes_to_the_message_of_a_span(open_shell: Any) -> None:
    async with open_shell() as shell:
        await with_tree(shell)
        await shell.pilot.press("end", *["down"] * 8, "m")
        await shell.until(lambda: "This span has no message." in shell.toasts)
        await shell.pilot.press(*["up"] * 6, "m")
        await shell.until(lambda: not isinstance(shell.top, TraceSheet))
        await shell.until(lambda: "There is no such rule." in shell.text)


async def test_a_run_under_way_is_read_again_until_it_ends(open_shell: Any) -> None:
    async with open_shell() as shell:
        _, traces = await with_tree(shell, running=True)
        assert "running · 42.4 s" in shell.text
        old = traces.trees["run-2"]
        ended = replace(old.root, status=SpanStatus.OK, outcome="success", seconds=50.0)
        traces.trees["run-2"] = Trace((ended, *old.spans[1:]))
        await shell.until(lambda: "success · 50.0 s" in shell.text)


async def test_names_and_contents_from_outside_are_cleaned(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation, traces = await with_tree(shell, running=True)
        old = traces.trees["run-2"]
        hostile = replace(old.spans[2], name="\x1b]52;c;aGk=\x07[b]bash[/b]\x1b[31m", conversation_id=conversation.id)
        traces.trees["run-2"] = Trace((old.root, hostile))
        await shell.until(lambda: "tool [b]bash[/b]" in shell.text)
