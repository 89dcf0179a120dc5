"""A supervisor decides who answers: any text of its means something (SPEC DEC-17, SDK-06 to SDK-10, STM-02)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.agents.manager import read_spawn_request
from engine.agents.spawn_tools import SpawnAgents
from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, Refused, RunCaps
from engine.executor.routing import SupervisorUsage, parse_decision, question, record_of, spawn_arguments
from engine.machine.effects import Strategy
from engine.machine.messages import Origin, Role, TextBlock, ToolUseBlock, Usage
from engine.machine.states import AwaitingApproval, AwaitingLlm, Idle, Routing
from engine.ports import ConversationChanges
from engine.records import PermissionMode, RunPriority, StoredMessage
from engine.records.runs import ModelUsage
from engine.updates import (
    MOST_TASKS,
    AnswerAlone,
    ApprovalAsked,
    Route,
    RouteAgent,
    Routed,
    Snapshot,
    StartAgents,
    Update,
)
from tests.support.engine import BuiltIn, EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text
from tools.contract import ToolClass

WAITS = EngineSettings(route_wait=600.0)
AGENTS = [
    {"agentName": "explore", "taskDescription": "TASK one"},
    {"agentName": "review", "taskDescription": "TASK two"},
]
ALONE = Reply((Text("Alone."),), when="begin")
DONE = Reply((Text("Both are back."),), when="Sub-agent results")


def decides(**fields: object) -> Reply:
    decision = {"strategy": "parallel", "agents": AGENTS, "reasoning": "two parts", "confidence": 0.9} | fields
    return Reply((Text(json.dumps(decision)),), when="You are the supervisor")


def submits(task: str) -> Reply:
    return Reply((ScriptedCall("submit_result", json.dumps({"result": f"{task} done"})),), when=f"TASK {task}")


async def routed(harness: EngineHarness, mode: PermissionMode = PermissionMode.AUTO) -> Conversation:
    options = ConversationOptions(harness.cwd, "scripted/main", permission_mode=mode, supervisor=True)
    conversation = await harness.engine.create(options)
    await conversation.subscribe(harness.updates.append)
    return conversation


async def card_of(conversation: Conversation) -> str:
    await until(lambda: conversation.routing.card)
    assert conversation.routing.card is not None
    return conversation.routing.card.id


def notes(messages: list[StoredMessage]) -> list[str]:
    return [b.text for m in messages if m.origin is Origin.NOTICE for b in m.blocks if isinstance(b, TextBlock)]


async def test_agents_start_by_themselves_and_the_main_model_answers_with_what_they_bring(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, decides(), submits("one"), submits("two"), DONE) as harness:
        parent = await routed(harness)
        await run_turn(parent, "begin")
        messages = await harness.store.messages(parent.id)
        asked = next(m for m in messages if m.origin is Origin.SUBAGENT)
        assert (asked.role, asked.usage) == (Role.ASSISTANT, None)
        assert [b.name for b in asked.blocks if isinstance(b, ToolUseBlock)] == ["spawn_agents"]
        assert notes(messages) == ["Routing: 2 agents in parallel (90% sure): two parts"]
        assert messages[-1].blocks == (TextBlock("Both are back."),)
        shown = [update.card for update in harness.seen(Routed)]
        assert [one and one.route.strategy for one in shown] == [Strategy.PARALLEL, None]
        assert parent.record.totals.input_tokens == 200  # the decision and the answer
        (run,) = await harness.store.library.runs(parent.id, 5)
        assert (run.strategy, run.status, run.iterations) == (Strategy.PARALLEL, "success", 2)
        assert run.by_model == (ModelUsage("main", Usage(200, 40), 0.02, 2),)
        assert run.agents is not None
        assert (run.agents.count, run.agents.succeeded, run.agents.tokens) == (2, 2, 240)
        assert json.loads(run.decision_json)["outcome"] == "as decided"


async def test_a_decision_waits_to_be_overruled_and_says_so(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, decides(), ALONE, settings=WAITS) as harness:
        parent = await routed(harness)
        await parent.say("begin")
        card = await card_of(parent)
        assert isinstance(parent.state, AwaitingLlm)
        assert parent.state.phase == Routing()
        assert parent.routing.answer("another", AnswerAlone()) == Refused("This decision is no longer open.")
        assert parent.routing.answer(card, AnswerAlone()) == Accepted()
        await parent.wait_idle()
        messages = await harness.store.messages(parent.id)
        assert messages[-1].blocks == (TextBlock("Alone."),)
        assert notes(messages) == ["Routing: the main model answers alone, as you decided"]
        (run,) = await harness.store.library.runs(parent.id, 5)
        assert (run.strategy, json.loads(run.decision_json)["outcome"]) == (Strategy.SINGLE, "alone")
        assert await harness.store.agents.rows(parent.id) == []


async def test_the_time_that_a_decision_lies_before_the_user_is_not_the_runs(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when="begin")
    async with engine_harness(tmp_path, decides(), hangs, settings=WAITS) as harness:
        parent = await routed(harness)
        await parent.say("begin", caps=RunCaps(timeout=60.0))
        card, limit = await card_of(parent), parent._session.moves.limit
        assert (limit.runs, limit.left is not None) == (False, True)
        parent.routing.hold(card)
        assert not limit.runs, "held, too"
        parent.routing.answer(card, AnswerAlone())
        await until(lambda: limit.runs)
        parent.cancel()
        await parent.wait_idle()
        assert (limit.runs, limit.left) == (False, None)


async def test_where_sub_agents_need_a_yes_the_card_waits_for_it(tmp_path: Path) -> None:
    soon = EngineSettings(route_wait=0.05)
    async with engine_harness(tmp_path, decides(), submits("one"), submits("two"), DONE, settings=soon) as harness:
        parent = await routed(harness, PermissionMode.ASK)
        await parent.say("begin")
        card = await card_of(parent)
        assert parent.routing.card is not None
        assert parent.routing.card.starts_at == 0.0
        assert await harness.store.agents.rows(parent.id) == []
        parent.routing.answer(card, StartAgents())
        await parent.wait_idle()
        assert (await harness.store.messages(parent.id))[-1].blocks == (TextBlock("Both are back."),)
        assert harness.seen(ApprovalAsked) == []


async def test_without_a_card_the_policy_asks_about_the_start(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, decides()) as harness:
        parent = await routed(harness, PermissionMode.ASK)
        await parent.say("begin")
        await until(lambda: isinstance(parent.state, AwaitingApproval))
        assert await harness.store.agents.rows(parent.id) == []
        parent.cancel()
        await parent.wait_idle()


async def test_nobody_has_to_answer_a_decision(tmp_path: Path) -> None:
    soon = EngineSettings(route_wait=0.05)
    async with engine_harness(tmp_path, decides(), submits("one"), submits("two"), DONE, settings=soon) as harness:
        parent = await routed(harness)
        await run_turn(parent, "begin")
        assert (await harness.store.messages(parent.id))[-1].blocks == (TextBlock("Both are back."),)
        card, gone = (update.card for update in harness.seen(Routed))
        assert card is not None
        assert card.starts_at > 0.0
        assert gone is None


async def test_another_model_decides_where_one_is_set(tmp_path: Path) -> None:
    set_up = EngineSettings(cheap_model="nobody/small")
    async with engine_harness(tmp_path, ALONE, settings=set_up) as harness:
        parent = await routed(harness)
        await run_turn(parent, "begin")
        (told,) = notes(await harness.store.messages(parent.id))
        assert told.endswith("the supervisor could not be asked: There is no provider 'nobody'")


async def test_a_late_subscriber_sees_the_open_decision(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, decides(), ALONE, settings=WAITS) as harness:
        parent = await routed(harness)
        await parent.say("begin")
        card = await card_of(parent)
        seen: list[Update] = []
        await parent.subscribe(seen.append)
        first = seen[0]
        assert isinstance(first, Snapshot)
        assert first.route is not None
        assert first.route.id == card


async def test_its_tasks_can_be_changed_and_nothing_starts_meanwhile(tmp_path: Path) -> None:
    replies = (decides(), submits("three"), DONE)
    async with engine_harness(tmp_path, *replies, settings=WAITS) as harness:
        parent = await routed(harness)
        await parent.say("begin")
        card = await card_of(parent)
        assert parent.routing.hold(card) == Accepted()
        assert parent.routing.card is not None
        assert parent.routing.card.starts_at == 0.0
        wizard = StartAgents((RouteAgent("wizard", "TASK three"),))
        assert parent.routing.answer(card, wizard) == Refused("There is no profile 'wizard'.")
        crowd = StartAgents((RouteAgent("code", "TASK"),) * 11)
        assert parent.routing.answer(card, crowd) == Refused("At most 10 agents are allowed; there are 11.")
        parent.routing.answer(card, StartAgents((RouteAgent("code", "TASK three"),)))
        await parent.wait_idle()
        (row,) = await harness.store.agents.rows(parent.id)
        assert (row.facts.task, row.profile) == ("TASK three", "code")
        (run,) = await harness.store.library.runs(parent.id, 5)
        assert (run.strategy, json.loads(run.decision_json)["outcome"]) == (Strategy.DELEGATE, "changed")


@pytest.mark.parametrize("pending", ["question", "card"])
async def test_esc_ends_it_and_leaves_nothing_open(tmp_path: Path, pending: str) -> None:
    hangs = Reply((Hang(),), when="You are the supervisor")
    first = hangs if pending == "question" else decides()
    async with engine_harness(tmp_path, first, settings=WAITS) as harness:
        parent = await routed(harness)
        await parent.say("begin")
        await until(lambda: harness.provider.requests if pending == "question" else parent.routing.card)
        parent.cancel()
        assert isinstance(await parent.wait_idle(), Idle)
        await until(lambda: parent.routing.card is None)
        (run,) = await harness.store.library.runs(parent.id, 5)
        assert run.status == "cancelled"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (decides(confidence=0.2), "the supervisor was unsure (20%)"),
        (Reply((Text("no idea"),), when="You are the supervisor"), "the supervisor gave no decision"),
        (
            Reply((Fail("The server is down."),), when="You are the supervisor"),
            "the supervisor could not be asked: The server is down",
        ),
    ],
)
async def test_where_nothing_can_be_decided_the_main_model_answers_and_the_reason_is_said(
    tmp_path: Path, reply: Reply, why: str
) -> None:
    async with engine_harness(tmp_path, reply, ALONE, settings=WAITS) as harness:
        parent = await routed(harness)
        await run_turn(parent, "begin")
        messages = await harness.store.messages(parent.id)
        assert messages[-1].blocks == (TextBlock("Alone."),)
        assert notes(messages) == [f"Routing: the main model answers alone: {why}"]


async def test_a_mode_that_only_reads_asks_no_supervisor(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ALONE) as harness:
        parent = await routed(harness, PermissionMode.PLAN)
        await run_turn(parent, "begin")
        assert len(harness.provider.requests) == 1
        told = notes(await harness.store.messages(parent.id))
        assert told == ["Routing: the main model answers alone: permission mode plan does not allow sub-agents"]


async def test_it_is_off_until_asked_for_stays_with_the_conversation_and_goes_off_again(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("hello"),)), decides(strategy="single"), ALONE) as harness:
        parent = await harness.run("hi")
        await parent.change(ConversationChanges(supervisor=True))
        await harness.engine.forget(parent.id)
        parent = await harness.engine.open(parent.id)
        assert parent.record.supervisor
        await run_turn(parent, "begin")
        assert len(harness.provider.requests) == 3
        await parent.change(ConversationChanges(supervisor=False))
        await run_turn(parent, "and now")
        assert len(harness.provider.requests) == 4
        newest, _, first = await harness.store.library.runs(parent.id, 5)
        assert (first.strategy, first.decision_json, newest.decision_json) == (Strategy.SINGLE, "", "")
        assert first.prompt == "hi"


async def test_a_run_is_recorded_with_the_files_it_wrote(tmp_path: Path) -> None:
    writes = Reply((
        ScriptedCall("write_file", '{"path": "a.py", "content": ""}'),
        ScriptedCall("patch", '{"path": "b.py"}'),
    ))
    stub = StubTool("write_file", ToolClass.EDIT)
    async with engine_harness(tmp_path, writes, Reply((Text("done"),)), tool=stub) as harness:
        parent = await harness.run("begin")
        (run,) = await harness.store.library.runs(parent.id, 5)
        assert (run.artifacts, run.type, run.status) == (("a.py",), "general", "success")
        assert run.cost_usd == pytest.approx(0.02)


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
    assert replace(decide(text), confidence=0.0) == Route(fallback=why)


def test_a_rejected_decision_keeps_how_sure_it_was() -> None:
    assert decide(answer(confidence=0.2)).confidence == 0.2
    assert decide(answer(agents=[])).confidence == 0.87
    assert decide(answer(confidence=87)).confidence == 0.0


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
