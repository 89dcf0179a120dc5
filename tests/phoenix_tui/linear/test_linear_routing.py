"""A supervisor in lines: switched on, its decision printed and overruled, and the run behind it reported."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, picks, says
from tests.support.loopback import Seen, serve
from tests.support.program import program

ROWS, COLUMNS = 200, 400
"""Rows of a terminal on which nothing scrolls away or wraps during a test."""
DECISION = {
    "strategy": "sequential",
    "agents": [
        {"agentName": "explore", "taskDescription": "find the parser", "priority": "high"},
        {"agentName": "review", "taskDescription": "review it"},
    ],
    "reasoning": "the second needs the first",
    "confidence": 0.75,
}


def answers(seen: Seen) -> Answer:
    supervisor = "You are the supervisor" in json.dumps(seen.json["system"])
    return says(json.dumps(DECISION) if supervisor else "Alone.")


async def test_a_decision_is_read_out_and_overruled(tmp_path: Path) -> None:
    async with serve(picks(answers)) as server:
        plain = with_claude(tmp_path, server.url)
        quiet = {"PHOENIX_ROUTE_WAIT": "600", "PHOENIX_TURN_SUMMARIES": "false"}
        phoenix = Phoenix(plain.home, plain.cwd, {**plain.extra, **quiet})
        asked = ("--screen-reader", "--permission-mode", "auto")
        async with program(phoenix, *asked, rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/route on\r")
            await running.shows("A supervisor now chooses who answers: the main model or sub-agents.")
            running.type("look at the parser\r")
            await running.shows(
                "The supervisor proposes 2 agents in sequence, 75% sure.",
                "Agent 1, explore, high priority: find the parser",
                "Agent 2, review: review it",
                "Because: the second needs the first",
                "/route start starts them now, /route alone answers without them.",
            )
            running.type("/route alone\r")
            await running.shows("Assistant: Alone.", "Ready, after")
            running.type("/route alone\r")
            await running.shows("No supervisor's decision is open.")
            running.type("/cost\r")
            await running.shows("Last run:", "answered by: the main model alone", "you let the main model answer alone")
            running.type("/route off\r")
            await running.shows("Routing is off; the main model answers.")
