"""Usage and cost of a conversation and its runs, and over all conversations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.api.conversation import ConversationApi
from engine.executor.requests import EngineError
from engine.permissions.projects import project_of
from engine.records.runs import CallGroup, RunRecord, Statistics, StatisticsGroup, StatisticsQuery, ToolGroup
from engine.records.traces import Trace, TraceSummary
from phoenix_tui.features.front_end import FrontEnd, FrontEndSession, Option
from phoenix_tui.features.sub_agents import views_of
from phoenix_tui.text.agent_text import cost_lines
from phoenix_tui.text.labels import clock, money, tokens
from phoenix_tui.text.statistics_text import (
    CALL_COLUMNS,
    EMPTY,
    TOOL_COLUMNS,
    StatisticsRow,
    agents_line,
    call_lines,
    call_rows,
    format_run_heading,
    headline,
    remarks,
    run_lines,
    token_line,
    tool_rows,
)

if TYPE_CHECKING:
    from engine.api.engine import StatisticsApi


LISTED: Final = 100
"""Runs to choose from, the newest."""
HANG: Final = 2
NOTHING_SENT: Final = "Nothing was sent yet."


class CostReport(Struct, frozen=True):
    """Cost of a conversation: the sum, its parts, a remark on the price, and the newest run."""

    price: str
    lines: Sequence[str]
    remark: str
    last_run: Sequence[str]


async def cost_report(session: FrontEndSession, conversation: ConversationApi) -> CostReport:
    """Read the recorded costs. Raises StorageError."""
    totals, library = conversation.record.spent, session.services.library
    lines = [
        f"{tokens(totals.input_tokens)} tokens in, {tokens(totals.output_tokens)} out",
        f"{tokens(totals.cache_read_tokens)} read from cache, {tokens(totals.cache_creation_tokens)} written to it",
        *cost_lines(conversation.record, views_of(session.services.engine, conversation.id)),
        *call_lines(await library.calls(conversation.id)),
    ]
    remark = "The price of this model is unknown." if totals.cost_usd is None else "Prices may change."
    runs = [line for run in await library.runs(conversation.id, 1) for line in run_lines(run)]
    return CostReport(money(totals.cost_usd) or "$0.00", lines, remark, runs)


async def choose_run(front: FrontEnd, conversation: ConversationApi) -> None:
    """Choose a run and read its details."""
    found = await front.services.library.runs(conversation.id, LISTED)
    if not found:
        front.tell("There are no runs yet.")
        return
    options = [Option(run.id, format_run_heading(run), tuple(filter(None, _facts(run)))) for run in found]
    chosen = await front.pick("Runs of this conversation, newest first", options)
    for run in found:
        if run.id == chosen:
            front.read("Run details", "\n".join(run_lines(run)), hang=HANG)


def _facts(run: RunRecord) -> tuple[str, str]:
    return clock(run.seconds), money(run.cost_usd)


UNAVAILABLE: Final = "Statistics are not available here."
RANGES: Final = (7, 30, 365, 0)
"""Days to choose from; 0: all time."""
YEAR: Final = 53 * 7
"""Days of the heat map."""
MOST_DAYS: Final = 36_500


class StatisticsBy(StrEnum):
    """Kinds of rows of a report."""

    DAY = "day"
    MODEL = "model"
    PROJECT = "project"
    CONVERSATION = "conversation"
    TOOL = "tool"
    AGENT = "agent"
    PURPOSE = "purpose"


GROUPS: Final = {
    StatisticsBy.DAY: StatisticsGroup.DAY,
    StatisticsBy.MODEL: StatisticsGroup.MODEL,
    StatisticsBy.PROJECT: StatisticsGroup.FOLDER,
    StatisticsBy.CONVERSATION: StatisticsGroup.CONVERSATION,
    StatisticsBy.AGENT: StatisticsGroup.AGENT,
    StatisticsBy.PURPOSE: StatisticsGroup.PURPOSE,
}
"""The sums behind each report; the calls of tools have their own."""


HEADINGS: Final = {by: by.value.upper() for by in StatisticsBy} | {StatisticsBy.AGENT: "SUB-AGENTS"}


class StatisticsReport(Struct, frozen=True):
    """The sums of some days."""

    by: StatisticsBy
    days: int
    """Days until today; 0: all time."""
    today: str
    total: CallGroup = CallGroup()
    rows: tuple[CallGroup, ...] = ()
    tools: tuple[ToolGroup, ...] = ()
    daily: tuple[CallGroup, ...] = ()
    """Sum of each day with calls, ascending; in a report by day those of a year at least, for its plots."""


def statistics_of(session: FrontEndSession) -> StatisticsApi:
    """The sums; raises EngineError where there are none."""
    if session.services.statistics is None:
        raise EngineError(UNAVAILABLE)
    return session.services.statistics


async def statistics_report(api: StatisticsApi, by: StatisticsBy, days: int, now: float) -> StatisticsReport:
    """Read one report; a folder is counted with the project it belongs to now.

    Raises:
        StorageError: the sums cannot be read.
    """
    groups = {StatisticsGroup.DAY, GROUPS.get(by, StatisticsGroup.DAY)}
    since = first_second(now, days) if days else 0.0
    found = await api.read(StatisticsQuery(tuple(sorted(groups)), by is StatisticsBy.TOOL, since))
    rows = found.groups[GROUPS[by]] if by in GROUPS else ()
    if by is StatisticsBy.PROJECT:
        rows = await asyncio.to_thread(_by_project, rows)
    daily = found.groups[StatisticsGroup.DAY]
    if by is StatisticsBy.DAY:
        rows = daily[::-1]
        if days and days < YEAR:
            daily = (await _year(api, now)).groups[StatisticsGroup.DAY]
    today = time.strftime("%Y-%m-%d", time.localtime(now))
    return StatisticsReport(by, days, today, found.total, tuple(rows), found.tools, daily)


def first_second(now: float, days: int) -> float:
    """Unix time at which the first of so many local days until today began."""
    year, month, day = time.localtime(now)[:3]
    return time.mktime((year, month, day - days + 1, 0, 0, 0, 0, 0, -1))


async def _year(api: StatisticsApi, now: float) -> Statistics:
    return await api.read(StatisticsQuery((StatisticsGroup.DAY,), since=first_second(now, YEAR)))


def _by_project(folders: Sequence[CallGroup]) -> tuple[CallGroup, ...]:
    """Folders of one repository together. A folder that is gone counts by its path."""
    projects: dict[str, CallGroup] = {}
    for row in folders:
        key = str(project_of(Path(row.key)))
        projects[key] = projects[key].plus(row) if key in projects else replace(row, key=key)
    return tuple(sorted(projects.values(), key=lambda row: (-row.totals.tokens, row.key)))


def report_table(report: StatisticsReport) -> tuple[tuple[str, ...], list[StatisticsRow]]:
    """Headings, the name's first, and the rows of a report."""
    if report.by is StatisticsBy.TOOL:
        return (HEADINGS[report.by], *TOOL_COLUMNS), tool_rows(report.tools)
    return (HEADINGS[report.by], *CALL_COLUMNS), call_rows(GROUPS[report.by], report.rows)


def report_lines(report: StatisticsReport) -> list[str]:
    """The whole sum in sentences, and what it does not know."""
    if not report.total.calls:
        return [EMPTY]
    lines = [headline(report.total, report.days), token_line(report.total), agents_line(report.total)]
    return [*filter(None, lines), *remarks(report.total)]


NO_RUNS = "There are no runs to trace yet."


async def traces_in_view(front: FrontEnd) -> list[TraceSummary]:
    """The runs of the conversation in view, newest first; without any, says so. Raises StorageError."""
    conversation = front.conversation
    found = list(await front.services.library.traces.of_conversation(conversation.id)) if conversation else []
    if not found:
        front.tell(NO_RUNS)
    return found


async def newest_trace(front: FrontEnd) -> Trace | None:
    """The tree of the newest run; None without one, which is said. Raises StorageError."""
    found = await traces_in_view(front)
    return await front.services.library.traces.of_run(found[0].run_id) if found else None
