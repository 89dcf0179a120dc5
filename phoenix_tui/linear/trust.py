"""The files that extend Phoenix in lines: listed with their commands, read, accepted or refused."""

from __future__ import annotations

from typing import Final

from phoenix_tui.config.sources.report import SourceEntry, SourceReport
from phoenix_tui.features.trust import NO_FILES, answer, facts, sections, standing, text_of, trust_in_view
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.clean import reveal_name

ACTIONS: Final = ("use all of them", "use none of them", "show one")
OWN_ACTIONS: Final = ("start them here", "start them in a folder of their own")


async def _trust(ctx: LinearContext, _argument: str) -> None:
    report = await trust_in_view(ctx)
    if not report.entries:
        ctx.say(NO_FILES)
        done = await ctx.choose(standing(report), OWN_ACTIONS)
        if done is not None:
            ctx.say((await answer(ctx, report, trusted=done == 0))[1])
        return
    for heading, entries in sections(report.entries).items():
        ctx.say(f"{heading}:", *(_row(entry) for entry in entries))
    while (done := await ctx.choose(standing(report) or "Files of this folder:", ACTIONS)) == ACTIONS.index("show one"):
        await _show(ctx, report)
    if done is not None:
        ctx.say((await answer(ctx, report, trusted=done == 0))[1])


async def _show(ctx: LinearContext, report: SourceReport) -> None:
    chosen = await ctx.choose("Files:", [_row(entry) for entry in report.entries])
    if chosen is not None:
        entry = report.entries[chosen]
        ctx.read(reveal_name(entry.name), await text_of(ctx, report, entry))


def _row(entry: SourceEntry) -> str:
    return f"{reveal_name(entry.name)}, {entry.state.value}: {facts(entry)}".removesuffix(": ")


RUNS: Final[dict[str, LineCommand]] = {"trust": _trust}
