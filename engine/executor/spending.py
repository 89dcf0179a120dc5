"""What model calls cost: counted in their run and conversation, and in those of the one that a sub-agent works for."""

from __future__ import annotations

from msgspec.structs import replace

from engine.executor.session import Session
from engine.machine.messages import Usage
from engine.ports import ProviderError
from engine.records import Totals, total_cost

CENT = 0.01
"""US dollars."""


def add_usage(totals: Totals, usage: Usage, cost_usd: float | None) -> Totals:
    """The totals after one more reply; an unknown price makes the sum unknown."""
    return totals.plus(
        Totals(usage.input_tokens, usage.output_tokens, usage.cache_creation_tokens, usage.cache_read_tokens, cost_usd)
    )


def count(session: Session, usage: Usage, cost_usd: float | None) -> None:
    """Take in one model call that is stored, and tell of it."""
    session.run.cost_usd = total_cost(session.run.cost_usd, cost_usd)
    session.record = replace(session.record, totals=add_usage(session.record.totals, usage, cost_usd))
    session.tell_context()
    above = session.above
    if above is not None:
        above.run.agents_cost_usd = total_cost(above.run.agents_cost_usd, cost_usd)
        above.record = replace(above.record, agents_totals=add_usage(above.record.agents_totals, usage, cost_usd))
        above.tell_context()


def check_budget(session: Session) -> None:
    """Before a model call: what the run may cost, its sub-agents included, and what one of these may cost itself.

    Raises:
        ProviderError: it is used up.
    """
    run = (session.above or session).run
    _check(run.caps.max_budget_usd, total_cost(run.cost_usd, run.agents_cost_usd), "this run")
    if session.record.agent is not None:
        _check(session.settings.agent_budget_usd, session.run.cost_usd, "a sub-agent")


def _check(limit: float, spent: float | None, whose: str) -> None:
    if limit and spent is not None and spent >= limit:
        text = f"The budget of {dollars(limit)} for {whose} is used up ({dollars(spent)} spent)."
        raise ProviderError(text, kind="budget", retryable=False)


def dollars(amount: float) -> str:
    """An amount with cents, or with as many digits as a smaller one needs."""
    return f"${amount:.2f}" if amount >= CENT or not amount else f"${amount:.8f}".rstrip("0")
