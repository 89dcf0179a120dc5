"""The context window: its contents, and making room."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.context_window import sent_prompt, sent_to
from phoenix_tui.modals.context_sheet import COMPACT, ContextSheet
from phoenix_tui.modals.summary_sheet import SummarySheet
from phoenix_tui.text.labels import Tone


async def context(ctx: CommandContext, _: str) -> None:
    """Show the contents of the window, and actions on them."""
    conversation = sent_to(ScreenFrontEnd(ctx), messages=True)
    if conversation is None:
        return
    answer = await ctx.sheets.show(ContextSheet(conversation, plain=ctx.active.launch.plain))
    if answer == COMPACT:
        await compact(ctx, "")
    elif answer:
        ctx.active.parts.transcript.scroller.jump(int(answer.removeprefix("#")))


async def prompt(ctx: CommandContext, _: str) -> None:
    """The system prompt as it is sent, and the tools beside it."""
    conversation = sent_to(ScreenFrontEnd(ctx))
    if conversation is None:
        return
    sent = sent_prompt(conversation)
    lines = [Content.styled(line, "bold" if line.startswith("# ") else "") for line in sent.text.split("\n")]
    text = Content.assemble(Content("\n").join(lines), (f"\n\n{sent.tools}", Tone.QUIET.value))
    ctx.sheets.read("System prompt", text)


async def compact(ctx: CommandContext, focus: str) -> None:
    """Summarize older messages now; the text behind the command has priority. The summary is shown before it counts."""
    conversation = sent_to(ScreenFrontEnd(ctx), messages=True)
    if conversation is None:
        return
    await decide_on_summary(ctx, SummarySheet(conversation, focus))


async def decide_on_summary(ctx: CommandContext, sheet: SummarySheet) -> None:
    """Show it; say why there is none."""
    visible = ctx.active.visible
    if visible is not None:
        sheet.decides = lambda decides: visible.say_moment(decides=decides)
    if refusal := await ctx.sheets.show(sheet):
        ctx.tell(refusal, bad=True)


RUNS: Final[dict[str, Run]] = {"context": context, "compact": compact, "prompt": prompt}
