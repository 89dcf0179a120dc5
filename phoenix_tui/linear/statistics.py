"""Usage and cost over all conversations in lines."""

from __future__ import annotations

import time
from typing import Final

from phoenix_tui.features.statistics import (
    MOST_DAYS,
    StatisticsBy,
    report_lines,
    report_table,
    statistics_of,
    statistics_report,
)
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.wording import number_within

SHOWN: Final = 50
"""Rows that are read out."""
USAGE: Final = "Type /stats BY DAYS, such as /stats model 30; BY is one of {choices}."


async def _stats(ctx: LinearContext, text: str) -> None:
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


RUNS: Final[dict[str, LineCommand]] = {"stats": _stats}
