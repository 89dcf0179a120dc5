"""The supervisor's question to a model, and what its answer means; any text means something (SPEC SDK-09)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from engine.machine.effects import Strategy
from engine.machine.messages import Origin, Role, Usage, text_in
from engine.ports.profiles import Profile
from engine.records import RunPriority, StoredMessage
from engine.updates import MOST_TASKS, PARALLEL, SEQUENTIAL, Route, RouteAgent
from tools.clean import clean_line
from tools.wording import one_line

LEAST_CONFIDENCE: Final = 0.5
"""Confidence below which the main model answers alone (SPEC SDK-09)."""
LONGEST_MESSAGE: Final = 8_000
"""Characters of the user's message that the supervisor reads."""
EARLIER: Final = 6
"""Messages before it, of each the first LONGEST_EARLIER characters."""
LONGEST_EARLIER: Final = 400
LONGEST_SUMMARY: Final = 1_500
LONGEST_REASON: Final = 600
"""Characters of its reasons that are kept."""

_INSTRUCTION: Final = """\
You are the supervisor of a coding assistant. You answer nobody and do no work: you decide who answers the user's \
newest message. Reply with one JSON object and nothing else:
{"strategy": "single", "agents": [{"agentName": "NAME", "taskDescription": "TASK", "priority": "normal"}], \
"reasoning": "one or two sentences", "confidence": 0.9}
strategy: "single": the main model answers alone, agents is []. This is the usual case: questions, small changes, \
work whose parts depend on each other. "parallel": at least two parts that need nothing of each other and never write \
the same file. "sequential": each agent needs the results of those before it. "delegate": exactly one agent, where \
one is clearly better suited than the main model.
agents: at most %d. An agent sees neither this message nor you: its task says all it needs to know, and what to bring \
back. priority is low, normal, high or critical.
confidence: from 0 to 1, how sure you are that this beats the main model alone.
Agents:
%s"""


class _Agent(Struct, rename="camel"):
    agent_id: str | None = None
    agent_name: str | None = None
    task_description: str | None = None
    priority: str | float | None = None


class _Decision(Struct):
    strategy: Strategy
    confidence: float
    agents: list[_Agent] | None = None
    reasoning: str | None = None


class SupervisorUsage(Struct, frozen=True):
    """Cost of the decision; no usage when no model was asked."""

    model: str = ""
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    """Cost of the decision; None where its price is unknown."""


class NoDecision(Exception):
    """The answer decides nothing; the reason is a clause for the user."""


def question(profiles: Sequence[Profile], rows: Sequence[StoredMessage], summary: str) -> tuple[str, str]:
    """System prompt and text of the request; `rows` end with the user's message."""
    listed = "\n".join(f"- {profile.name}: {clean_line(profile.description)}" for profile in profiles)
    newest = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].origin is Origin.HUMAN), len(rows) - 1)
    parts = [f"Summary of what came first:\n{summary[:LONGEST_SUMMARY]}"] if summary else []
    earlier = [line for row in rows[:newest] if (line := _line(row))][-EARLIER:]
    if earlier:
        parts.append("Before it:\n" + "\n".join(earlier))
    parts.append(f"The user's newest message:\n{_words(rows[newest])[:LONGEST_MESSAGE] if rows else ''}")
    return _INSTRUCTION % (MOST_TASKS, listed), "\n\n".join(parts)


def parse_decision(text: str, profiles: Sequence[Profile]) -> Route:
    """Parse a model's answer; for an invalid or incomplete one the main model answers alone."""
    try:
        return _route(_decision(text), {profile.name for profile in profiles})
    except NoDecision as nothing:
        return Route(fallback=str(nothing))


def spawn_arguments(route: Route) -> str:
    """The arguments of the call of spawn_agents that carries a decision out."""
    tasks = [{"task": one.task, "profile": one.profile, "priority": one.priority.value} for one in route.agents]
    strategy = SEQUENTIAL if route.strategy is Strategy.SEQUENTIAL else PARALLEL
    return json.dumps({"tasks": tasks, "strategy": strategy}, ensure_ascii=False)


def record_of(route: Route, outcome: str, spent: SupervisorUsage) -> str:
    """Encode a decision for `runs.routing_json` (SPEC SDK-09); `outcome` is its result."""
    agents = [
        {
            "agentId": one.profile,
            "agentName": one.profile,
            "taskDescription": one.task,
            "priority": one.priority.value,
        }
        for one in route.agents
    ]
    kept: Mapping[str, object] = {
        "strategy": route.strategy.value,
        "agents": agents,
        "reasoning": route.reasoning,
        "confidence": route.confidence,
        "fallback": route.fallback,
        "outcome": outcome,
        "model": spent.model,
        "usage": spent.usage,
        "costUsd": spent.cost_usd,
    }
    return msgspec.json.encode(kept).decode()


def _decision(text: str) -> _Decision:
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        raise NoDecision("the supervisor gave no decision")
    try:
        return msgspec.json.decode(text[begin : end + 1].encode("utf-8", "replace"), type=_Decision)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoDecision("the supervisor's decision could not be read") from error


def _route(decision: _Decision, known: set[str]) -> Route:
    confidence, reasoning = decision.confidence, one_line(clean_line(decision.reasoning or ""), LONGEST_REASON)
    if not 0.0 <= confidence <= 1.0:
        raise NoDecision(f"the supervisor's confidence was {confidence:g}, not between 0 and 1")
    if confidence < LEAST_CONFIDENCE:
        raise NoDecision(f"the supervisor was unsure ({confidence:.0%})")
    if decision.strategy is Strategy.SINGLE:
        return Route(reasoning=reasoning, confidence=confidence)
    found = decision.agents or []
    if not found:
        raise NoDecision("the supervisor named no agent")
    if len(found) > MOST_TASKS:
        raise NoDecision(f"the supervisor named {len(found)} agents; the limit is {MOST_TASKS}")
    agents = tuple(_agent(one, known) for one in found)
    strategy = decision.strategy
    if len(agents) == 1:
        strategy = Strategy.DELEGATE
    elif strategy is Strategy.DELEGATE:
        raise NoDecision(f"the supervisor wanted to delegate to {len(agents)} agents at once")
    return Route(strategy, agents, reasoning, confidence)


def _agent(one: _Agent, known: set[str]) -> RouteAgent:
    task = (one.task_description or "").strip()
    if not task:
        raise NoDecision("the supervisor gave an agent no task")
    names = [name.strip() for name in (one.agent_name, one.agent_id) if name and name.strip()]
    profile = next((name for name in names if name in known), "")
    if not profile:
        wanted = clean_line(names[0])[:40] if names else ""
        raise NoDecision(f"the supervisor named an unknown agent: {wanted or 'none'}")
    priority = one.priority.strip().lower() if isinstance(one.priority, str) else ""
    return RouteAgent(profile, task, RunPriority(priority) if priority in set(RunPriority) else RunPriority.NORMAL)


def _words(message: StoredMessage) -> str:
    return text_in(message.blocks, "\n").strip()


def _line(message: StoredMessage) -> str:
    words = _words(message) if message.role is not Role.SYSTEM else ""
    return f"{message.role.value}: {clean_line(words)[:LONGEST_EARLIER]}" if words else ""
