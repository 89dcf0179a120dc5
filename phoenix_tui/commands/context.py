"""The context window: its contents, and making room."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.compaction import SummaryReview, compact
from phoenix_tui.features.context_window import sent_prompt, sent_to
from phoenix_tui.features.init import init as write_instructions
from phoenix_tui.features.mcp import server_shares
from phoenix_tui.modals.context_sheet import COMPACT, ContextSheet
from phoenix_tui.modals.summary_sheet import SummarySheet
from phoenix_tui.text.labels import Tone

HANG: Final = 2
"""Cells that a wrapped row of the prompt is indented."""


async def context(ctx: CommandContext, _: str) -> None:
    """Show the contents of the window, and actions on them."""
    front = ScreenFrontEnd(ctx)
    conversation = sent_to(front, messages=True)
    if conversation is None:
        return
    shares = await server_shares(front)
    answer = await ctx.sheets.show(ContextSheet(conversation, plain=ctx.active.launch.plain, said=shares))
    if answer == COMPACT:
        await summarize(ctx)
    elif answer:
        ctx.active.parts.transcript.scroller.jump(int(answer.removeprefix("#")))


async def init(ctx: CommandContext, _: str) -> None:
    """Write a first AGENTS.md."""
    await write_instructions(ScreenFrontEnd(ctx))


async def prompt(ctx: CommandContext, _: str) -> None:
    """The system prompt as it is sent, and the tools beside it."""
    conversation = sent_to(ScreenFrontEnd(ctx))
    if conversation is None:
        return
    sent = await sent_prompt(conversation)
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


async def summarize(ctx: CommandContext, focus: str = "", *, before: int = 0) -> None:
    """Summarize older messages now, or those before one; the text behind the command has priority."""
    await compact(ScreenFrontEnd(ctx), SheetSummaryAsker(ctx), focus, before=before)


RUNS: Final[dict[str, CommandFunction]] = {"context": context, "compact": summarize, "prompt": prompt, "init": init}
