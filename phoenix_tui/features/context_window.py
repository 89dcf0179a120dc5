"""The context window of the conversation in view and its cost: what is sent, its summary, questions beside it, and
usage of this conversation, its runs, and over all conversations.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import ENGINE_ERRORS, EngineError, Proposal, Receipt, Refused, Review, SummaryDecision
from engine.machine.states import Compacting
from engine.permissions.place import project_of
from engine.records import SideExchange
from engine.records.runs import CallGroup, StatisticsGroup, StatisticsQuery, ToolGroup
from engine.records.traces import Trace, TraceSummary
from phoenix_tui.features.agents import views_of
from phoenix_tui.features.front_end import FrontEnd, FrontEndSession, Option
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
from tools.clean import clean, clean_line
from tools.wording import one_line, pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.executor.side_questions import SideQuestions
    from engine.store.statistics import StatisticsStore


NOTHING_SENT: Final = "Nothing was sent yet: the context is empty. A message fills it."


class SentSection(Struct, frozen=True):
    """A section of the system prompt in a form to show."""

    name: str
    origin: str
    tokens: int
    text: str


class SentPrompt(Struct, frozen=True):
    """The system prompt as it is sent, and the tools beside it."""

    sections: tuple[SentSection, ...]
    tools: str

    @property
    def tokens(self) -> int:
        """Estimated tokens of all sections, the shares of system prompt and instructions in /context."""
        return sum(one.tokens for one in self.sections)

    @property
    def total(self) -> str:
        """Number of tokens and sections in words."""
        return f"~{self.tokens:,} tokens in {pluralize(len(self.sections), 'section')}"


async def read_prompt(conversation: Conversation) -> SentPrompt:
    """The prompt in a form to show."""
    sent = await conversation.context.prompt()
    names = clean_line(", ".join(sent.tools)) or "none"
    tools = f"{pluralize(len(sent.tools), 'tool')}, ~{sent.tools_tokens:,} tokens: {names}"
    sections = (
        SentSection(clean_line(one.section.name), clean_line(one.section.origin), one.tokens, clean(one.section.text))
        for one in sent.sections
    )
    return SentPrompt(tuple(sections), tools)


def require_conversation(front: FrontEnd, *, messages: bool = False) -> Conversation | None:
    """The conversation in view, with `messages` only if it has any; None after a notice."""
    conversation = front.conversation
    if conversation is None or (messages and not conversation.record.message_count):
        front.tell(NOTHING_SENT)
        return None
    return conversation


class SummaryReview:
    """One request for a summary, and the verdict on each proposal that follows."""

    def __init__(self, conversation: Conversation, focus: str = "", before: int = 0) -> None:
        self.conversation = conversation
        self.proposal: Proposal | None = None
        """Newest proposal; None while the first one is written."""
        self._focus = focus
        self._before = before
        """The seq of the first message that stays; 0: the newest ones stay."""
        self._verdict: asyncio.Future[SummaryDecision] | None = None
        """Verdict that the engine waits for, while it does."""

    @property
    def waits(self) -> bool:
        """True while a proposal waits for a verdict."""
        return self._verdict is not None

    @property
    def is_over(self) -> bool:
        """True once the summary is in force, or none was made: the conversation says which."""
        return not isinstance(self.conversation.state, Compacting)

    async def request(self, review: Review) -> str:
        """Ask for the summary, shown by `review`; returns the reason of a refusal."""
        try:
            outcome: Receipt = await self.conversation.context.compact(self._focus, review, self._before)
        except ENGINE_ERRORS as error:
            return str(error)
        return outcome.reason if isinstance(outcome, Refused) else ""

    def offer(self, proposal: Proposal) -> asyncio.Future[SummaryDecision]:
        """Put a proposal before the user; returns the verdict to wait for."""
        self.proposal = proposal
        self._verdict = asyncio.get_running_loop().create_future()
        return self._verdict

    def decide(self, verdict: SummaryDecision) -> None:
        """Give the verdict on the proposal that waits for one."""
        waiting, self._verdict = self._verdict, None
        if waiting is not None and not waiting.done():
            waiting.set_result(verdict)

    def stop(self) -> None:
        """Stop the model that writes the proposal."""
        self.conversation.cancel()


class SummaryAsker(Protocol):
    """A front end's side of a summary."""

    async def decide_on(self, summary: SummaryReview) -> str:
        """Request it, show each proposal, and give a verdict on it; returns the reason of a refusal."""
        ...


async def compact(front: FrontEnd, asker: SummaryAsker, focus: str = "", *, before: int = 0) -> None:
    """Summarize older messages of the conversation in view, or those before one; `focus` has priority.

    Raises:
        EngineError: the reason of a refusal.
    """
    conversation = require_conversation(front, messages=True)
    refusal = await asker.decide_on(SummaryReview(conversation, focus, before)) if conversation is not None else ""
    if refusal:
        raise EngineError(refusal)


NOTHING_SAID: Final = "This conversation is empty; there is nothing to ask about."
USAGE: Final = "Give a question: /btw QUESTION. The agent keeps working, and nothing is stored."
NO_ANSWER: Final = "(no answer)"
FORKED: Final = "Forked. You are in the copy, which ends with the side question."
SHOWN: Final = 200
"""Characters of the question that are shown."""


class SideAnswer(Struct, frozen=True):
    """Answer in a form to show."""

    text: str
    failed: bool = False
    """True when the text is the reason why there is no answer."""


def why_not(conversation: Conversation | None, question: str) -> str:
    """Reason why nothing is asked; empty where it can be."""
    if conversation is None or not conversation.record.message_count:
        return NOTHING_SAID
    return "" if question else USAGE


def in_one_line(question: str) -> str:
    """The question as its answer is headed."""
    return one_line(clean_line(question), SHOWN)


async def answer_of(side: SideQuestions, question: str, earlier: Sequence[SideExchange] = ()) -> SideAnswer:
    """Ask; a failure is an answer too."""
    try:
        return SideAnswer(clean(await side.ask(question, earlier)).strip() or NO_ANSWER)
    except ENGINE_ERRORS as error:
        return SideAnswer(clean(str(error)), failed=True)


LISTED: Final = 100
"""Runs to choose from, the newest."""
HANG: Final = 2
NOTHING_COUNTED: Final = (
    "Nothing was sent yet. After a message this shows its tokens and cost, by purpose, and those of the last run."
)


class CostReport(Struct, frozen=True):
    """Cost of a conversation: the sum, its parts, a remark on the price, and the newest run."""

    price: str
    lines: Sequence[str]
    remark: str
    last_run: Sequence[str]


async def cost_report(session: FrontEndSession, conversation: Conversation) -> CostReport:
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


async def choose_run(front: FrontEnd, conversation: Conversation) -> None:
    """Choose a run and read its details."""
    found = await front.services.library.runs(conversation.id, LISTED)
    if not found:
        front.tell("There are no runs yet.")
        return
    options = [
        Option(run.id, format_run_heading(run), tuple(filter(None, (clock(run.seconds), money(run.cost_usd)))))
        for run in found
    ]
    chosen = await front.pick("Runs of this conversation, newest first", options)
    for run in found:
        if run.id == chosen:
            front.read("Run details", "\n".join(run_lines(run)), hang=HANG)


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


def statistics_of(session: FrontEndSession) -> StatisticsStore:
    """The sums; raises EngineError where there are none."""
    if session.services.statistics is None:
        raise EngineError(UNAVAILABLE)
    return session.services.statistics


async def statistics_report(api: StatisticsStore, by: StatisticsBy, days: int, now: float) -> StatisticsReport:
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
            year = StatisticsQuery((StatisticsGroup.DAY,), since=first_second(now, YEAR))
            daily = (await api.read(year)).groups[StatisticsGroup.DAY]
    today = time.strftime("%Y-%m-%d", time.localtime(now))
    return StatisticsReport(by, days, today, found.total, tuple(rows), found.tools, daily)


def first_second(now: float, days: int) -> float:
    """Unix time at which the first of so many local days until today began."""
    year, month, day = time.localtime(now)[:3]
    return time.mktime((year, month, day - days + 1, 0, 0, 0, 0, 0, -1))


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


NO_RUNS: Final = (
    "There are no runs to trace yet. After a message this shows the calls of its run on a time line, with tokens and "
    "cost."
)


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
