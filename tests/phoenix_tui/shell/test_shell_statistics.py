"""/stats, /trace and /export."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from textual.pilot import Pilot

from engine.records.runs import Statistics, StatisticsGroup
from engine.records.traces import SpanStatus, Trace
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.statistics_sheet import PAGES, StatisticsSheet, TraceSheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.statistics_text import EMPTY
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeConversation
from tests.support.fake_statistics import FakeStatistics, group, some_statistics
from tests.support.fake_traces import FakeTraces, some_traces
from tests.support.shell import Shell

SMALL, LARGE = (80, 24), (200, 60)


async def opened(shell: Shell, argument: str = "") -> None:
    await shell.type(f"/stats {argument}".rstrip(), "escape", "enter")
    await shell.until(lambda: isinstance(shell.top, StatisticsSheet) and "reading…" not in shell.text)


def shows(shell: Shell, *words: str) -> bool:
    return all(word in shell.text for word in words) and "reading…" not in shell.text


async def test_pages_follow_each_other_and_each_has_its_rows(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=some_statistics()) as shell:
        await opened(shell)
        expected = ("replies", "2026-", "anthropic/claude-opus-4-8", "/srv/relay", "Let the relay", "bash", "explorer")
        for place, (name, words) in enumerate(zip(PAGES, expected, strict=True)):
            if place:
                await shell.press("right")
            await shell.until(partial(shows, shell, f"[{name}]", words))
        await shell.press("right", shows="[Overview]")
        await shell.press("left", shows="[Agents]")


async def test_the_range_goes_round_and_is_asked_for(open_shell: OpenShell) -> None:
    sums = some_statistics()
    async with open_shell(size=SMALL, statistics=sums) as shell:
        await opened(shell)
        assert "[30 d]" in shell.text
        for name in ("[year]", "[all]", "[7 d]", "[30 d]"):
            await shell.press("r", until=partial(shows, shell, name))
        thirty, year, everything, week = [query.since for query in sums.asked]
        assert everything == 0 < year < thirty < week  # the fourth range was read before


async def test_an_empty_database_says_so_on_every_page(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=FakeStatistics()) as shell:
        await opened(shell)
        for name in PAGES:
            await shell.until(partial(shows, shell, f"[{name}]", EMPTY))
            await shell.press("right")


async def test_a_page_can_be_named_and_escape_closes(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=some_statistics()) as shell:
        await opened(shell, "tool")
        assert "[Tools]" in shell.text
        await shell.press("escape", until=lambda: not isinstance(shell.top, StatisticsSheet))


async def test_a_database_that_cannot_be_read_is_named_in_the_sheet(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=FakeStatistics(problem="The disk does not answer.")) as shell:
        await opened(shell)
        assert "The disk does not answer." in shell.text


async def test_names_with_control_characters_and_very_wide_ones_keep_the_columns(open_shell: OpenShell) -> None:
    names = ("\x1b[2J\x1b]0;title\x07evil", "長" * 500, "x" * 5_000, "\u202eright to left", "a\nb\tc")
    rows = tuple(group(name, 10, 0.5) for name in names)
    groups = {StatisticsGroup.MODEL: rows, StatisticsGroup.CONVERSATION: rows, StatisticsGroup.PURPOSE: rows}
    answer = Statistics(group("", 50, 2.5), groups)
    for size in (SMALL, LARGE, (20, 10)):
        async with open_shell(size=size, statistics=FakeStatistics(answer)) as shell:
            await opened(shell, "model")
            assert "\x1b" not in shell.text
            assert "\x07" not in shell.text
            if size != (20, 10):
                assert shell.text.count("$0.50") == len(names)


async def test_long_lists_scroll_and_say_how_many_rows_are_below(open_shell: OpenShell) -> None:
    rows = tuple(group(f"model-{number}", 10, 0.5) for number in range(60))
    answer = Statistics(group("", 600, 30.0), {StatisticsGroup.MODEL: rows})
    async with open_shell(size=SMALL, statistics=FakeStatistics(answer)) as shell:
        await opened(shell, "model")
        assert "more rows below" in shell.text
        assert "model-59" not in shell.text
        for _ in range(6):
            await shell.press("pagedown")
        await shell.until(lambda: "model-59" in shell.text and "more rows below" not in shell.text)


async def test_an_unknown_price_and_estimates_are_marked_and_said(open_shell: OpenShell) -> None:
    total = replace(group("", 10, None), estimated=2, known_cost_usd=1.5)
    answer = Statistics(total, {StatisticsGroup.MODEL: (replace(group("m", 4, 1.5), estimated=1),)})
    async with open_shell(size=LARGE, statistics=FakeStatistics(answer)) as shell:
        await opened(shell, "model")
        assert "$?: the price of 1 call is unknown; the others cost $1.50 together." in shell.text
        assert "~: includes 2 calls that ended before the server reported all tokens." in shell.text
        assert "~$1.50" in shell.text
        assert "~4.0k" in shell.text


async def with_tree(shell: Any, *, running: bool = False) -> tuple[FakeConversation, FakeTraces]:
    """A conversation with two runs; the tree of the newer one is open."""
    conversation: FakeConversation = await shell.say("why does make fail?")
    conversation.answer_with("There is no such rule.")
    shell.engine.traces = some_traces(conversation.id, running=running)
    await shell.type("/trace", "space", "enter")
    await shell.until(lambda: isinstance(shell.top, PickerSheet) and "why does make fail?" in shell.text)
    await shell.press("enter", until=lambda: isinstance(shell.top, TraceSheet) and "spawn_agents" in shell.text)
    return conversation, shell.engine.traces


async def test_without_runs_that_is_said(shell: Shell) -> None:
    await shell.type("/trace", "space", "enter", shows="There are no runs to trace yet.")


async def test_the_tree_has_time_tokens_and_cost_and_says_what_is_left_out(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await with_tree(shell)
        (row,) = [row for row in shell.text.splitlines() if "llm haiku" in row]
        assert row.split()[-3:] == ["9.0s", "9.2k→340", "$0.02"] or row.rstrip().endswith("9.0 s     9.2k→340  $0.02")
        assert "12 more spans not shown." in shell.text
        assert "success · 42.4 s · 3 model calls, 2 tool calls" in shell.text


async def test_typing_after_the_slash_filters_and_esc_ends_that_first(shell: Shell) -> None:
    await with_tree(shell)
    await shell.press("slash", *"no rule", until=lambda: "1 / 1" in shell.text and "llm sonnet" not in shell.text)
    assert "tool bash" in shell.text
    await shell.press("escape", shows="llm sonnet")
    await shell.press("escape", until=lambda: isinstance(shell.top, PickerSheet))


async def test_enter_reads_input_and_output_and_comes_back(shell: Shell) -> None:
    await with_tree(shell)
    await shell.press("down", "down", "enter")
    await shell.until(lambda: isinstance(shell.top, TextSheet) and "make all" in shell.text)
    await shell.press("q", until=lambda: isinstance(shell.top, TraceSheet))
    await shell.press("up", "enter", shows="trace_verbose = true")


async def test_m_goes_to_the_message_of_a_span(shell: Shell) -> None:
    await with_tree(shell)
    await shell.press("end", *["down"] * 8, "m", until=lambda: "This span has no message." in shell.toasts)
    await shell.press(*["up"] * 6, "m", until=lambda: not isinstance(shell.top, TraceSheet))
    await shell.until(lambda: "There is no such rule." in shell.text)


async def test_a_run_under_way_is_read_again_until_it_ends(shell: Shell) -> None:
    _, traces = await with_tree(shell, running=True)
    assert "running · 42.4 s" in shell.text
    old = traces.trees["run-2"]
    ended = replace(old.root, status=SpanStatus.OK, outcome="success", seconds=50.0)
    traces.trees["run-2"] = Trace((ended, *old.spans[1:]))
    await shell.until(lambda: "success · 50.0 s" in shell.text)


async def test_names_and_contents_from_outside_are_cleaned(shell: Shell) -> None:
    conversation, traces = await with_tree(shell, running=True)
    old = traces.trees["run-2"]
    hostile = replace(old.spans[2], name="\x1b]52;c;aGk=\x07[b]bash[/b]\x1b[31m", conversation_id=conversation.id)
    traces.trees["run-2"] = Trace((old.root, hostile))
    await shell.until(lambda: "tool [b]bash[/b]" in shell.text)


async def exported(shell: Any, target: str) -> str:
    """Notice after `/export TARGET`."""
    before = len(shell.toasts)
    shell.composer.text = f"/export {target}"
    pilot: Pilot[None] = shell.pilot
    await pilot.press("enter")
    await shell.until(lambda: len(shell.toasts) > before)
    return str(shell.toasts[-1])


async def test_a_conversation_is_written_as_markdown_or_json_and_nothing_is_overwritten(
    shell: Shell, tmp_path: Path
) -> None:
    assert (
        await exported(shell, "a.md") == "This conversation is empty; there is nothing to export. A message begins it."
    )
    conversation = await shell.say("hello ## You")
    folder = conversation.record.cwd
    assert await exported(shell, "") == f"Written to {folder}/phoenix-{conversation.id[:8]}.md."
    text = (folder / f"phoenix-{conversation.id[:8]}.md").read_text()
    assert "## You\n\nhello ## You\n" in text
    assert await exported(shell, "a.json") == f"Written to {folder}/a.json."
    assert (folder / "a.json").read_text() == f'{{\n "id": "{conversation.id}"\n}}\n'
    (folder / "kept.md").write_text("mine")
    assert await exported(shell, "kept.md") == f"{folder}/kept.md already exists; give another file name."
    assert (folder / "kept.md").read_text() == "mine"
    said = await exported(shell, f"{tmp_path}/no/folder.md")
    assert said == f"{tmp_path}/no/folder.md cannot be written: No such file or directory."
