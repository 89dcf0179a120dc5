"""The meter opened: what fills the window, on which key what happens, at every width."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.context.measure import Filling, Measured, WindowPart
from engine.executor.context_manager import Edited
from engine.executor.requests import Refused
from engine.machine.messages import Usage
from engine.machine.views import EarlierView, OmissionKind
from engine.updates import ContextChanged
from phoenix_tui.modals.context_sheet import ContextSheet, bar, headline, legend, ruler, share_of, share_rows
from phoenix_tui.widgets.status_line import covers
from tests.support.fake_context import PARTS, REPORT
from tests.support.shell import Shell

HOSTILE = "\x1b]52;c;aGk=\x07[/]x\u202e"


async def opened(shell: Any) -> Any:
    """The sheet over a conversation of four messages."""
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    await shell.enter("/context", until=lambda: isinstance(shell.top, ContextSheet) and "tool results" in shell.text)
    return conversation


@pytest.mark.parametrize("size", [(60, 20), (200, 60)])
async def test_the_sheet_says_what_fills_the_window_and_what_each_key_does(open_shell: Any, size: Any) -> None:
    async with open_shell(size=size) as shell:
        await opened(shell)
        for words in (
            "100,000 of 200,000 tokens",
            "50 %",
            "tool results",
            "~60k",
            "30 %",
            "free",
            "100k",
            "#4",
            "read_file",
        ):
            assert words in shell.text
        words = " ".join(shell.text.split())
        for key in ("c summarizes 17 messages, keeps 7", "p shortens 3 old results", "- + auto-summarize at 75 %"):
            assert key in words
        assert "summary" not in shell.text.replace("summarize", ""), "shares of nothing are left out"


async def test_letters_act_and_the_sheet_says_tokens_before_and_after(shell: Shell) -> None:
    conversation = await opened(shell)
    await shell.type("p", shows="Shortened 3 parts for the model: 100,000 → ~60,000 tokens.")
    await shell.type("xibur+-")
    done = ["prune", "omit 4", "strip images", "put back all", "undo", "restore", "threshold 80", "threshold 70"]
    await shell.until(lambda: conversation.context.asked == done)


async def test_opening_the_sheet_asks_once_for_an_exact_count(shell: Shell) -> None:
    conversation = await opened(shell)
    await shell.until(lambda: conversation.context.counts == 1)
    await shell.type("p", until=lambda: conversation.context.asked == ["prune"])
    assert conversation.context.counts == 1


async def test_a_refusal_is_said_and_changes_nothing(shell: Shell) -> None:
    conversation = await opened(shell)
    conversation.context.answer = Refused("agent is busy")
    await shell.type("p", shows="agent is busy")
    assert isinstance(shell.top, ContextSheet)


async def test_a_part_that_is_out_is_put_back_by_the_same_key(shell: Shell) -> None:
    conversation = await opened(shell)
    gone = replace(PARTS[1], tokens=0, omission=OmissionKind.IMAGE)
    measured = replace(REPORT.measured, parts=(PARTS[0], gone))
    conversation.context.shown = replace(REPORT, measured=measured, omitted=1)
    conversation.play(ContextChanged(90_000, 200_000, estimated=True, cost_usd=0.0))
    await shell.until(lambda: "removed" in shell.text)
    await shell.press("down", until=lambda: "x restores it" in " ".join(shell.text.split()))
    await shell.type("x", until=lambda: conversation.context.asked == ["put back 6"])


async def test_a_new_conversation_shows_no_cost_of_the_one_before(shell: Shell) -> None:
    conversation = await shell.say("go on")
    conversation.play(ContextChanged(90_000, 200_000, estimated=True, cost_usd=0.5))
    await shell.shows("$0.50")
    await shell.press("ctrl+n", until=lambda: "New conversation" in shell.text)
    assert "$" not in shell.text


async def test_c_summarizes_and_so_does_the_command_with_a_wish(shell: Shell) -> None:
    conversation = await opened(shell)
    await shell.type("c", until=lambda: conversation.context.asked == ["compact"])
    assert not isinstance(shell.top, ContextSheet)
    await shell.enter("/compact keep the table names")
    await shell.until(lambda: conversation.context.asked[-1] == "compact keep the table names")


async def test_enter_goes_to_the_message_of_a_part(shell: Any) -> None:
    await opened(shell)
    jumps: list[int] = []
    shell.transcript.scroller.jump = jumps.append
    await shell.press("enter", until=lambda: jumps == [3])


@pytest.mark.parametrize("command", ["/context", "/compact"])
async def test_without_a_conversation_there_is_nothing_to_show(shell: Shell, command: str) -> None:
    await shell.enter(command, shows="Nothing was sent yet: the context is empty. A message fills it.")
    assert shell.toasts == []


async def test_a_click_on_the_meter_opens_it_and_one_beside_it_does_not(shell: Shell) -> None:
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    conversation.play(ContextChanged(84_000, 200_000, estimated=False, cost_usd=0.0))
    await shell.until(lambda: "ctx 42%" in shell.text)
    row, shown = shell.parts.title, shell.text.splitlines()[0]
    await shell.pilot.click(row, offset=(1, 0))
    assert not isinstance(shell.top, ContextSheet)
    await shell.pilot.click(row, offset=(shown.index("ctx") + 3, 0))
    await shell.until(lambda: isinstance(shell.top, ContextSheet))


async def test_hostile_names_do_nothing(shell: Shell) -> None:
    conversation = await opened(shell)
    part = WindowPart(4, 0, -1, Filling.RESULTS, HOSTILE, 9_000, whole=9_000)
    conversation.context.shown = replace(REPORT, measured=replace(REPORT.measured, parts=(part,)))
    conversation.play(ContextChanged(1, 2, estimated=True, cost_usd=0.0))
    await shell.until(lambda: "[/]x" in shell.text)
    assert "\x1b" not in shell.text
    assert "\u202e" not in shell.text


@pytest.mark.parametrize("width", [1, 9, 40, 76, 200])
@pytest.mark.parametrize("tokens", [0, 1, 100_000, 199_999, 450_000])
def test_the_bar_is_always_as_wide_as_its_room(width: int, tokens: int) -> None:
    shares = tuple((filling, tokens // 8) for filling in Filling)
    report = replace(REPORT, tokens=tokens, measured=Measured(shares, (), 1))
    assert bar(report, width, plain=False).cell_length == width
    assert ruler(report, width, plain=False).cell_length <= width


@pytest.mark.parametrize(("tokens", "cells"), [(0, 0), (900, 1), (100_000, 20), (199_999, 40)])
def test_as_many_cells_are_filled_as_the_window_is_full(tokens: int, cells: int) -> None:
    shares = tuple((filling, tokens // 8) for filling in Filling)
    report = replace(REPORT, tokens=tokens, window=200_000, measured=Measured(shares, (), 1))
    assert bar(report, 40, plain=False).plain.count("▰") == cells


@pytest.mark.parametrize("percent", range(30, 100, 5))
def test_the_threshold_that_acts_is_always_on_the_ruler(percent: int) -> None:
    for width in (58, 78, 118):
        line = ruler(replace(REPORT, compact_percent=percent), width, plain=False).plain
        assert f"▴{percent}" in line
        assert line.index(f"▴{percent}") == percent * width // 100


def test_never_summarizing_leaves_the_other_marks() -> None:
    line = ruler(replace(REPORT, compact_percent=101), 78, plain=True).plain
    assert line.split() == ["^70", "^90"]


def test_an_unknown_window_is_said() -> None:
    report = replace(REPORT, window=0, estimated=True)
    assert "window of some-model is unknown" in headline(report, "some-model").plain
    assert not any("free" in row.plain or "%" in row.plain for row in share_rows(report, plain=False))
    assert ruler(report, 78, plain=False).plain == ""


def test_small_shares_are_not_nothing() -> None:
    assert [share_of(count, 1_000) for count in (0, 3, 10, 999)] == ["0 %", "<1 %", "1 %", "100 %"]


def test_only_the_cells_of_the_meter_are_the_meter() -> None:
    row = "界 auto · ctx 42% · ready"
    assert [covers(row, "ctx 42%", cell) for cell in (9, 10, 16, 17)] == [False, True, True, False]
    assert not covers(row, "", 3)
    assert not covers(row, "gone", 3)


async def test_what_the_provider_counted_and_the_way_back_are_shown(shell: Shell) -> None:
    conversation = await opened(shell)
    conversation.context.shown = replace(
        REPORT, usage=Usage(10, 20, 30, 40_000), earlier=EarlierView("", 0, 150_000), can_undo=True
    )
    conversation.context.answer = Edited(1, 100, 90)
    await shell.type("p", shows="10 new, 40,000 cached, 30 written, 20 out")
    assert "r restores them" in shell.text
    assert "u undoes" in " ".join(shell.text.split())
    assert "Shortened 1 part for" in shell.text


async def test_the_system_prompt_is_shown_as_it_is_sent(open_shell: Any) -> None:
    async with open_shell((100, 60)) as shell:
        await shell.open(shell.engine.seed("talk", messages=4))
        await shell.enter("/prompt", shows="You are Phoenix.")
        assert "System prompt: ~5,000 tokens in 4 sections" in shell.text
        assert "~1,500 AGENTS.md /work/AGENTS" in " ".join(shell.text.split())
        await shell.until(lambda: "2 tools, ~4,000 tokens: bash, patch" in shell.text)
        for words in ("# Safety", "Ask first.", "Today is 2026-11-22."):
            assert words in shell.text


def test_each_mark_of_the_ruler_is_explained_once() -> None:
    assert legend(replace(REPORT, compact_percent=75), plain=False).plain == (
        "▴70 tells you · ▴75 summarizes older messages · ▴90 turns red"
    )
    assert legend(replace(REPORT, compact_percent=90), plain=True).plain == (
        "^70 tells you · ^90 summarizes older messages"
    )
    assert legend(replace(REPORT, compact_percent=101), plain=False).plain == "▴70 tells you · ▴90 turns red"
    assert legend(replace(REPORT, window=0), plain=False).plain == ""


def test_the_guide_has_no_window_to_fill() -> None:
    report = replace(REPORT, window=0)
    assert headline(report, "demo/guide").plain == "Context  demo/guide follows rules and has no context window"
    assert "the window of local/x is unknown" in headline(report, "local/x").plain
