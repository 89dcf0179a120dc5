"""The context window: what fills it, and making room."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.modals.context_sheet import COMPACT, ContextSheet
from phoenix_tui.modals.summary_sheet import SummarySheet
from phoenix_tui.text.labels import Tone
from tools.clean import clean, clean_line
from tools.wording import counted

NOTHING: Final = "Nothing was sent yet: the context is empty."


async def context(ctx: CommandContext, _: str) -> None:
    """What fills the window, and what can be done about it."""
    conversation = ctx.active.conversation
    if conversation is None or not conversation.record.message_count:
        ctx.tell(NOTHING)
        return
    answer = await ctx.sheets.show(ContextSheet(conversation, plain=ctx.active.launch.plain))
    if answer == COMPACT:
        await compact(ctx, "")
    elif answer:
        ctx.active.parts.transcript.scroller.jump(int(answer.removeprefix("#")))


async def prompt(ctx: CommandContext, _: str) -> None:
    """The system prompt as it is sent, and the tools beside it."""
    conversation = ctx.active.conversation
    if conversation is None:
        ctx.tell(NOTHING)
        return
    sent = conversation.context.prompt()
    lines = clean(f"{sent.static}\n\n{sent.dynamic}").split("\n")
    text = Content("\n").join(Content.styled(line, "bold" if line.startswith("# ") else "") for line in lines)
    tools = f"\n\n{counted(len(sent.tools), 'tool')}: {clean_line(', '.join(sent.tools)) or 'none'}"
    ctx.sheets.read("System prompt", Content.assemble(text, (tools, Tone.QUIET.value)))


async def compact(ctx: CommandContext, focus: str) -> None:
    """Summarize older messages now; what is typed behind the command is kept above all. It shows before it counts."""
    conversation = ctx.active.conversation
    if conversation is None or not conversation.record.message_count:
        ctx.tell(NOTHING)
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
