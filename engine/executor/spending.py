"""Cost of model calls, while a conversation is open: its sums, and those of the parent of a sub-agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from engine.executor.session import Session
from engine.executor.spending_caps import dollars
from engine.ports import ProviderError
from engine.records.model_calls import ModelCall
from engine.records.totals import Totals, total_cost
from engine.updates import CallEnded, Noticed

BUDGET: Final = "budget"
"""Kind of the failure of a call that a budget forbids."""
UNKNOWN_PRICE = "the price of a model that this run used is unknown"


def count(session: Session, calls: Iterable[ModelCall]) -> None:
    """Count stored model calls, and publish the sums."""
    above = session.above
    for call in calls:
        if session.spending is not None:
            session.spending.calls_ended()
        used = Totals.of(call.usage, call.cost_usd)
        if call.run_id:
            session.run.cost_usd = total_cost(session.run.cost_usd, call.cost_usd)
        session.record = replace(session.record, totals=session.record.totals.plus(used))
        session.publisher.publish(CallEnded(call))
        session.tell_context()
        if above is not None:
            above.run.agents_cost_usd = total_cost(above.run.agents_cost_usd, call.cost_usd)
            above.record = replace(above.record, agents_totals=above.record.agents_totals.plus(used))
            above.tell_context()


def check_budget(session: Session) -> None:
    """Check the budgets before a model call: that of the run, sub-agents included, and that of one sub-agent.

    A budget that an unknown price makes impossible to keep is reported once a run.

    Raises:
        ProviderError: it is used up.
    """
    run = (session.above or session).run
    spent = total_cost(run.cost_usd, run.agents_cost_usd)
    _check(run.caps.max_budget_usd, spent, "this run")
    if run.caps.max_budget_usd and spent is None and not run.told_of_budget:
        run.told_of_budget = True
        text = f"The budget of {dollars(run.caps.max_budget_usd)} cannot be enforced: {UNKNOWN_PRICE}."
        (session.above or session).publisher.publish(Noticed(text))
    if session.record.agent is not None:
        _check(session.settings.agent_budget_usd, session.run.cost_usd, "a sub-agent")


def _check(limit: float, spent: float | None, whose: str) -> None:
    if limit and spent is not None and spent >= limit:
        text = f"The budget of {dollars(limit)} for {whose} is used up ({dollars(spent)} spent)."
        raise ProviderError(text, kind=BUDGET, retryable=False)


async def refused_spending(session: Session, *, for_first_request: bool = False) -> str:
    """Reason why the caps of a day and of a project allow no model call here; empty when they do.

    Raises:
        StorageError: the sums cannot be read.
    """
    if session.spending is None:
        return ""
    return await session.spending.refusal(session.record.cwd, for_first_request=for_first_request)


async def check_caps(session: Session, *, for_first_request: bool = False) -> None:
    """Check those caps before a model call; calls without a known price are reported once a run.

    The first request of a run takes the check of its message.

    Raises:
        ProviderError: one is used up.
        StorageError: the sums cannot be read.
    """
    if session.spending is None:
        return
    if why := await refused_spending(session, for_first_request=for_first_request):
        raise ProviderError(why, kind=BUDGET, retryable=False)
    above = session.above or session
    if not above.run.told_of_caps and (told := await session.spending.uncertainty(session.record.cwd)):
        above.run.told_of_caps = True
        above.publisher.publish(Noticed(told))
