"""Usage and cost of a conversation, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.api.conversation import ConversationApi
from engine.records.runs import RunRecord
from phoenix_tui.features.front_end import FrontEnd, FrontEndSession, Option
from phoenix_tui.features.sub_agents import views_of
from phoenix_tui.text.agent_text import cost_lines
from phoenix_tui.text.labels import clock, money, tokens
from phoenix_tui.text.statistics_text import call_lines, format_run_heading, run_lines

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
