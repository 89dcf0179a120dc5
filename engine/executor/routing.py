"""Asks the supervisor about a message (SPEC SDK-09), shows the decision while it can be overruled, and passes it to the
machine. Any answer of the supervisor means something.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.executor.approving import limits_of
from engine.executor.asking import answer_to, background_model
from engine.executor.ready_calls import decide_call, prepare
from engine.executor.requests import Accepted, Receipt, Refused
from engine.executor.session import Session
from engine.machine.effects import ExecTool, RouteRequest, Strategy
from engine.machine.events import RouteDecided
from engine.machine.messages import Origin, Role, ToolCall, Usage, text_in
from engine.permissions.policy import Ask
from engine.ports import ProfileError, ProviderError, StorageError
from engine.ports.profiles import Profile
from engine.records import PermissionMode, RunPriority, StoredMessage
from engine.records.runs import CallPurpose
from engine.updates import (
    MOST_TASKS,
    PARALLEL,
    SEQUENTIAL,
    AnswerAlone,
    Route,
    RouteAgent,
    RouteCard,
    Routed,
    RouteOffer,
    RouteVerdict,
    StartAgents,
)
from tools.clean import clean_line
from tools.contract import ToolInputError
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
    said = None
    try:
        said = _decision(text)
        return _route(said, {profile.name for profile in profiles})
    except NoDecision as nothing:
        is_sure = said is not None and 0.0 <= said.confidence <= 1.0
        return Route(fallback=str(nothing), confidence=said.confidence if said is not None and is_sure else 0.0)


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


PATIENCE: Final = 30.0
"""Seconds that a decision may take."""
MAX_TOKENS: Final = 4_096
"""Room for a model that thinks before it decides."""
SPAWN: Final = "spawn_agents"
NOTHING_TO_DECIDE: Final = "This decision is no longer open."
_DONE: Final = {
    Strategy.SINGLE: "the main model answers alone",
    Strategy.PARALLEL: "{count} agents in parallel",
    Strategy.SEQUENTIAL: "{count} agents in sequence",
    Strategy.DELEGATE: "one agent",
}


class DecidedRoute(Struct, frozen=True):
    """A decision and its cost."""

    route: Route
    usage: Usage | None = None
    model: str = ""
    cost_usd: float | None = 0.0


async def route(session: Session, act: RouteRequest) -> None:
    """Perform one RouteRequest; cancelling closes connection and card and answers nothing."""
    made = await _decide(session)
    chosen, is_approved = await _offer(session, made.route) if made.route.agents else (made.route, False)
    call = ToolCall(f"route_{session.ports.ids.new()}", SPAWN, spawn_arguments(chosen))
    outcome = "alone" if not chosen.agents else "as decided" if chosen == made.route else "changed"
    spent = SupervisorUsage(made.model, made.usage, made.cost_usd)
    decided = RouteDecided(
        act.gen,
        session.ports.ids.new(),
        call if chosen.agents else None,
        strategy=chosen.strategy,
        decision_json=record_of(made.route, outcome, spent),
        note=_note(made.route, chosen),
        approved=is_approved,
    )
    session.post(lambda: decided)


async def _decide(session: Session) -> DecidedRoute:
    """Decide; on any error the main model answers alone and the reason is reported."""
    why = why_alone(session)
    if why:
        return DecidedRoute(Route(fallback=why))
    try:
        async with asyncio.timeout(PATIENCE):
            return await _ask(session)
    except ProviderError as error:
        why = f"the supervisor could not be asked: {error.message.rstrip('.')}"
    except StorageError as error:
        why = str(error).rstrip(".")
    except TimeoutError:
        why = f"the supervisor took longer than {PATIENCE:.0f} s"
    return DecidedRoute(Route(fallback=why))


def why_alone(session: Session) -> str:
    """Reason why a supervisor is not asked here at all; empty where it is."""
    record = session.record
    if session.ports.profiles is None or SPAWN not in session.equipment.tools:
        return "there are no sub-agents here"
    if record.permission_mode in {PermissionMode.PLAN, PermissionMode.DENY}:
        return f"permission mode {record.permission_mode.value} does not allow sub-agents"
    try:
        provider, name = session.ports.providers.resolve(record.model)
    except ProviderError as error:
        return error.message.rstrip(".")
    if provider.describe(name).local:
        return f"{record.model} runs on this machine, where agents cannot run in parallel"
    return ""


async def _ask(session: Session) -> DecidedRoute:
    ports, record = session.ports, session.record
    assert ports.profiles is not None, "asked only where there are profiles"
    model = background_model(session)
    profiles = await asyncio.to_thread(ports.profiles.names, record.cwd)
    system, text = question(profiles, await session.rows(), record.summary)
    said = await answer_to(session, CallPurpose.ROUTING, model, system, text, MAX_TOKENS)
    return DecidedRoute(parse_decision(said.text, profiles), said.usage, said.model, said.cost_usd)


async def _offer(session: Session, route: Route) -> tuple[Route, bool]:
    """Show the decision until it is answered or its time is up; returns the final route, and true after a yes.

    A start that needs the user's yes does not begin by itself: the card waits. Where no card is shown, the policy asks.
    """
    loop, wait = asyncio.get_running_loop(), session.settings.route_wait
    waits = bool(wait) and await _needs_yes(session, route)
    starts_at = 0.0 if waits else session.ports.clock.monotonic() + wait
    offer = RouteOffer(RouteCard(session.ports.ids.new(), route, starts_at), loop.create_future())
    session.questions.offer = offer
    session.publisher.publish(Routed(offer.card))
    offer.timer = loop.call_later(wait, _settle, offer, StartAgents()) if wait and not waits else None
    if not wait:
        _settle(offer, StartAgents())
    session.moves.limit.pause()
    try:
        verdict = await offer.verdict
    finally:
        session.moves.limit.go_on()
        if offer.timer is not None:
            offer.timer.cancel()
        session.questions.offer = None
        session.publisher.publish(Routed(None))
    match verdict:
        case StartAgents(agents=()):
            return route, offer.answered
        case StartAgents(agents=agents):  # as the user changed it
            strategy = Strategy.DELEGATE if len(agents) == 1 else route.strategy
            return replace(route, strategy=strategy, agents=agents), offer.answered
        case AnswerAlone():
            return Route(reasoning=route.reasoning, confidence=route.confidence), False
        case _:
            assert_never(verdict)


async def _needs_yes(session: Session, route: Route) -> bool:
    """True where the policy would ask before these agents start."""
    call = ToolCall("route", SPAWN, spawn_arguments(route))
    try:
        ready = await prepare(session, call)
    except ToolInputError:
        return False  # the call itself will say so
    return isinstance(decide_call(session, ExecTool(0, call), ready, await limits_of(session)), Ask)


def _settle(offer: RouteOffer, verdict: RouteVerdict) -> None:
    if not offer.verdict.done():
        offer.verdict.set_result(verdict)


def _note(made: Route, chosen: Route) -> str:
    """The row of the transcript about it."""
    if made.fallback:
        return f"Routing: the main model answers alone: {made.fallback}"
    words = _DONE[chosen.strategy].format(count=len(chosen.agents))
    if chosen != made:
        return f"Routing: {words}, as you decided"
    reason = f": {made.reasoning}" if made.reasoning else ""
    return f"Routing: {words} ({made.confidence:.0%} sure){reason}"


class RoutingControl:
    """The open decision of one conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def card(self) -> RouteCard | None:
        """The open decision."""
        return self._session.questions.offer.card if self._session.questions.offer is not None else None

    @property
    def why_alone(self) -> str:
        """Reason why the main model alone answers every message; empty where a supervisor is asked."""
        return why_alone(self._session)

    def answer(self, card_id: str, verdict: RouteVerdict) -> Receipt:
        """Start the agents, as decided or others, or let the main model answer alone."""
        offer = self._session.questions.offer
        if offer is None or offer.card.id != card_id or offer.verdict.done():
            return Refused(NOTHING_TO_DECIDE)
        if isinstance(verdict, StartAgents) and (why := self._check_agents(verdict.agents)):
            return Refused(why)
        offer.answered = True
        _settle(offer, verdict)
        return Accepted()

    def _check_agents(self, agents: tuple[RouteAgent, ...]) -> str:
        """Reason why these cannot be started; empty where they can."""
        profiles = self._session.ports.profiles
        if len(agents) > MOST_TASKS:
            return f"At most {MOST_TASKS} agents are allowed; there are {len(agents)}."
        try:
            for agent in agents:
                if profiles is not None:
                    profiles.resolve(agent.profile, self._session.record.cwd)
        except ProfileError as error:
            return error.sentence
        return ""

    def hold(self, card_id: str) -> Receipt:
        """Wait for an answer however long it takes: the user changes the tasks."""
        offer = self._session.questions.offer
        if offer is None or offer.card.id != card_id or offer.verdict.done():
            return Refused(NOTHING_TO_DECIDE)
        if offer.timer is not None:
            offer.timer.cancel()
        offer.card = replace(offer.card, starts_at=0.0)
        self._session.publisher.publish(Routed(offer.card))
        return Accepted()
