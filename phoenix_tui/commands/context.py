"""The context window: what fills it, and making room."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.bench import Bench, Run
from phoenix_tui.screens.context_sheet import COMPACT, ContextSheet
from phoenix_tui.screens.summary_sheet import SummarySheet

NOTHING: Final = "Nothing was sent yet: the context is empty."


async def context(bench: Bench, _: str) -> None:
    """What fills the window, and what can be done about it."""
    conversation = bench.desk.conversation
    if conversation is None or not conversation.record.message_count:
        bench.tell(NOTHING)
        return
    answer = await bench.sheets.show(ContextSheet(conversation, plain=bench.desk.launch.plain))
    if answer == COMPACT:
        await compact(bench, "")
    elif answer:
        bench.desk.parts.transcript.jump(int(answer.removeprefix("#")))


async def compact(bench: Bench, focus: str) -> None:
    """Summarize older messages now; what is typed behind the command is kept above all. It shows before it counts."""
    conversation = bench.desk.conversation
    if conversation is None or not conversation.record.message_count:
        bench.tell(NOTHING)
        return
    if refusal := await bench.sheets.show(SummarySheet(conversation, focus)):
        bench.tell(refusal, bad=True)


RUNS: Final[dict[str, Run]] = {"context": context, "compact": compact}
