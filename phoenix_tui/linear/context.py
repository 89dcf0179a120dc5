"""The context window, its summary and its cost in lines, and questions beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.executor.context_manager import HIGHEST, LOWEST, ContextManager, ContextReport, Edited
from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, SummaryDecision, TakeSummary
from phoenix_tui.features.composing import remember
from phoenix_tui.features.context_window import (
    FORKED,
    MOST_DAYS,
    StatisticsBy,
    SummaryReview,
    choose_run,
    compact,
    cost_report,
    newest_trace,
    read_prompt,
    report_lines,
    report_table,
    require_conversation,
    statistics_of,
    statistics_report,
    why_not,
)
from phoenix_tui.features.mcp import server_shares
from phoenix_tui.linear.line_buffer import LeaveTyped, LineTyped, StopWanted
from phoenix_tui.linear.line_context import LinearContext
from phoenix_tui.models.choice import GUIDE
from phoenix_tui.text.context_text import compaction_lines, use_in_words
from phoenix_tui.text.trace_text import spell_lines
from tools.clean import clean, clean_line
from tools.wording import number_within, pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation

BIGGEST: Final = 5
"""Parts of the window that are named."""


async def run_context(ctx: LinearContext, word: str) -> None:
    conversation = require_conversation(ctx)
    if conversation is None:
        return
    name, _, value = word.partition(" ")
    active = conversation.context
    edits = {
        "prune": active.prune,
        "images": active.strip_images,
        "back": active.put_back,
        "undo": active.undo,
        "restore": active.restore,
    }
    if name in edits:
        outcome = await edits[name]()
        if isinstance(outcome, Edited):
            count = pluralize(outcome.count, "part")
            ctx.say(f"Done, {count}: from {outcome.before:,} to about {outcome.after:,} tokens.")
        else:
            ctx.say_outcome(outcome, "")
    elif name == "threshold":
        await _threshold(ctx, active, value)
    elif name:
        ctx.say(f"There is no /context {clean_line(name)}. Give {', '.join(edits)} or threshold.")
    else:
        await active.count()
        ctx.say(*_report(await active.report(), conversation.record.model))
        if shares := await server_shares(ctx):
            ctx.say(f"{shares}.")


async def _threshold(ctx: LinearContext, window: ContextManager, value: str) -> None:
    never = value == "never"
    number = HIGHEST + 1 if never else number_within(value, HIGHEST)
    if number is None or number < LOWEST:
        ctx.say(f"The threshold must be {LOWEST} to {HIGHEST} per cent, or never.")
        return
    await window.set_threshold(number)
    ctx.say(f"Older messages are summarized {'never' if never else f'at {value} per cent'}.")


def _report(report: ContextReport, model: str) -> Iterator[str]:
    about = "about " if report.estimated else ""
    if model == GUIDE and not report.window:
        yield f"Context: {GUIDE} follows rules and has no context window."
    elif report.window:
        share = report.tokens * 100 // report.window
        yield f"Context: {about}{report.tokens:,} of {report.window:,} tokens, {share} per cent."
    else:
        yield f"Context: {about}{report.tokens:,} tokens; the window of this model is unknown."
    for filling, tokens in report.measured.shares:
        if tokens:
            yield f"{filling.value}: about {tokens:,} tokens."
    for part in report.measured.parts[:BIGGEST]:
        yield f"Message {part.seq}, {part.filling.value}, about {part.tokens:,} tokens: {clean_line(part.label)}"
    at = f"at {report.compact_percent} per cent" if report.compact_percent <= HIGHEST else "never"
    yield f"Older messages are summarized {at}. /context threshold NUMBER changes that."
    for line in compaction_lines(report.compactions):
        yield f"{line}."
    if report.checkpoints is not None:
        yield use_in_words(report.checkpoints)
    yield from _ways(report)


def _ways(report: ContextReport) -> Iterator[str]:
    """Actions possible now."""
    if report.summarizable:
        yield f"/compact summarizes {pluralize(report.summarizable, 'message')} and keeps {report.kept}."
    if report.shortens or report.clears:
        does, number = ("shortens", report.shortens) if report.shortens else ("clears", report.clears)
        yield f"/context prune {does} {pluralize(number, 'old tool result')}."
    if report.images:
        yield f"/context images removes {pluralize(report.images, 'image')}."
    if report.omitted:
        yield f"/context back restores {pluralize(report.omitted, 'removed part')}."
    if report.earlier is not None:
        yield "/context restore restores the messages before the newest summary."
    if report.can_undo:
        yield "/context undo undoes the last change."


async def run_prompt(ctx: LinearContext, _: str) -> None:
    conversation = require_conversation(ctx)
    if conversation is not None:
        sent = await read_prompt(conversation)
        ctx.say(f"System prompt: {sent.total}.")
        for one in sent.sections:
            ctx.say(f"{one.name}, about {one.tokens:,} tokens, {one.origin}:", *one.text.splitlines())
        ctx.say(f"{sent.tools}.")


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


async def run_compact(ctx: LinearContext, focus: str = "", *, before: int = 0) -> None:
    """Ask for a summary of older messages, or of those before one; then the user decides on it."""
    await compact(ctx, LineSummaryAsker(ctx), focus, before=before)


async def next_proposal(ctx: LinearContext, proposals: asyncio.Queue[Proposal]) -> Proposal | None:
    """The next summary to decide on; None once the conversation rests, or is stopped or left."""
    offered, rested = asyncio.ensure_future(proposals.get()), asyncio.ensure_future(ctx.active.rested.wait())
    listens = ctx.terminal.keyboard.is_terminal
    while True:
        # The lines of a pipe answer later questions.
        heard = asyncio.ensure_future(ctx.terminal.wait_for_request() if listens else asyncio.Event().wait())
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
        f"Summary of {pluralize(proposal.summarized, 'message')}, {proposal.kept} kept, {clean_line(proposal.sizes)}:",
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


SHOWN: Final = 50
"""Rows that are read out."""
USAGE: Final = "Type /stats BY DAYS, such as /stats model 30; BY is one of {choices}."


async def run_stats(ctx: LinearContext, text: str) -> None:
    words = text.split()
    names = [word for word in words if word in set(StatisticsBy)]
    numbers = [number for word in words if (number := number_within(word, MOST_DAYS)) is not None]
    if len(words) != len(names) + len(numbers) or len(names) > 1 or len(numbers) > 1:
        ctx.say(USAGE.format(choices=", ".join(StatisticsBy)))
        return
    by, days = StatisticsBy(names[0]) if names else StatisticsBy.PURPOSE, numbers[0] if numbers else 0
    report = await statistics_report(statistics_of(ctx), by, days, time.time())
    ctx.say(*(line if line.endswith(".") else f"{line}." for line in report_lines(report)))
    (_, *headings), rows = report_table(report)
    words_of = [heading.lower() for heading in headings]
    for row in rows[:SHOWN]:
        facts = ", ".join(f"{name} {cell}" for name, cell in zip(words_of, row.cells, strict=True))
        ctx.say(f"{row.name}: {facts}.")
    if len(rows) > SHOWN:
        ctx.say(f"{len(rows) - SHOWN:,} more rows; `phoenix stats --by {by}` prints all.")


async def run_trace(ctx: LinearContext, _: str) -> None:
    trace = await newest_trace(ctx)
    if trace is not None:
        ctx.say(*spell_lines(trace))


FORK: Final = "fork"


MORE: Final = "more"
"""Words behind /btw that take the answers further."""


ASKED: Final = "Side question sent. Esc cancels it if nothing else is running."


async def run_cost(ctx: LinearContext, what: str) -> None:
    conversation = ctx.opened
    if conversation is None:
        return
    if what == "runs":
        await choose_run(ctx, conversation)
        return
    report = await cost_report(ctx, conversation)
    ctx.say(f"Cost: {report.price}, {report.lines[0]}.", *report.lines[1:], report.remark)
    ctx.say(*(("Last run:", *report.last_run) if report.last_run else ()))


async def run_btw(ctx: LinearContext, question: str) -> None:
    conversation = ctx.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        ctx.say(refused)
        return
    word, _, rest = question.partition(" ")
    if word == FORK and not rest:
        await _fork_side(ctx, conversation)
        return
    more = word == MORE and bool(rest.strip())
    asked = ctx.side_questions.ask(conversation, rest.strip() if more else question, more=more)
    if ctx.terminal.keyboard.is_terminal:
        ctx.say(ASKED)
    else:  # the lines of a pipe are handled one after the other
        await asyncio.wait((asked,))


async def _fork_side(ctx: LinearContext, conversation: Conversation) -> None:
    """Continue in a copy that ends with the side questions."""
    side = ctx.side_questions
    if not side.exchanges or side.about != conversation.id:
        ctx.say("No side question was answered here. /btw QUESTION asks one.")
        return
    copy = await ctx.services.engine.fork(conversation.id, None, tuple(side.exchanges))
    await ctx.open(copy.id)
    ctx.say(FORKED)
