"""Parsing of a supervisor's answer: any text means something (SPEC SDK-09)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.agents.manager import read_spawn_request
from engine.agents.spawn_tools import SpawnAgents
from engine.executor.routing import SupervisorUsage, parse_decision, question, record_of, spawn_arguments
from engine.machine.effects import Strategy
from engine.machine.messages import Origin, Role, TextBlock
from engine.records import RunPriority, StoredMessage
from engine.updates import MOST_TASKS, Route, RouteAgent
from tests.support.engine import BuiltIn

NAMES = {profile.name for profile in BUILT_IN_PROFILES}
TWO = [
    {"agentName": "explore", "taskDescription": "find the parser", "priority": "high"},
    {"agentId": "review", "taskDescription": "review the diff"},
]


def decide(text: str) -> Route:
    return parse_decision(text, BUILT_IN_PROFILES)


def answer(**fields: object) -> str:
    return json.dumps({"strategy": "parallel", "agents": TWO, "reasoning": "two parts", "confidence": 0.87} | fields)


def test_a_decision_names_strategy_agents_reasons_and_confidence() -> None:
    assert decide(answer()) == Route(
        Strategy.PARALLEL,
        (
            RouteAgent("explore", "find the parser", RunPriority.HIGH),
            RouteAgent("review", "review the diff", RunPriority.NORMAL),
        ),
        "two parts",
        0.87,
    )


def test_words_around_the_decision_do_no_harm() -> None:
    assert decide(f"Sure:\n```json\n{answer()}\n```\nDone.") == decide(answer())


def test_one_agent_is_a_delegation_whatever_it_is_called() -> None:
    assert decide(answer(agents=TWO[:1])).strategy is Strategy.DELEGATE


def test_alone_needs_no_agents() -> None:
    assert decide(answer(strategy="single", agents=[])) == Route(reasoning="two parts", confidence=0.87)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the supervisor gave no decision"),
        ("I would split it.", "the supervisor gave no decision"),
        ("{]}", "the supervisor's decision could not be read"),
        ('{"strategy": "parallel"}', "the supervisor's decision could not be read"),
        (answer(strategy="swarm"), "the supervisor's decision could not be read"),
        (answer(confidence=0.49), "the supervisor was unsure (49%)"),
        (answer(confidence=87), "the supervisor's confidence was 87, not between 0 and 1"),
        (answer(agents=[]), "the supervisor named no agent"),
        (answer(agents=TWO * 6), "the supervisor named 12 agents; the limit is 10"),
        (answer(strategy="delegate"), "the supervisor wanted to delegate to 2 agents at once"),
        (answer(agents=[{"agentName": "explore"}]), "the supervisor gave an agent no task"),
        (
            answer(agents=[{"agentName": "wizard", "taskDescription": "x"}]),
            "the supervisor named an unknown agent: wizard",
        ),
        ("[" * 100_000, "the supervisor gave no decision"),
        ('{"agents":' + "[" * 100_000 + "}", "the supervisor's decision could not be read"),
    ],
)
def test_what_makes_no_sense_is_answered_alone_and_says_why(text: str, why: str) -> None:
    assert decide(text) == Route(fallback=why)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.sampled_from(["parallel", "explore"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
AGENT = st.fixed_dictionaries(
    {},
    optional={
        "agentId": st.sampled_from(["explore", "wizard", ""]) | JSON,
        "agentName": st.sampled_from(["code", "wizard", " review "]) | JSON,
        "taskDescription": st.text() | JSON,
        "priority": st.sampled_from(["high", "LOW", "9"]) | JSON,
    },
)
DECISION = st.fixed_dictionaries(
    {},
    optional={
        "strategy": st.sampled_from([one.value for one in Strategy]) | JSON,
        "agents": st.lists(AGENT, max_size=12) | JSON,
        "reasoning": st.text() | JSON,
        "confidence": st.floats(0, 1) | JSON,
    },
)


@given(st.text() | DECISION.map(json.dumps) | JSON.map(json.dumps))
def test_any_text_gives_an_outcome_that_can_be_carried_out(text: str) -> None:
    route = decide(text)
    assert bool(route.agents) == (route.strategy is not Strategy.SINGLE)
    assert len(route.agents) <= MOST_TASKS
    assert not (route.fallback and route.agents)
    json.loads(record_of(route, "alone", SupervisorUsage()))
    if route.agents:
        order = read_spawn_request(json.loads(spawn_arguments(route)))
        assert [(one.task, one.profile, one.priority) for one in order.tasks] == [
            (one.task.strip(), one.profile, one.priority) for one in route.agents
        ]
        assert {one.profile for one in order.tasks} <= NAMES


def row(seq: int, role: Role, text: str, origin: Origin) -> StoredMessage:
    return StoredMessage(f"m{seq}", seq, 0, seq, role, origin, (TextBlock(text),), 0.0)


def test_the_question_holds_the_agents_the_message_and_a_little_of_what_came_before() -> None:
    rows = [row(n, Role.ASSISTANT, f"answer {n} " + "x" * 5_000, Origin.LLM) for n in range(1, 20)]
    rows += [row(20, Role.USER, "do both", Origin.HUMAN), row(21, Role.SYSTEM, "a notice", Origin.NOTICE)]
    system, text = question(BUILT_IN_PROFILES, rows, "we began with a parser")
    assert all(f"- {profile.name}: {profile.description}" in system for profile in BUILT_IN_PROFILES)
    assert text.startswith("Summary of what came first:\nwe began with a parser\n\nBefore it:\nassistant: answer 14 ")
    assert text.endswith("The user's newest message:\ndo both")
    assert len(text) < 4_000


async def test_what_is_carried_out_is_a_call_that_the_tool_takes(tmp_path: Path) -> None:

    tool = SpawnAgents(None, BuiltIn())  # type: ignore[arg-type] # nothing is started
    request = await tool.request(json.loads(spawn_arguments(decide(answer(strategy="sequential")))), tmp_path)
    assert request.summary == "sequential, 2 sub-agents: find the parser · review the diff"
