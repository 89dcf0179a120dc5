"""The sheet of a summary: it is read, then taken, changed, made again or dropped, never by accident."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.widgets import TextArea

from engine.executor.requests import DropSummary, Proposal, Refused, SummarizeAgain, SummaryDecision, TakeSummary
from engine.machine.states import Compacting, Idle
from phoenix_tui.modals.context_sheet import SummarySheet
from phoenix_tui.widgets.answer_gate import GRACE
from tests.support.clocks import SteppedClock

LONG = "\n".join(f"- decision {number}: \x1b[31mred\u202e" for number in range(80))
PROPOSAL = Proposal("The plan is kept.\n\n" + LONG, 12, 5, "150k → ~3,400 tokens · $0.02")


async def offered(shell: Any, proposal: Proposal = PROPOSAL) -> tuple[SummarySheet, asyncio.Task[SummaryDecision]]:
    """A sheet with a summary that was visible for a while, and the task of the engine's wait."""
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    conversation.become(Compacting(2))
    shell.composer.text = "/compact the names"
    await shell.pilot.press("enter")
    await shell.until(lambda: conversation.context.review is not None)
    sheet = shell.top
    assert isinstance(sheet, SummarySheet)
    verdict = asyncio.create_task(conversation.context.review(proposal))
    await shell.until(lambda: "decision 1" in shell.text)
    sheet.gate.since -= GRACE
    return sheet, verdict


@pytest.mark.parametrize("size", [(60, 20), (200, 60)])
async def test_it_says_what_the_summary_stands_for_and_enter_takes_it(open_shell: Any, size: Any) -> None:
    async with open_shell(size=size) as shell:
        _, verdict = await offered(shell)
        words = " ".join(shell.text.split())
        assert "of 12 messages, 5 kept" in words
        assert "150k → ~3,400 tokens · $0.02" in words
        assert "Enter uses it · e edits · r regenerates" in words
        assert shell.status.endswith("Esc discards it")
        assert "◆ the summary needs your decision" in shell.status or size[0] == 60
        assert "compacting" not in shell.status
        assert "\x1b" not in shell.text
        assert "\u202e" not in shell.text
        await shell.pilot.press("pagedown", "down", "enter")
        await shell.until(verdict.done)
        assert verdict.result() == TakeSummary(PROPOSAL.summary)
        shell.conversation.become(Idle(3))
        await shell.until(lambda: not isinstance(shell.top, SummarySheet))


async def test_an_enter_that_was_on_its_way_takes_nothing(open_shell: Any) -> None:
    async with open_shell() as shell:
        sheet, verdict = await offered(shell)
        sheet.gate.clock = SteppedClock(sheet.gate.since)
        await shell.pilot.press("enter")
        assert not verdict.done()
        await shell.pilot.press("escape")
        await shell.until(verdict.done)
        assert verdict.result() == DropSummary()
        await shell.until(lambda: not isinstance(shell.top, SummarySheet))


async def test_it_is_changed_or_made_again_with_a_hint(open_shell: Any) -> None:
    async with open_shell() as shell:
        sheet, verdict = await offered(shell)
        await shell.pilot.press("e")
        await shell.until(lambda: shell.top.query(TextArea))
        shell.top.query_one(TextArea).text = "mine"
        await shell.pilot.press("ctrl+s")
        await shell.until(verdict.done)
        assert verdict.result() == TakeSummary("mine")
        again = asyncio.create_task(sheet.review(Proposal("short", 12, 5, "x", problem="It was too long")))
        await shell.until(lambda: "It was too long." in shell.text)
        await shell.pilot.press("r")
        await shell.until(lambda: "What matters most?" in shell.text)
        await shell.type("tables")
        await shell.pilot.press("enter")
        await shell.until(again.done)
        assert again.result() == SummarizeAgain("tables")
        await shell.until(lambda: "the model is writing…" in shell.text)


async def test_esc_stops_the_model_that_writes_it(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = shell.engine.seed("talk", messages=4)
        await shell.open(conversation)
        conversation.become(Compacting(2))
        shell.composer.text = "/compact"
        await shell.pilot.press("enter")
        await shell.until(lambda: "the model is writing…" in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: conversation.cancelled)


async def test_a_refusal_is_said_and_the_sheet_goes(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = shell.engine.seed("talk", messages=4)
        await shell.open(conversation)
        conversation.context.compacts = Refused("agent is busy")
        shell.composer.text = "/compact"
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts == ["agent is busy"])
        assert not isinstance(shell.top, SummarySheet)
