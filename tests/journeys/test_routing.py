"""A supervisor decides who answers, from keys in a real terminal to the record of the run (SPEC DEC-17, SDK-09)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, calls, picks, rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import ENTER, ESC, program
from tests.support.waiting import typing_guard

TESTS, DOCS = "Find every test of the retry loop", "Compare the docs with the code"
DECISION = {
    "strategy": "parallel",
    "agents": [
        {"agentName": "explore", "taskDescription": TESTS, "priority": "high"},
        {"agentName": "research", "taskDescription": DOCS, "priority": "normal"},
    ],
    "reasoning": "two parts that need nothing of each other",
    "confidence": 0.87,
}


def answers(seen: Seen) -> Answer:
    """The supervisor decides, the agents hand in, the main model sums up."""
    said = json.dumps(seen.json["messages"])
    if "You are the supervisor" in json.dumps(seen.json["system"]):
        return says(json.dumps(DECISION))
    if "Sub-agent results" in said:
        return says("Both are back.")
    if TESTS in said or DOCS in said:
        return calls("submit_result", "toolu_submit", result="found it")
    return says("I answered alone.")


def routing(phoenix: Phoenix, **settings: str) -> Phoenix:
    return Phoenix(phoenix.home, phoenix.cwd, {**phoenix.extra, **settings})


def routes(phoenix: Phoenix) -> list[tuple[Any, ...]]:
    query = """SELECT strategy, json_extract(routing_json, '$.outcome'), r.status FROM runs AS r
        JOIN conversations AS c ON c.id = r.conversation_id WHERE c.kind = 'user' ORDER BY r.rowid"""
    return rows(phoenix, query)


@pytest.mark.pty
async def test_a_decision_is_overruled_and_the_next_one_started(tmp_path: Path) -> None:
    async with serve(picks(answers)) as server:
        phoenix = routing(with_claude(tmp_path, server.url), PHOENIX_ROUTE_WAIT="600")
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("/route on")
            await running.shows("· route ·")
            await running.send("Look at the relay")
            await running.shows("2 agents in parallel · 87% sure", "explore (high)", TESTS, "routing: 2 agents")
            running.type(ESC)
            await running.shows("I answered alone.", "as you decided", "ready")
            await running.send("And again")
            await running.shows("y starts now")
            await typing_guard()
            running.type(ENTER)
            await running.shows("Both are back.", "ready")
        assert routes(phoenix) == [("single", "alone", "success"), ("parallel", "as decided", "success")]
        assert rows(phoenix, "SELECT agent_id, origin FROM messages WHERE agent_id IS NOT NULL") == [
            ("supervisor", "subagent")
        ]


async def test_a_script_starts_at_once_and_is_told_of_the_decision(tmp_path: Path) -> None:
    async with serve(picks(answers)) as server:
        phoenix = routing(with_claude(tmp_path, server.url), PHOENIX_ROUTE="true")
        asked = ("-p", "Look at the relay", "--permission-mode", "auto", "--output-format", "stream-json")
        ran = await phoenix.run(*asked)
        assert ran.code == 0, ran.err
        told = [line for line in ran.lines if line.get("subtype") == "phoenix_route"]
        assert [line["strategy"] for line in told] == ["parallel"]
        assert [agent["profile"] for agent in told[0]["agents"]] == ["explore", "research"]
        assert ran.lines[-1]["result"] == "Both are back."
        assert routes(phoenix) == [("parallel", "as decided", "success")]
        query = "SELECT r.type, r.status FROM runs AS r JOIN conversations AS c ON c.id = r.conversation_id"
        assert rows(phoenix, f"{query} WHERE c.kind = 'subagent'") == [("research", "success"), ("research", "success")]
