"""Scenes of sub-agents: at work under their parent, in the list of all, one of them in view, one that asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from screenshots.dialogue import does, runs, says
from screenshots.studio import Studio, screen
from tests.support.journeys import Answer, picks, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import ESC

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
ALT_S, ALT_N = b"\x1bs", b"\x1bn"
SHEET: Final = "3 sub-agents ·"
"""Prefix of the heading of their list."""
GUARD: Final = 0.7
ASKED: Final = "Check tests, docs and the queue of the relay."
TESTS, DOCS, QUEUE = "Find every test of the retry loop", "Compare the docs with the code", "Review the dead letters"
FOUND: Final = (
    "Three tests touch the retry loop.\n\n- tests/test_backoff.py: the limit, and the growth\n"
    "- tests/test_forward.py: gives up after five tries\n\nNothing tests what happens after a restart."
)
SPAWN: Final = does(
    "Three parts that do not need each other. I let three sub-agents look at once.",
    (
        "spawn_agents",
        "toolu_spawn",
        {
            "tasks": [
                {"task": TESTS, "profile": "explore"},
                {"task": DOCS, "profile": "research"},
                {"task": QUEUE, "profile": "review"},
            ]
        },
    ),
)
SUMMED_UP: Final = says("The **limit** is tested, the restart is not. The docs are right but for the queue.")


def submits(words: str) -> Answer:
    """Hands in."""
    return does("", ("submit_result", "toolu_submit", {"result": words}))


def asked_in(seen: Seen) -> str:
    """First message of the asking conversation."""
    return json.dumps(seen.json["messages"])


def at_work(seen: Seen) -> Answer:
    """One has handed in, one runs a command, one writes."""
    said = asked_in(seen)
    if TESTS in said and ASKED not in said:
        return submits(FOUND)
    if DOCS in said and ASKED not in said:
        return starts_to_say("I compare the table of waits in docs/backoff.md with `delay` first, ", "then the queue")
    if QUEUE in said and ASKED not in said:
        return runs("git tag -f queue-checked", "", "toolu_q")
    return SPAWN if ASKED in said else says("Check the relay")


def all_back(seen: Seen) -> Answer:
    """Two have handed in, one gave up."""
    said = asked_in(seen)
    if "tool_result" in said and ASKED in said:
        return SUMMED_UP
    if ASKED in said:
        return SPAWN
    if TESTS in said:
        return submits(FOUND)
    if DOCS in said:
        return submits("The docs are right but for the queue: it keeps letters for ten days, not seven.")
    if QUEUE in said:
        return does("", ("submit_error", "toolu_e", {"error": "There is no queue in this folder: relay/ has none."}))
    return says("Check the relay")


async def working(place: Studio, name: str, columns: int, rows: int) -> None:
    """Rows under the parent, a question of one, the list of all, and one of them in view."""
    async with (
        serve(picks(at_work)) as server,
        screen(place.phoenix(server.url), "--permission-mode", "ask", columns=columns, rows=rows) as running,
    ):
        await running.send(ASKED)
        await running.shows("sub-agents?")
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-spawning", running)
        running.type("y")
        await running.shows("1/3 done", "y Yes, once")
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-asks", running)
        running.type("n")
        await running.lacks("y Yes, once")
        await asyncio.sleep(GUARD)
        await place.take(name, running)
        running.type(ALT_S)
        await running.shows(SHEET)
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-sheet", running)
        running.type(ESC)
        await running.lacks(SHEET)
        running.type(ALT_N)
        await running.shows("2 of 3")
        await asyncio.sleep(GUARD)
        await place.take(f"{name}-inside", running)


async def beside(place: Studio, name: str, columns: int, rows: int) -> None:
    """The parent with two of its sub-agents in panes: one has handed in, one writes."""
    async with (
        serve(picks(at_work)) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto", columns=columns, rows=rows) as running,
    ):
        await running.send(ASKED)
        await running.shows("2/3 done")
        for keys in ("|", "\x1b[B|"):
            running.type(ALT_S)
            await running.shows("Enter opens")
            await asyncio.sleep(GUARD)
            running.type(keys)
            await running.lacks("Enter opens")
        await running.shows("1 of 3", "2 of 3", "then the queue")
        await asyncio.sleep(GUARD)
        await place.take(name, running)


async def ended(place: Studio, name: str, columns: int, rows: int) -> None:
    """The call in the transcript once all are back."""
    async with (
        serve(picks(all_back)) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto", columns=columns, rows=rows) as running,
    ):
        await running.send(ASKED)
        await running.shows("right but for the queue", "ready")
        await asyncio.sleep(GUARD)
        await place.take(name, running)


SCENES: Final[dict[str, Scene]] = {
    "agents": partial(working, name="agents-120x40", columns=120, rows=40),
    "agents-60": partial(working, name="agents-60x20", columns=60, rows=20),
    "agents-80": partial(working, name="agents-80x24", columns=80, rows=24),
    "agents-200": partial(working, name="agents-200x60", columns=200, rows=60),
    "agents-beside": partial(beside, name="agents-beside-120x40", columns=120, rows=40),
    "agents-beside-200": partial(beside, name="agents-beside-200x60", columns=200, rows=60),
    "agents-ended": partial(ended, name="agents-ended-120x40", columns=120, rows=40),
    "agents-ended-80": partial(ended, name="agents-ended-80x24", columns=80, rows=24),
}
