"""Sums that a test sets, for screens."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field

from engine.machine.messages import Usage
from engine.ports import StorageError
from engine.records.runs import CallGroup, Statistics, StatisticsGroup, StatisticsQuery, ToolGroup, Totals


@dataclass
class FakeStatistics:
    """Answers every query with the groups it asks for."""

    answer: Statistics = field(default_factory=Statistics)
    problem: str = ""
    asked: list[StatisticsQuery] = field(default_factory=list[StatisticsQuery])

    async def read(self, query: StatisticsQuery) -> Statistics:
        self.asked.append(query)
        if self.problem:
            raise StorageError(self.problem)
        groups = {group: self.answer.groups.get(group, ()) for group in query.groups}
        return Statistics(self.answer.total, groups, self.answer.tools if query.tools else ())


def group(key: str, thousands: int, cost: float | None = 0.0, label: str = "", **counts: int) -> CallGroup:
    """A sum of so many thousand tokens."""
    usage = Usage(thousands * 600, thousands * 50, thousands * 50, thousands * 300)
    made = {"calls": max(thousands // 4, 1), "conversations": 1} | counts
    return CallGroup(key, label, Totals.of(usage, cost), cost or 0.0, unpriced=int(cost is None), **made)


def some_statistics() -> FakeStatistics:
    """A few months of use until now."""
    today = datetime.date.fromisoformat(time.strftime("%Y-%m-%d", time.localtime(time.time())))
    days = [
        group((today - datetime.timedelta(days=back)).isoformat(), 20 + back * 37 % 400, (back * 37 % 400) / 100)
        for back in range(150, -1, -1)
        if back % 7 not in {1, 2}
    ]
    total = CallGroup()
    for day in days:
        total = total.plus(day)
    rows = {
        StatisticsGroup.DAY: tuple(days),
        StatisticsGroup.MODEL: (
            group("anthropic/claude-opus-4-8", 16_000, 180.5, failed=3, cancelled=2),
            group("anthropic/claude-haiku-4-5", 4_200, 6.25, estimated=2),
            group("openai/team-default", 900, None),
            group("local/mini", 300),
        ),
        StatisticsGroup.FOLDER: (group("/srv/relay", 12_000, 120.0), group("/srv/docs", 9_400, 67.75)),
        StatisticsGroup.CONVERSATION: (
            group("c1", 9_000, 90.0, "Let the relay try again"),
            group("c2", 3_000, 30.0, "\x1b[31mRed\x1b[0m 長い題名 " * 9),
            group("c3", 10, 0.1),
        ),
        StatisticsGroup.AGENT: (group("explorer", 2_000, 12.0, conversations=14),),
        StatisticsGroup.PURPOSE: (
            group("reply", 19_000, 175.0),
            group("compaction", 1_800, 9.0),
            group("title", 600, 2.75),
        ),
    }
    tools = (
        ToolGroup("bash", 812, 41, 9, 5_400_000, 3_200_000),
        ToolGroup("read_file", 640, 3, 0, 9_000, 8_100_000),
        ToolGroup("spawn_agents", 7, 0, 1, 840_000, 12_000),
    )
    return FakeStatistics(Statistics(total, rows, tools))
