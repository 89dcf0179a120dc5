"""Sampling of servers: with a real helper, a real server and the engine between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from msgspec import Raw

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Refused
from engine.extensions.mcp.server_asks import NO_SAMPLE, AskingServer, ServerAsks, UserAsker
from engine.machine.messages import ImageBlock, TextBlock, ToolResultBlock, Usage, text_in
from engine.machine.states import is_busy
from engine.ports import ModelMessage, ModelRequest
from engine.updates import Noticed
from phoenix_tui.wiring.mcp import let_servers_ask
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.mcp_hubs import KINDS, Hub, hub_in, stdio
from tests.support.scripted_provider import Fail, Hang, Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.storage import query
from tools.contract import JsonObject, Report
from tools.mcp_form import FormAnswer, ServerForm
from tools.mcp_host.protocol import Content, ServerAsk, raw
from tools.mcp_sampling import SampleAnswer, SampleRequest

Sampling: TypeAlias = tuple[EngineHarness, Conversation, Hub]
DONE = Reply((Text("Done."),), usage=Usage(50, 5))
SAMPLES = stdio(command=KINDS, samples=True)
YES = ApprovalAnswer(ApprovalChoice.ONCE, answers=(("Yes, once",),))
NO = ApprovalAnswer(ApprovalChoice.ONCE, answers=(("No",),))
LEFT = ApprovalAnswer(ApprovalChoice.DENY, is_left=True)
ERROR = "MCP server 'kinds' answered with an error: "
ROWS = "SELECT purpose, status, run_id IS NOT NULL, input_tokens, output_tokens FROM model_calls ORDER BY rowid"


@asynccontextmanager
async def sampling(
    home: Path, aside: Reply, **arguments: Any
) -> AsyncIterator[tuple[EngineHarness, Conversation, Hub]]:
    """A conversation whose server has called for an answer; the cheap model gives `aside`."""
    (place := home / "hub").mkdir()
    call = Reply((ScriptedCall("mcp__kinds__sample", json.dumps(arguments), "t1"),), usage=Usage(40, 4))
    again = Reply((ScriptedCall("mcp__kinds__sample", "{}", "t2"),))
    scripts = {"main": Script((call, DONE, again, DONE)), "cheap": Script(aside=aside)}
    settings = EngineSettings(auto_title=False, turn_summaries=False, cheap_model="scripted/cheap")
    async with (
        hub_in(place, SAMPLES) as one,
        engine_harness(home, settings=settings, provider=ScriptedProvider(scripts), extensions=[one.hub]) as harness,
    ):
        let_servers_ask(one.hub, harness.engine)
        conversation = await harness.start("a secret of the user")
        await until(lambda: conversation.question or not is_busy(conversation.state))
        yield harness, conversation, one


def result(harness: EngineHarness) -> str:
    """The newest result of a call, as the model reads it."""
    blocks = [block for one in harness.provider.requests for block in one.messages[-1].blocks]
    found = [block for block in blocks if isinstance(block, ToolResultBlock)]
    return "".join(part.text for part in found[-1].content if isinstance(part, TextBlock))


def to_cheap(harness: EngineHarness) -> list[ModelRequest]:
    """The requests to the cheap model."""
    return [one for one in harness.provider.requests if one.model == "cheap"]


async def answer(conversation: Conversation, given: ApprovalAnswer) -> object:
    assert conversation.question is not None
    return await conversation.answer(conversation.question.call.id, given)


def said(message: ModelMessage) -> str:
    return text_in(message.blocks)


async def test_after_a_yes_the_cheap_model_answers_the_request_alone_and_every_token_is_counted(tmp_path: Path) -> None:
    reply = Reply((Text("Hi there. END of it"),), usage=Usage(7, 3))
    asked = {"text": "Say \x1b[31mhi", "system": "Be short.", "stops": ["END"], "max_tokens": 1_000_000, "image": True}
    async with sampling(tmp_path, reply, **asked) as (harness, conversation, _):
        question = conversation.question
        assert question is not None
        (shown,) = question.request.questions
        assert (question.asker, shown.labels) == ("MCP server kinds", ("Yes, once", "No"))
        assert shown.question.splitlines()[1] == (
            "scripted/cheap: at most 4,096 tokens, ~6 to read, about $0.0100 at most"
        )
        assert shown.details == "System prompt:\nBe short.\n\nUser:\nSay hi\n[image, image/png, 70 bytes]"
        assert not to_cheap(harness), "nothing is sent before the yes"
        assert await answer(conversation, YES) == Accepted()
        await conversation.wait_idle()
        (sent,) = to_cheap(harness)
        assert (sent.system, list(map(said, sent.messages)), sent.tools) == (("Be short.",), ["Say hi"], ())
        images = [one.attachment_id for one in sent.messages[0].blocks if isinstance(one, ImageBlock)]
        assert (sent.max_tokens, list(sent.images)) == (4_096, images)
        assert [len(one.data) for one in sent.images.values()] == [70]
        assert json.loads(result(harness)) == {
            "role": "assistant",
            "content": {"type": "text", "text": "Hi there. "},
            "model": "cheap",
            "stopReason": "stopSequence",
        }
        rows = [tuple(row) for row in query(harness.store.path, ROWS)]
        totals = conversation.record.totals
    assert rows == [("reply", "ok", 1, 40, 4), ("sampling", "ok", 1, 7, 3), ("reply", "ok", 1, 50, 5)]
    assert (totals.input_tokens, totals.output_tokens) == (97, 12)
    assert totals.cost_usd == pytest.approx(0.03)


@pytest.mark.parametrize("given", [NO, LEFT])
async def test_after_a_no_or_esc_no_model_is_asked(tmp_path: Path, given: ApprovalAnswer) -> None:
    async with sampling(tmp_path, DONE) as (harness, conversation, _):
        own = ApprovalAnswer(ApprovalChoice.ONCE, answers=(("my words",),))
        assert await answer(conversation, own) == Refused("Choose Yes, once or No.")
        await answer(conversation, given)
        await conversation.wait_idle()
        assert result(harness) == f"{ERROR}The user declined the sampling request."
        assert to_cheap(harness) == []


@pytest.mark.parametrize("end", ["run", "server"])
async def test_the_end_of_the_run_or_of_the_server_ends_the_model_call_and_counts_it(tmp_path: Path, end: str) -> None:
    async with sampling(tmp_path, Reply((Text("Hi"), Hang()))) as (harness, conversation, one):
        await answer(conversation, YES)
        await until(lambda: to_cheap(harness))
        if end == "run":
            conversation.cancel()
        else:
            await one.hub.end(conversation.record, "kinds")
        await conversation.wait_idle()
        assert harness.provider.dropped == 1
        rows = [tuple(row)[:2] for row in query(harness.store.path, ROWS)]
        assert rows[1] == ("sampling", "cancelled")
        assert conversation.question is None


async def test_ten_requests_of_a_run_are_asked_about_and_the_next_run_has_its_own(tmp_path: Path) -> None:
    async with sampling(tmp_path, Reply((Text("Hi"),)), times=12, each=2) as (harness, conversation, _):
        asked: set[str] = set()
        while is_busy(conversation.state):
            if (question := conversation.question) is not None and question.call.id not in asked:
                asked.add(question.call.id)
                await answer(conversation, YES)
            await asyncio.sleep(0)
        assert (len(asked), len(to_cheap(harness))) == (10, 10)
        assert result(harness) == f"{ERROR}At most 10 sampling requests are answered in one run."
        await conversation.say("again")
        await until(lambda: conversation.question)
        await answer(conversation, NO)
        await conversation.wait_idle()


async def test_a_flood_of_requests_opens_a_few_questions_at_most(tmp_path: Path) -> None:
    async with sampling(tmp_path, DONE, times=500, each=500) as (harness, conversation, _):
        await conversation.wait_idle()
        assert result(harness) == f"{ERROR}Too many questions are open."
        await until(lambda: conversation.question is None)
        assert to_cheap(harness) == []


async def test_a_failing_model_is_told_to_the_user_and_the_server_learns_nothing_of_it(tmp_path: Path) -> None:
    failing = Reply((Fail("The key of ada@example.com is used up.", retryable=False),))
    async with sampling(tmp_path, failing) as (harness, conversation, one):
        await answer(conversation, YES)
        await conversation.wait_idle()
        assert result(harness) == f"{ERROR}The model gave no answer to the sampling request."
        assert [notice.text for notice in harness.seen(Noticed)] == [
            "MCP server kinds got no answer: The key of ada@example.com is used up."
        ]
        view = await one.hub.details(conversation.record, "kinds")
    assert view is not None
    assert any("ada@example.com" in line for line in view.log)


async def test_the_user_of_the_parent_is_asked_and_the_sub_agent_pays(tmp_path: Path) -> None:
    (place := tmp_path / "hub").mkdir()
    replies = (
        Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK one"}]}'),), when="begin"),
        Reply((ScriptedCall("submit_result", '{"result": "sampled"}'),), when="Hi there"),
        Reply((ScriptedCall("mcp__kinds__sample", "{}"),), when="TASK one"),
        Reply((Text("Done."),), when="Sub-agent results"),
    )
    scripts = {"main": Script(replies), "cheap": Script(aside=Reply((Text("Hi there"),), usage=Usage(7, 3)))}
    settings = EngineSettings(auto_title=False, turn_summaries=False, cheap_model="scripted/cheap")
    provider = ScriptedProvider(scripts)
    async with (
        hub_in(place, SAMPLES) as one,
        engine_harness(tmp_path, settings=settings, provider=provider, extensions=[one.hub]) as harness,
    ):
        let_servers_ask(one.hub, harness.engine)
        parent = await harness.start("begin")
        await until(lambda: parent.question)
        await answer(parent, YES)
        await parent.wait_idle()
        (agent,) = await harness.store.agents.rows(parent.id)
        paid = query(harness.store.path, "SELECT conversation_id FROM model_calls WHERE purpose = 'sampling'")
        assert [tuple(row) for row in paid] == [(agent.id,)]
        assert (parent.record.totals.input_tokens, parent.record.agents_totals.input_tokens) == (200, 207)


async def test_a_server_without_the_setting_or_without_a_user_is_not_told_that_it_may_sample(tmp_path: Path) -> None:
    for name, definition, has_user in (("off", stdio(), True), ("alone", SAMPLES, False)):
        (place := tmp_path / name).mkdir()
        async with hub_in(place, definition) as one:
            one.hub.asks.asker = asker_of(Asker()) if has_user else None
            await one.hub.prepare(one.record)
            output = await one.call("mcp__kinds__sample")
        assert output.text == f"{ERROR}Sampling not supported.", name


class Asker:
    """Answers once the test does."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, SampleRequest]] = []
        self.answer: asyncio.Future[SampleAnswer] = asyncio.get_running_loop().create_future()

    async def ask(self, conversation_id: str, server: str, form: ServerForm) -> FormAnswer:
        """Not asked here."""
        raise AssertionError

    async def sample(self, conversation_id: str, server: str, request: SampleRequest) -> SampleAnswer:
        """Remember the request."""
        self.asked.append((conversation_id, request))
        return await self.answer


def asker_of(asker: Asker) -> UserAsker:
    return UserAsker(asker.ask, asker.sample)


def a_request(text: str = "hi", **more: Any) -> ServerAsk:
    content = {"type": "text", "text": text}
    params = {"messages": [{"role": "user", "content": content}], "maxTokens": 10, **more}
    return ServerAsk(ask=1, server="key", kind="sampling", params=raw(params))


async def told(
    asks: ServerAsks, request: ServerAsk, server: AskingServer, meanwhile: Callable[[], object] = lambda: None
) -> str:
    """The error that the server gets."""
    found: list[Raw] = []
    asks.take(request, server, found.append)
    meanwhile()
    await until(lambda: found)
    (answer,) = found
    return str(json.loads(bytes(answer))["refused"]) if answer != NO_SAMPLE else "withdrawn"


async def test_requests_without_a_call_or_the_setting_and_unreadable_ones_ask_nobody() -> None:
    asks, server = ServerAsks(), AskingServer(SAMPLES)
    asker = Asker()
    asks.asker = asker_of(asker)
    no_call = "Sampling requests are answered only while a tool call of a conversation runs."
    assert await told(asks, a_request(), server) == no_call
    asks.begin("key", "c1")
    assert await told(asks, a_request(), AskingServer(stdio())) == "Sampling is off for this server."
    assert await told(asks, a_request(maxTokens=-5), server) == "maxTokens of a sampling request must be at least 1."
    assert asker.asked == []
    assert server.log[-1].startswith("warning: a sampling request was not answered: maxTokens")


async def test_a_request_that_its_server_takes_back_while_the_question_is_open_ends_it() -> None:
    asks, server, found = ServerAsks(), AskingServer(SAMPLES), list[Raw]()
    asker = Asker()
    asks.asker = asker_of(asker)
    asks.begin("key", "c1")
    asks.take(a_request(), server, found.append)
    await until(lambda: asker.asked)
    asks.withdraw(1)
    await until(lambda: found)
    assert found == [NO_SAMPLE]
    assert asker.answer.cancelled()


class SlowToEnd(Asker):
    """An asker with a model that takes some turns of the loop to end."""

    ended = False

    async def sample(self, conversation_id: str, server: str, request: SampleRequest) -> SampleAnswer:
        """End late."""
        try:
            return await super().sample(conversation_id, server, request)
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            self.ended = True


async def test_a_call_ends_behind_the_model_that_answers_its_request_so_that_its_run_has_the_cost() -> None:
    asks = ServerAsks()
    asker = SlowToEnd()
    asks.asker = asker_of(asker)

    class Asking:
        """A server that samples, and answers its call without waiting."""

        async def call(self, tool: str, args: JsonObject, report: Report) -> Content:
            """Return once the user is asked."""
            asks.take(a_request(), AskingServer(SAMPLES), lambda _: None)
            await until(lambda: asker.asked)
            return Content(parts=[])

    await asks.caller("key", "c1", Asking()).call("t", {}, lambda _: None)
    assert asker.ended
