"""Asks the supervisor about a message, shows the decision while it can be overruled, and passes it to the machine."""

from __future__ import annotations

import asyncio
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from engine.context import supervisor
from engine.executor.asking import answer_to
from engine.executor.requests import Accepted, Receipt, Refused
from engine.executor.session import Session
from engine.machine.effects import RouteRequest, Strategy
from engine.machine.events import RouteDecided
from engine.machine.messages import ToolCall, Usage
from engine.ports import ProfileError, ProviderError, StorageError
from engine.records import PermissionMode
from engine.records.runs import CallPurpose
from engine.updates import (
    MOST_TASKS,
    AnswerAlone,
    Route,
    RouteAgent,
    RouteCard,
    Routed,
    RouteOffer,
    RouteVerdict,
    StartAgents,
)

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
    chosen = await _offer(session, made.route) if made.route.agents else made.route
    call = ToolCall(f"route_{session.ports.ids.new()}", SPAWN, supervisor.spawn_arguments(chosen))
    outcome = "alone" if not chosen.agents else "as decided" if chosen == made.route else "changed"
    spent = supervisor.SupervisorUsage(made.model, made.usage, made.cost_usd)
    decided = RouteDecided(
        act.gen,
        session.ports.ids.new(),
        call if chosen.agents else None,
        strategy=chosen.strategy,
        decision_json=supervisor.record_of(made.route, outcome, spent),
        note=_note(made.route, chosen),
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
    model = session.settings.cheap_model or record.model
    profiles = await asyncio.to_thread(ports.profiles.names, record.cwd)
    system, text = supervisor.question(profiles, await session.rows(), record.summary)
    said = await answer_to(session, CallPurpose.ROUTING, model, system, text, MAX_TOKENS)
    return DecidedRoute(supervisor.parse_decision(said.text, profiles), said.usage, said.model, said.cost_usd)


async def _offer(session: Session, route: Route) -> Route:
    """Show the decision until it is answered or its time is up; returns the final route."""
    loop, wait = asyncio.get_running_loop(), session.settings.route_wait
    starts_at = session.ports.clock.monotonic() + wait
    offer = RouteOffer(RouteCard(session.ports.ids.new(), route, starts_at), loop.create_future())
    session.questions.offer = offer
    session.publisher.publish(Routed(offer.card))
    offer.timer = loop.call_later(wait, _settle, offer, StartAgents()) if wait else None
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
            return route
        case StartAgents(agents=agents):  # as the user changed it
            strategy = Strategy.DELEGATE if len(agents) == 1 else route.strategy
            return replace(route, strategy=strategy, agents=agents)
        case AnswerAlone():
            return Route(reasoning=route.reasoning, confidence=route.confidence)
        case _:
            assert_never(verdict)


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
