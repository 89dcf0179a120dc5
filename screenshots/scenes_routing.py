"""Scenes of a supervisor: its card over a countdown, with the agents to choose from, and the run it became."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.dialogue import says
from screenshots.scenes_agents import DOCS, FOUND, QUEUE, SUMMED_UP, TESTS, asked_in, submits
from screenshots.studio import Studio, screen
from tests.support.journeys import Answer, picks
from tests.support.loopback import Seen, serve
from tests.support.program import ENTER, ESC

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
UP = b"\x1b[A"
GUARD: Final = 0.7
ASKED: Final = "Check tests, docs and the queue of the relay."
DECISION: Final = {
    "strategy": "parallel",
    "agents": [
        {"agentName": "explore", "taskDescription": f"{TESTS} in tests/ and say what each of them covers"},
        {"agentName": "research", "taskDescription": f"{DOCS} of relay/backoff.py", "priority": "high"},
        {"agentName": "review", "taskDescription": f"{QUEUE} that the relay keeps: how long, and who reads them"},
    ],
    "reasoning": "Three parts that read different files and need nothing of each other, so they can go on at once.",
    "confidence": 0.87,
}


def answers(seen: Seen) -> Answer:
    """The supervisor decides, the agents hand in, the main model sums up."""
    said = asked_in(seen)
    if "You are the supervisor" in json.dumps(seen.json["system"]):
        return says(json.dumps(DECISION))
    if "tool_result" in said and ASKED in said:
        return SUMMED_UP
    return submits(FOUND) if any(task in said for task in (TESTS, DOCS, QUEUE)) else says("Check the relay")


async def card(place: Studio, name: str, columns: int, rows: int) -> None:
    """The card, its keys, its tasks as text, the answer, and the details of the run."""
    async with (
        serve(picks(answers)) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto", columns=columns, rows=rows) as running,
    ):
        await running.send("/route on")
        await running.shows("A supervisor now chooses")
        await running.send(ASKED)
        await running.shows("87% sure")
        await asyncio.sleep(GUARD)
        await place.take(name, running)
        running.type(UP)
        await running.shows("x removes")
        running.type("e")
        await running.shows("starts an agent")
        await place.take(f"{name}-edit", running)
        running.type(ESC)
        await running.lacks("starts an agent")
        await running.shows("needs your decision")
        await place.take(f"{name}-held", running)
        running.type(ENTER)
        await running.shows("right but for the queue", "ready")
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-answer", running)
        await running.send("/cost")
        await running.shows("Cost of this conversation", "its sub-agents")
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-run", running)


SCENES: Final[dict[str, Scene]] = {
    "routing": partial(card, name="routing-120x40", columns=120, rows=40),
    "routing-60": partial(card, name="routing-60x20", columns=60, rows=20),
    "routing-80": partial(card, name="routing-80x24", columns=80, rows=24),
    "routing-200": partial(card, name="routing-200x60", columns=200, rows=60),
}
