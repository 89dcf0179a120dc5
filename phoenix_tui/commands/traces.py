"""/trace: the runs of the conversation in view, and the tree of one."""

from __future__ import annotations

from typing import Final

from engine.records.traces import TraceSpan
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.front_end import Option
from phoenix_tui.features.traces import traces_in_view
from phoenix_tui.modals.trace_sheet import TraceSheet
from phoenix_tui.text.trace_text import summary_facts, summary_words

HEADING: Final = "Runs of this conversation, newest first"


async def trace(ctx: CommandContext, _: str) -> None:
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
            await _go(ctx, span)
            return


async def _go(ctx: CommandContext, span: TraceSpan) -> None:
    """Show a span's message in the transcript, also that of a sub-agent."""
    conversation = ctx.active.conversation
    if conversation is None or conversation.id != span.conversation_id:
        await ctx.active.open(span.conversation_id)
    ctx.active.parts.transcript.scroller.jump(span.message_seq)


RUNS: Final[dict[str, CommandFunction]] = {"trace": trace}
