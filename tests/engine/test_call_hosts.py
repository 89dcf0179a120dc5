"""Hosts that a running command reaches: its connection waits while the user is asked (docs/decisions/network.md)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor import call_questions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice
from engine.executor.session import NoSandbox
from engine.machine.states import Idle
from engine.permissions.rules import KeptRule, Rule
from engine.ports import ConversationChanges
from engine.records import PermissionMode
from engine.updates import ApprovalAsked, Question
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.call_values import SandboxMode
from tools.contract import (
    Enforcement,
    HostVerdict,
    JsonObject,
    ToolClass,
    ToolContext,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)


class FullSandbox(NoSandbox):
    """A system that enforces everything."""

    async def enforcement(self) -> Enforcement:
        return Enforcement.FULL


class Reaches:
    """A command that reaches hosts, several at once."""

    def __init__(self, *hosts: tuple[str, int]) -> None:
        self.hosts = hosts
        self.verdicts: list[HostVerdict] = []

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("bash", "", {"type": "object"}, ToolClass.RUN)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        return ToolRequest("make deps", command="make deps")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        assert context.gate is not None
        self.verdicts += await asyncio.gather(*(context.gate(*place) for place in self.hosts))
        return ToolOutput(", ".join(one.why or "reached" for one in self.verdicts))


@contextlib.asynccontextmanager
async def reaching(
    home: Path,
    *hosts: tuple[str, int],
    mode: PermissionMode = PermissionMode.AUTO,
    attended: bool = True,
    allowed: tuple[str, ...] | None = (),
    rules: tuple[str, ...] = (),
    tool: Reaches | None = None,
) -> AsyncIterator[tuple[EngineHarness, Reaches, Conversation]]:
    tool = tool or Reaches(*hosts)
    replies = (Reply((ScriptedCall("bash", "{}"),)), Reply((Text("Done."),)))
    settings = EngineSettings(network=allowed, attended=attended)
    async with engine_harness(home, *replies, tools=(tool,), settings=settings, probe=FullSandbox()) as harness:
        for rule in rules:
            harness.rules.add(KeptRule(rule))
        conversation = await harness.conversation(mode)
        await conversation.change(ConversationChanges(sandbox=SandboxMode.WORKSPACE))
        assert isinstance(await conversation.say("Go"), Accepted)
        yield harness, tool, conversation


def open_question(harness: EngineHarness) -> Question | None:
    asked = harness.seen(ApprovalAsked)
    return asked[-1].question if asked else None


async def answered(harness: EngineHarness, conversation: Conversation, label: str) -> None:
    await until(lambda: open_question(harness) is not None)
    question = open_question(harness)
    assert question is not None
    answer = ApprovalAnswer(ApprovalChoice.ONCE, answers=((label,),))
    assert isinstance(await conversation.answer(question.call.id, answer), Accepted)


OTHER = ("other.example", 443)
YES = HostVerdict(allowed=True)


async def test_connections_to_one_host_wait_for_one_answer(tmp_path: Path) -> None:
    hosts = (OTHER, OTHER, ("good.example", 80))
    async with reaching(tmp_path, *hosts, allowed=("good.example",)) as (
        harness,
        tool,
        talk,
    ):
        await answered(harness, talk, "Once")
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts == [YES, YES, YES]
        shown = [one.question for one in harness.seen(ApprovalAsked) if one.question is not None]
        assert [one.request.questions[0].question for one in shown] == [
            "make deps\nwants to reach other.example, which is not allowed yet. Its connection waits for a minute."
        ]
        assert talk.rules == {}


@pytest.mark.parametrize(
    ("label", "kept"), [("In this conversation", []), ("Always in this project", ["net(other.example:22)"])]
)
async def test_an_answer_keeps_its_rule(tmp_path: Path, label: str, kept: list[str]) -> None:
    async with reaching(tmp_path, ("other.example", 22)) as (harness, tool, talk):
        await answered(harness, talk, label)
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts == [YES]
        assert [one.text for one in harness.rules.rules()] == kept
        assert list(talk.rules) == ([] if kept else [Rule("net", "other.example:22")])


async def test_a_no_a_denial_and_nobody_there_refuse_with_a_reason(tmp_path: Path) -> None:
    async with reaching(tmp_path, OTHER) as (harness, tool, talk):
        await answered(harness, talk, "No")
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts == [HostVerdict(allowed=False, why="the user did not allow other.example")]
    (tmp_path / "b").mkdir()
    async with reaching(tmp_path / "b", OTHER, allowed=("*",), rules=("deny net(other.example)",)) as (
        _,
        tool,
        talk,
    ):
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts == [HostVerdict(allowed=False, why="the rule deny net(other.example) refuses it")]
    (tmp_path / "c").mkdir()
    async with reaching(tmp_path / "c", OTHER, attended=False) as (harness, tool, talk):
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts == [HostVerdict(allowed=False, why="other.example is not allowed here")]
        assert open_question(harness) is None


async def test_a_question_that_nobody_answers_is_withdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_questions, "WAIT", 0.2)
    async with reaching(tmp_path, OTHER) as (harness, tool, talk):
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts[0].why == "nobody answered in time whether other.example may be reached"
        assert open_question(harness) is None


async def test_esc_withdraws_the_question_with_the_run(tmp_path: Path) -> None:
    async with reaching(tmp_path, OTHER) as (harness, _, talk):
        await until(lambda: open_question(harness) is not None)
        talk.cancel()
        await until(lambda: isinstance(talk.state, Idle) and open_question(harness) is None)


async def test_under_a_denial_an_address_is_asked_about_in_auto_too_and_any_host_leaves_it_out(tmp_path: Path) -> None:
    hosts = (OTHER, ("8.8.8.8", 443))
    async with reaching(tmp_path, *hosts, allowed=None, rules=("deny net(bad.example)",)) as (harness, tool, talk):
        await answered(harness, talk, "No")
        await until(lambda: isinstance(talk.state, Idle))
        assert tool.verdicts == [YES, HostVerdict(allowed=False, why="the user did not allow 8.8.8.8")]


async def test_a_question_that_is_open_when_its_call_ends_refuses_at_once_then_and_later(tmp_path: Path) -> None:
    class Leaves(Reaches):
        """A command that runs on as a job."""

        async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
            assert context.gate is not None
            self.gate, self.waiting = context.gate, asyncio.ensure_future(context.gate(*OTHER))
            await until(lambda: open_question(harness) is not None)
            return ToolOutput("runs on")

    async with reaching(tmp_path, tool=Leaves()) as (harness, tool, talk):
        await until(lambda: isinstance(talk.state, Idle))
        assert isinstance(tool, Leaves)
        refused = HostVerdict(allowed=False, why="other.example is not allowed here")
        async with asyncio.timeout(5):
            assert [await tool.waiting, await tool.gate(*OTHER)] == [refused, refused]
        assert open_question(harness) is None


async def test_one_call_asks_about_a_bounded_number_of_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_questions, "WAIT", 0.3)
    many = [(f"h{number}.example", 443) for number in range(call_questions.MOST_ASKED + 5)]
    async with reaching(tmp_path, *many) as (_, tool, talk):
        await until(lambda: isinstance(talk.state, Idle))
    asked = [one for one in tool.verdicts if one.why.startswith("nobody answered")]
    assert (len(asked), len(tool.verdicts)) == (call_questions.MOST_ASKED, call_questions.MOST_ASKED + 5)


async def test_any_host_answers_for_all_of_the_command_but_odd_ports_and_denied_hosts(tmp_path: Path) -> None:
    hosts = (OTHER, ("second.example", 80), ("bad.example", 443), ("odd.example", 22))
    async with reaching(tmp_path, *hosts, rules=("deny net(bad.example)",)) as (harness, tool, talk):
        await answered(harness, talk, "Any host, for this command")
        await until(lambda: (now := open_question(harness)) is not None and "odd.example:22" in _asked(now))
        await answered(harness, talk, "No")
        await until(lambda: isinstance(talk.state, Idle))
        assert [(one.allowed, one.why) for one in tool.verdicts] == [
            (True, ""),
            (True, ""),
            (False, "the rule deny net(bad.example) refuses it"),
            (False, "the user did not allow odd.example:22"),
        ]
        assert talk.rules == {}


def _asked(question: Question) -> str:
    return question.request.questions[0].question
