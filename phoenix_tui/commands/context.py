"""Commands about the context window, its cost, and questions beside it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from textual.content import Content

from engine.records import SideExchange
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.context_window import (
    FORKED,
    NOTHING_COUNTED,
    SummaryReview,
    choose_run,
    compact,
    cost_report,
    read_prompt,
    require_conversation,
    statistics_of,
    traces_in_view,
    why_not,
)
from phoenix_tui.features.front_end import Option
from phoenix_tui.features.mcp import server_shares
from phoenix_tui.modals.context_sheet import COMPACT, ContextSheet, SummarySheet
from phoenix_tui.modals.statistics_sheet import StatisticsSheet, TraceSheet
from phoenix_tui.modals.text_sheet import SideQuestionSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.trace_text import summary_facts, summary_words

if TYPE_CHECKING:
    from engine.conversation import Conversation

HANG: Final = 2
"""Cells that a wrapped row of the prompt is indented."""


async def run_context(ctx: CommandContext, _: str) -> None:
    """Show the contents of the window, and actions on them."""
    front = ScreenFrontEnd(ctx)
    conversation = require_conversation(front, messages=True)
    if conversation is None:
        return
    shares = await server_shares(front)
    answer = await ctx.sheets.show(ContextSheet(conversation, plain=ctx.active.launch.plain, said=shares))
    if answer == COMPACT:
        await run_compact(ctx)
    elif answer:
        ctx.active.parts.transcript.scroller.jump(int(answer.removeprefix("#")))


async def run_prompt(ctx: CommandContext, _: str) -> None:
    """The system prompt as it is sent, and the tools beside it."""
    conversation = require_conversation(ScreenFrontEnd(ctx))
    if conversation is None:
        return
    sent = await read_prompt(conversation)
    counts = [f"~{one.tokens:,}" for one in sent.sections]
    wide, long = max(map(len, counts), default=0), max((len(one.name) for one in sent.sections), default=0)
    rows = [
        Content.assemble(
            (f"{count:>{wide}}  ", Tone.QUIET.value), f"{one.name:<{long}}  ", (one.origin, Tone.QUIET.value)
        )
        for count, one in zip(counts, sent.sections, strict=True)
    ]
    texts = [
        Content.assemble((f"\n{one.name}", "bold"), (f"  {count} · {one.origin}\n", Tone.QUIET.value), one.text)
        for count, one in zip(counts, sent.sections, strict=True)
    ]
    tools = Content.styled(f"\n{sent.tools}", Tone.QUIET.value)
    ctx.sheets.read(f"System prompt: {sent.total}", Content("\n").join([*rows, *texts, tools]), HANG)


class SheetSummaryAsker:
    """Shows a summary in a sheet."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx

    async def decide_on(self, summary: SummaryReview) -> str:
        """Show it while it is written and decided on."""
        sheet, visible = SummarySheet(summary), self._ctx.active.visible
        if visible is not None:
            sheet.decides = lambda decides: visible.update_details(decides=decides)
        return await self._ctx.sheets.show(sheet) or ""


async def run_compact(ctx: CommandContext, focus: str = "", *, before: int = 0) -> None:
    """Summarize older messages now, or those before one; the text behind the command has priority."""
    await compact(ScreenFrontEnd(ctx), SheetSummaryAsker(ctx), focus, before=before)


async def run_stats(ctx: CommandContext, page: str) -> None:
    """All pages; `page` names the first one shown."""
    api = statistics_of(ScreenFrontEnd(ctx))
    await ctx.sheets.show(StatisticsSheet(api, time.time(), page=page, plain=ctx.active.launch.plain))


HEADING: Final = "Runs of this conversation, newest first"


async def run_trace(ctx: CommandContext, _: str) -> None:
    """Choose a run, read its tree; Esc returns to the list, a message ends both."""
    front, chosen = ScreenFrontEnd(ctx), ""
    while found := await traces_in_view(front):
        options = [Option(one.run_id, summary_words(one), summary_facts(one)) for one in found]
        chosen = await front.pick(HEADING, options, current=chosen)
        tree = await ctx.active.services.library.traces.of_run(chosen) if chosen else None
        if tree is None:
            return
        sheet = TraceSheet(ctx.active.services.library.traces, tree, plain=ctx.active.launch.plain)
        span = await ctx.sheets.show(sheet)
        if span is not None:
            conversation = ctx.active.conversation
            if conversation is None or conversation.id != span.conversation_id:
                await ctx.active.open(span.conversation_id)
            ctx.active.parts.transcript.scroller.jump(span.message_seq)
            return


async def run_cost(ctx: CommandContext, what: str) -> None:
    """Tokens and cost, and the last run; `runs`: any of them."""
    front, conversation = ScreenFrontEnd(ctx), ctx.active.conversation
    if conversation is None:
        ctx.tell(NOTHING_COUNTED)
    elif what == "runs":
        await choose_run(front, conversation)
    else:
        report = await cost_report(front, conversation)
        last_run = ("\n\n", ("Last run", "bold"), "\n", "\n".join(report.last_run)) if report.last_run else ()
        lines = "".join(f"{line}\n" for line in report.lines)
        text = Content.assemble((f"{report.price}\n", "bold"), lines, (report.remark, Tone.QUIET.value), *last_run)
        ctx.sheets.read("Cost of this conversation", text)


async def run_btw(ctx: CommandContext, question: str) -> None:
    """A question beside the conversation, also while the agent works."""
    conversation = ctx.active.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        ctx.tell(refused)
    else:
        await _side_questions(ctx, conversation, question)


async def _side_questions(ctx: CommandContext, conversation: Conversation, question: str) -> None:
    """Ask beside the conversation until the sheet is closed: copy an answer, ask on, or continue in a copy."""
    earlier: list[SideExchange] = []
    answered = ""
    while question:
        sheet = SideQuestionSheet(question, conversation.side, earlier, answered)
        await ctx.sheets.show(sheet)
        answered = sheet.exchange.answer
        match sheet.wanted:
            case "copy":
                ctx.tell(f"Copied {len(answered):,} characters {await ctx.clipboard.copy(answered)}.")
            case "more":
                follow_up = await ctx.sheets.ask_line("Ask on", "") or ""
                if follow_up.strip():
                    earlier.append(sheet.exchange)
                    question, answered = follow_up.strip(), ""
            case "fork":
                copy = await ctx.active.services.engine.fork(conversation.id, None, [*earlier, sheet.exchange])
                await ctx.active.show(copy)
                await ctx.active.index.reload()
                ctx.tell(FORKED)
                return
            case _:
                return
