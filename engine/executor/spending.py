"""Cost of model calls, while a conversation is open: its sums, and those of the parent of a sub-agent."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from engine.executor.session import Session
from engine.ports import ProviderError
from engine.records.model_calls import ModelCall
from engine.records.totals import Totals, total_cost
from engine.updates import CallEnded, Noticed

CENT = 0.01
"""US dollars."""
UNKNOWN_PRICE = "the price of a model that this run used is unknown"


def count(session: Session, calls: Iterable[ModelCall]) -> None:
    """Count stored model calls, and publish the sums."""
    above = session.above
    for call in calls:
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
        raise ProviderError(text, kind="budget", retryable=False)


def dollars(amount: float) -> str:
    """An amount with cents, or with as many digits as a smaller one needs."""
    return f"${amount:.2f}" if amount >= CENT or not amount else f"${amount:.8f}".rstrip("0")
