"""Texts about a supervisor: on or off, and its decision in lines."""

from __future__ import annotations

from typing import Final

from engine.machine.effects import Strategy
from engine.records import RunPriority
from engine.routes import Route, RouteCard
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue

STRATEGIES: Final = {
    Strategy.SINGLE: "the main model alone",
    Strategy.PARALLEL: "agents in parallel",
    Strategy.SEQUENTIAL: "agents in sequence",
    Strategy.DELEGATE: "one agent",
}


def strategy_words(strategy: Strategy, count: int) -> str:
    """Name of a strategy with its number of agents."""
    return f"{count} {STRATEGIES[strategy]}" if count > 1 else STRATEGIES[strategy]


def route_line(route: Route) -> str:
    """A decision in one line."""
    agents = "; ".join(f"{clean_line(agent.profile)}: {clean_line(agent.task)}" for agent in route.agents)
    return f"{strategy_words(route.strategy, len(route.agents))} ({route.confidence:.0%} sure): {agents}"


def route_object(route: Route) -> JsonObject:
    """A decision for scripts (SPEC SDK-09)."""
    agents: list[JsonValue] = [
        {"profile": one.profile, "task": one.task, "priority": one.priority.value} for one in route.agents
    ]
    return {
        "strategy": route.strategy.value,
        "agents": agents,
        "reasoning": route.reasoning,
        "confidence": route.confidence,
    }


def card_lines(card: RouteCard, now: float) -> list[str]:
    """A decision to be read line by line."""
    route = card.route
    words = strategy_words(route.strategy, len(route.agents))
    lines = [f"The supervisor proposes {words}, {route.confidence:.0%} sure."]
    for place, agent in enumerate(route.agents, 1):
        urgent = "" if agent.priority is RunPriority.NORMAL else f", {agent.priority.value} priority"
        lines.append(f"Agent {place}, {clean_line(agent.profile)}{urgent}: {clean_line(agent.task)}")
    if route.reasoning:
        lines.append(f"Because: {clean_line(route.reasoning)}")
    left = max(int(card.starts_at - now) + 1, 0)
    when = f"They start in {left} s." if card.starts_at else "They wait for your decision."
    return [*lines, f"{when} /route start starts them now, /route alone answers without them."]
