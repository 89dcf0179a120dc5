"""The card of a supervisor's decision: over a countdown, with the keys, with many long tasks."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.machine.effects import Strategy
from engine.machine.messages import Role
from engine.machine.states import AwaitingLlm, Routing
from engine.records import RunPriority
from engine.updates import Route, RouteAgent, RouteCard
from tests.snapshots.booth import ALL, SMALL, Booth
from tests.snapshots.told import model_of
from tests.support.fake_engine import RUN
from tests.support.still_time import UPTIME

TASKS: Final = (
    RouteAgent("explore", "Find every test of the retry loop in tests/ and say what each of them covers"),
    RouteAgent("research", "Compare the docs with the code of relay/backoff.py", RunPriority.HIGH),
    RouteAgent("review", "Review the dead letters that the relay keeps: how long, and who reads them"),
)
ROUTE: Final = Route(
    Strategy.PARALLEL, TASKS, "Three parts that read different files and need nothing of each other.", 0.87
)
CROWD: Final = tuple(RouteAgent("code", f"task {n}: 宽 wide words that go on " + "and on " * 40) for n in range(10))


async def routing(place: Booth) -> None:
    """A decision that starts by itself, one that is being chosen from, ten agents."""
    conversation = place.engine.seed("Check the relay")
    conversation.record = replace(conversation.record, supervisor=True)
    model_of(conversation)
    conversation.add("Check tests, docs and the queue of the relay.", Role.USER)
    async with place.opened() as shell:
        await shell.open(conversation)
        conversation.become(AwaitingLlm(1, RUN, Routing()))
        conversation.routing.offer(RouteCard("card-1", ROUTE, starts_at=UPTIME + 4.5))
        await shell.until(lambda: "87% sure" in shell.text)
        await place.take(shell, "card", ALL)
        await shell.pilot.press("up")
        await shell.until(lambda: "x removes" in shell.text)
        conversation.routing.offer(RouteCard("card-1", ROUTE, starts_at=0.0))
        await shell.until(lambda: "needs your decision" in shell.text)
        await place.take(shell, "chosen", (SMALL,))
        crowd = replace(ROUTE, strategy=Strategy.SEQUENTIAL, agents=CROWD, reasoning="why " * 60)
        conversation.routing.offer(RouteCard("card-2", crowd, starts_at=0.0))
        await shell.until(lambda: "+5 more" in shell.text)
        await place.take(shell, "crowd", (SMALL,))


SCENES: Final = {"routing": routing}
