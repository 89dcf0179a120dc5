"""A sub-agent asks before it acts: the user's time is not its own, and what one of them is allowed widens no other."""

from __future__ import annotations

import json
from pathlib import Path

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, RunCaps, TimeLimit
from engine.machine.states import AwaitingApproval, AwaitingSubagents, Failed, Idle
from engine.permissions.rules import Rule
from engine.ports import ConversationChanges
from engine.records import PermissionMode
from engine.updates import ApprovalAsked, Update
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text

DONE = Reply((Text("Done."),), when="Sub-agent results")


def spawns(*tasks: str) -> Reply:
    order = {"tasks": [{"task": task, "timeout": 1} for task in tasks]}
    return Reply((ScriptedCall("spawn_agents", json.dumps(order)),), when="begin")


def makes(when: str) -> Reply:
    return Reply((ScriptedCall("bash", '{"command": "make all"}'),), when=when)


def submits(when: str, result: str) -> Reply:
    return Reply((ScriptedCall("submit_result", json.dumps({"result": result})),), when=when)


def clock_of(limit: TimeLimit) -> tuple[bool, float | None]:
    """True while it runs, and the seconds left."""
    return limit.runs, limit.left


async def begun(
    harness: EngineHarness, caps: RunCaps | None = None, rules: dict[Rule, float] | None = None
) -> Conversation:
    """A parent whose spawn call was allowed, with these rules."""
    parent = await harness.conversation(PermissionMode.ASK)
    parent.rules.update(rules or {})
    await parent.say("begin", caps=caps)
    await until(lambda: parent.question is not None)
    assert parent.question is not None
    assert isinstance(await parent.answer(parent.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE)), Accepted)
    await until(lambda: isinstance(parent.state, AwaitingSubagents))
    return parent


def asking(harness: EngineHarness) -> list[Conversation]:
    return [one for one in harness.engine.live() if one.question is not None]


async def answered(harness: EngineHarness, choice: ApprovalChoice, reason: str = "") -> None:
    await until(lambda: asking(harness))
    child = asking(harness)[0]
    assert child.question is not None
    assert isinstance(await child.answer(child.question.call.id, ApprovalAnswer(choice, reason=reason)), Accepted)


async def outcomes(harness: EngineHarness, parent: Conversation) -> list[tuple[str, str]]:
    rows = await harness.store.agents.rows(parent.id)
    return [(row.outcome.text, row.outcome.reason) for row in rows if row.outcome is not None]


async def test_the_time_of_the_user_is_not_the_time_of_the_agent(tmp_path: Path) -> None:
    replies = (spawns("TASK 1"), submits("ran make", "made"), makes("TASK 1"), DONE)
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await begun(harness)
        await until(lambda: asking(harness))
        (child,) = asking(harness)
        limit = child._session.moves.limit
        assert not limit.runs, "no clock runs while the user thinks"
        assert limit.left is not None
        assert 0.0 < limit.left <= 1.0
        assert harness.engine.sub_agents is not None
        (before,) = harness.engine.sub_agents.views(parent.id)
        assert before.asked >= before.started, "its clock stands still from then on"
        await answered(harness, ApprovalChoice.ONCE)
        await until(lambda: limit.runs or isinstance(parent.state, Idle))
        await parent.wait_idle()
        assert await outcomes(harness, parent) == [("made", "")]
        assert clock_of(limit) == (False, None)
        (after,) = harness.engine.sub_agents.views(parent.id)
        assert after.started > before.started, "nor does it count as the agent's in its row"
        assert after.asked == 0.0


async def test_nor_is_it_the_time_of_a_parent_whose_agents_all_ask(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when="denied permission")
    replies = (spawns("TASK 1", "TASK 2"), hangs, makes("TASK 1"), makes("TASK 2"))
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await begun(harness, RunCaps(timeout=600.0))
        limit = parent._session.moves.limit
        await until(lambda: len(asking(harness)) == 2 and not limit.runs)
        assert limit.left is not None
        await answered(harness, ApprovalChoice.DENY)
        await until(lambda: limit.runs)
        parent.cancel()
        await parent.wait_idle()
        assert clock_of(limit) == (False, None)


async def test_the_limit_goes_on_after_the_answer(tmp_path: Path) -> None:
    hangs = Reply((Text("half"), Hang()), when="denied permission")
    async with engine_harness(tmp_path, spawns("TASK 1"), hangs, makes("TASK 1"), DONE) as harness:
        parent = await begun(harness)
        await answered(harness, ApprovalChoice.DENY)
        await parent.wait_idle()
        assert await outcomes(harness, parent) == [("half", "timed out")]


async def test_esc_on_the_parent_takes_the_question_back(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, spawns("TASK 1"), makes("TASK 1")) as harness:
        parent = await begun(harness)
        await until(lambda: asking(harness))
        (child,) = asking(harness)
        seen: list[Update] = []
        await child.subscribe(seen.append)
        parent.cancel()
        await parent.wait_idle()
        await until(lambda: isinstance(child.state, Failed))
        assert [update.question for update in seen if isinstance(update, ApprovalAsked)] == [None]
        assert (asking(harness), harness.tool.calls) == ([], [])
        assert await outcomes(harness, parent) == [("", "cancelled")]


async def test_a_refusal_is_told_to_the_agent_alone(tmp_path: Path) -> None:
    replies = (spawns("TASK 1"), submits("not now", "went another way"), makes("TASK 1"), DONE)
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await begun(harness)
        await answered(harness, ApprovalChoice.DENY, "not now")
        await parent.wait_idle()
        assert await outcomes(harness, parent) == [("went another way", "")]
        assert harness.tool.calls == []


async def test_what_a_sub_agent_is_allowed_holds_for_it_alone_and_what_its_parent_was_allowed_before_for_it_too(
    tmp_path: Path,
) -> None:
    replies = (
        spawns("TASK 1", "TASK 2"),
        submits("ran make", "made"),
        submits("ran make", "made too"),
        makes("TASK 1"),
        makes("TASK 2"),
        DONE,
    )
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await begun(harness)
        await until(lambda: len(asking(harness)) == 2)
        first, second = asking(harness)
        assert first.question is not None
        await first.answer(first.question.call.id, ApprovalAnswer(ApprovalChoice.CONVERSATION))
        assert isinstance(second.state, AwaitingApproval), "what was asked already stays asked"
        assert second.question is not None
        assert (len(first.rules), second.rules, parent.rules) == (1, {}, {}), "a grant widens nobody else"
        (rule,) = harness.engine.rules.all()
        assert rule.conversation_id == first.id
        harness.engine.rules.remove(rule)
        assert first.rules == {}
        await second.answer(second.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
        await parent.wait_idle()


async def test_a_sub_agent_begins_with_a_copy_of_its_parents_rules_that_ends_with_theirs(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, spawns("TASK 1"), Reply((Hang(),), when="TASK 1"), DONE) as harness:
        parent = await begun(harness, rules={Rule("bash", "make all"): 1.0})
        await until(lambda: any(one.record.agent is not None for one in harness.engine.live()))
        (child,) = [one for one in harness.engine.live() if one.record.agent is not None]
        assert [str(rule) for rule in child.rules] == ["bash(make all)"]
        child.rules[Rule("bash", "make more")] = 2.0
        assert [str(rule) for rule in parent.rules] == ["bash(make all)"]
        shown = [one.text for one in harness.engine.rules.all()]
        assert shown == ["bash(make all)", "bash(make more)"], "a copy is no row of its own"
        harness.engine.rules.remove(harness.engine.rules.all()[0])
        assert [str(rule) for rule in child.rules] == ["bash(make more)"]
        parent.cancel()
        await parent.wait_idle()


async def test_a_narrower_mode_of_the_parent_refuses_what_its_agent_asks(tmp_path: Path) -> None:
    replies = (spawns("TASK 1"), submits("does not allow", "told"), makes("TASK 1"), DONE)
    async with engine_harness(tmp_path, *replies, settings=EngineSettings(mode_rest=0.0)) as harness:
        parent = await begun(harness)
        await until(lambda: asking(harness))
        await parent.change(ConversationChanges(permission_mode=PermissionMode.PLAN))
        await parent.wait_idle()
        assert await outcomes(harness, parent) == [("told", "")]
        assert harness.tool.calls == []


async def test_a_long_name_of_an_agent_is_cut_with_an_ellipsis_in_its_question(tmp_path: Path) -> None:
    task = "try-fix: change the Makefile target and run make test with every flag"
    async with engine_harness(tmp_path, spawns(task), makes("try-fix"), DONE) as harness:
        parent = await begun(harness)
        await parent.change(ConversationChanges(title="a conversation with a long title that nobody cut"))
        await until(lambda: asking(harness))
        (child,) = asking(harness)
        assert child.question is not None
        asker = "try-fix: change the Makefile target and run make …"
        assert child.question.asker.startswith(f"{asker} (sub-agent of ")
        assert child.record.title == asker
        assert child._session.asker == f"{asker} (sub-agent of a conversation with a long title that n…)"
        await answered(harness, ApprovalChoice.DENY)
        await parent.wait_idle()
