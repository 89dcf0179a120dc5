"""A run in words: its kind, who answered, its files, usage and cost (SPEC SDK-08)."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from msgspec import Struct

from engine.machine.effects import Strategy
from engine.records.runs import ModelUsage, RunRecord
from phoenix_tui.text.labels import clock, money, tokens
from phoenix_tui.text.route_text import strategy_words
from tools.clean import clean_line
from tools.wording import counted

MOST_FILES: Final = 20
STATUSES: Final = {"success": "done", "failure": "failed", "timeout": "timed out"}
OUTCOMES: Final = {"alone": "you let the main model answer alone", "changed": "you changed it"}


class _Agent(Struct, rename="camel"):
    agent_name: str
    task_description: str


class _Decision(Struct):
    strategy: Strategy = Strategy.SINGLE
    agents: tuple[_Agent, ...] = ()
    reasoning: str = ""
    confidence: float = 0.0
    fallback: str = ""
    outcome: str = ""


def run_heading(run: RunRecord) -> str:
    """One line: its outcome and its subject."""
    how = STATUSES.get(run.status, run.status)
    return f"{how} · {clean_line(run.prompt) or 'a run without a message'}"


def run_lines(run: RunRecord) -> list[str]:
    """All that is known of a run, a fact a line."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    took = f"took {clock(run.seconds)}" if run.status != "running" else "still running"
    kind = run.type.replace("_", " ")
    lines = [
        run_heading(run),
        f"{began}, {took}, {counted(run.iterations, 'model call')}, kind {kind}",
        f"answered by: {_who(run)}",
        *_decision_lines(run),
        f"{_usage(run)}, {_price(run.cost_usd)}",
    ]
    if len(run.by_model) > 1:
        lines += [f"  {clean_line(one.model)}: {_of_model(one)}" for one in run.by_model]
    elif run.by_model:
        lines.append(f"model: {clean_line(run.by_model[0].model)}")
    if run.agents is not None:
        agents = run.agents
        lines.append(
            f"its {counted(agents.count, 'sub-agent')}, in addition: {agents.succeeded} succeeded, "
            f"{tokens(agents.tokens)} tokens, {_price(agents.cost_usd)}"
        )
    written = dict.fromkeys((*run.artifacts, *(run.agents.artifacts if run.agents is not None else ())))
    lines.append(f"files written: {counted(len(written), 'file') if written else 'none'}")
    lines += [f"  {clean_line(path)}" for path in list(written)[:MOST_FILES]]
    if len(written) > MOST_FILES:
        lines.append(f"  and {len(written) - MOST_FILES} more")
    if run.error:
        lines.append(f"error: {clean_line(run.error)}")
    return lines


def _who(run: RunRecord) -> str:
    count = run.agents.count if run.agents is not None else 1
    return strategy_words(run.strategy, count) if run.strategy is not Strategy.SINGLE else "the main model alone"


def _decision_lines(run: RunRecord) -> list[str]:
    if not run.decision_json:
        return []
    try:
        decision = msgspec.json.decode(run.decision_json, type=_Decision)
    except msgspec.DecodeError:
        return []
    if decision.fallback:
        return [f"the supervisor: {clean_line(decision.fallback)}"]
    words = strategy_words(decision.strategy, len(decision.agents))
    overruled = OUTCOMES.get(decision.outcome, "") if decision.agents else ""
    lines = [f"the supervisor: {words}, {decision.confidence:.0%} sure{f'; {overruled}' if overruled else ''}"]
    lines += [f"  {clean_line(one.agent_name)}: {clean_line(one.task_description)}" for one in decision.agents]
    if decision.reasoning:
        lines.append(f"  why: {clean_line(decision.reasoning)}")
    return lines


def _usage(run: RunRecord) -> str:
    used = run.usage
    cached = f", {tokens(used.cache_read_tokens)} from cache" if used.cache_read_tokens else ""
    return f"{tokens(used.input_tokens)} tokens in, {tokens(used.output_tokens)} out{cached}"


def _of_model(one: ModelUsage) -> str:
    used = one.usage
    calls = counted(one.requests, "call")
    return f"{calls}, {tokens(used.input_tokens)} in, {tokens(used.output_tokens)} out, {_price(one.cost_usd)}"


def _price(cost: float | None) -> str:
    return "price unknown" if cost is None else money(cost) or "$0.00"
