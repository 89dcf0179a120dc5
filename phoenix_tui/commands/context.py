"""The context window: what fills it, and making room."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.modals.context import COMPACT, ContextSheet
from phoenix_tui.modals.summary import SummarySheet
from phoenix_tui.text.labels import Tone
from tools.clean import clean, clean_line
from tools.wording import counted

NOTHING: Final = "Nothing was sent yet: the context is empty."


async def context(bench: CommandContext, _: str) -> None:
    """What fills the window, and what can be done about it."""
    conversation = bench.desk.conversation
    if conversation is None or not conversation.record.message_count:
        bench.tell(NOTHING)
        return
    answer = await bench.sheets.show(ContextSheet(conversation, plain=bench.desk.launch.plain))
    if answer == COMPACT:
        await compact(bench, "")
    elif answer:
        bench.desk.parts.transcript.scroller.jump(int(answer.removeprefix("#")))


async def prompt(bench: CommandContext, _: str) -> None:
    """The system prompt as it is sent, and the tools beside it."""
    conversation = bench.desk.conversation
    if conversation is None:
        bench.tell(NOTHING)
        return
    sent = conversation.context.prompt()
    lines = clean(f"{sent.static}\n\n{sent.dynamic}").split("\n")
    text = Content("\n").join(Content.styled(line, "bold" if line.startswith("# ") else "") for line in lines)
    tools = f"\n\n{counted(len(sent.tools), 'tool')}: {clean_line(', '.join(sent.tools)) or 'none'}"
    bench.sheets.read("System prompt", Content.assemble(text, (tools, Tone.QUIET.value)))


async def compact(bench: CommandContext, focus: str) -> None:
    """Summarize older messages now; what is typed behind the command is kept above all. It shows before it counts."""
    conversation = bench.desk.conversation
    if conversation is None or not conversation.record.message_count:
        bench.tell(NOTHING)
        return
    await decide_on_summary(bench, SummarySheet(conversation, focus))


async def decide_on_summary(bench: CommandContext, sheet: SummarySheet) -> None:
    """Show it; say why there is none."""
    visible = bench.desk.visible
    if visible is not None:
        sheet.decides = lambda decides: visible.say_moment(decides=decides)
    if refusal := await bench.sheets.show(sheet):
        bench.tell(refusal, bad=True)


RUNS: Final[dict[str, Run]] = {"context": context, "compact": compact, "prompt": prompt}
