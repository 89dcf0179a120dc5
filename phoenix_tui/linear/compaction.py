"""A summary of older messages: read out, then taken, changed, made again or dropped."""

from __future__ import annotations

import asyncio
from typing import Final

from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, SummaryDecision, TakeSummary
from phoenix_tui.features.compaction import SummaryReview, compact
from phoenix_tui.features.prompt_history import remember
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.linear.line_buffer import LeaveTyped, LineTyped, StopWanted
from tools.clean import clean, clean_line
from tools.wording import counted

ACTIONS: Final = (
    "Use it in place of the older messages",
    "Edit it",
    "Regenerate it, with a hint",
    "Discard it",
)


class LineSummaryAsker:
    """Reads a summary out and asks by number."""

    def __init__(self, ctx: LinearContext) -> None:
        self._ctx = ctx

    async def decide_on(self, summary: SummaryReview) -> str:
        """Wait for each proposal, meanwhile for a stop, and ask."""
        proposals: asyncio.Queue[Proposal] = asyncio.Queue()

        async def review(proposal: Proposal) -> SummaryDecision:
            verdict = summary.offer(proposal)
            proposals.put_nowait(proposal)
            return await verdict

        refusal = await summary.request(review)
        if not refusal:
            while (offered := await next_proposal(self._ctx, proposals)) is not None:
                summary.decide(await _decide(self._ctx, offered))
        return refusal


async def summarize(ctx: LinearContext, focus: str = "", *, before: int = 0) -> None:
    """Ask for a summary of older messages, or of those before one; then the user decides on it."""
    await compact(ctx, LineSummaryAsker(ctx), focus, before=before)


async def next_proposal(ctx: LinearContext, proposals: asyncio.Queue[Proposal]) -> Proposal | None:
    """The next summary to decide on; None once the conversation rests, or is stopped or left."""
    offered, rested = asyncio.ensure_future(proposals.get()), asyncio.ensure_future(ctx.active.rested.wait())
    listens = ctx.terminal.keyboard.is_terminal
    while True:
        # The lines of a pipe answer later questions.
        heard = asyncio.ensure_future(ctx.terminal.heard() if listens else asyncio.Event().wait())
        done, _ = await asyncio.wait({offered, rested, heard}, return_when=asyncio.FIRST_COMPLETED)
        ready = offered in done
        if ready or rested in done:  # input of the same moment belongs to the next reader
            heard.cancel()
            (rested if ready else offered).cancel()
            return offered.result() if ready else None
        await _meanwhile(ctx)


async def _meanwhile(ctx: LinearContext) -> None:
    """A line, a stop or the end while the summary is being written."""
    match await ctx.terminal.next_request():
        case StopWanted():
            ctx.active.stop()
        case LeaveTyped():
            ctx.active.stop()
            ctx.leave(0)
        case LineTyped(text=text):
            ctx.say("Writing the summary. Esc stops.")
            if text.strip() and not remember(ctx.history, text):
                ctx.say("Up recalls your text.")


async def _decide(ctx: LinearContext, proposal: Proposal) -> SummaryDecision:
    if proposal.problem:
        ctx.say(f"Refused: {clean_line(proposal.problem)}")
    ctx.say(
        f"Summary of {counted(proposal.summarized, 'message')}, {proposal.kept} kept, {clean_line(proposal.sizes)}:",
        *(line for line in clean(proposal.summary).splitlines() if line.strip()),
        "End of the summary.",
    )
    match await ctx.choose("Use this summary?", ACTIONS):
        case 0:
            return TakeSummary(proposal.summary)
        case 1:
            text = await ctx.ask_line("The summary", clean(proposal.summary))
            return TakeSummary(text) if text else DropSummary()
        case 2:
            return SummarizeAgain(await ctx.ask_line("What matters most"))
        case _:
            return DropSummary()


RUNS: Final[dict[str, LineCommand]] = {"compact": summarize}
